package grep_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/tool/grep"
	"github.com/abhed/abhed/internal/tool/tooltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type m = map[string]any

// tree makes files from name, content pairs, each newer than the one before.
func tree(t testing.TB, pairs ...string) string {
	dir := t.TempDir()
	at := time.Now().Add(-time.Hour)
	for i := 0; i < len(pairs); i += 2 {
		path := filepath.Join(dir, pairs[i])
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(pairs[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
		os.Chtimes(path, at, at.Add(time.Duration(i)*time.Second))
	}
	return dir
}

func run(t testing.TB, dir string, o grep.Options, args m) tool.Result {
	t.Helper()
	return tooltest.Run(t.Context(), t, grep.New(o), tooltest.Options{WorkDir: dir}, args)
}

func TestGrep(t *testing.T) {
	dir := tree(t, "a.go", "one\nTwo foo\nthree\nfoo four\nfive", "sub/b.txt", "x\r\nfoo\r\ny\r\n", "wt/a.go", "foo", ".hid/c", "foo",
		"bin", "foo\x00", "u16", "\xFF\xFEf\x00o\x00o\x00", "bom", "\xEF\xBB\xBFbomline\n")
	os.WriteFile(dir+"/.gitignore", []byte("wt/\n"), 0o644)
	os.Symlink(".", dir+"/loop")
	os.Symlink("a.go", dir+"/link")
	for _, tt := range []struct {
		args m
		want string
	}{
		{m{"pattern": "foo"}, "u16\n1:foo\nsub/b.txt\n2:foo\na.go\n2:Two foo\n4:foo four\n"},
		{m{"pattern": "foo$", "glob": "*.txt"}, "sub/b.txt\n2:foo\n"},
		{m{"pattern": "^foo", "path": "a.go"}, "a.go\n4:foo four\n"},
		{m{"pattern": `\Afoo`, "path": "a.go"}, "a.go\n4:foo four\n"},
		{m{"pattern": `five\z`, "path": "a.go"}, "a.go\n5:five\n"},
		{m{"pattern": "^bomline$"}, "bom\n1:bomline\n"},
		{m{"pattern": "two", "ignore_case": true}, "a.go\n2:Two foo\n"},
		{m{"pattern": "two"}, "(no match for \"two\" in 5 files; ignored and hidden ones were not searched)\n(1 binary files were not searched)\n"},
		{m{"pattern": "three", "context": 1}, "a.go\n2-Two foo\n3:three\n4-foo four\n"},
		{m{"pattern": "one|five", "context": 1, "path": "a.go"}, "a.go\n1:one\n2-Two foo\n--\n4-foo four\n5:five\n"},
		{m{"pattern": "foo", "context": 1, "path": "a.go"}, "a.go\n1-one\n2:Two foo\n3-three\n4:foo four\n5-five\n"},
		{m{"pattern": "foo", "output": "files"}, "u16\nsub/b.txt\na.go\n"},
		{m{"pattern": "foo", "output": "count"}, "u16: 1\nsub/b.txt: 1\na.go: 2\n(4 lines in 3 files)\n"},
		{m{"pattern": "foo", "limit": 2}, "u16\n1:foo\nsub/b.txt\n2:foo\n(2 of 4 matching lines shown, in 2 of 3 files; narrow the search or raise limit)\n"},
		{m{"pattern": "foo", "limit": 3}, "u16\n1:foo\nsub/b.txt\n2:foo\na.go\n2:Two foo\n(3 of 4 matching lines shown, in 3 of 3 files; narrow the search or raise limit)\n"},
		{m{"pattern": "foo", "output": "files", "limit": 1}, "u16\n(and 2 more files)\n"},
		{m{"pattern": "foo", "path": "wt"}, "wt/a.go\n1:foo\n"},
		{m{"pattern": "foo", "include_ignored": true, "output": "files"}, "u16\n.hid/c\nwt/a.go\nsub/b.txt\na.go\n"},
		{m{"pattern": `foo\nthree`, "multiline": true}, "a.go\n2:Two foo\n3:three\n"},
		{m{"pattern": `(?s)foo.*four`, "multiline": true, "path": "a.go"}, "a.go\n2:Two foo\n3:three\n4:foo four\n"},
		{m{"pattern": `foo\nthree`, "path": "a.go"}, "(no match for \"foo\\\\nthree\" in 1 files)\n"},
		{m{"pattern": `foo\s+three`, "path": "a.go"}, "(no match for \"foo\\\\s+three\" in 1 files)\n"},
	} {
		res := run(t, dir, grep.Options{}, tt.args)
		if res.IsError || res.Content != tt.want {
			t.Errorf("%v: %q (error %v), want %q", tt.args, res.Content, res.IsError, tt.want)
		}
	}
}

func TestRefuses(t *testing.T) {
	dir := tree(t, "a", "x")
	for _, tt := range []struct {
		args m
		want string
	}{
		{m{"pattern": "a(?=b)"}, "RE2"}, {m{"pattern": "("}, "RE2"}, {m{"pattern": "a)(b"}, "RE2"}, {m{"pattern": "x", "glob": "/a"}, "absolute"},
		{m{"pattern": "x", "path": "none"}, "no file or folder none"}, {m{"pattern": "x", "path": "/dev/zero"}, "character device"},
		{m{"pattern": "(((((x{100}){100}){100}){100}){100}){100}"}, "RE2"},
	} {
		res := run(t, dir, grep.Options{}, tt.args)
		if !res.IsError || !strings.Contains(res.Content, tt.want) {
			t.Errorf("%v: %q (error %v), want %q in it", tt.args, res.Content, res.IsError, tt.want)
		}
	}
	for _, raw := range []string{`{}`, `{"pattern":""}`, `{"pattern":"x","output":"lines"}`, `{"pattern":"x","context":-1}`, `{"pattern":"x","type":"go"}`} {
		if tooltest.Check(t, grep.New(grep.Options{}), raw) == nil {
			t.Errorf("%s was accepted", raw)
		}
	}
}

func TestDeniedIsNotSearched(t *testing.T) {
	dir := tree(t, ".env", "KEY=hunter2", "sub/.env", "KEY=hunter2", "a", "KEY=x")
	o := grep.Options{Denied: func(p string) bool { return filepath.Base(p) == ".env" }}
	if res := run(t, dir, o, m{"pattern": "KEY", "include_ignored": true}); res.Content != "a\n1:KEY=x\n" {
		t.Errorf("%q", res.Content)
	}
}

func TestBounds(t *testing.T) {
	dir := tree(t, "long", strings.Repeat("é", 700_000)+"needle"+strings.Repeat("x", 100_000), "many", strings.Repeat("needle in a line of text\n", 100_000))
	res := run(t, dir, grep.Options{}, m{"pattern": "needle", "path": "long"})
	if len(res.Content) > 600 || !strings.Contains(res.Content, "needle") || !strings.Contains(res.Content, "(1500006 bytes)") || strings.Contains(res.Content, `\x`) {
		t.Errorf("%d bytes: %.300q", len(res.Content), res.Content)
	}
	res = run(t, dir, grep.Options{}, m{"pattern": "needle", "path": "many", "limit": 5000})
	if len(res.Content) > 49<<10 || !strings.Contains(res.Content, "of 100000 matching lines shown") {
		t.Errorf("%d bytes ending in %q", len(res.Content), res.Content[len(res.Content)-100:])
	}
}

// TestEndsWithContext: expressions that are slow on a large file don't hold up the end.
func TestEndsWithContext(t *testing.T) {
	dir := tree(t, "f", strings.Repeat("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab q\n", 400_000))
	for _, args := range []m{{"pattern": `(a|b)*c|q`, "output": "count"}, {"pattern": `a[^z]*z|q`, "output": "count"}, {"pattern": `(?s)a.*z|q`, "multiline": true}} {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		begin := time.Now()
		tooltest.Run(ctx, t, grep.New(grep.Options{}), tooltest.Options{WorkDir: dir}, args)
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%v took %v", args, took)
		}
		cancel()
	}
}

// TestSameAsLineByLine compares with the plain way: each line by itself.
func TestSameAsLineByLine(t *testing.T) {
	dir := t.TempDir()
	piece := rapid.SampledFrom([]string{"a", "b", "ab", "\n", "\n", "\r\n", " ", "foo"})
	exprs := rapid.SampledFrom([]string{"a", "^a", "a$", "^$", "$", "a*", "ab|b", "[^a]", `\s`, `a\sb`, `foo`, `fo+`, `[^b]+a`, `(?i)FOO`, `\bfoo\b`, "x?", `\Aa`, `b\z`, "foo.*a", "(foo)+", "a.*foo$"})
	rapid.Check(t, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfN(piece, 0, 20).Draw(r, "text"), "")
		expr := exprs.Draw(r, "expr")
		if err := os.WriteFile(dir+"/f", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		var want []string
		re := regexp.MustCompile(expr)
		lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
		if lines[len(lines)-1] == "" {
			lines = lines[:len(lines)-1]
		}
		for i, line := range lines {
			if re.MatchString(line) {
				want = append(want, fmt.Sprintf("%d:%s", i+1, line))
			}
		}
		var got []string
		for line := range strings.Lines(run(t, dir, grep.Options{}, m{"pattern": expr, "path": "f"}).Content) {
			if line != "f\n" && !strings.HasPrefix(line, "(no match") {
				got = append(got, strings.TrimSuffix(line, "\n"))
			}
		}
		if !slices.Equal(got, want) {
			r.Fatalf("%q in %q: %q, want %q", expr, text, got, want)
		}
	})
}

func BenchmarkGrep(b *testing.B) {
	rg := ""
	if path, err := exec.LookPath("rg"); err == nil {
		rg = path
	}
	var pairs []string
	for i := range 5000 {
		pairs = append(pairs, fmt.Sprintf("d%d/e%d/f.go", i%70, i), strings.Repeat("some line of text with words\n", 100))
	}
	dir := tree(b, append(pairs, "needle.go", "func needle() {}\n")...)
	for _, pattern := range []string{"func needle", `fun[ck] \w+edle`} {
		b.Run("own/"+pattern, func(b *testing.B) {
			for b.Loop() {
				if res := run(b, dir, grep.Options{}, m{"pattern": pattern}); !strings.Contains(res.Content, "needle.go") {
					b.Fatal(res.Content)
				}
			}
		})
		b.Run("rg/"+pattern, func(b *testing.B) {
			if rg == "" {
				require.Missing(b, "rg", "not in PATH")
			}
			for b.Loop() {
				if err := exec.Command(rg, "-q", pattern, dir).Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
