package repotest

import (
	"fmt"
	"go/ast"
	"path"
	"strings"
	"testing"
)

// packageCommentViolations wants exactly one package comment, which starts with
// "Package name" or, for a command, "Command name". In a folder of tests only, a
// test file holds it.
func packageCommentViolations(p *pkg) []string {
	want := "Package " + p.name
	if p.name == "main" {
		want = "Command " + path.Base(p.path)
	}
	files := p.code()
	if len(files) == 0 {
		files = p.files
	}
	var out, having []string
	for _, f := range files {
		if f.ast.Doc == nil {
			continue
		}
		having = append(having, f.path)
		if first := firstWords(f.ast.Doc, want); first != "" {
			out = append(out, fmt.Sprintf("%s: the package comment starts with %q, want %q", f.path, first, want))
		}
	}
	if len(having) != 1 {
		out = append(out, fmt.Sprintf("package %q has %d package comments (%s), want one", p.path, len(having), strings.Join(having, ", ")))
	}
	return out
}

// firstWords returns "" if the comment starts with want as whole words, else the
// beginning of its first line.
func firstWords(doc *ast.CommentGroup, want string) string {
	text := doc.Text()
	if rest, is := strings.CutPrefix(text, want); is && (rest == "" || !isWordByte(rest[0])) {
		return ""
	}
	line, _, _ := strings.Cut(text, "\n")
	if line == "" {
		return "nothing"
	}
	return line[:min(len(line), 40)]
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// docViolations wants a comment on every exported name that starts with the
// name. Within a group of constants, variables or type aliases the group's comment
// will do for names that have none of their own.
func docViolations(p *pkg) []string {
	var out []string
	check := func(id *ast.Ident, doc *ast.CommentGroup) {
		if !id.IsExported() {
			return
		}
		if doc == nil {
			out = append(out, p.at(id.Pos())+": "+id.Name+" has no comment")
		} else if first := firstWords(doc, id.Name); first != "" {
			out = append(out, fmt.Sprintf("%s: the comment of %s starts with %q, want its name", p.at(id.Pos()), id.Name, first))
		}
	}
	for _, f := range p.code() {
		if f.generated || p.name == "main" {
			continue
		}
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil || ast.IsExported(receiver(d)) {
					check(d.Name, d.Doc)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.TypeSpec:
						if s.Assign.IsValid() && s.Doc == nil && d.Doc != nil && d.Lparen.IsValid() {
							continue
						}
						check(s.Name, either(s.Doc, d.Doc, d.Lparen.IsValid()))
					case *ast.ValueSpec:
						if d.Lparen.IsValid() && s.Doc == nil && d.Doc != nil {
							continue
						}
						for _, id := range s.Names {
							check(id, either(either(s.Doc, s.Comment, false), d.Doc, d.Lparen.IsValid()))
						}
					}
				}
			}
		}
	}
	return out
}

// either returns the spec's own comment, or the declaration's if it declares
// just this.
func either(spec, decl *ast.CommentGroup, group bool) *ast.CommentGroup {
	if spec != nil || group {
		return spec
	}
	return decl
}

// receiver returns the name of a method's type.
func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func TestComments(t *testing.T) {
	for _, p := range repo(t).pkgs {
		report(t, packageCommentViolations(p))
		report(t, docViolations(p))
	}
}

func TestCommentRules(t *testing.T) {
	files := func(src ...string) map[string]string {
		out := map[string]string{}
		for i, s := range src {
			out[fmt.Sprintf("f%d.go", i)] = s
		}
		return out
	}
	wantViolations(t, packageCommentViolations(fake(t, "a", files("// Package a does.\npackage a\n", "package a\n"))))
	wantViolations(t, packageCommentViolations(fake(t, "a", files("package a\n"))), "has 0 package comments")
	wantViolations(t, packageCommentViolations(fake(t, "a", files("// Package a does.\npackage a\n", "// Package a.\npackage a\n"))), "has 2 package comments (a/f0.go, a/f1.go)")
	wantViolations(t, packageCommentViolations(fake(t, "a", files("// Package ab does.\npackage a\n"))), `starts with "Package ab does."`)
	wantViolations(t, packageCommentViolations(fake(t, "cmd/a", files("// Command a does.\npackage main\n"))))
	wantViolations(t, packageCommentViolations(fake(t, "cmd/a", files("// Package main does.\npackage main\n"))), `want "Command a"`)
	wantViolations(t, packageCommentViolations(fake(t, "a", map[string]string{"x_test.go": "// Package a tests.\npackage a_test\n"})))
	wantViolations(t, docViolations(fake(t, "a", files(`package a
// F does.
func F() {}
func G() {}
// Does it.
func H() {}
// T is.
type T struct{}
func (t *T) M() {}
type u struct{}
func (u) M() {}
// The kinds.
const (
	A = 1
	// B is.
	B = 2
	// Not it.
	C = 3
)
const (
	D = 1
	E = 2 // E is.
)
// ErrX is.
var ErrX = 1
// The types of b.
type (
	I = int
)
`))), "G has no comment", "the comment of H starts", "M has no comment", "the comment of C starts", "D has no comment")
}
