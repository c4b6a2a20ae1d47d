package repotest

import (
	"fmt"
	"path"
	"testing"
)

// level is one row of the table of levels: the packages that match pattern
// (path.Match, relative to the module root) stand at that level.
type level struct {
	pattern string
	level   int
	// testOnly says that only tests may import it.
	testOnly bool
}

// free is the level of what may import everything and is imported by nothing.
const free = 15

// levels is the table of levels. A package imports only strictly lower ones;
// packages of one level never import each other. The first row that matches
// counts. When the code shows a better place for a package, move its row in the
// same commit.
func levels() []level {
	return []level{
		{pattern: "internal/run", level: 0},
		{pattern: "internal/strictjson", level: 0},
		{pattern: "ahp", level: 1},
		{pattern: "internal/event", level: 1},
		{pattern: "internal/config", level: 1},
		{pattern: "internal/jsonrpc", level: 2},
		{pattern: "internal/proc", level: 2},
		{pattern: "internal/chain", level: 2},
		{pattern: "internal/ahpconfig", level: 2},
		{pattern: "internal/hookline", level: 1}, // what runs before the packages that judge are initialised
		{pattern: "internal/ownfile", level: 1},
		{pattern: "internal/roletest", level: 1, testOnly: true},
		{pattern: "internal/trust", level: 2},
		{pattern: "internal/hookstate", level: 2},
		{pattern: "internal/hostconf", level: 2},
		{pattern: "internal/confedit", level: 2},
		{pattern: "internal/hooklog", level: 3},
		{pattern: "ahp/elicitation", level: 2},
		{pattern: "ahp/oauth", level: 2},
		{pattern: "ahp/schema", level: 2},
		{pattern: "ahp/schema/gen", level: 2}, // writes the schemas
		{pattern: "internal/policy", level: 3},
		{pattern: "internal/sandbox", level: 3},
		{pattern: "ahp/transport", level: 3},
		{pattern: "ahp/transport/*", level: 3}, // apart, so that stdio alone links no net/http
		{pattern: "ahp/harness", level: 4},
		{pattern: "ahp/backend", level: 4},
		{pattern: "ahp/backend/*", level: 4},     // likewise
		{pattern: "ahp/adapter", level: 2},       // the contract of the adapters
		{pattern: "ahp/adapter/shape", level: 3}, // the codec of the hosts that follow Claude Code's form
		{pattern: "ahp/adapter/adaptertest", level: 3, testOnly: true},
		{pattern: "ahp/adapter/hosts", level: 5}, // the list of all
		{pattern: "ahp/adapter/*", level: 4},
		{pattern: "internal/workspace", level: 4},
		{pattern: "internal/require", level: 4, testOnly: true},
		{pattern: "ahp/ahptest/fault", level: 4}, // apart, so that a command links no package of tests
		{pattern: "ahp/ahptest", level: 5},
		{pattern: "ahp/boundary", level: 5},
		{pattern: "ahp/telemetry", level: 5}, // apart, so that only who measures links OpenTelemetry
		{pattern: "ahp/validate", level: 5},
		{pattern: "internal/backends/*", level: 5},
		{pattern: "ahp/conformance/vectors", level: 5},
		{pattern: "ahp/conformance/broken*", level: 6, testOnly: true},
		{pattern: "ahp/conformance", level: 6},
		{pattern: "internal/selfprotect", level: 5},
		{pattern: "internal/hookd", level: 6},
		{pattern: "internal/install", level: 5},
		{pattern: "internal/install/*", level: 4},
		{pattern: "internal/coverage", level: 6},
		{pattern: "internal/doctor", level: 6},
		{pattern: "internal/inspect", level: 6},
		{pattern: "internal/model", level: 7},
		{pattern: "internal/tool", level: 7},
		{pattern: "internal/control", level: 7},
		{pattern: "internal/agent", level: 8},
		{pattern: "internal/model/sse", level: 7},
		{pattern: "internal/model/httpapi", level: 8}, // what the clients over HTTP share
		{pattern: "internal/model/modeltest", level: 8, testOnly: true},
		{pattern: "internal/model/*", level: 9},
		{pattern: "internal/tool/tooltest", level: 8, testOnly: true},
		{pattern: "internal/tool/*", level: 9},
		{pattern: "internal/probe", level: 9}, // what a model endpoint can do, for abhed doctor
		{pattern: "internal/session", level: 9},
		{pattern: "internal/extension", level: 9},
		{pattern: "internal/mcp", level: 9},
		{pattern: "internal/memory", level: 8}, // AGENTS.md, ABHED.md and skills
		{pattern: "internal/gate", level: 10},
		{pattern: "internal/tui", level: 11},
		{pattern: "internal/rpcmode", level: 11},
		{pattern: "internal/httpserver", level: 11},
		{pattern: "internal/app", level: 12},
		{pattern: "", level: 13},
		{pattern: "cmd/*", level: 14},
		{pattern: "internal/repotest", level: free, testOnly: true},
		{pattern: "docs", level: free, testOnly: true},
		{pattern: "bench", level: free, testOnly: true},
		{pattern: "bench/*", level: free, testOnly: true},
		{pattern: "e2e", level: free, testOnly: true},
		{pattern: "e2e/*", level: free, testOnly: true},
		{pattern: "docs/protocol", level: free, testOnly: true},
		{pattern: "examples/*", level: free, testOnly: true},
		{pattern: "examples/*/*", level: free, testOnly: true},
	}
}

