package chain

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// lineOf returns a function for Append that makes a line with a text.
func lineOf(text string) func(Place) ([]byte, string, error) {
	return func(p Place) ([]byte, string, error) {
		object := fmt.Sprintf(`{"prev":%q,"seq":%d,"text":%q`, p.Prev, p.Seq, text)
		if p.Cut > 0 {
			object += fmt.Sprintf(`,"cut":%d`, p.Cut)
		}
		if p.Continues != nil {
			object += fmt.Sprintf(`,"continues":%q`, p.Continues.Hash)
		}
		return Seal([]byte(object + "}"))
	}
}

func openLog(t *testing.T, path string, opts FileOptions) *File {
	t.Helper()
	f, err := OpenFile(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// verified returns the text of a sound log of so many lines.
func verified(t *testing.T, path string, lines int64) (string, Link) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Verify(strings.NewReader(string(data)), nil)
	if err != nil || !r.OK() || lines >= 0 && r.Lines != lines {
		t.Fatalf("%s: %d lines, %v, %v", path, r.Lines, r.Problems, err)
	}
	return string(data), r.Head
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	one, two := openLog(t, path, FileOptions{}), openLog(t, path, FileOptions{})
	for i := range 3 {
		if err := errors.Join(one.Append(100, lineOf(fmt.Sprint("a", i))), two.Append(100, lineOf(fmt.Sprint("b", i)))); err != nil {
			t.Fatal(err)
		}
	}
	verified(t, path, 6)
	refused := errors.New("no line")
	if err := one.Append(100, func(Place) ([]byte, string, error) { return nil, "", refused }); !errors.Is(err, refused) {
		t.Errorf("%v", err)
	}
	if err := one.Sync(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(one.Close(), one.Close()); err != nil {
		t.Error(err)
	}
	if err := one.Append(100, lineOf("late")); !errors.Is(err, os.ErrClosed) || !strings.Contains(err.Error(), path) {
		t.Errorf("after Close: %v", err)
	}
	verified(t, path, 6)
}

// TestFileRotates holds that each log begins with the end of the one before, by a heading
// or by the first line, for writers side by side, and that no more are kept than asked.
func TestFileRotates(t *testing.T) {
	for _, heading := range []func(Place) ([]byte, string, error){nil, lineOf("heading")} {
		for _, keep := range []int{1, 3} {
			dir := t.TempDir()
			path := filepath.Join(dir, "log")
			var wg sync.WaitGroup
			for w := range 3 {
				f := openLog(t, path, FileOptions{MaxBytes: 1000, Keep: keep, Heading: heading})
				wg.Go(func() {
					for i := range 20 {
						if err := f.Append(200, lineOf(fmt.Sprint(w, "-", i))); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) != keep+1 {
				t.Fatalf("%d files, expected %d, %v", len(entries), keep+1, err)
			}
			for i := keep; i > 0; i-- {
				_, end := verified(t, fmt.Sprint(path, ".", i), -1)
				next := path
				if i > 1 {
					next = fmt.Sprint(path, ".", i-1)
				}
				text, _ := verified(t, next, -1)
				first, _, _ := strings.Cut(text, "\n")
				if !strings.Contains(first, `"continues":"`+end.Hash+`"`) || (heading != nil) != strings.Contains(first, `"heading"`) || len(text) > 1000 {
					t.Errorf("%s begins with %s", next, first)
				}
			}
		}
	}
}

// TestFileBehindALink holds that a log may be a link unless it is private.
func TestFileBehindALink(t *testing.T) {
	dir := t.TempDir()
	path, real := filepath.Join(dir, "log"), filepath.Join(dir, "real")
	if err := os.Symlink(real, path); err != nil {
		t.Fatal(err)
	}
	f := openLog(t, path, FileOptions{})
	if err := errors.Join(f.Append(100, lineOf("a")), f.Append(100, lineOf("b"))); err != nil {
		t.Fatal(err)
	}
	verified(t, real, 2)
	if f, err := OpenFile(path, FileOptions{Private: true}); err == nil {
		f.Close()
		t.Error("a link was opened as a private log")
	}
}
