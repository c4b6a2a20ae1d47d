package policy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/strictjson"
)

// knownTools are the tools that rules in tests may name.
var knownTools = Known{
	Tools: map[string]SubjectKind{
		"bash": SubjectCommand, "read": SubjectPath, "write": SubjectPath, "edit": SubjectPath, "glob": SubjectPath, "grep": SubjectPath,
		"fetch": SubjectURL, "skill": SubjectText, "todo": SubjectNone, "mcp__up__make": SubjectText,
	},
	MCPServers: []string{"up", "down"},
}

func texts(rules []string) []RuleText {
	out := make([]RuleText, len(rules))
	for i, r := range rules {
		out[i] = RuleText{Text: r, Origin: Origin{File: "test.json", Line: i + 1, Column: 3, Key: "permissions"}}
	}
	return out
}

// rules compiles rules written as "deny X", "ask X" and "allow X".
func rules(t testing.TB, lines ...string) *Ruleset {
	t.Helper()
	var l RuleLists
	for _, line := range lines {
		list, text, _ := strings.Cut(line, " ")
		r := texts([]string{text})
		switch list {
		case "deny":
			l.Deny = append(l.Deny, r...)
		case "ask":
			l.Ask = append(l.Ask, r...)
		case "allow":
			l.Allow = append(l.Allow, r...)
		default:
			t.Fatalf("bad rule line %q", line)
		}
	}
	rs, problems := Compile(l, knownTools)
	if rs == nil {
		t.Fatalf("rules don't compile: %v", problems[0].Error())
	}
	return rs
}

// world is a hermetic environment: a root, a home and a PATH.
type world struct {
	base, root, home, bin string
}

func newWorld(t testing.TB) world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := world{base: dir, root: dir + "/work", home: dir + "/home", bin: "/usr/bin"}
	for _, d := range []string{w.root + "/sub/deep", w.home + "/.ssh", w.root + "/.git/hooks"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w world) env(mode Mode) Env {
	return Env{
		Mode: mode, Home: w.home, Writable: []string{"/var/tmp"},
		Getenv:   func(string) string { return "" },
		LookPath: w.lookPath,
	}
}

// lookPath finds every program in the hermetic PATH but those named missing.
func (w world) lookPath(name string) (string, error) {
	if name == "missing" {
		return "", errors.New("not found")
	}
	return w.bin + "/" + name, nil
}

func (w world) bash(mode Mode, command string) Input {
	return Input{
		Call:        Call{ID: "c1", Tool: "bash", WorkDir: w.root, Roots: []string{w.root}},
		Declaration: Declaration{Kind: SubjectCommand, Subject: command, Mutates: true},
		Env:         w.env(mode),
	}
}

func (w world) file(mode Mode, tool, path string) Input {
	return Input{
		Call:        Call{ID: "c1", Tool: tool, WorkDir: w.root, Roots: []string{w.root}},
		Declaration: Declaration{Kind: SubjectPath, Subject: path, Mutates: tool == "write" || tool == "edit"},
		Env:         w.env(mode),
	}
}

// auto is bash in mode auto with the sandbox that it needs.
func (w world) auto(command string) Input {
	in := w.bash(ModeAuto, command)
	in.Env.TierProcess, in.Env.NetworkOff = true, true
	return in
}

func check(t *testing.T, rs *Ruleset, in Input, want Verdict, step Step) Result {
	t.Helper()
	got := rs.Evaluate(in)
	if got.Verdict != want || step != "" && got.Step != step {
		t.Errorf("%s(%q): got %s at %s, want %s at %s\n%s", in.Call.Tool, in.Declaration.Subject, got.Verdict, got.Step, want, step, got.Explain())
	}
	if _, err := strictjson.Marshal(got); err != nil {
		t.Errorf("result of %q is not encodable: %v", in.Declaration.Subject, err)
	}
	return got
}
