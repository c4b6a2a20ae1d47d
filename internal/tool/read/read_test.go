package read_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/tool/read"
	"github.com/abhed/abhed/internal/tool/tooltest"
	"github.com/abhed/abhed/internal/workspace"
)

type m = map[string]any

func file(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, dir string, args m) tool.Result {
	t.Helper()
	return tooltest.Run(t.Context(), t, read.New(workspace.NewTracker(), read.Options{}), tooltest.Options{WorkDir: dir}, args)
}

func TestShows(t *testing.T) {
	dir := t.TempDir()
	file(t, dir, "lf", "one\ntwo\n")
	file(t, dir, "empty", "")
	file(t, dir, "crlf", "a\r\nb\r\n")
	file(t, dir, "mixed", "a\r\nb\nc\n")
	file(t, dir, "bom", "\xEF\xBB\xBFone\ntwo")
	file(t, dir, "utf16", "\xFF\xFEh\x00i\x00")
	file(t, dir, "latin", "caf\xe9\n")
	for _, tt := range []struct {
		args m
		want string
	}{
		{m{"path": "lf"}, "1\tone\n2\ttwo\n"},
		{m{"path": "lf", "offset": 2}, "2\ttwo\n(lf: lines 2-2 of 2)\n"},
		{m{"path": "lf", "limit": 1}, "1\tone\n(lf: lines 1-1 of 2; go on with offset 2)\n"},
		{m{"path": dir + "/lf"}, "1\tone\n2\ttwo\n"},
		{m{"path": "empty"}, "(empty is empty: 0 bytes of text)"},
		{m{"path": "crlf"}, "1\ta\n2\tb\n(crlf: lines 1-2 of 2; CRLF line endings)\n"},
		{m{"path": "mixed"}, "1\ta\n2\tb\n3\tc\n(mixed: lines 1-3 of 3; mixed line endings: 2 LF, 1 CRLF)\n"},
		{m{"path": "bom"}, "1\tone\n2\ttwo\n(bom: lines 1-2 of 2; UTF-8 with byte-order mark; no newline at the end)\n"},
		{m{"path": "utf16"}, "1\thi\n(utf16: lines 1-1 of 1; UTF-16LE; no newline at the end)\n"},
		{m{"path": "latin"}, "1\tcaf\\xe9\n(latin: lines 1-1 of 1; 8-bit text that is not UTF-8; bytes that are not UTF-8 are shown as \\xNN)\n"},
	} {
		if res := run(t, dir, tt.args); res.IsError || res.Content != tt.want {
			t.Errorf("%v: %q (error %v), want %q", tt.args, res.Content, res.IsError, tt.want)
		}
	}
}

