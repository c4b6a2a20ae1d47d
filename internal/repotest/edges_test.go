package repotest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// standardJSON lists the packages whose non-test code may import encoding/json,
// with the reason. None that a command links is among them.
func standardJSON() map[string]string {
	return map[string]string{
		"examples/extensions/goextension": "it is there to be copied by authors outside this module, who can't import internal/strictjson",
	}
}

// sees lists, for packages that may see only part of the module, what that is.
func sees() map[string][]string {
	surface := []string{"internal/control", "internal/event", "internal/run", "internal/strictjson"}
	return map[string][]string{
		"ahp":                 {"internal/strictjson"},
		"internal/tui":        surface,
		"internal/rpcmode":    surface,
		"internal/httpserver": surface,
	}
}

// edgeViolations checks the imports that levels alone would let pass.
func edgeViolations(p *pkg) []string {
	var out []string
	own, foreign := p.imports()
	if allowed, bound := sees()[p.path]; bound {
		for _, imported := range own {
			if !slices.Contains(allowed, imported) {
				out = append(out, fmt.Sprintf("%s imports %s, of this module it may see only %s", p.path, imported, strings.Join(allowed, ", ")))
			}
		}
	}
	if _, excepted := standardJSON()[p.path]; slices.Contains(foreign, "encoding/json") && !excepted {
		out = append(out, p.path+" imports encoding/json: foreign JSON passes internal/strictjson, which encodes too")
	}
	return out
}

// minterViolations finds code that could get a minter of permits: only
// internal/app, and what only tests may import, may call tool.NewAuthority, so
// that only the gate holds one.
func minterViolations(p *pkg) []string {
	if l, _ := levelOf(p.path); p.path == "internal/app" || p.path == "internal/tool" || l.testOnly {
		return nil
	}
	var out []string
	for _, f := range p.code() {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if id, is := n.(*ast.Ident); is && id.Name == "NewAuthority" {
				out = append(out, p.at(id.Pos())+": NewAuthority is internal/app's alone: whoever has a minter can run tools around the gate")
			}
			return true
		})
	}
	return out
}

func TestForbiddenEdges(t *testing.T) {
	for _, p := range repo(t).pkgs {
		report(t, edgeViolations(p))
		report(t, minterViolations(p))
	}
}

// TestExceptionsAreUsed keeps the lists of exceptions from growing old.
func TestExceptionsAreUsed(t *testing.T) {
	for _, p := range repo(t).pkgs {
		_, foreign := p.imports()
		if reason, excepted := standardJSON()[p.path]; excepted && (!slices.Contains(foreign, "encoding/json") || reason == "") {
			t.Errorf("%s is excepted and doesn't import encoding/json, or no reason is given", p.path)
		}
	}
}

func TestEdgeRules(t *testing.T) {
	src := func(s string) map[string]string { return map[string]string{"a.go": "package x\n" + s} }
	imports := func(name string) map[string]string { return src("import _ \"" + name + "\"\n") }
	wantViolations(t, edgeViolations(fake(t, "internal/tui", imports(modulePath+"/internal/control"))))
	wantViolations(t, edgeViolations(fake(t, "internal/tui", imports(modulePath+"/internal/gate"))), "internal/tui imports internal/gate")
	wantViolations(t, edgeViolations(fake(t, "ahp", imports(modulePath+"/internal/run"))), "ahp imports internal/run")
	wantViolations(t, edgeViolations(fake(t, "internal/gate", imports("encoding/json"))), "encoding/json")
	wantViolations(t, edgeViolations(fake(t, "internal/gate", map[string]string{"a_test.go": "package x\nimport _ \"encoding/json\"\n"})))
	call := src("import \"" + modulePath + "/internal/tool\"\nvar f = tool.NewAuthority\n")
	wantViolations(t, minterViolations(fake(t, "internal/gate", call)), "internal/gate/a.go:3: NewAuthority")
	wantViolations(t, minterViolations(fake(t, "internal/app", call)))
	wantViolations(t, minterViolations(fake(t, "internal/tool/tooltest", call)))
	wantViolations(t, minterViolations(fake(t, "internal/tool/bash", call)), "NewAuthority")
}
