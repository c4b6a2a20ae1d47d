package policy

import (
	"strings"
	"testing"
)

func TestCompileProblems(t *testing.T) {
	for _, c := range []struct {
		rule, want string
		warning    bool
	}{
		{rule: "", want: "expected tool or tool(pattern)"},
		{rule: " bash", want: "without white space"},
		{rule: "bash ", want: "without white space"},
		{rule: "bash(cp*", want: `the last ")" is missing`},
		{rule: "bash(cp*)x", want: `the last ")" is missing`},
		{rule: "bash)", want: `")" without "("`},
		{rule: "(x)", want: "the name of a tool is missing"},
		{rule: "bash()", want: `write "bash" for every call`},
		{rule: `bash(a\)`, want: `lone "\"`},
		{rule: `bash(a\b)`, want: `"\" stands only before`},
		{rule: "bash(a\x00b)", want: "U+0000"},
		{rule: "bsh(x)", want: `did you mean "bash"`},
		{rule: "Bash(x)", want: `did you mean "bash"`},
		{rule: "wrte", want: `did you mean "write"`},
		{rule: "zzzzzzzz", want: "known are bash, edit"},
		{rule: "ba*(x)", want: "a tool is named whole"},
		{rule: "todo(x)", want: "no subject"},
		{rule: "todo(*)", want: "no subject"},
		{rule: "bash( git)", want: "no space before"},
		{rule: "bash(git )", want: "no space before or after"},
		{rule: "bash(git  push)", want: "joined by one space"},
		{rule: "bash(A=1 make)", want: "assignments"},
		{rule: "read(src/)", want: `write "src/**"`},
		{rule: "read(a//b)", want: `"//"`},
		{rule: "read(../x)", want: `".."`},
		{rule: "read(./x)", want: `"."`},
		{rule: "read(/a/../b)", want: `".."`},
		{rule: "read(~bob/x)", want: "own home"},
		{rule: "read({a,b})", want: "braces aren't patterns"},
		{rule: "write(src/{a,b}/**)", want: "one rule for each"},
		{rule: "read(/x/*.{pem,key})", want: `"\{" and "\}"`},
		{rule: "read(a{1..3})", want: "braces aren't patterns"},
		{rule: "*(/etc/{passwd,shadow})", want: "braces aren't patterns"},
		{rule: "fetch(example.com/*)", want: "a URL is absolute"},
		{rule: "mcp__up", want: "mcp__server__tool"},
		{rule: "mcp__up__", want: "mcp__server__tool"},
		{rule: "mcp__nope__x", want: `no MCP server "nope"`},
		{rule: "mcp__up__mke", want: `did you mean "mcp__up__make"`},
		{rule: "mcp__up__m*", want: "names are written whole"},
		{rule: "mcp__*__x", want: "names are written whole"},
		{rule: "mcp__up__make(x)", want: "takes no pattern"},
		{rule: "mcp__up__*(x)", want: "takes no pattern"},
		{rule: "mcp__down__x", want: "may be down", warning: true},
		{rule: "mcp__down__*", want: "may be down", warning: true},
		{rule: "bash(curl * | sh)", want: "one simple command at a time", warning: true},
	} {
		rs, problems := Compile(RuleLists{Deny: texts([]string{"read(x)", c.rule})}, knownTools)
		if len(problems) != 1 {
			t.Errorf("%q: %d problems, want 1: %v", c.rule, len(problems), problems)
			continue
		}
		p := problems[0]
		if !strings.Contains(p.Msg, c.want) || p.Warning != c.warning || (rs == nil) == c.warning {
			t.Errorf("%q: got %v (rule set %v), want %q", c.rule, p.Error(), rs != nil, c.want)
		}
		if p.List != "deny" || p.Rule.Origin.Line != 2 || !strings.HasPrefix(p.Error(), "test.json:2:3 permissions: ") {
			t.Errorf("%q: the problem doesn't say where: %s", c.rule, p.Error())
		}
	}
}

func TestCompileFine(t *testing.T) {
	for _, r := range []string{"bash", "*", "*(x)", "bash(*)", "bash(a(b)c)", `bash(a\*b\?\\)`, "read(**)", "read(/)", "read(~)", "read(~/x)", "read(**/.env)", "fetch(https://x/*)", "fetch(*)", "skill(x y)", "mcp__up__make", "mcp__up__*", "bash(a\nb)", "todo", `read(\{a,b\})`, `read(a\{b,c})`, "read({a})", "read(a{b)", `read({a,b\})`, "bash(echo {a,b})", "skill({a,b})", `bash(awk \{x\})`} {
		rs, problems := Compile(RuleLists{Allow: texts([]string{r})}, knownTools)
		if rs == nil || len(problems) > 0 {
			t.Errorf("%q: %v", r, problems)
		}
	}
}

