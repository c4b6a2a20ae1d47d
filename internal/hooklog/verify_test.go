package hooklog_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/chain"
	"github.com/abhed/abhed/internal/hooklog"
)

// edit changes a file's content.
func edit(path string, f func([]byte) []byte) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, f(data), 0o600)
}

// TestVerifyFindsWhatWasDone makes a log of several files and does something to it.
func TestVerifyFindsWhatWasDone(t *testing.T) {
	lines := func(data []byte) [][]byte { return bytes.SplitAfter(data, []byte("\n")) }
	for name, c := range map[string]struct {
		do   func(path string) error
		want string
		line int
	}{
		"changed": {func(p string) error {
			return edit(p+".1", func(b []byte) []byte {
				return bytes.Replace(b, []byte(`"decision":"deny"`), []byte(`"decision":"pass"`), 1)
			})
		}, "the line was changed", 1},
		"line removed": {func(p string) error {
			return edit(p+".1", func(b []byte) []byte { l := lines(b); return bytes.Join(append(l[:1:1], l[2:]...), nil) })
		}, "number 3, expected 2", 2},
		"end cut off": {func(p string) error {
			return edit(p+".1", func(b []byte) []byte { l := lines(b); return bytes.Join(l[:len(l)-2], nil) })
		}, "lines at that end, or a whole file, are missing", 1},
		"file removed": {func(p string) error { return os.Remove(p + ".2") }, "lines at that end, or a whole file, are missing", 1},
		"start cut off": {func(p string) error {
			return edit(p+".1", func(b []byte) []byte { return bytes.Join(lines(b)[1:], nil) })
		}, "number 2, expected 1", 1},
		"files exchanged": {func(p string) error {
			return errors.Join(os.Rename(p+".1", p+".x"), os.Rename(p+".2", p+".1"), os.Rename(p+".x", p+".2"))
		}, "missing", 1},
		"noise between": {func(p string) error {
			return edit(p+".1", func(b []byte) []byte { return append([]byte("noise\n"), b...) })
		}, "not valid JSON", 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir() + "/log"
			l := open(t, dir, hooklog.Options{MaxBytes: 2048, Keep: 100})
			for i := range 30 {
				if err := l.Append(&hooklog.Entry{ID: fmt.Sprint("e", i), Decision: hooklog.Deny}); err != nil {
					t.Fatal(err)
				}
			}
			sound(t, dir)
			if err := c.do(filepath.Join(dir, hooklog.File)); err != nil {
				t.Fatal(err)
			}
			r, err := hooklog.Verify(dir, nil)
			if err != nil || r.OK() || r.Problems[0].Line != c.line || !strings.Contains(r.Problems[0].What, c.want) {
				t.Errorf("%+v, %v; expected line %d, %s", r, err, c.line, c.want)
			}
		})
	}
}

// TestDamageIsPassedOver holds that a line which can't be read hides no other.
func TestDamageIsPassedOver(t *testing.T) {
	dir := t.TempDir() + "/log"
	add(t, open(t, dir, hooklog.Options{}), "a", "b", "c")
	if err := edit(filepath.Join(dir, hooklog.File), func(b []byte) []byte { return bytes.Replace(b, []byte(`{"hash"`), []byte(`{"hash`), 1) }); err != nil {
		t.Fatal(err)
	}
	var ids string
	err := hooklog.Read(dir, func(e *hooklog.Entry) error { ids += e.ID; return nil })
	var damaged *hooklog.DamagedError
	if ids != "bc" || !errors.As(err, &damaged) || damaged.Lines != 1 || !strings.Contains(err.Error(), hooklog.File+":1: ") {
		t.Errorf("%q, %v", ids, err)
	}
}

