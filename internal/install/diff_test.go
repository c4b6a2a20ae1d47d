package install

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/confedit"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/require"
)

func TestDiff(t *testing.T) {
	t.Parallel()
	p := &Plan{Files: []File{
		{Path: "/a", Action: Change, Before: []byte("1\n2\n3\n4\n5\n6\n7\n8\n"), After: []byte("1\n2\n3\nx\n5\n6\n7\n8\ny\n")},
		{Path: "/new", Action: Create, After: []byte("\"API_KEY\": \"sk-1\", \"x\": \"y\"\n")},
		{Path: "/same", Action: Keep, Before: []byte("z"), After: []byte("z")},
		{Path: "/gone", Action: Remove, Before: []byte("z\n")},
	}}
	want := `--- /a
+++ /a
@@ -2,7 +2,8 @@
 2
 3
-4
+x
 5
 6
 7
 8
+y
--- /dev/null
+++ /new
@@ -0,0 +1,1 @@
+"API_KEY": "…", "x": "y"
--- /gone
+++ /dev/null
@@ -1,1 +0,0 @@
-z
`
	if diff := cmp.Diff(want, p.Diff()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What patch makes of the diff is what was written.
func TestDiffIsAPatch(t *testing.T) {
	t.Parallel()
	git := require.Path(t, "git")
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), 1, 25)
		before := strings.Join(lines.Draw(rt, "before"), "\n") + "\n"
		after := strings.Join(lines.Draw(rt, "after"), "\n") + "\n"
		if before == after {
			return
		}
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte(before), 0o600); err != nil {
			rt.Fatal(err)
		}
		p := &Plan{Files: []File{{Path: "f", Action: Change, Before: []byte(before), After: []byte(after)}}}
		cmd := exec.Command(git, "apply", "-p0", "--unidiff-zero")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(p.Diff())
		if out, err := cmd.CombinedOutput(); err != nil {
			rt.Fatalf("%v: %s\n%s", err, out, p.Diff())
		}
		if got, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || string(got) != after {
			rt.Fatalf("%q, want %q, %v\n%s", got, after, err, p.Diff())
		}
	})
}

// Many at once do one after the other, and each sees what the last one left.
func TestConcurrentInstalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hostconf.User)
	path := filepath.Join(w.o.Roots.Home, ".claude/settings.json")
	w.write(t, path, `{"a":1}`)
	h, _ := hostconf.Lookup("claude-code")
	var wait sync.WaitGroup
	errs := make([]error, 12)
	for i := range errs {
		wait.Go(func() {
			errs[i] = Locked(w.o.State, func() error {
				var p *Plan
				var err error
				if i%2 == 0 {
					p, err = Install(h, hosts.Lookup("claude-code"), w.o)
				} else {
					p, err = Uninstall(h, w.o)
				}
				if err != nil {
					return err
				}
				return p.Apply()
			})
		})
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	w.uninstall(t, "claude-code")
	if got := read(t, path); got != `{"a":1}` {
		t.Errorf("%q", got)
	}
}

// A file that changes between plan and writing is left as it is.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hostconf.User)
	path := filepath.Join(w.o.Roots.Home, ".claude/settings.json")
	h, _ := hostconf.Lookup("claude-code")
	p, err := Install(h, hosts.Lookup("claude-code"), w.o)
	if err != nil {
		t.Fatal(err)
	}
	w.write(t, path, "theirs")
	if err := p.Apply(); !errors.Is(err, confedit.ErrChanged) {
		t.Errorf("%v", err)
	}
	if got := read(t, path); got != "theirs" {
		t.Errorf("%q", got)
	}
}