func TestRefuses(t *testing.T) {
	dir := t.TempDir()
	file(t, dir, "lf", "one\ntwo\n")
	file(t, dir, "zip", "PK\x03\x04\x14\x00\x00\x00")
	file(t, dir, "img.txt", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	file(t, dir, "Makefile", "x")
	for _, tt := range []struct {
		args m
		want []string
	}{
		{m{"path": "lf", "offset": 3}, []string{"lf has 2 lines", "offset 3"}},
		{m{"path": "zip"}, []string{"not a text file", "8 bytes", "application/zip"}},
		{m{"path": "img.txt"}, []string{"not a text file", "image/png"}},
		{m{"path": "makefile"}, []string{"no file makefile", "Makefile"}},
		{m{"path": "no/such/dir"}, []string{"no file no/such/dir"}},
		{m{"path": "/dev/zero"}, []string{"character device"}},
		{m{"path": "/proc/self/mem"}, []string{"pseudo file system"}},
	} {
		res := run(t, dir, tt.args)
		for _, want := range tt.want {
			if !res.IsError || !strings.Contains(res.Content, want) {
				t.Errorf("%v: %q (error %v), want %q in it", tt.args, res.Content, res.IsError, want)
			}
		}
	}
}

func TestListsFolders(t *testing.T) {
	dir := t.TempDir()
	file(t, dir, "sub/b", "12")
	if err := os.Symlink("b", dir+"/sub/link"); err != nil {
		t.Fatal(err)
	}
	os.Mkdir(dir+"/sub/a", 0o755)
	want := "sub is a folder with 3 entries:\na/\nb\t2 bytes\nlink\tsymbolic link\n"
	if res := run(t, dir, m{"path": "sub"}); res.Content != want {
		t.Errorf("%q", res.Content)
	}
	os.MkdirAll(dir+"/odd/a\nforged", 0o755)
	if res := run(t, dir, m{"path": "odd"}); res.Content != "odd is a folder with 1 entries:\n"+`a\nforged/`+"\n" {
		t.Errorf("a name with a line break: %q", res.Content)
	}
	it := read.New(workspace.NewTracker(), read.Options{MaxEntries: 1})
	if res := tooltest.Run(t.Context(), t, it, tooltest.Options{WorkDir: dir}, m{"path": "sub"}); !strings.Contains(res.Content, "and 2 more") {
		t.Errorf("%q", res.Content)
	}
}

func TestBounds(t *testing.T) {
	dir := t.TempDir()
	file(t, dir, "long", strings.Repeat("é", 750_000))
	res := run(t, dir, m{"path": "long"})
	if len(res.Content) > 3000 || !strings.Contains(res.Content, "more bytes in this line") || strings.Contains(res.Content, "\uFFFD") || strings.Contains(res.Content, `\x`) {
		t.Errorf("%d bytes: %.80q…", len(res.Content), res.Content)
	}
	var b bytes.Buffer
	for i := range 5000 {
		fmt.Fprintf(&b, "line %d %s\n", i+1, strings.Repeat("x", 50))
	}
	file(t, dir, "many", b.String())
	res = run(t, dir, m{"path": "many"})
	if len(res.Content) > 66<<10 || !strings.Contains(res.Content, "of 5000; the rest did not fit into 65536 bytes; go on with offset ") {
		t.Errorf("%d bytes, ending in %q", len(res.Content), res.Content[len(res.Content)-100:])
	}
}

func TestLargeFile(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(dir + "/big")
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("x", 1<<16-1) + "\n"
	for range 64<<20/len(line) + 1 {
		f.WriteString(line)
	}
	f.WriteString("last")
	f.Close()
	res := run(t, dir, m{"path": "big", "offset": 1025, "limit": 5})
	if res.IsError || !strings.HasPrefix(res.Content, "1025\txxx") || !strings.Contains(res.Content, "\n1026\tlast\n") {
		t.Errorf("error %v: …%q", res.IsError, res.Content[max(0, len(res.Content)-200):])
	}
	if res := run(t, dir, m{"path": "big", "offset": 9999}); !res.IsError || !strings.Contains(res.Content, "1026 lines") {
		t.Errorf("%q", res.Content)
	}
}

func TestTracksWhatWasShown(t *testing.T) {
	dir := t.TempDir()
	file(t, dir, "f", "x")
	tracker := workspace.NewTracker()
	tooltest.Run(t.Context(), t, read.New(tracker, read.Options{}), tooltest.Options{WorkDir: dir}, m{"path": "f"})
	forms, err := policy.Resolve(dir, "f", "")
	if err != nil {
		t.Fatal(err)
	}
	now, err := workspace.Read(forms.Place)
	if err != nil {
		t.Fatal(err)
	}
	if err := tracker.Check(forms.Place.Path, now); err != nil {
		t.Error(err)
	}
}

func TestPlaceThatMovedIsRefused(t *testing.T) {
	dir := t.TempDir()
	file(t, dir, "a/f", "mine")
	file(t, dir, "b/f", "hunter2")
	res := tooltest.Run(t.Context(), t, read.New(workspace.NewTracker(), read.Options{}), tooltest.Options{WorkDir: dir, Judged: func() {
		os.Rename(dir+"/a", dir+"/c")
		os.Symlink("b", dir+"/a")
	}}, m{"path": "a/f"})
	if !res.IsError || strings.Contains(res.Content, "hunter2") {
		t.Errorf("%q", res.Content)
	}
}

func TestSchema(t *testing.T) {
	it := read.New(workspace.NewTracker(), read.Options{})
	for _, raw := range []string{`{}`, `{"path":""}`, `{"path":"x","offset":0}`, `{"path":"x","lines":3}`, `{"path":"x","limit":"3"}`, `[]`} {
		if tooltest.Check(t, it, raw) == nil {
			t.Errorf("%s was accepted", raw)
		}
	}
}