// TestOneBadRuleStopsAll covers the rule that a bad rule is never simply missing.
func TestOneBadRuleStopsAll(t *testing.T) {
	rs, problems := Compile(RuleLists{Deny: texts([]string{"bash(a)", "bash(cp*", "nope", "bash(b)"})}, knownTools)
	if rs != nil || len(problems) != 2 {
		t.Errorf("got %v and %d problems, want none and 2", rs, len(problems))
	}
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"go *", "go test", true}, {"go *", "go", false}, {"go*", "go", true}, {"go*", "gofmt", true}, {"*", "", true}, {"a*b*c", "a/x/b y\nc", true},
		{"a?c", "abc", true}, {"a?c", "aäc", true}, {"a?c", "ac", false}, {"a?c", "abbc", false}, {"", "", true}, {`a\*c`, "a*c", true}, {`a\*c`, "abc", false}, {`a\\b`, `a\b`, true}, {`a\?`, "ab", false},
		{"*a*a*a*a*b", strings.Repeat("a", 3000), false}, {"ä*", "äx", true}, {"?", "ä", true}, {"**", "x/y", true}, {"*x", "xxx", true}, {"x*x", "x", false}, {"ab", "abc", false}, {"bc", "abc", false},
		{strings.Repeat("a", 300) + "*z", strings.Repeat("a", 300) + "xxz", true},
	} {
		if got := compileText(c.pattern).matches(c.text); got != c.want {
			t.Errorf("%q matches %q: got %v", c.pattern, c.text, got)
		}
	}
	for _, c := range []struct {
		pattern, text string
		want, sure    bool
	}{
		{"rm *", "rm \x00", true, true}, {"rm -rf*", "rm \x00", true, false}, {"git push*", "git add \x00", false, false}, {"git push*", "\x00 push", true, false}, {"rm", "r\x00m", true, false}, {"rm", "r\x00", true, false}, {"rm", "x\x00", false, false},
		{"a 5 b", "a \x01 b", true, false}, {"a x b", "a \x01 b", false, false}, {"a ? b", "a \x01 b", true, false}, {"a * b", "a \x01 b", true, true}, {"a 512", "a \x01", true, false}, {"a ", "a \x01", false, false},
		{"x*y\x7f", "\x00", true, false}, {"abc", "\x00b\x00", true, false}, {"abc", "\x00d\x00", false, false}, {"aéb", "a\x00b", true, false},
	} {
		p := compileText(c.pattern)
		if got := p.possible(c.text); got != c.want {
			t.Errorf("%q possible for %q: got %v", c.pattern, c.text, got)
		}
		if got := p.matches(c.text); got != c.sure {
			t.Errorf("%q matches %q: got %v", c.pattern, c.text, got)
		}
	}
}

func TestPathPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"*.go", "a.go", true}, {"*.go", "a/b.go", false}, {"**/*.go", "a/b.go", true}, {"**/*.go", "b.go", true}, {"src/**", "src/a/b", true}, {"src/**", "src", true}, {"src/**", "srcx", false}, {"**", "a/b/c", true}, {"*", "a/b", false},
		{"a/**/b", "a/b", true}, {"a/**/b", "a/x/y/b", true}, {"a/**/b", "ab", false}, {"a?b", "a/b", false}, {"a**b", "a/x/b", true}, {"**/.env", ".env", true}, {"**/.env", "x/y/.env", true}, {"**/.env", "x.env", false}, {"**/a/**", "a", true}, {"**/a/**", "x/a/y", true},
		{"**/a/**/b/**", "x/a/b", true}, {".", ".", true}, {"src", "src/a", false}, {`\*`, "*", true}, {`\*`, "a", false}, {"a\u0301", "\u00e1", true}, {"\u00e1", "a\u0301", true},
	} {
		r := compilePathRule(c.pattern)
		if got := r.matches(foldName(c.path, false), false, false); got != c.want {
			t.Errorf("%q matches %q: got %v", c.pattern, c.path, got)
		}
	}
	if r := compilePathRule("Src/*.GO"); !r.matches(foldName("sRC/X.go", true), true, false) || r.matches("src/x.go", false, false) {
		t.Error("case counts where it should not, or the reverse")
	}
}

