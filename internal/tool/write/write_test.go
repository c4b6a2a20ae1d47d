package write_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/tool/tooltest"
	"github.com/abhed/abhed/internal/tool/write"
	"github.com/abhed/abhed/internal/workspace"
)

type m = map[string]any

type world struct {
	*testing.T
	dir     string
	tracker *workspace.Tracker
}

func newWorld(t *testing.T) *world {
	return &world{t, t.TempDir(), workspace.NewTracker()}
}

func (w *world) put(name, content string) {
	w.Helper()
	if err := os.WriteFile(filepath.Join(w.dir, name), []byte(content), 0o644); err != nil {
		w.Fatal(err)
	}
}

// read makes the file known, as the read tool does.
func (w *world) read(name string) {
	w.Helper()
	forms, err := policy.Resolve(w.dir, name, "")
	if err != nil {
		w.Fatal(err)
	}
	s, err := workspace.Read(forms.Place)
	if err != nil {
		w.Fatal(err)
	}
	w.tracker.Saw(forms.Place.Path, s)
}

func (w *world) holds(name, want string) {
	w.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil || string(data) != want {
		w.Errorf("%s holds %q (%v), want %q", name, data, err, want)
	}
}

func (w *world) write(name, content string) tool.Result {
	w.Helper()
	return tooltest.Run(w.Context(), w, write.New(w.tracker), tooltest.Options{WorkDir: w.dir}, m{"path": name, "content": content})
}

func TestCreates(t *testing.T) {
	w := newWorld(t)
	for _, content := range []string{"", "a\nb", "a\r\nb\r\n", "\uFEFFx\n", "é\n"} {
		os.RemoveAll(filepath.Join(w.dir, "a"))
		res := w.write("a/b/c", content)
		if res.IsError {
			t.Errorf("%q: %s", content, res.Content)
		}
		w.holds("a/b/c", content) // verbatim, whatever the system's line endings
	}
	if res := w.write("a/b/c", "mine"); res.IsError {
		t.Errorf("a file that the agent made is not known to it: %s", res.Content)
	}
}

func TestOverwritesOnlyWhatWasRead(t *testing.T) {
	w := newWorld(t)
	w.put("f", "old")
	if res := w.write("f", "new"); !res.IsError || !strings.Contains(res.Content, "read it first") {
		t.Errorf("not read: %q", res.Content)
	}
	w.holds("f", "old")
	w.read("f")
	w.put("f", "theirs")
	if res := w.write("f", "new"); !res.IsError || !strings.Contains(res.Content, "changed on disk") {
		t.Errorf("changed since: %q", res.Content)
	}
	w.holds("f", "theirs")
	w.read("f")
	if res := w.write("f", "new\n"); res.IsError || res.Content != "Replaced f: 1 lines, 4 bytes, before 1 lines, 6 bytes." {
		t.Errorf("%q", res.Content)
	}
	w.holds("f", "new\n")
	if res := w.write("f", "new\n"); res.IsError || !strings.Contains(res.Content, "nothing was changed") {
		t.Errorf("%q", res.Content)
	}
}

func TestKeepsTheEncoding(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct{ old, content, want, note string }{
		{"\xEF\xBB\xBFa\n", "é\n", "\xEF\xBB\xBFé\n", "UTF-8 with byte-order mark"},
		{"\xEF\xBB\xBFa\n", "\uFEFFb\n", "\xEF\xBB\xBFb\n", "UTF-8 with byte-order mark"},
		{"\xFF\xFEa\x00", "é", "\xFF\xFE\xe9\x00", "UTF-16LE"},
		{"caf\xe9", "café", "café", ""},
		{"a\r\nb\r\n", "a\nc\n", "a\nc\n", "now end in LF"},
	} {
		w.put("f", tt.old)
		w.read("f")
		if res := w.write("f", tt.content); res.IsError || !strings.Contains(res.Content, tt.note) {
			t.Errorf("%q: %q", tt.old, res.Content)
		}
		w.holds("f", tt.want)
	}
}

func TestRefuses(t *testing.T) {
	w := newWorld(t)
	os.Mkdir(filepath.Join(w.dir, "d"), 0o755)
	for _, path := range []string{"d", "new/", "/dev/null"} {
		if res := w.write(path, "x"); !res.IsError {
			t.Errorf("%s: %q", path, res.Content)
		}
	}
	for _, raw := range []string{`{"path":"x"}`, `{"content":"x"}`, `{"path":"x","content":"y","mode":1}`, `{"path":"x","content":null}`} {
		if tooltest.Check(t, write.New(w.tracker), raw) == nil {
			t.Errorf("%s was accepted", raw)
		}
	}
}

func TestLinkStaysALink(t *testing.T) {
	w := newWorld(t)
	w.put("t", "old")
	if err := os.Symlink("t", filepath.Join(w.dir, "l")); err != nil {
		t.Fatal(err)
	}
	w.read("l")
	if res := w.write("l", "new"); res.IsError {
		t.Fatal(res.Content)
	}
	w.holds("t", "new")
	if target, err := os.Readlink(filepath.Join(w.dir, "l")); err != nil || target != "t" {
		t.Errorf("%q, %v", target, err)
	}
}
