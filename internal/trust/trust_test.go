package trust_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/internal/trust"
)

func TestTrust(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "registration.json")
	if err := os.WriteFile(file, []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := trust.Open(filepath.Join(dir, "state", "trust.json"))
	if s.Trusted(file, []byte("one")) || s.Err() != nil {
		t.Error("trusted before")
	}
	if err := s.Add(file, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if !s.Trusted(file, []byte("one")) || s.Trusted(file, []byte("onf")) || s.Trusted(dir, []byte("one")) {
		t.Errorf("after Add: %v", s.Err())
	}
	if was, err := s.Remove(file); !was || err != nil || s.Trusted(file, []byte("one")) {
		t.Errorf("%v, %v", was, err)
	}
}
