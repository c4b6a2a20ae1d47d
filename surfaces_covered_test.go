package abhed_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// openers are what a package needs that opens sessions, by the package that has it:
// the engine as surfaces see it, the host behind it, and the loop and the gate that a
// second engine would be made of.
func openers() map[string][]string {
	return map[string][]string{
		"internal/control": {"Engine", "Session", "Start"},
		"internal/app":     {"NewHost"},
		"internal/agent":   {"New"},
		"internal/gate":    {"New"},
	}
}

// opensSessions reports whether a file uses an opener, whatever name it imports it by.
func opensSessions(t *testing.T, src string) bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string][]string{} // of the openers, by the name of the import
	for _, i := range file.Imports {
		full, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		short, ours := strings.CutPrefix(full, "github.com/abhed/abhed/")
		list := openers()[short]
		switch {
		case !ours || list == nil:
		case i.Name == nil:
			names[path.Base(short)] = list
		case i.Name.Name == ".":
			return true // nobody can tell what it uses
		default:
			names[i.Name.Name] = list
		}
	}
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			x, ok := s.X.(*ast.Ident)
			found = found || ok && slices.Contains(names[x.Name], s.Sel.Name)
		}
		return !found
	})
	return found
}

// TestEverySurfaceIsCovered fails when a package opens sessions and isn't the one of a
// surface here: whoever adds a surface adds it to surfaces, too.
func TestEverySurfaceIsCovered(t *testing.T) {
	found := map[string]bool{}
	err := filepath.WalkDir(".", func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata") {
			return err
		}
		src, err := os.ReadFile(name)
		if err == nil && opensSessions(t, string(src)) {
			found[filepath.ToSlash(filepath.Dir(name))] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	var covered []string
	for _, s := range surfaces() {
		covered = append(covered, s.of)
		if !found[s.of] {
			t.Errorf("%s no longer opens sessions; take the surface %s out of the list", s.of, s.name)
		}
	}
	for pkg := range found {
		if !slices.Contains(covered, pkg) {
			t.Errorf("%s opens sessions and is no surface in this suite: add it to surfaces", pkg)
		}
	}
}

// TestOpenersAreFound holds what TestEverySurfaceIsCovered would find in a new package.
func TestOpenersAreFound(t *testing.T) {
	t.Parallel()
	const module = "github.com/abhed/abhed/internal/"
	for src, want := range map[string]bool{
		`import "` + module + `control"; var _ control.Engine`:                true,
		`import c "` + module + `control"; func f(s c.Session) {}`:            true,
		`import . "` + module + `control"; var _ Engine`:                      true,
		`import "` + module + `app"; var _ = app.NewHost`:                     true,
		`import "` + module + `agent"; var _ = agent.New(agent.Options{})`:    true,
		`import g "` + module + `gate"; var _ = g.New`:                        true,
		`import "` + module + `control"; var _ control.Answer`:                false,
		`import "` + module + `agent"; var _ agent.Reason // control.Session`: false,
		`import "example.org/control"; var _ control.Engine`:                  false,
	} {
		if got := opensSessions(t, "package x; "+src); got != want {
			t.Errorf("%s: %t", src, got)
		}
	}
}
