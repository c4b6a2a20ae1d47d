package hookstate_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/hookstate"
)

// TestCallsFollowTheModel holds that any order of beginnings and ends pairs as lists
// would, that ids are never given twice, and that they are the same in another place
// for the same calls.
func TestCallsFollowTheModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var dirs [2]*hookstate.Session
		for i := range dirs {
			dir, err := os.MkdirTemp(t.TempDir(), "")
			if err != nil {
				rt.Fatal(err)
			}
			s, err := hookstate.Open(dir, hookstate.Options{Entries: 1000})
			if err != nil {
				rt.Fatal(err)
			}
			dirs[i] = s.Session("codex", "s")
		}
		open, seen := map[string][]string{}, map[string]bool{}
		for range rapid.IntRange(1, 15).Draw(rt, "steps") {
			key := rapid.SampledFrom([]string{"a", "b", strings.Repeat("c", 100)}).Draw(rt, "key")
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0, 1:
				id, err := dirs[0].Before(key)
				other, err2 := dirs[1].Before(key)
				if err != nil || err2 != nil || seen[id] || id != other || !strings.HasPrefix(id, "ahp-") {
					rt.Fatalf("%q, %q, %v, %v", id, other, err, err2)
				}
				seen[id], open[key] = true, append(open[key], id)
			case 2:
				id, ok, err := dirs[0].After(key)
				other, _, _ := dirs[1].After(key)
				want := ""
				if len(open[key]) > 0 {
					want, open[key] = open[key][0], open[key][1:]
				}
				if err != nil || id != want || other != want || ok != (want != "") {
					rt.Fatalf("%q, %q, %v, want %q", id, other, err, want)
				}
			case 3:
				if n := len(open[key]); n > 0 {
					last := open[key][n-1]
					if err := errors.Join(dirs[0].Refused(key, last), dirs[1].Refused(key, last)); err != nil {
						rt.Fatal(err)
					}
					open[key] = open[key][:n-1]
				}
			}
		}
	})
}