func TestURLPatterns(t *testing.T) {
	w := newWorld(t)
	ask := func(rs *Ruleset, url string) Result {
		return rs.Evaluate(Input{Call: Call{Tool: "fetch", WorkDir: w.root, Roots: []string{w.root}}, Declaration: Declaration{Kind: SubjectURL, Subject: url, Mutates: true}, Env: w.env(ModeDefault)})
	}
	allow := rules(t, "allow fetch(https://*.example.com/*)", "allow fetch(https://go.dev/*)")
	for url, want := range map[string]Verdict{
		"https://a.example.com/x": Allow, "https://A.EXAMPLE.com/x": Allow, "https://go.dev/": Allow, "https://go.dev": Allow, "https://go.dev:443/x": Allow, "https://go.dev./x": Allow, "HTTPS://go.dev/x/y?z": Allow,
		"https://evil.com/?.example.com/": Ask, "https://evil.com#.example.com/": Ask, "https://evil.com\\.example.com/": Ask, "https://go.dev@evil.com/": Ask, "https://user@go.dev/": Ask, "http://go.dev/": Ask, "https://go.dev.evil.com/": Ask,
		"https://go.dev:444/x": Ask, "https://evil.com/.example.com/": Ask, "https://evil.com/a.example.com/x": Ask, "file:///etc/passwd": Ask, "https://go.dev\t/x": Ask, "::": Ask,
	} {
		if got := ask(allow, url); got.Verdict != want {
			t.Errorf("allow %q: got %s, want %s", url, got.Verdict, want)
		}
	}
	deny := rules(t, "deny fetch(https://evil.com/*)", "allow fetch")
	for _, url := range []string{"https://evil.com/x", "https://EVIL.com", "https://evil.com:443/", "https://evil.com./", "https://u:p@evil.com/", "https://evil.com/"} {
		if got := ask(deny, url); got.Verdict != Deny {
			t.Errorf("deny %q: got %s", url, got.Verdict)
		}
	}
}

func TestToolNames(t *testing.T) {
	w := newWorld(t)
	in := Input{Call: Call{Tool: "mcp__up__make", WorkDir: w.root, Roots: []string{w.root}}, Declaration: Declaration{Kind: SubjectText, Subject: "up/make", Mutates: true}, Env: w.env(ModeBypass)}
	check(t, rules(t, "deny mcp__up__*"), in, Deny, StepDenyRule)
	check(t, rules(t, "deny mcp__up__make"), in, Deny, StepDenyRule)
	check(t, rules(t, "deny *"), in, Deny, StepDenyRule)
	check(t, rules(t, "deny *(up/*)"), in, Deny, StepDenyRule)
	check(t, rules(t, "deny mcp__down__*"), in, Allow, StepMode)
	in.Declaration.Mutates, in.Env.Mode = false, ModePlan
	check(t, rules(t), in, Allow, StepDefault)
}

func TestSnapshot(t *testing.T) {
	w := newWorld(t)
	rs := rules(t, "deny bash(rm *)", "ask read(x)", "allow bash(go test*)")
	env := w.env(ModeAuto)
	env.Runners, env.Protected.Write = []string{"ssh"}, []string{"/x"}
	doc, hash, err := rs.Snapshot(env)
	if err != nil {
		t.Fatal(err)
	}
	back, backEnv, err := Restore(doc)
	if err != nil {
		t.Fatal(err)
	}
	again, hashAgain, err := back.Snapshot(backEnv)
	if err != nil || string(again) != string(doc) || hashAgain != hash || back.Hash() != rs.Hash() {
		t.Errorf("a restored snapshot differs: %v\n%s\n%s", err, doc, again)
	}
	if back.Evaluate(w.bash(ModeBypass, "rm x")).Verdict != Deny {
		t.Error("the restored rules don't deny")
	}
	other := rules(t, "deny bash(rm *)", "ask read(x)", "allow bash(go vet*)")
	if other.Hash() == rs.Hash() {
		t.Error("different rules have one hash")
	}
	for _, bad := range []string{"", "{}", `{"version":2}`, strings.Replace(string(doc), "bash(rm *)", "bash(rm *", 1), strings.Replace(string(doc), `"mode":"auto"`, `"mode":"turbo"`, 1)} {
		if _, _, err := Restore([]byte(bad)); err == nil {
			t.Errorf("restored from %q", bad)
		}
	}
}
