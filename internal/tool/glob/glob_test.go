package glob_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/internal/tool/glob"
	"github.com/abhed/abhed/internal/tool/tooltest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type m = map[string]any

// tree makes files, each newer than the one before.
func tree(t *testing.T, names ...string) string {
	dir := t.TempDir()
	at := time.Now().Add(-time.Hour)
	for i, name := range names {
		path := filepath.Join(dir, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		os.Chtimes(path, at, at.Add(time.Duration(i)*time.Second))
	}
	return dir
}

func TestGlob(t *testing.T) {
	dir := tree(t, "a.go", "sub/b.go", "sub/deep/c.go", "sub/d.txt", ".github/w.yml", "wt/a.go", "old.tmp", "café.md")
	os.WriteFile(dir+"/.gitignore", []byte("wt/\n*.tmp\n"), 0o644)
	for _, l := range [][2]string{{".", "loop"}, {"a", "a-self"}, {"a.go", "link.go"}} {
		os.Symlink(l[0], filepath.Join(dir, l[1]))
	}
	for _, tt := range []struct {
		args m
		want string
	}{
		{m{"pattern": "*.go"}, "sub/deep/c.go\nsub/b.go\na.go\n"},
		{m{"pattern": "**/*.go"}, "sub/deep/c.go\nsub/b.go\na.go\n"},
		{m{"pattern": "./sub/*.go"}, "sub/b.go\n"},
		{m{"pattern": "sub/**"}, "sub/d.txt\nsub/deep/c.go\nsub/b.go\n"},
		{m{"pattern": "*.{txt,md}"}, "café.md\nsub/d.txt\n"},
		{m{"pattern": "*.go", "path": "sub"}, "sub/deep/c.go\nsub/b.go\n"},
		{m{"pattern": "*.go", "path": "wt"}, "wt/a.go\n"},
		{m{"pattern": ".github/*"}, ".github/w.yml\n"},
		{m{"pattern": "*.yml", "include_ignored": true}, ".github/w.yml\n"},
		{m{"pattern": "*.tmp", "include_ignored": true}, "old.tmp\n"},
		{m{"pattern": "*.go", "limit": 1}, "sub/deep/c.go\n(and 2 more, older ones; narrow the pattern or raise limit)\n"},
		{m{"pattern": "*.rs"}, "(no file matches *.rs below .; 5 files were looked at; ignored and hidden ones were not)\n"},
	} {
		res := tooltest.Run(t.Context(), t, glob.New(glob.Options{}), tooltest.Options{WorkDir: dir}, tt.args)
		if res.IsError || res.Content != tt.want {
			t.Errorf("%v: %q (error %v), want %q", tt.args, res.Content, res.IsError, tt.want)
		}
	}
	for _, tt := range []struct {
		args m
		want string
	}{
		{m{"pattern": "/etc/*"}, "absolute"}, {m{"pattern": "../*"}, "leads up"}, {m{"pattern": "[a"}, "malformed"}, {m{"pattern": "{a"}, "malformed"},
		{m{"pattern": "*", "path": "a.go"}, "not a folder"}, {m{"pattern": "*", "path": "none"}, "not a folder"},
	} {
		res := tooltest.Run(t.Context(), t, glob.New(glob.Options{}), tooltest.Options{WorkDir: dir}, tt.args)
		if !res.IsError || !strings.Contains(res.Content, tt.want) {
			t.Errorf("%v: %q (error %v), want %q in it", tt.args, res.Content, res.IsError, tt.want)
		}
	}
}

func TestDeniedIsLeftOut(t *testing.T) {
	dir := tree(t, "a.go", "secret/b.go", "b_secret.go")
	it := glob.New(glob.Options{Denied: func(p string) bool { return strings.Contains(filepath.Base(p), "secret") }})
	if res := tooltest.Run(t.Context(), t, it, tooltest.Options{WorkDir: dir}, m{"pattern": "**"}); res.Content != "a.go\n" {
		t.Errorf("%q", res.Content)
	}
}

func TestBoundsAndInterrupt(t *testing.T) {
	var names []string
	for i := range 50 {
		names = append(names, fmt.Sprintf("d%d/f", i))
	}
	dir := tree(t, names...)
	res := tooltest.Run(t.Context(), t, glob.New(glob.Options{MaxFiles: 10}), tooltest.Options{WorkDir: dir}, m{"pattern": "f"})
	if !strings.Contains(res.Content, "ended after 10 files") {
		t.Errorf("%q", res.Content)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if res := tooltest.Run(ctx, t, glob.New(glob.Options{}), tooltest.Options{WorkDir: dir}, m{"pattern": "f"}); !res.IsError {
		t.Errorf("%q", res.Content)
	}
}