func TestSignature(t *testing.T) {
	dir := t.TempDir() + "/log"
	path := filepath.Join(dir, hooklog.File)
	key, err := chain.LoadKey(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	l := open(t, dir, hooklog.Options{MaxBytes: 2048, Keep: 100, Key: key})
	for i := range 30 {
		add(t, l, fmt.Sprint("e", i))
	}
	r, err := hooklog.Verify(dir, key.Public())
	if err != nil || !r.OK() || r.Files < 3 || r.Signed != r.Files {
		t.Fatalf("%+v, %v", r, err)
	}
	other, _ := chain.LoadKey(filepath.Join(t.TempDir(), "key"))
	if r, _ := hooklog.Verify(dir, other.Public()); len(r.Problems) != r.Files || r.Signed != 0 {
		t.Errorf("by another key: %+v", r)
	}
	if err := edit(path, func(b []byte) []byte { return b[:bytes.LastIndexByte(b[:len(b)-1], '\n')+1] }); err != nil {
		t.Fatal(err)
	}
	if r, _ := hooklog.Verify(dir, nil); !r.OK() {
		t.Errorf("without a key nobody can tell: %+v", r)
	}
	if r, _ := hooklog.Verify(dir, key.Public()); len(r.Problems) != 1 || !strings.Contains(r.Problems[0].What, "isn't in the log") {
		t.Errorf("cut off: %+v", r)
	}
	if err := os.Remove(path + chain.HeadSuffix); err != nil {
		t.Fatal(err)
	}
	if r, _ := hooklog.Verify(dir, key.Public()); len(r.Problems) != 1 || !strings.Contains(r.Problems[0].What, "which holds the signature") {
		t.Errorf("without a head: %+v", r)
	}
}

func TestLastAndFind(t *testing.T) {
	dir := t.TempDir() + "/log"
	l := open(t, dir, hooklog.Options{MaxBytes: 2048, Keep: 100})
	for i := range 40 {
		if err := l.Append(&hooklog.Entry{ID: fmt.Sprintf("e%02d", i), Host: []string{"codex", "crush"}[i%2]}); err != nil {
			t.Fatal(err)
		}
	}
	big := hooklog.Entry{Event: []byte(`"` + strings.Repeat("x", 300<<10) + `"`)}
	other := t.TempDir() + "/log"
	l2 := open(t, other, hooklog.Options{})
	for i := range 30 { // some MiB in one file
		e := big
		e.ID = fmt.Sprintf("b%02d", i)
		if err := l2.Append(&e); err != nil {
			t.Fatal(err)
		}
	}
	for n, want := range map[int]string{0: "", 1: "b29", 2: "b28b29", 9: "b21b22b23b24b25b26b27b28b29"} {
		var got string
		last, err := hooklog.Last(other, n, func(*hooklog.Entry) bool { return true })
		for _, e := range last {
			got += e.ID
		}
		if got != want || err != nil {
			t.Errorf("last %d of a large file: %q, %v", n, got, err)
		}
	}
	if last, err := hooklog.Last(other, 100, func(e *hooklog.Entry) bool { return e.ID < "b03" }); len(last) != 3 || err != nil {
		t.Errorf("%d of the oldest, %v", len(last), err)
	}
	for n, want := range map[int]string{0: "", 1: "e39", 3: "e35e37e39", 100: "20"} {
		var got string
		last, err := hooklog.Last(dir, n, func(e *hooklog.Entry) bool { return e.Host == "crush" })
		for _, e := range last {
			got += e.ID
		}
		if n == 100 {
			got = fmt.Sprint(len(last))
		}
		if got != want || err != nil {
			t.Errorf("last %d: %q, %v", n, got, err)
		}
	}
	if e, err := hooklog.Find(dir, "e17"); err != nil || e.ID != "e17" {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := hooklog.Find(dir, "e1"); !errors.Is(err, hooklog.ErrAmbiguous) {
		t.Error(err)
	}
	if _, err := hooklog.Find(dir, "17"); !errors.Is(err, hooklog.ErrNotFound) {
		t.Error(err)
	}
	add(t, l, "e1") // an id that others begin with is found all the same
	if e, err := hooklog.Find(dir, "e1"); err != nil || e.ID != "e1" {
		t.Errorf("%+v, %v", e, err)
	}
}
