package hookd_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/hookd"
)

// TestRepositoryOfOddFiles holds that what a repository has in place of the files that
// are looked at is not waited for, and not read without an end.
func TestRepositoryOfOddFiles(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	w.register(w.document(hook{mode: "allow", policy: "fail-closed"}))
	for name, put := range map[string]func(path string) error{
		"pipe":   func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"zeros":  func(p string) error { return os.Symlink("/dev/zero", p) },
		"loop":   func(p string) error { return os.Symlink(filepath.Base(p), p) },
		"folder": func(p string) error { return os.Mkdir(p, 0o700) },
		"huge": func(p string) error {
			f, err := os.Create(p)
			if err != nil {
				return err
			}
			defer f.Close()
			return f.Truncate(1 << 40)
		},
	} {
		for _, odd := range []string{".git", ".ahp/registration.json"} {
			dir := filepath.Join(w.home, name+filepath.Base(odd))
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, odd)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := put(filepath.Join(dir, odd)); err != nil {
				t.Fatal(err)
			}
			ended := later(func() hookd.Answer { return w.do(hookd.Call{Data: bash("s", name+odd, dir, "echo hi")}) })
			select {
			case a := <-ended:
				if a.Code != hookd.ExitPass {
					t.Errorf("%s as %s: %d %s", odd, name, a.Code, said(a))
				}
			case <-time.After(30 * time.Second):
				t.Fatalf("%s as %s: the call didn't end", odd, name)
			}
		}
	}
}

// later returns what f returns, once it does.
func later(f func() hookd.Answer) <-chan hookd.Answer {
	c := make(chan hookd.Answer, 1)
	go func() { c <- f() }()
	return c
}
