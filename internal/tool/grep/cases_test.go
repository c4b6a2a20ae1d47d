package grep_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/tool/grep"
	"github.com/abhed/abhed/internal/workspace"
)

// TestIgnoredCopies: I114. Copies in an ignored folder are not searched, unless they are
// asked for.
func TestIgnoredCopies(t *testing.T) {
	dir := tree(t, "real.go", "needle", "wt/1/real.go", "needle", "wt/2/real.go", "needle", "wt/3/real.go", "needle", "wt/4/real.go", "needle",
		"out/real.go", "needle", ".git/HEAD", "ref", ".git/info/exclude", "out/\n", ".gitignore", "wt/\n")
	for _, tt := range []struct {
		args m
		want int
	}{
		{m{"pattern": "needle"}, 1}, {m{"pattern": "needle", "path": "wt"}, 4}, {m{"pattern": "needle", "path": "wt/2/real.go"}, 1},
		{m{"pattern": "needle", "include_ignored": true}, 6}, {m{"pattern": "needle", "path": "out"}, 1}, // beside: by the repository's own list
	} {
		if res := run(t, dir, grep.Options{}, tt.args); res.IsError || strings.Count(res.Content, "1:needle") != tt.want {
			t.Errorf("%v: %q, want %d", tt.args, res.Content, tt.want)
		}
	}
}

// TestLinkLoops: I116. Links that lead in circles are searched once, by their real place,
// and said at most once.
func TestLinkLoops(t *testing.T) {
	dir := tree(t, "a.go", "needle", "sub/b.go", "needle", "x/c.go", "needle", "y/d.go", "needle")
	for _, l := range [][2]string{{".", "loop"}, {"a", "a"}, {"..", "sub/up"}, {"../y", "x/y"}, {"../x", "y/x"}, {"a.go", "alias.go"}} { // the last three beside
		if err := os.Symlink(l[0], filepath.Join(dir, l[1])); err != nil {
			t.Fatal(err)
		}
	}
	res := run(t, dir, grep.Options{}, m{"pattern": "needle", "glob": "**/*.go", "output": "files"})
	if res.Content != "y/d.go\nx/c.go\nsub/b.go\na.go\n" || strings.Contains(res.Content, "too many") {
		t.Errorf("%q", res.Content)
	}
}

// TestLongLine: I129, for a search: what is shown of a line of 1.5 MB is the match.
func TestLongLine(t *testing.T) {
	dir := tree(t, "one", strings.Repeat("x", 1_500_000)+"needle", "beside", strings.Repeat("\xff", 700_000)+"needle"+strings.Repeat("é", 400_000))
	for _, name := range []string{"one", "beside"} {
		res := run(t, dir, grep.Options{}, m{"pattern": "needle", "path": name})
		if res.IsError || len(res.Content) > 2500 || !strings.Contains(res.Content, "needle") || strings.Contains(res.Content, "\uFFFD") {
			t.Errorf("%s: %d bytes: %.300q", name, len(res.Content), res.Content)
		}
	}
}

// TestNamesKeepToTheirLine: a name with a line break in it doesn't pass for a match.
func TestNamesKeepToTheirLine(t *testing.T) {
	dir := tree(t, "a\n7:forged", "needle")
	for output, want := range map[string]string{
		"content": `a\n7:forged` + "\n1:needle\n", "files": `a\n7:forged` + "\n", "count": `a\n7:forged` + ": 1\n(1 lines in 1 files)\n",
	} {
		if res := run(t, dir, grep.Options{}, m{"pattern": "needle", "output": output}); res.Content != want {
			t.Errorf("%s: %q, want %q", output, res.Content, want)
		}
	}
}

// TestSaysWhatWasNotSearched: files past the bounds are counted, not passed over in
// silence.
func TestSaysWhatWasNotSearched(t *testing.T) {
	dir := tree(t, "d1/f", "needle", "d2/f", "needle", "d3/f", "needle", "d4/f", "needle")
	if res := run(t, dir, grep.Options{MaxFiles: 2}, m{"pattern": "needle"}); !strings.Contains(res.Content, "(the search ended after 2 files; search a smaller folder)\n") {
		t.Errorf("more files than are searched: %q", res.Content)
	}
	for name, size := range map[string]int64{"big": workspace.MaxFile + 1, "across": 8<<20 + 1} { // full of holes
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("needle\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
	}
	if res := run(t, dir, grep.Options{}, m{"pattern": "needle", "output": "files"}); !strings.Contains(res.Content, "(1 files of more than 64 MiB were not searched)\n") {
		t.Errorf("a large file: %q", res.Content)
	}
	if res := run(t, dir, grep.Options{}, m{"pattern": "needle", "output": "files", "multiline": true}); !strings.Contains(res.Content, "(2 files of more than 8 MiB were not searched)\n") {
		t.Errorf("a large file, by matches that cross lines: %q", res.Content)
	}
}
