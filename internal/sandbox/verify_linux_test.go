package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/abhed/abhed/internal/proc"
)

// TestMountsAreLookedAt lets what is mounted be other than what was meant, as when a
// path is made to lead elsewhere between both, and holds that the command isn't run.
func TestMountsAreLookedAt(t *testing.T) {
	for _, folder := range []string{"x", `with space and \ and	tab`} {
		b := newBox(t)
		secret := b.write(folder+"/secret", "hidden")
		b.write("frozen/f", "good")
		outside := t.TempDir()
		if err := os.WriteFile(filepath.Join(outside, "key"), []byte("hunter2"), 0o600); err != nil {
			t.Fatal(err)
		}
		b.policy.Hidden = []string{secret}
		b.policy.Protected = []string{filepath.Join(b.ws, "frozen"), filepath.Join(b.ws, "none") + "/"}
		script := `cat */key; echo changed >frozen/f; echo ran`
		change := map[string]func(args []string) []string{
			"as it is": func(args []string) []string { return args },
			"another folder": func(args []string) []string {
				args[mountAt(t, args, filepath.Join(b.ws, folder))] = outside
				return args
			},
			"another frozen folder": func(args []string) []string {
				args[mountAt(t, args, filepath.Join(b.ws, "frozen"))] = outside
				return args
			},
			"nothing hidden": func(args []string) []string {
				i := mountAt(t, args, secret)
				return slices.Delete(args, i-1, i+2)
			},
			"nothing frozen": func(args []string) []string {
				i := mountAt(t, args, filepath.Join(b.ws, "frozen"))
				return slices.Delete(args, i-1, i+2)
			},
		}
		for about, how := range change {
			spec, err := b.plan.Confine(proc.Spec{Path: "bash", Args: []string{"-c", script}, Dir: b.ws, Env: b.env, NoInput: true, MergeStderr: true}, b.policy)
			if err != nil {
				t.Fatal(err)
			}
			spec.Args = how(spec.Args)
			out := runSpec(t, spec)
			ran := strings.Contains(out, "ran\n")
			if ran != (about == "as it is") || strings.Contains(out, "hunter2") || !ran && !strings.Contains(out, "was replaced while the sandbox was set up") {
				t.Errorf("%s, %s: %q", folder, about, out)
			}
		}
		if got := b.read("frozen/f"); got != "good" {
			t.Errorf("the frozen file holds %q", got)
		}
	}
}

// mountAt returns where the source of the last mount of a place stands in args.
func mountAt(t *testing.T, args []string, place string) int {
	t.Helper()
	for i := len(args) - 2; i > 0; i-- {
		if args[i+1] == place && (args[i-1] == "--bind" || args[i-1] == "--ro-bind") {
			return i
		}
	}
	t.Fatalf("nothing is mounted at %q: %q", place, args)
	return 0
}

// runSpec runs a command and returns what it said.
func runSpec(t *testing.T, spec proc.Spec) string {
	t.Helper()
	child, err := proc.Start(spec)
	if err != nil {
		t.Fatal(err)
	}
	defer child.Kill()
	var out []byte
	for err == nil {
		var p []byte
		p, err = child.Read(t.Context())
		out = append(out, p...)
	}
	return string(out)
}

// TestSwappedFolder swaps a folder in the workspace for a link to a secret all the
// while commands are started.
func TestSwappedFolder(t *testing.T) {
	b := newBox(t)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "key"), []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	hidden := b.write("x/.env", "hidden")
	link := filepath.Join(b.ws, "y")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	b.policy.Hidden = []string{hidden, filepath.Join(link, ".env")}
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, filepath.Join(b.ws, "x"), unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
			}
		}
	})
	defer swapping.Wait()
	defer close(stop)
	for range 60 {
		spec, err := b.plan.Confine(proc.Spec{Path: "bash", Args: []string{"-c", `cat x/key y/key; echo x >x/new; echo y >y/new`}, Dir: b.ws, Env: b.env, NoInput: true, MergeStderr: true}, b.policy)
		if err != nil {
			continue // what is seen to be no folder isn't mounted
		}
		if out := runSpec(t, spec); strings.Contains(out, "hunter2") {
			t.Errorf("a command was given a folder outside its root: %q", out)
		}
	}
	if _, err := os.Stat(filepath.Join(outside, "new")); err == nil {
		t.Error("a command wrote outside its root")
	}
}
