package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/require"
)

// place resolves a path as the gate does.
func place(t testing.TB, path string) policy.Place {
	t.Helper()
	forms, err := policy.Resolve("/", path, "")
	if err != nil {
		t.Fatal(err)
	}
	return forms.Place
}

// tree makes files from "path" or "path: content" lines; a path that ends in a slash
// is a folder, "a -> b" a link.
func tree(t testing.TB, dir string, lines ...string) string {
	t.Helper()
	for _, line := range lines {
		name, content, _ := strings.Cut(line, ": ")
		link, target, isLink := strings.Cut(name, " -> ")
		path := filepath.Join(dir, link)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		switch {
		case isLink:
			err = os.Symlink(target, path)
		case strings.HasSuffix(name, "/"):
			err = os.MkdirAll(path, 0o755)
		default:
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func walk(t testing.TB, dir string, o WalkOptions) ([]string, WalkStats) {
	t.Helper()
	var mu sync.Mutex
	names := []string{}
	stats, err := Walk(context.Background(), place(t, dir), o, func(f Found) error {
		mu.Lock()
		defer mu.Unlock()
		names = append(names, f.Rel)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names, stats
}

func TestWalkHonoursIgnoreFiles(t *testing.T) {
	dir := tree(t, t.TempDir(), ".git/info/exclude: excluded\n", ".git/HEAD", "sub/.git/",
		".gitignore: *.log\nwt/\n!keep.log\n/only-top\n", "a.go", "x.log", "keep.log", "only-top", "sub/only-top", "excluded",
		"wt/a.go", "sub/.gitignore: !x.log\nb.go\n", "sub/x.log", "sub/b.go", "sub/deep/x.log", "sub/deep/b.go",
		"own/.gitignore: y\n", "own/.ignore: !y\nz\n", "own/y", "own/z", ".hidden", ".github/w.yml", ".gitignore.bak")
	got, _ := walk(t, dir, WalkOptions{GlobalIgnore: "a.go\n!excluded\n"})
	want := []string{"keep.log", "own/y", "sub/deep/x.log", "sub/only-top", "sub/x.log"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	got, _ = walk(t, dir, WalkOptions{Hidden: true})
	for _, want := range []string{".hidden", ".github/w.yml", ".gitignore", "a.go"} {
		if !slices.Contains(got, want) {
			t.Errorf("with Hidden %q is missing in %q", want, got)
		}
	}
	if got, _ = walk(t, dir, WalkOptions{NoIgnore: true}); !slices.Contains(got, "wt/a.go") || slices.Contains(got, ".git/HEAD") {
		t.Errorf("with NoIgnore %q", got)
	}
	t.Run("from below", func(t *testing.T) {
		got, _ := walk(t, dir+"/sub", WalkOptions{})
		if d := cmp.Diff([]string{"deep/x.log", "only-top", "x.log"}, got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	})
	t.Run("an ignored folder that is asked for", func(t *testing.T) {
		got, _ := walk(t, dir+"/wt", WalkOptions{})
		if d := cmp.Diff([]string{"a.go"}, got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	})
	t.Run("an asked-for folder below an ignored one", func(t *testing.T) {
		tree(t, dir, "wt/in/b.go")
		got, _ := walk(t, dir+"/wt/in", WalkOptions{})
		if d := cmp.Diff([]string{"b.go"}, got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	})
}

func TestWalkEndsInLoops(t *testing.T) {
	dir := tree(t, t.TempDir(), "a.go", "sub/b.go", "loop -> .", "self -> self", "sub/up -> ..", "file -> a.go")
	got, stats := walk(t, dir, WalkOptions{})
	if d := cmp.Diff([]string{"a.go", "sub/b.go"}, got); d != "" || stats.Links != 4 {
		t.Errorf("%d links (-want +got)\n%s", stats.Links, d)
	}
}

func TestWalkBoundsAndErrors(t *testing.T) {
	dir := t.TempDir()
	for i := range 30 {
		tree(t, dir, fmt.Sprintf("d%d/f", i))
	}
	got, stats := walk(t, dir, WalkOptions{MaxFiles: 10})
	if len(got) != 10 || stats.Files != 10 || !stats.Cut {
		t.Errorf("%d files, %+v", len(got), stats)
	}
	_, err := Walk(context.Background(), place(t, dir), WalkOptions{}, func(Found) error { return fs.ErrInvalid })
	if !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("the visitor's error became %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Walk(ctx, place(t, dir), WalkOptions{}, func(Found) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled walk: %v", err)
	}
	if _, err := Walk(context.Background(), place(t, dir+"/d0/f"), WalkOptions{}, nil); err == nil {
		t.Error("a file was walked")
	}
	got, _ = walk(t, dir, WalkOptions{Skip: func(path string, isDir bool) bool { return isDir && !strings.HasSuffix(path, "/d3") }})
	if d := cmp.Diff([]string{"d3/f"}, got); d != "" {
		t.Errorf("with Skip (-want +got)\n%s", d)
	}
}

func TestWildmatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"a*c", "abbc", true}, {"a*c", "ab/c", false}, {"a?c", "a/c", false}, {"?", "é", true}, {"*", "", true},
		{"a/**/b", "a/b", true}, {"a/**/b", "a/x/y/b", true}, {"a/**/b", "ab", false}, {"a/**", "a", false}, {"a/**", "a/b/c", true},
		{"**/a/b*", "x/y/a/bz", true}, {"**/a*b/c", "a/aab/c", true}, {"**/x/*y", "x/x/zy", true}, {"a**b", "a/b", false}, {"a**b", "axyb", true},
		{"[a-c]x", "bx", true}, {"[!a-c]x", "bx", false}, {"[^a]", "/", false}, {"[]]", "]", true}, {"[a", "[a", false}, {"[[:digit:]]*", "7z", true},
		{"[[:upper:]]", "a", false}, {"[\\]]", "]", true}, {"\\*", "*", true}, {"\\*", "x", false}, {"a\\", "a\\", false}, {"[é-ü]", "ö", true},
		{"**/**/**/z", "a/b/c/y", false}, {"*a*a*a*a*b", strings.Repeat("a", 200), false},
	} {
		if got := wildmatch(tt.pattern, tt.name); got != tt.want {
			t.Errorf("wildmatch(%q, %q) = %v", tt.pattern, tt.name, got)
		}
	}
}

// TestIgnoreAsGit compares with git itself on random ignore files.
func TestIgnoreAsGit(t *testing.T) {
	require.Path(t, "git")
	dir := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var paths []string
	for _, a := range []string{"a", "b", "foo", "a.b"} {
		for _, b := range []string{"a", "foo", "x.log"} {
			for _, c := range []string{"b", "foo.log", "ab"} {
				paths = append(paths, a+"/"+b+"/"+c)
			}
		}
	}
	tree(t, dir, paths...)
	piece := rapid.SampledFrom([]string{"a", "b", "foo", "*", "**", "/", "/", "?", ".log", "[ab]", "[!a]", "\\", " ", "!", "#", "ab", "x."})
	rapid.Check(t, func(r *rapid.T) {
		lines := rapid.SliceOfN(rapid.Map(rapid.SliceOfN(piece, 1, 5), func(p []string) string { return strings.Join(p, "") }), 1, 4)
		top, sub := strings.Join(lines.Draw(r, "top"), "\n"), strings.Join(lines.Draw(r, "sub"), "\n")
		tree(t, dir, ".gitignore: "+top, "a/.gitignore: "+sub)
		got, _ := walk(t, dir, WalkOptions{Hidden: true})
		cmd := exec.Command("git", "-c", "core.excludesFile=/dev/null", "ls-files", "-z", "--others", "--exclude-standard")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		if len(out) == 0 {
			want = []string{}
		}
		slices.Sort(want)
		if d := cmp.Diff(want, got); d != "" {
			r.Fatalf(".gitignore %q, a/.gitignore %q (-git +own)\n%s", top, sub, d)
		}
	})
}

func FuzzIgnore(f *testing.F) {
	f.Add("*.log\n!a\n/b/\n", "a/b.log")
	f.Add("[a-\n**/**/x\n\\", "x")
	f.Fuzz(func(t *testing.T, file, path string) {
		path = strings.Trim(path, "/")
		if path == "" {
			return
		}
		l := &level{rules: parseRules(file)}
		l.ignores(path, filepath.Base(path), false)
	})
}

// bigTree makes n files in folders of 50 with an ignore file.
func bigTree(b testing.TB, n int) string {
	dir := b.TempDir()
	os.WriteFile(dir+"/.gitignore", []byte("*.o\nbuild/\n/dist\n*.tmp\nnode_modules\n"), 0o644)
	os.Mkdir(dir+"/.git", 0o755)
	os.WriteFile(dir+"/.git/HEAD", nil, 0o644)
	for i := range n / 50 {
		sub := fmt.Sprintf("%s/d%d/e%d/f%d", dir, i%20, i/20%20, i)
		os.MkdirAll(sub, 0o755)
		for j := range 50 {
			os.WriteFile(fmt.Sprintf("%s/file%d.go", sub, j), bytes.Repeat([]byte("some line of text\n"), 30), 0o644)
		}
	}
	return dir
}

func BenchmarkWalk(b *testing.B) {
	dir := bigTree(b, 20000)
	b.Run("own", func(b *testing.B) {
		for b.Loop() {
			if _, err := Walk(context.Background(), place(b, dir), WalkOptions{}, func(Found) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("rg", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("rg", "--files", dir).Run(); err != nil {
				b.Skip(err)
			}
		}
	})
}

// TestGlobIsBounded refuses patterns whose matching takes ever longer.
func TestGlobIsBounded(t *testing.T) {
	for pattern, fine := range map[string]bool{
		"{a,b}/{c,d}.{go,ts}": true, strings.Repeat("{a,a}", 24): false, strings.Repeat("{a,b}", 8): true, strings.Repeat("{a,b}", 9): false,
		`\{a,b\}` + strings.Repeat("x", 10): true, strings.Repeat("*a", 33): false, "**/*.go": true, "{a,{b,c},{d,e}}": true,
	} {
		if _, err := ParseGlob(pattern); (err == nil) != fine {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}
