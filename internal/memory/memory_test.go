package memory_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/abhed/abhed/internal/memory"
)

func put(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func folder(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func link(t testing.TB, target, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// texts returns the files' texts in order.
func texts(files []memory.File) []string {
	var out []string
	for _, f := range files {
		out = append(out, f.Text)
	}
	return out
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func TestRoot(t *testing.T) {
	a, b, aliased := folder(t), folder(t), folder(t)
	put(t, a+"/AGENTS.md", "\uFEFFof a\n")
	put(t, a+"/ABHED.md", "more of a\n")
	put(t, b+"/ABHED.md", "of b\n")
	put(t, b+"/agents.md", "another name\n")
	link(t, b, aliased+"/b")
	in := memory.New([]string{a, aliased + "/b", a + "/none"}, memory.Options{})
	files, warnings := in.Root("main")
	same(t, "first", texts(files), []string{"of a\n", "more of a\n", "of b\n"})
	if len(warnings) != 0 || files[2].Path != b+"/ABHED.md" {
		t.Errorf("%q, %+v", warnings, files)
	}
	files, _ = in.Root("main")
	same(t, "again", texts(files), nil)
	files, _ = in.Root("sub")
	same(t, "another agent", texts(files), []string{"of a\n", "more of a\n", "of b\n"})
	same(t, "given", texts(in.Given("main")), []string{"of a\n", "more of a\n", "of b\n"})
	put(t, b+"/AGENTS.md", "new\n")
	files, _ = in.Root("main")
	same(t, "one that is new", texts(files), []string{"new\n"})
}

func TestBelow(t *testing.T) {
	root := folder(t)
	for _, dir := range []string{"", "/x", "/x/y/z", "/x/node_modules/p", "/x/y/z/.git", "/other"} {
		put(t, root+dir+"/AGENTS.md", "in "+dir)
	}
	put(t, root+"/x/ABHED.md", "too in /x")
	put(t, root+"/x/y/z/f.go", "")
	link(t, root+"/x", root+"/alias")
	in := memory.New([]string{root}, memory.Options{})
	below := func(path string) []string {
		files, warnings := in.Below("main", path)
		if len(warnings) > 0 {
			t.Errorf("%s: %q", path, warnings)
		}
		return texts(files)
	}
	for _, tt := range []struct {
		path string
		want []string
	}{
		{root + "/f", nil}, {root, nil}, {"/etc/passwd", nil}, {root + "x/y", nil},
		{root + "/alias/y/none/new.go", []string{"in /x", "too in /x"}},
		{root + "/x/y/z", []string{"in /x/y/z"}},
		{root + "/x/y/z/f.go", nil},
		{root + "/x/node_modules/p/f", nil}, {root + "/x/y/z/.git/config", nil},
		{root + "/other/./../other/f", []string{"in /other"}},
	} {
		same(t, tt.path, below(tt.path), tt.want)
	}
	files, _ := in.Below("sub", root+"/x/y/z/f.go")
	same(t, "another agent, the outermost first", texts(files), []string{"in /x", "too in /x", "in /x/y/z"})
	files, _ = in.Root("main")
	same(t, "the root's own", texts(files), []string{"in "})
}

func TestInnermostRootCounts(t *testing.T) {
	root := folder(t)
	put(t, root+"/in/AGENTS.md", "inner")
	put(t, root+"/in/deep/AGENTS.md", "deep")
	in := memory.New([]string{root, root + "/in"}, memory.Options{})
	files, _ := in.Below("", root+"/in/deep/f")
	same(t, "below the inner root", texts(files), []string{"deep"})
}

func TestWhatIsNotRead(t *testing.T) {
	root, outside := folder(t), folder(t)
	put(t, outside+"/secret", "secret")
	link(t, outside+"/secret", root+"/out/AGENTS.md")
	link(t, "../../"+filepath.Base(outside)+"/secret", root+"/out/ABHED.md")
	link(t, "AGENTS.md", root+"/loop/AGENTS.md")
	put(t, root+"/latin/AGENTS.md", "caf\xe9")
	put(t, root+"/binary/AGENTS.md", "PK\x03\x04\x00\x00")
	put(t, root+"/denied/AGENTS.md", "x")
	link(t, "../denied/AGENTS.md", root+"/denied2/AGENTS.md")
	os.MkdirAll(root+"/dir/AGENTS.md", 0o755)
	os.MkdirAll(root+"/pipe", 0o755)
	if err := unix.Mkfifo(root+"/pipe/AGENTS.md", 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, root+"/blank/AGENTS.md", " \n")
	link(t, "../blank2/x.md", root+"/dangling/AGENTS.md")
	in := memory.New([]string{root}, memory.Options{Denied: func(p string) bool { return p == root+"/denied/AGENTS.md" }})
	for _, tt := range []struct {
		dir  string
		want []string
	}{
		{"out", []string{"outside", ""}}, {"loop", []string{"loop"}}, {"latin", []string{"not valid UTF-8"}}, {"binary", []string{"NUL byte at offset 4"}},
		{"denied", []string{"a rule denies"}}, {"denied2", []string{"a rule denies"}}, {"dir", []string{"directory, not a file"}},
		{"pipe", []string{"named pipe"}}, {"blank", nil}, {"dangling", nil},
	} {
		files, warnings := in.Below("", root+"/"+tt.dir+"/f")
		if len(files) > 0 || len(warnings) != len(tt.want) {
			t.Errorf("%s: %q, warnings %q", tt.dir, texts(files), warnings)
			continue
		}
		for i, want := range tt.want {
			if !strings.Contains(warnings[i], want) || !strings.Contains(warnings[i], root+"/"+tt.dir) {
				t.Errorf("%s: %q, want %q", tt.dir, warnings[i], want)
			}
		}
		if _, warnings := in.Below("", root+"/"+tt.dir+"/g"); len(warnings) > 0 {
			t.Errorf("%s: warned again: %q", tt.dir, warnings)
		}
	}
}

func TestLinkInside(t *testing.T) {
	root := folder(t)
	put(t, root+"/AGENTS.md", "the one text")
	link(t, "AGENTS.md", root+"/ABHED.md")
	in := memory.New([]string{root}, memory.Options{})
	files, warnings := in.Root("")
	if len(files) != 1 || len(warnings) != 0 {
		t.Errorf("%+v, %q: one file by two names counts once", files, warnings)
	}
}

func TestBounds(t *testing.T) {
	root := folder(t)
	put(t, root+"/AGENTS.md", strings.Repeat("é", 40_000))
	put(t, root+"/x/AGENTS.md", "x"+strings.Repeat("é", 32<<10))
	for i := range 210 {
		put(t, fmt.Sprintf("%s/many/%d/AGENTS.md", root, i), "x")
	}
	in := memory.New([]string{root}, memory.Options{})
	files, _ := in.Root("")
	if len(files) != 1 || len(files[0].Text) != 64<<10 || files[0].Note != "cut after 65536 of 80000 bytes" {
		t.Errorf("%d bytes, %q", len(files[0].Text), files[0].Note)
	}
	files, _ = in.Below("", root+"/x/f")
	if len(files) != 1 || len(files[0].Text) != 64<<10-1 || strings.ContainsRune(files[0].Text, '\uFFFD') {
		t.Errorf("%d bytes: a character was cut", len(files[0].Text))
	}
	n, said := 0, 0
	for i := range 210 {
		files, warnings := in.Below("", fmt.Sprintf("%s/many/%d/f", root, i))
		n, said = n+len(files), said+len(warnings)
	}
	if n != 198 || said != 1 {
		t.Errorf("%d files and %d warnings, want 198 and 1", n, said)
	}
}