func levelOf(dir string) (level, bool) {
	for _, l := range levels() {
		if is, err := path.Match(l.pattern, dir); err == nil && is {
			return l, true
		}
	}
	return level{}, false
}

// levelViolations checks one package's imports.
func levelViolations(p *pkg) []string {
	here, known := levelOf(p.path)
	if !known {
		return []string{fmt.Sprintf("package %q has no level: give it a row in the table of internal/repotest/levels_test.go", p.path)}
	}
	var out []string
	own, _ := p.imports()
	for _, imported := range own {
		there, known := levelOf(imported)
		switch {
		case !known: // said where that package itself is checked
		case there.testOnly:
			out = append(out, fmt.Sprintf("%s imports %s, which is for tests only", p.path, imported))
		case there.level >= here.level:
			out = append(out, fmt.Sprintf("%s (level %d) imports %s (level %d): a package imports only strictly lower levels", p.path, here.level, imported, there.level))
		}
	}
	return out
}

func TestLevels(t *testing.T) {
	for _, p := range repo(t).pkgs {
		report(t, levelViolations(p))
	}
}

func TestLevelRule(t *testing.T) {
	src := func(imports string) map[string]string {
		return map[string]string{"a.go": "package x\nimport (\n" + imports + "\n)\n", "a_test.go": "package x\nimport _ \"" + modulePath + "/internal/app\"\n"}
	}
	own := func(dir string) string { return "_ \"" + modulePath + "/" + dir + "\"\n" }
	wantViolations(t, levelViolations(fake(t, "internal/policy", src(own("internal/config")+own("ahp")+`_ "fmt"`))))
	wantViolations(t, levelViolations(fake(t, "internal/policy", src(own("internal/sandbox")))), "internal/policy (level 3) imports internal/sandbox (level 3)")
	wantViolations(t, levelViolations(fake(t, "internal/config", src(own("internal/policy")))), "(level 1) imports internal/policy (level 3)")
	wantViolations(t, levelViolations(fake(t, "internal/gate", src(own("internal/require")))), "for tests only")
	wantViolations(t, levelViolations(fake(t, "internal/event", src("_ \""+modulePath+"\"\n"))), "level 13")
	wantViolations(t, levelViolations(fake(t, "internal/novel", src(``))), `"internal/novel" has no level`)
}
