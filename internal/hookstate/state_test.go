package hookstate_test

import (
	"testing"

	"github.com/abhed/abhed/internal/hookstate"
)

func store(t testing.TB, opts hookstate.Options) *hookstate.Store {
	t.Helper()
	s, err := hookstate.Open(t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCallIDs(t *testing.T) {
	x := store(t, hookstate.Options{}).Session("codex", "s1")
	one, err1 := x.Before("k")
	two, err2 := x.Before("k")
	if err1 != nil || err2 != nil || one == two {
		t.Fatalf("%q, %q, %v, %v", one, two, err1, err2)
	}
	for _, want := range []string{one, two, ""} {
		if got, ok, err := x.After("k"); got != want || ok != (want != "") || err != nil {
			t.Errorf("%q %v %v, want %q", got, ok, err, want)
		}
	}
	if three, _ := x.Before("k"); three == one || three == two {
		t.Error("an id came twice")
	}
	if _, ok, _ := x.After("other"); ok {
		t.Error("another key has a call")
	}
}

func TestDenied(t *testing.T) {
	x := store(t, hookstate.Options{}).Session("codex", "s1")
	for want := range 3 {
		if got, err := x.Denied("k", ""); got != want || err != nil {
			t.Errorf("%d, %v, want %d", got, err, want)
		}
	}
}

func TestOnce(t *testing.T) {
	x := store(t, hookstate.Options{}).Session("codex", "s1")
	for i := range 3 {
		got, again, err := x.Once("k", func() []byte { return []byte{byte(i)} })
		if err != nil || again != (i > 0) || got[0] != 0 {
			t.Errorf("%v %v %v", got, again, err)
		}
	}
}
