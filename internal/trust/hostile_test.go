package trust_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/roletest"
	"github.com/abhed/abhed/internal/trust"
)

func TestMain(m *testing.M) { roletest.Main(m, add) }

// add makes the test program another process that adds files: STORE DIR.
func add(role []string) int {
	s := trust.Open(role[0])
	for i := range 10 {
		path := filepath.Join(role[1], fmt.Sprint(i))
		err := os.WriteFile(path, nil, 0o600)
		if err == nil {
			err = s.Add(path, []byte(path))
		}
		if err != nil {
			fmt.Println(err)
			return 1
		}
	}
	return 0
}

// place returns a project's file and a store that trusts it with the content "one".
func place(t testing.TB) (file, store string, s *trust.Store) {
	t.Helper()
	dir := t.TempDir()
	file, store = filepath.Join(dir, "registration.json"), filepath.Join(dir, "state", "trust.json")
	if err := os.WriteFile(file, []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	s = trust.Open(store)
	if err := s.Add(file, []byte("one")); err != nil {
		t.Fatal(err)
	}
	return file, store, s
}

// TestExactBytes holds that nothing but the very content is trusted.
func TestExactBytes(t *testing.T) {
	file, _, s := place(t)
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.OneOf(rapid.SliceOfN(rapid.Byte(), 0, 8), rapid.Just([]byte("one")), rapid.Just([]byte("one\n"))).Draw(t, "content")
		if got := s.Trusted(file, content); got != bytes.Equal(content, []byte("one")) {
			t.Fatalf("%q: trusted %v", content, got)
		}
	})
}

// TestPaths holds that trust is that of a place, whatever leads there, and of no other.
func TestPaths(t *testing.T) {
	file, _, s := place(t)
	dir := filepath.Dir(file)
	link, linked := filepath.Join(dir, "link"), filepath.Join(dir, "linked")
	copied := filepath.Join(dir, "copy.json")
	if err := errors.Join(os.Symlink(file, link), os.Symlink(dir, linked), os.WriteFile(copied, []byte("one"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		file: true, link: true, filepath.Join(linked, "registration.json"): true, dir + "/./x/../registration.json": false, dir + "/./registration.json": true,
		copied: false, filepath.Join(dir, "gone"): false, "": false, "registration.json": false,
	} {
		if got := s.Trusted(path, []byte("one")); got != want {
			t.Errorf("%s: trusted %v", path, got)
		}
	}
	// A link that leads elsewhere later is another place.
	if err := errors.Join(os.Remove(link), os.Symlink(copied, link)); err != nil {
		t.Fatal(err)
	}
	if s.Trusted(link, []byte("one")) {
		t.Error("what a link led to before is trusted still")
	}
	if err := s.Add(file, []byte("two")); err != nil || s.Trusted(file, []byte("one")) || !s.Trusted(file, []byte("two")) {
		t.Errorf("after another content: %v", err)
	}
	if err := s.Add(filepath.Join(dir, "gone"), nil); err == nil {
		t.Error("a file that isn't there was added")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if was, err := s.Remove(file); !was || err != nil {
		t.Errorf("a file that is gone: %v, %v", was, err)
	}
	if was, err := s.Remove(file); was || err != nil {
		t.Errorf("again: %v, %v", was, err)
	}
	if list, err := s.List(); len(list) != 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}

// TestStoreThatCanNotBeUsed holds that it trusts nothing, says why, and is left as it is.
func TestStoreThatCanNotBeUsed(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	text := func(s string) func(string) error {
		return func(p string) error { return os.WriteFile(p, []byte(s), 0o600) }
	}
	for name, c := range map[string]struct {
		do   func(store string) error
		want string
	}{
		"empty":           {text(""), "empty input"},
		"noise":           {text("noise"), "not valid JSON"},
		"cut":             {text(`{"version":1,"trusted":[`), "ends too early"},
		"newer":           {text(`{"version":2,"trusted":[]}`), "found version 2"},
		"unknown member":  {text(`{"version":1,"trusted":[],"except":[]}`), "except"},
		"unknown in it":   {text(`{"version":1,"trusted":[{"path":"/a","sha256":"` + sum + `","time":"","only":1}]}`), "only"},
		"relative path":   {text(`{"version":1,"trusted":[{"path":"a","sha256":"` + sum + `","time":""}]}`), "expected an absolute path"},
		"upper-case hash": {text(`{"version":1,"trusted":[{"path":"/a","sha256":"` + strings.ToUpper(sum) + `","time":""}]}`), "lower-case"},
		"twice":           {text(`{"version":1,"trusted":[{"path":"/a","sha256":"` + sum + `","time":""},{"path":"/a","sha256":"` + sum + `","time":""}]}`), "each once"},
		"huge":            {func(p string) error { return os.Truncate(p, 8<<30) }, "the limit is"},
		"readable":        {func(p string) error { return os.Chmod(p, 0o644) }, "found mode 0644, expected 0600"},
		"open folder":     {func(p string) error { return os.Chmod(filepath.Dir(p), 0o755) }, "found mode 0755, expected 0700"},
		"link":            {func(p string) error { return errors.Join(os.Rename(p, p+"2"), os.Symlink(p+"2", p)) }, "too many levels"},
		"pipe":            {func(p string) error { return errors.Join(os.Remove(p), syscall.Mkfifo(p, 0o600)) }, "expected a regular file"},
		"linked folder": {func(p string) error {
			d := filepath.Dir(p)
			return errors.Join(os.Rename(d, d+"2"), os.Symlink(d+"2", d))
		}, "expected a folder"},
		"others'": {func(p string) error { return os.Chown(p, 1234, 1234) }, "owned by account 1234"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "others'" && os.Geteuid() != 0 {
				t.Log("only root can give a file away, so this is not tried")
				return
			}
			file, store, s := place(t)
			if err := c.do(store); err != nil {
				t.Fatal(err)
			}
			if s.Trusted(file, []byte("one")) {
				t.Error("it trusts")
			}
			if err := s.Err(); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), filepath.Dir(store)) {
				t.Errorf("Err: %v, expected %q", err, c.want)
			}
			if err := s.Add(file, []byte("one")); err == nil {
				t.Error("something was added to it")
			}
			if _, err := s.Remove(file); err == nil {
				t.Error("something was removed from it")
			}
		})
	}
}

// TestProcesses holds that changes of several processes don't undo each other, and that a
// reader never sees half a store.
func TestProcesses(t *testing.T) {
	file, store, s := place(t)
	var wg sync.WaitGroup
	for range 5 {
		cmd := roletest.Command(store, t.TempDir())
		wg.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		if !s.Trusted(file, []byte("one")) {
			t.Fatalf("for a moment it trusts nothing: %v", s.Err())
		}
	}
	if list, err := s.List(); len(list) != 51 || err != nil {
		t.Errorf("%d entries, %v", len(list), err)
	}
	left, err := filepath.Glob(filepath.Dir(store) + "/*")
	if err != nil || len(left) != 2 { // the store and its lock
		t.Errorf("%v, %v", left, err)
	}
	for _, f := range left {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f, info.Mode(), err)
		}
	}
}
