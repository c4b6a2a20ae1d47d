package repotest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/abhed/abhed/internal/require"
)

// modulePath is the import path of the module's root package.
const modulePath = "github.com/abhed/abhed"

// goFile is one parsed Go file.
type goFile struct {
	path      string // relative to the module root, with slashes
	test      bool
	generated bool
	lines     int
	ast       *ast.File
}

// pkg is one folder of Go files.
type pkg struct {
	path  string // relative to the module root; "" is the root package
	name  string
	fset  *token.FileSet
	files []*goFile
}

// code returns the files that aren't tests.
func (p *pkg) code() []*goFile {
	return slices.DeleteFunc(slices.Clone(p.files), func(f *goFile) bool { return f.test })
}

// at returns "file:line" of a position.
func (p *pkg) at(pos token.Pos) string {
	where := p.fset.Position(pos)
	return where.Filename + ":" + strconv.Itoa(where.Line)
}

// imports returns what the package's non-test code imports, sorted, with the
// module's own packages relative to its root.
func (p *pkg) imports() (own, foreign []string) {
	seen := map[string]bool{}
	for _, f := range p.code() {
		for _, spec := range f.ast.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if seen[name] {
				continue
			}
			seen[name] = true
			if name == modulePath {
				own = append(own, "")
			} else if rel, is := strings.CutPrefix(name, modulePath+"/"); is {
				own = append(own, rel)
			} else {
				foreign = append(foreign, name)
			}
		}
	}
	slices.Sort(own)
	slices.Sort(foreign)
	return own, foreign
}

// addFile parses src into the package.
func (p *pkg) addFile(name string, src []byte) error {
	parsed, err := parser.ParseFile(p.fset, name, src, parser.ParseComments)
	if err != nil {
		return err
	}
	p.name = strings.TrimSuffix(parsed.Name.Name, "_test")
	p.files = append(p.files, &goFile{
		path: name, test: strings.HasSuffix(name, "_test.go"), generated: ast.IsGenerated(parsed),
		lines: bytes.Count(src, []byte("\n")), ast: parsed,
	})
	return nil
}

// repository is the whole tree, read once for all tests.
type repository struct {
	root string
	pkgs []*pkg
	// text holds the other text files, by path relative to the root, and the Go
	// files.
	text map[string][]byte
	err  error
}

var readOnce sync.Once
var theRepository repository

// repo returns the tree that this test belongs to.
func repo(t *testing.T) *repository {
	t.Helper()
	readOnce.Do(func() { theRepository = readRepository(require.Root(t)) })
	if theRepository.err != nil {
		t.Fatal(theRepository.err)
	}
	return &theRepository
}

// textSuffixes are the files that the word rules look at.
func textSuffixes() []string {
	return []string{".go", ".md", ".sh", ".py", ".js", ".txt", ".txtar", ".json", ".jsonl", ".yml", ".yaml", ".mod", ".html"}
}

func readRepository(root string) repository {
	r := repository{root: root, text: map[string][]byte{}}
	fset := token.NewFileSet()
	byDir := map[string]*pkg{}
	r.err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if strings.HasPrefix(d.Name(), ".") && d.Name() != ".github" && rel != "." {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || !slices.Contains(textSuffixes(), path.Ext(rel)) {
			return nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		r.text[rel] = data
		if path.Ext(rel) != ".go" || strings.Contains("/"+rel, "/testdata/") {
			return nil
		}
		dir := strings.TrimPrefix(path.Dir(rel), ".")
		if byDir[dir] == nil {
			byDir[dir] = &pkg{path: dir, fset: fset}
			r.pkgs = append(r.pkgs, byDir[dir])
		}
		return byDir[dir].addFile(rel, data)
	})
	if r.err == nil && len(r.pkgs) < 5 {
		r.err = fmt.Errorf("found %d packages in %s: is that the module?", len(r.pkgs), root)
	}
	return r
}

// report fails the test with one line per violation of a rule.
func report(t *testing.T, violations []string) {
	t.Helper()
	for _, v := range violations {
		t.Error(v)
	}
}

// fake returns a package of the given files, for tests of the rules.
func fake(t *testing.T, dir string, files map[string]string) *pkg {
	t.Helper()
	p := &pkg{path: dir, fset: token.NewFileSet()}
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for n := range files {
			if !yield(n) {
				return
			}
		}
	}) {
		if err := p.addFile(path.Join(dir, name), []byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// wantViolations compares what a rule said about a fake package, each by a part
// of its text.
func wantViolations(t *testing.T, got []string, parts ...string) {
	t.Helper()
	if len(got) != len(parts) {
		t.Errorf("%d violations, want %d:\n%s", len(got), len(parts), strings.Join(got, "\n"))
		return
	}
	for i, part := range parts {
		if !strings.Contains(got[i], part) {
			t.Errorf("violation %q, want %q in it", got[i], part)
		}
	}
}