// TestBounds holds that state stays small, and that what was dropped gives no id twice.
func TestBounds(t *testing.T) {
	dir := t.TempDir()
	s, err := hookstate.Open(dir, hookstate.Options{Sessions: 5, Entries: 10, Window: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	x, seen := s.Session("codex", "s"), map[string]bool{}
	for i := range 60 {
		key := fmt.Sprint("k", i%15)
		id, err := x.Before(key)
		if err != nil || seen[id] {
			t.Fatalf("%q came twice, %v", id, err)
		}
		seen[id] = true
		if i%2 == 0 {
			if _, _, err := x.After(key); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := x.Denied(strings.Repeat("k", i*10), ""); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(dir + "/sessions/*")
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Size() > 4096 || info.Mode().Perm() != 0o600 {
		t.Errorf("%d bytes, mode %o, %v", info.Size(), info.Mode().Perm(), err)
	}
	for i := range 20 {
		old := time.Now().Add(time.Duration(i-1000) * time.Second)
		y := s.Session("codex", fmt.Sprint("s", i))
		if _, err := y.Before("k"); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, "sessions", hookstate.Key("codex", fmt.Sprint("s", i))+".json"), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if files, _ = filepath.Glob(dir + "/sessions/*"); len(files) != 5 {
		t.Errorf("%d sessions", len(files))
	}
	if _, err := os.Stat(filepath.Join(dir, "sessions", hookstate.Key("codex", "s19")+".json")); err != nil {
		t.Error(err)
	}
}

// TestDeliveriesAreSwept holds that answers don't stay.
func TestDeliveriesAreSwept(t *testing.T) {
	dir := t.TempDir()
	s, err := hookstate.Open(dir, hookstate.Options{Window: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	x := s.Session("codex", "s")
	old := time.Now().Add(-2 * time.Minute)
	for i := range 10 {
		if _, _, err := x.Once(fmt.Sprint(i), func() []byte { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	files, _ := filepath.Glob(dir + "/deliveries/*.once")
	for _, f := range append(files, dir+"/deliveries/.swept") {
		if err := os.Chtimes(f, old, old); err != nil {
			t.Fatal(err)
		}
	}
	_, _, err = x.Once("busy", func() []byte {
		left, _ := filepath.Glob(dir + "/deliveries/*.once")
		if len(left) != 1 {
			t.Errorf("%d are left", len(left))
		}
		for _, f := range append(left, dir+"/deliveries/.swept") {
			if err := os.Chtimes(f, old, old); err != nil {
				t.Error(err)
			}
		}
		// "busy" is in use, so that it stays.
		if _, _, err := x.Once("new", func() []byte { return nil }); err != nil {
			t.Error(err)
		}
		return []byte("kept")
	})
	if err != nil || len(files) != 10 {
		t.Errorf("%d before, %v", len(files), err)
	}
	if answer, again, err := x.Once("busy", func() []byte { return nil }); string(answer) != "kept" || !again || err != nil {
		t.Errorf("what was in use is gone: %s, %v, %v", answer, again, err)
	}
}

// TestAnswersAreSealed holds that the text of an answer doesn't come to the disk, and that
// what was changed there is no answer.
func TestAnswersAreSealed(t *testing.T) {
	dir := t.TempDir()
	s, err := hookstate.Open(dir, hookstate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	once := func(answer string) string {
		got, _, err := s.Session("codex", "s").Once("k", func() []byte { return []byte(answer) })
		if err != nil {
			t.Fatal(err)
		}
		return string(got)
	}
	once("refused: the command holds hunter22")
	path := filepath.Join(dir, "deliveries", hookstate.Key("codex", "s", "k")+".once")
	text, err := os.ReadFile(path)
	if err != nil || len(text) < 40 || strings.Contains(string(text), "hunter22") || strings.Contains(string(text), "command") {
		t.Fatalf("%q, %v", text, err)
	}
	if got := once("judged again"); got != "refused: the command holds hunter22" {
		t.Error(got)
	}
	for at := range text {
		changed := slices.Clone(text)
		changed[at] ^= 1
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := once("judged again"); got != "judged again" {
			t.Fatalf("byte %d was changed: %s", at, got)
		}
	}
}

// TestKilledWhileWriting holds that what a kill may leave behind keeps nobody from going on.
func TestKilledWhileWriting(t *testing.T) {
	dir := t.TempDir()
	s, err := hookstate.Open(dir, hookstate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := s.Session("codex", "s")
	first, err := x.Before("k")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "sessions", hookstate.Key("codex", "s")+".json")
	if err := os.WriteFile(path+".new", []byte(`{"half`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := x.After("k"); got != first || !ok || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	once := filepath.Join(dir, "deliveries", hookstate.Key("codex", "s", "k")+".once")
	if _, _, err := x.Once("k", func() []byte { return []byte("whole answer") }); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(once)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range whole {
		if err := os.WriteFile(once, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if got, again, err := x.Once("k", func() []byte { return []byte("judged") }); string(got) != "judged" || again || err != nil {
			t.Fatalf("with %d bytes: %s, %v, %v", cut, got, again, err)
		}
	}
}

// TestRefusesWhatIsNotItsOwn holds that nothing is taken from, or written to, what
// somebody else put there.
func TestRefusesWhatIsNotItsOwn(t *testing.T) {
	state := filepath.Join("sessions", hookstate.Key("codex", "s")+".json")
	once := filepath.Join("deliveries", hookstate.Key("codex", "s", "k")+".once")
	write := func(text string) func(string) error {
		return func(p string) error { return os.WriteFile(p, []byte(text), 0o600) }
	}
	both := map[string]struct {
		make func(path string) error
		want string
	}{
		"link":     {func(p string) error { return os.Symlink("/etc/hostname", p) }, "too many levels"},
		"pipe":     {func(p string) error { return syscall.Mkfifo(p, 0o600) }, "expected a regular file"},
		"folder":   {func(p string) error { return os.Mkdir(p, 0o700) }, "directory"},
		"readable": {func(p string) error { return errors.Join(write("")(p), os.Chmod(p, 0o640)) }, "found mode 0640, expected 0600"},
		"others'":  {func(p string) error { return errors.Join(write("")(p), os.Chown(p, 1234, 1234)) }, "owned by account 1234"},
	}
	states := map[string]struct {
		make func(path string) error
		want string
	}{
		"noise":   {write("noise"), "remove the file to begin anew"},
		"newer":   {write(`{"version":2}`), "found version 2"},
		"unknown": {write(`{"version":1,"calls":[],"denied":[],"more":1}`), "more"},
		"huge":    {func(p string) error { return errors.Join(write("")(p), os.Truncate(p, 8<<30)) }, "the limit is"},
	}
	for name, c := range both {
		t.Run(name, func(t *testing.T) {
			if name == "others'" && os.Geteuid() != 0 {
				t.Log("only root can give a file away, so this is not tried")
				return
			}
			dir := t.TempDir()
			s, err := hookstate.Open(dir, hookstate.Options{})
			if err == nil {
				err = errors.Join(c.make(filepath.Join(dir, state)), c.make(filepath.Join(dir, once)))
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Session("codex", "s").Before("k"); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), state) {
				t.Errorf("Before: %v", err)
			}
			if got, _, err := s.Session("codex", "s").Once("k", func() []byte { t.Error("judged"); return nil }); err == nil || got != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Once: %v", err)
			}
		})
	}
	for name, c := range states {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := hookstate.Open(dir, hookstate.Options{})
			if err == nil {
				err = c.make(filepath.Join(dir, state))
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.Session("codex", "s").After("k"); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), state) {
				t.Errorf("%v", err)
			}
		})
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "sessions"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := hookstate.Open(dir, hookstate.Options{}); err == nil || !strings.Contains(err.Error(), "expected 0700") {
		t.Errorf("an open folder: %v", err)
	}
}
