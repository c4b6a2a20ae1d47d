package hooklog_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/chain"
	"github.com/abhed/abhed/internal/hooklog"
)

func add(t testing.TB, l *hooklog.Log, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := l.Append(&hooklog.Entry{ID: id}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSecretsNeverReachTheDisk puts a secret in every text of a decision.
func TestSecretsNeverReachTheDisk(t *testing.T) {
	const own, shaped = "marlin-is-mine", "ghp_aaaaaaaaaaaaaaaaaaaaaaaa"
	dir := t.TempDir() + "/log"
	l := open(t, dir, hooklog.Options{Secrets: []string{own}, MaxBytes: 4096})
	text := "see " + own + " and " + shaped
	raw := ahp.Raw(`{"env":{"DB_PASSWORD":"hunter22"},"text":"` + text + `"}`)
	for range 20 {
		err := l.Append(&hooklog.Entry{
			ID: text, Host: text, HostVersion: text, Native: text, Type: ahp.EventType(text), Session: text, Turn: text, Call: text, Tool: text, Mode: text,
			Registration: []hooklog.Source{{Path: text}}, Applied: text, Reason: text, Code: text, Problem: text, Event: raw, Time: text,
			Answers: []hooklog.Answer{{Backend: text, Effects: []ahp.Raw{raw}, Failure: &hooklog.Failure{Class: text, Detail: text}, Policy: text}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{own, shaped, "hunter22"} {
			if bytes.Contains(data, []byte(s)) {
				t.Errorf("%s is in %s", s, f.Name())
			}
		}
		if info, _ := f.Info(); info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o", f.Name(), info.Mode().Perm())
		}
	}
	if info, _ := os.Stat(dir); info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %o", info.Mode().Perm())
	}
	if _, err := hooklog.Open(dir, hooklog.Options{Secrets: []string{"short"}}); err == nil {
		t.Error("a short secret was taken")
	}
}

// TestAnyEntry holds that any decision comes back as it was appended, whatever its event
// holds: an event may look like a line of the log.
func TestAnyEntry(t *testing.T) {
	dir := t.TempDir() + "/log"
	l := open(t, dir, hooklog.Options{MaxBytes: 64 << 10, Keep: 1000})
	zero := strings.Repeat("0", chain.HashSize)
	var want []hooklog.Entry
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringN(0, 40, 200), rapid.SampledFrom([]string{`"hash":"`, `"prev":"`, `","seq":1`, `"hash":"` + zero + `",`, `\`, `"`}))
		event := rapid.SampledFrom([]ahp.Raw{nil, ahp.Raw(`{"hash":"` + zero + `","prev":"` + zero + `","seq":1,"type":"x"}`), ahp.Raw(`[1.50,{"b":2,"a":"\u0041"}]`), ahp.Raw(`"` + zero + `"`)})
		e := hooklog.Entry{
			ID: text.Draw(t, "id"), Host: text.Draw(t, "host"), Reason: text.Draw(t, "reason"), Tool: text.Draw(t, "tool"), Repeat: rapid.Int().Draw(t, "repeat"), Type: ahp.EventType(text.Draw(t, "type")),
			Event: event.Draw(t, "event"), Answers: []hooklog.Answer{{Backend: text.Draw(t, "backend"), Effects: []ahp.Raw{ahp.Raw(`{"hash":"` + zero + `","seq":1}`)}}},
			Duplicate: rapid.Bool().Draw(t, "duplicate"), Milliseconds: rapid.Int64().Draw(t, "ms"), Registration: []hooklog.Source{{Path: text.Draw(t, "path"), SHA256: zero}},
		}
		if err := l.Append(&e); err != nil {
			t.Fatal(err)
		}
		want = append(want, e)
	})
	sound(t, dir)
	i := 0
	err := hooklog.Read(dir, func(got *hooklog.Entry) error {
		w := want[i]
		i++
		if got.ID != w.ID || got.Host != w.Host || got.Reason != w.Reason || got.Tool != w.Tool || got.Repeat != w.Repeat || got.Type != w.Type || !got.Event.Equal(w.Event) ||
			got.Answers[0].Backend != w.Answers[0].Backend || got.Duplicate != w.Duplicate || got.Milliseconds != w.Milliseconds || got.Registration[0] != w.Registration[0] ||
			got.Seq != w.Seq || got.Prev != w.Prev || got.Hash != w.Hash || got.Time != w.Time {
			return fmt.Errorf("got %+v, want %+v", got, w)
		}
		return nil
	})
	if err != nil || i != len(want) {
		t.Errorf("%d of %d: %v", i, len(want), err)
	}
}

func TestTornLine(t *testing.T) {
	dir := t.TempDir() + "/log"
	path := filepath.Join(dir, hooklog.File)
	l := open(t, dir, hooklog.Options{})
	for round, before := range []int{0, 1, 3} {
		for i := range before {
			add(t, l, fmt.Sprint(round, i))
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(`{"answers":[`); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if r, err := hooklog.Verify(dir, nil); err != nil || !r.OK() || r.Torn != 12 {
			t.Fatalf("torn: %+v, %v", r, err)
		}
		add(t, l, fmt.Sprint("after", round))
		if e, err := hooklog.Find(dir, fmt.Sprint("after", round)); err != nil || e.Cut != 12 {
			t.Fatalf("%+v, %v", e, err)
		}
		if r, err := hooklog.Verify(dir, nil); err != nil || !r.OK() || r.Torn != 0 || r.Cut != round+1 {
			t.Fatalf("%+v, %v", r, err)
		}
	}
}

// TestKilledInRotation makes each state in which a kill may leave the files.
func TestKilledInRotation(t *testing.T) {
	for name, leave := range map[string]func(path string) error{
		"the new file is begun": func(p string) error { return os.WriteFile(p+".new", []byte("half"), 0o600) },
		"two names for one":     func(p string) error { return os.Link(p, p+".1") },
		"moved on":              func(p string) error { return os.Rename(p+".1", p+".2") },
		"the new file is empty": func(p string) error {
			return errors.Join(os.Rename(p+".1", p+".2"), os.Rename(p, p+".1"), os.WriteFile(p, nil, 0o600))
		},
		"no newest file": func(p string) error { return errors.Join(os.Rename(p+".1", p+".2"), os.Rename(p, p+".1")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir() + "/log"
			path := filepath.Join(dir, hooklog.File)
			l := open(t, dir, hooklog.Options{MaxBytes: 2048, Keep: 100})
			n := 0
			for has := ""; has == "" && name != "two names for one" || n < 3; n++ {
				add(t, l, fmt.Sprint("e", n))
				if _, err := os.Stat(path + ".1"); err == nil {
					has = path
				}
			}
			if err := leave(path); err != nil {
				t.Fatal(err)
			}
			if ids := sound(t, dir); len(ids) != n {
				t.Errorf("before the next: %v", ids)
			}
			for range 30 {
				add(t, l, fmt.Sprint("e", n))
				n++
			}
			if ids := sound(t, dir); len(ids) != n {
				t.Errorf("%d of %d: %v", len(ids), n, ids)
			}
			files, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if info, err := f.Info(); err != nil || info.Sys().(*syscall.Stat_t).Nlink != 1 {
					t.Errorf("%s has another name too, %v", f.Name(), err)
				}
			}
		})
	}
}

// TestRefusesWhatIsNotItsOwn holds that nothing is written to a place that somebody else
// made, and that the error names it.
func TestRefusesWhatIsNotItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		make func(dir, file string) error
		want string
	}{
		"link":            {func(d, f string) error { return os.Symlink(filepath.Join(filepath.Dir(d), "elsewhere"), f) }, "symbolic link"},
		"pipe":            {func(_, f string) error { return syscall.Mkfifo(f, 0o600) }, "expected a regular file"},
		"folder":          {func(_, f string) error { return os.Mkdir(f, 0o700) }, "directory"},
		"readable":        {func(_, f string) error { return errors.Join(os.WriteFile(f, nil, 0o600), os.Chmod(f, 0o644)) }, "found mode 0644, expected 0600"},
		"readable folder": {func(d, _ string) error { return os.Chmod(d, 0o755) }, "found mode 0755, expected 0700"},
		"linked folder": {func(d, _ string) error {
			return errors.Join(os.Remove(d), os.Mkdir(d+"2", 0o700), os.Symlink(d+"2", d))
		}, "expected a folder"},
		"noise":          {func(_, f string) error { return os.WriteFile(f, []byte("noise\n"), 0o600) }, "the last line isn't one of a log"},
		"huge":           {func(_, f string) error { return errors.Join(os.WriteFile(f, nil, 0o600), os.Truncate(f, 8<<30)) }, "no line within its last"},
		"others' file":   {func(_, f string) error { return errors.Join(os.WriteFile(f, nil, 0o600), os.Chown(f, 1234, 1234)) }, "owned by account 1234"},
		"others' folder": {func(d, _ string) error { return os.Chown(d, 1234, 1234) }, "another account"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "others'") && os.Geteuid() != 0 {
				t.Logf("only root can give a file away, so this is not tried")
				return
			}
			dir := filepath.Join(t.TempDir(), "log")
			if err := errors.Join(os.Mkdir(dir, 0o700), c.make(dir, filepath.Join(dir, hooklog.File))); err != nil {
				t.Fatal(err)
			}
			l, err := hooklog.Open(dir, hooklog.Options{})
			if err == nil {
				l.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), c.want) && !(name == "link" && strings.Contains(err.Error(), "too many levels")) {
				t.Errorf("the error is %v, expected %q", err, c.want)
			}
			if !strings.Contains(err.Error(), dir) {
				t.Errorf("the error doesn't name the place: %v", err)
			}
		})
	}
}

