package glob_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/tool/glob"
	"github.com/abhed/abhed/internal/tool/tooltest"
)

func found(t *testing.T, dir string, args m) []string {
	t.Helper()
	res := tooltest.Run(t.Context(), t, glob.New(glob.Options{}), tooltest.Options{WorkDir: dir}, args)
	lines := strings.Fields(res.Content)
	slices.Sort(lines)
	return lines
}

// TestIgnoredCopies: I114. Copies in an ignored folder are not found, unless they are
// asked for.
func TestIgnoredCopies(t *testing.T) {
	dir := tree(t, "real.go", "wt/1/real.go", "wt/2/real.go", "wt/3/real.go", "wt/4/real.go", "sub/gen/real.go", ".git/HEAD", "kept/wt.go")
	os.WriteFile(dir+"/.gitignore", []byte("wt/\n"), 0o644)
	os.WriteFile(dir+"/sub/.gitignore", []byte("/gen\n"), 0o644) // beside: by the file of a folder below
	for _, tt := range []struct {
		args m
		want string
	}{
		{m{"pattern": "real.go"}, "real.go"},
		{m{"pattern": "real.go", "path": "wt"}, "wt/1/real.go wt/2/real.go wt/3/real.go wt/4/real.go"},
		{m{"pattern": "real.go", "include_ignored": true}, "real.go sub/gen/real.go wt/1/real.go wt/2/real.go wt/3/real.go wt/4/real.go"},
		{m{"pattern": "real.go", "path": "sub/gen"}, "sub/gen/real.go"},
		{m{"pattern": "wt.go"}, "kept/wt.go"},
	} {
		if got := strings.Join(found(t, dir, tt.args), " "); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.args, got, tt.want)
		}
	}
}

// TestLinkLoops: I116. Links that lead in circles end the search as well as none.
func TestLinkLoops(t *testing.T) {
	dir := tree(t, "a.go", "sub/b.go", "x/c.go", "y/d.go")
	for _, l := range [][2]string{{".", "loop"}, {"a", "a"}, {"..", "sub/up"}, {"../y", "x/y"}, {"../x", "y/x"}} { // the last two beside
		if err := os.Symlink(l[0], filepath.Join(dir, l[1])); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(found(t, dir, m{"pattern": "**/*.go"}), " "); got != "a.go sub/b.go x/c.go y/d.go" {
		t.Errorf("%s", got)
	}
}

// TestNamesKeepToTheirLine: a name with a line break in it is one path of the answer.
func TestNamesKeepToTheirLine(t *testing.T) {
	dir := tree(t, "a.go", "b\n(and 7 more).go", "c\x1b[2J.go")
	res := tooltest.Run(t.Context(), t, glob.New(glob.Options{}), tooltest.Options{WorkDir: dir}, m{"pattern": "*.go"})
	if want := `c\x1b[2J.go` + "\n" + `b\n(and 7 more).go` + "\na.go\n"; res.Content != want {
		t.Errorf("%q, want %q", res.Content, want)
	}
}
