package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/ahp"
)

// TestCheckedIn holds that the schemas in the repository are those of the types.
func TestCheckedIn(t *testing.T) {
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("..", ahp.Version)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), names); diff != "" {
		t.Fatalf("%s has other files (-want +got):\n%s", dir, diff)
	}
	for name, data := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(data) {
			t.Errorf("%s isn't what the types say; run: go generate ./ahp/schema", name)
		}
	}
}

func TestStaleConditionFails(t *testing.T) {
	d := ahp.Describe()
	d.Shapes = slices.DeleteFunc(d.Shapes, func(s ahp.Shape) bool { return s.Name == "ManagedPolicy" })
	g := newGenerator(d)
	g.all()
	if len(g.errs) == 0 {
		t.Error("conditions of a type that isn't described passed")
	}
}
