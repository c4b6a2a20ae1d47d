package repotest

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// stateExceptions lists variables that may change, with the reason.
func stateExceptions() map[string]string {
	return map[string]string{
		"ahp.plans": "memoises a pure function of a type; no caller can tell",
	}
}

// stateViolations finds package-level variables that change: those that code
// assigns to, counts in or deletes from, those of a type of package sync or
// sync/atomic, and those declared without a value, which can only be there to be
// written.
func stateViolations(p *pkg) []string {
	vars := map[string]*ast.ValueSpec{}
	var out []string
	for _, f := range p.code() {
		for _, d := range f.ast.Decls {
			gen, is := d.(*ast.GenDecl)
			if !is || gen.Tok != token.VAR {
				continue
			}
			for _, s := range gen.Specs {
				spec := s.(*ast.ValueSpec)
				for _, id := range spec.Names {
					if id.Name != "_" {
						vars[id.Name] = spec
					}
				}
				if why := statefulDeclaration(gen, spec); why != "" && stateExceptions()[p.path+"."+spec.Names[0].Name] == "" {
					out = append(out, fmt.Sprintf("%s: package-level variable %s %s", p.at(spec.Pos()), spec.Names[0].Name, why))
				}
			}
		}
	}
	for _, f := range p.code() {
		for _, d := range f.ast.Decls {
			if fn, is := d.(*ast.FuncDecl); is {
				ast.Inspect(fn, func(n ast.Node) bool {
					for _, target := range written(n) {
						if id := root(target); id != nil && packageLevel(id, vars) {
							out = append(out, fmt.Sprintf("%s: %s changes the package-level variable %s", p.at(n.Pos()), fn.Name.Name, id.Name))
						}
					}
					return true
				})
			}
		}
	}
	return out
}

// statefulDeclaration says why the declaration itself is refused, or "".
func statefulDeclaration(gen *ast.GenDecl, spec *ast.ValueSpec) string {
	if spec.Names[0].Name == "_" {
		return ""
	}
	for _, group := range []*ast.CommentGroup{gen.Doc, spec.Doc} {
		if group != nil {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "//go:embed ") {
					return ""
				}
			}
		}
	}
	if len(spec.Values) == 0 {
		return "has no value"
	}
	typ := spec.Type
	if lit, is := spec.Values[0].(*ast.CompositeLit); is && typ == nil {
		typ = lit.Type
	}
	if index, is := typ.(*ast.IndexExpr); is { // atomic.Pointer[T]
		typ = index.X
	}
	if sel, is := typ.(*ast.SelectorExpr); is {
		if pkg, is := sel.X.(*ast.Ident); is && (pkg.Name == "sync" || pkg.Name == "atomic") {
			return "is of type " + pkg.Name + "." + sel.Sel.Name
		}
	}
	return ""
}

// written returns the expressions that n changes.
func written(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return []ast.Expr{n.Key, n.Value}
		}
	case *ast.CallExpr:
		if fn, is := n.Fun.(*ast.Ident); is && len(n.Args) > 0 && (fn.Name == "delete" || fn.Name == "clear" || fn.Name == "copy") {
			return n.Args[:1]
		}
	}
	return nil
}

// root returns the variable that an expression is a part of, or nil.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// packageLevel reports whether id means one of the package's variables. The
// parser resolves names within a file: what it can't resolve there stands in
// another file of the package, or is an import.
func packageLevel(id *ast.Ident, vars map[string]*ast.ValueSpec) bool {
	spec, is := vars[id.Name]
	if !is {
		return false
	}
	return id.Obj == nil || id.Obj.Decl == spec
}

func TestNoPackageState(t *testing.T) {
	for _, p := range repo(t).pkgs {
		report(t, stateViolations(p))
	}
}

func TestStateRule(t *testing.T) {
	wantViolations(t, stateViolations(fake(t, "a", map[string]string{"a.go": `package a
import ("errors"; "sync"; "sync/atomic"; _ "embed")
var errX = errors.New("x")
var _ error = (*T)(nil)
var table = map[string]int{"a": 1}
var once = sync.OnceValue(func() int { return 1 })
//go:embed a.txt
var text string
var count int
var mu sync.Mutex
var p = atomic.Int64{}
var q atomic.Pointer[int]
type T struct{}
func f() {
	table := map[string]int{}
	table["own"] = 2
	errX := errX
	errX = nil
}
func g(x *T) {
	table["b"] = 2
	delete(table, "a")
	errX = nil
}
`, "b.go": `package a
func h(any) { for table = range 1 {}; table++; other.Field = 1 }
var other = T{}
`, "a_test.go": "package a\nfunc init() { table = nil }\n"})),
		"variable count has no value", "variable mu has no value", "variable p is of type atomic.Int64", "variable q has no value",
		"a/a.go:21: g changes the package-level variable table", "a/a.go:22: g changes", "a/a.go:23: g changes the package-level variable errX",
		"a/b.go:2: h changes", "a/b.go:2: h changes", "a/b.go:2: h changes the package-level variable other")
}