// TestReplacedUnderAWriter holds that an open log notices what happens to its files.
func TestReplacedUnderAWriter(t *testing.T) {
	dir := t.TempDir() + "/log"
	path := filepath.Join(dir, hooklog.File)
	l := open(t, dir, hooklog.Options{})
	add(t, l, "a")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	add(t, l, "b")
	if ids := sound(t, dir); ids["b"] != 1 || len(ids) != 1 {
		t.Errorf("%v", ids)
	}
	if err := errors.Join(os.Remove(path), os.Symlink("/dev/null", path)); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(&hooklog.Entry{ID: "c"}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("wrote behind a link: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	add(t, l, "d") // it is usable again
	if ids := sound(t, dir); ids["d"] != 1 {
		t.Errorf("%v", ids)
	}
}

func TestLockedByAnother(t *testing.T) {
	dir := t.TempDir() + "/log"
	l := open(t, dir, hooklog.Options{LockWait: 30 * time.Millisecond})
	f, err := os.Open(filepath.Join(dir, hooklog.File))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(&hooklog.Entry{ID: "a"}); !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), "another process has held it") {
		t.Errorf("%v", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	add(t, l, "b")
}

// TestReadersWait holds that a reader sees no line that is being written.
func TestReadersWait(t *testing.T) {
	dir := t.TempDir() + "/log"
	add(t, open(t, dir, hooklog.Options{}), "a", "b")
	path := filepath.Join(dir, hooklog.File)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	whole, err := os.ReadFile(path)
	if err == nil {
		err = errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_EX), f.Truncate(int64(len(whole)-10)))
	}
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		r   *hooklog.Report
		err error
	}
	done := make(chan result, 1)
	go func() {
		r, err := hooklog.Verify(dir, nil)
		done <- result{r, err}
	}()
	select {
	case got := <-done:
		t.Fatalf("it didn't wait: %+v, %v", got.r, got.err)
	case <-time.After(100 * time.Millisecond):
	}
	if _, err := f.WriteAt(whole, 0); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got.err != nil || !got.r.OK() || got.r.Torn != 0 || got.r.Lines != 2 {
		t.Errorf("%+v, %v", got.r, got.err)
	}
}

func TestNoLog(t *testing.T) {
	dir := t.TempDir()
	if err := hooklog.Read(dir, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := hooklog.Find(dir, "x"); !errors.Is(err, hooklog.ErrNotFound) {
		t.Error(err)
	}
	if _, err := hooklog.Verify(dir, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
