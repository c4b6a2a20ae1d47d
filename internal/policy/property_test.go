package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// commandGen draws commands of programs, words and operators that the tables
// and rules of the properties know.
func commandGen() *rapid.Generator[string] {
	word := rapid.SampledFrom([]string{"a", "-rf", "-f", "--force", "push", "origin", "$X", "*", "x=y", "'a b'", "\"$Y\"", ".env", "/etc/x", "~/x", "-delete", "sub/f", "$(mv a b)", "`ls`", "{a,b}", "rm", "--hard", "reset", "+m"})
	program := rapid.SampledFrom([]string{"git", "rm", "mv", "ls", "go", "find", "make", "./run", "/bin/cat", "echo", "cp", "$X", "terraform", "dd"})
	simple := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(append([]string{program.Draw(t, "program")}, rapid.SliceOfN(word, 0, 4).Draw(t, "args")...), " ")
	})
	return rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(simple, 1, 3).Draw(t, "parts")
		out := parts[0]
		for _, p := range parts[1:] {
			out += rapid.SampledFrom([]string{" && ", " || ", "; ", " | ", " & ", "\n"}).Draw(t, "op") + p
		}
		return out + rapid.SampledFrom([]string{"", "", " > out", " > /etc/y", " < .env", " 2>&1"}).Draw(t, "redirection")
	})
}

var ruleTexts = []string{
	"bash(git push*)", "bash(rm *)", "bash(mv *)", "bash(ls*)", "bash(go *)", "bash(*)", "bash", "*", "read(.env)", "write(/etc/**)", "write(out)", "bash(* --force*)", "bash(terraform *)", "bash(echo *)", "read(~/**)", "bash(make)", "write", "bash(cp *)", "bash(./run*)",
}

func rulesGen(lists ...string) *rapid.Generator[[]string] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom(lists).Draw(t, "list") + " " + rapid.SampledFrom(ruleTexts).Draw(t, "rule")
	}), 0, 6)
}

func modeGen() *rapid.Generator[Mode] {
	return rapid.SampledFrom([]Mode{0, ModePlan, ModeDefault, ModeAcceptEdits, ModeAuto, ModeBypass})
}

// TestMoreRulesAreNotLessStrict: adding a deny or an ask rule never makes a
// verdict less strict, whatever else is in force.
func TestMoreRulesAreNotLessStrict(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		lines := rulesGen("deny", "ask", "allow").Draw(rt, "rules")
		more := rulesGen("deny", "ask").Draw(rt, "more")
		in := w.bash(modeGen().Draw(rt, "mode"), commandGen().Draw(rt, "command"))
		in.Env.TierProcess, in.Env.NetworkOff = rapid.Bool().Draw(rt, "tier"), rapid.Bool().Draw(rt, "network")
		before := rules(t, lines...).Evaluate(in)
		after := rules(t, append(lines[:len(lines):len(lines)], more...)...).Evaluate(in)
		if after.Verdict < before.Verdict {
			rt.Fatalf("%q: %s became %s\n%s\n%s", in.Declaration.Subject, before.Verdict, after.Verdict, before.Explain(), after.Explain())
		}
	})
}

// shellQuote returns s as one quoted word.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// wraps are ways to run a command that must be at least as strict as the command
// alone; %s is the command, %q-like quoting is done by the second form.
var wraps = []struct {
	name string
	wrap func(string) string
}{
	{"sh -c", func(c string) string { return "sh -c " + shellQuote(c) }},
	{"bash -lc", func(c string) string { return "bash -lc " + shellQuote(c) }},
	{"eval", func(c string) string { return "eval " + shellQuote(c) }},
	{"sudo sh", func(c string) string { return "sudo -u x sh -c " + shellQuote(c) }},
	{"env", func(c string) string { return "env A=1 bash -c " + shellQuote(c) }},
	{"subshell", func(c string) string { return "(" + c + "\n)" }},
	{"group", func(c string) string { return "{ " + c + "\n}" }},
	{"if", func(c string) string { return "if true; then " + c + "\nfi" }},
	{"loop", func(c string) string { return "for i in 1; do " + c + "\ndone" }},
	{"function", func(c string) string { return "f() { " + c + "\n}; f" }},
	{"substitution", func(c string) string { return "echo \"$(" + c + "\n)\"" }},
	{"process", func(c string) string { return "cat <(" + c + "\n)" }},
	{"after", func(c string) string { return "ls && " + c }},
	{"before", func(c string) string { return c + "\nls" }},
	{"negated", func(c string) string { return "! " + c }},
	{"heredoc", func(c string) string { return fmt.Sprintf("bash <<'E%d'\n%s\nE%d", len(c), c, len(c)) }},
	{"xargs", func(c string) string { return "xargs -n1 sh -c " + shellQuote(c) }},
	{"find", func(c string) string { return "find . -exec sh -c " + shellQuote(c) + " \\;" }},
	{"trap", func(c string) string { return "trap " + shellQuote(c) + " EXIT" }},
	{"timeout", func(c string) string { return "timeout 5 nohup nice -n 3 sh -c " + shellQuote(c) }},
	{"case", func(c string) string { return "case x in x) " + c + "\n;; esac" }},
	{"coproc", func(c string) string { return "coproc { " + c + "\n}" }},
	{"assignment", func(c string) string { return "x=$(" + c + "\n)" }},
}

// TestWrappingIsNotLessStrict: no wrapper or list around a command makes its
// verdict less strict.
func TestWrappingIsNotLessStrict(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		lines := rulesGen("deny", "ask", "allow").Draw(rt, "rules")
		command := commandGen().Draw(rt, "command")
		mode := modeGen().Draw(rt, "mode")
		rs := rules(t, lines...)
		bare := rs.Evaluate(w.bash(mode, command))
		wrapped := command
		for range rapid.IntRange(1, 3).Draw(rt, "depth") {
			wrapped = rapid.SampledFrom(wraps).Draw(rt, "wrap").wrap(wrapped)
		}
		got := rs.Evaluate(w.bash(mode, wrapped))
		if got.Verdict < bare.Verdict {
			rt.Fatalf("%q is %s, wrapped as %q it is %s\n%s\n%s", command, bare.Verdict, wrapped, got.Verdict, bare.Explain(), got.Explain())
		}
	})
}

// TestStricterModesAreStricter: a stricter mode or bound never allows more.
func TestStricterModesAreStricter(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		rs := rules(t, rulesGen("deny", "ask", "allow").Draw(rt, "rules")...)
		in := w.bash(ModeBypass, commandGen().Draw(rt, "command"))
		in.Env.TierProcess, in.Env.NetworkOff = true, true
		last := Verdict(0)
		for m := ModeBypass; m >= ModePlan; m-- {
			in.Env.Mode, in.Env.MaxMode = m, 0
			a := rs.Evaluate(in)
			in.Env.Mode, in.Env.MaxMode = ModeBypass, m
			b := rs.Evaluate(in)
			if a.Verdict < last || a.Verdict != b.Verdict {
				rt.Fatalf("%q in mode %s: %s, as a bound %s, in the next looser mode %s", in.Declaration.Subject, m, a.Verdict, b.Verdict, last)
			}
			last = a.Verdict
		}
	})
}

func TestJoinNeverLowers(t *testing.T) {
	by := Source{Kind: "extension", Name: "x"}
	rapid.Check(t, func(rt *rapid.T) {
		v := Verdict(rapid.IntRange(0, 4).Draw(rt, "verdict"))
		var objections []Objection
		for range rapid.IntRange(0, 4).Draw(rt, "n") {
			objections = append(objections, rapid.SampledFrom([]Objection{{}, NoObjection(by), ObjectAsk(by, "", ""), ObjectDeny(by, "", "")}).Draw(rt, "objection"))
		}
		var others []Verdict
		for range rapid.IntRange(0, 2).Draw(rt, "m") {
			others = append(others, Verdict(rapid.IntRange(0, 4).Draw(rt, "other")))
		}
		got := Join(v, objections, others...)
		if got < Allow || got > Deny || got < strict(v) {
			rt.Fatalf("join of %s is %s", v, got)
		}
		for _, o := range objections {
			if o.Denies() && got != Deny || o.Asks() && got < Ask {
				rt.Fatalf("%s lowers to %s", o, got)
			}
		}
		for _, o := range others {
			if got < strict(o) {
				rt.Fatalf("%s lowers to %s", o, got)
			}
		}
	})
}

// TestBounds shows that hostile commands are answered quickly, and never with
// allow.
func TestBounds(t *testing.T) {
	w := newWorld(t)
	rs := rules(t, "deny bash(rm *)", "allow bash(echo *)", "deny read(**/.env)", "ask write(/etc/**)")
	r := strings.Repeat
	for name, c := range map[string]string{
		"long": "echo " + r("a", maxCommand), "words": "echo " + r("a ", maxCommand/2-10), "parens": r("(", 5000) + "rm x" + r(")", 5000), "parens at the cap": r("( ", 99) + "rm x" + r(" )", 99), "braces": "echo " + r("{a,b}", 40), "nested braces": "echo " + r("{a,", 90) + r("}", 90),
		"sequences": "echo {1..1000000}", "wide sequences": "echo {a..z}{a..z}{a..z}", "substitutions": r("echo $(", 3000) + r(")", 3000), "substitutions at the cap": r("echo $(", 99) + "rm x" + r(")", 99), "ticks": r("`", 3000), "quotes": r("\"$(", 90) + "rm x" + r(")\"", 90),
		"ifs": r("if ", 5000) + "true", "whiles": r("while ", 9000), "parts": r("echo a; ", 3000), "pipes": "echo " + r("| echo ", 3000), "ands": "echo a" + r(" && echo a", 3000), "evals": r("eval ", 2000) + "rm x", "evals quoted": nest("rm x", 20), "sudos": r("sudo ", 3000) + "rm x", "envs": r("env A=1 ", 3000) + "rm x",
		"heredocs": "cat " + r("<<E ", 2000) + "\nE\n", "arithmetic": "echo $((" + r("-", 9000) + "1))", "arithmetic parens": "echo $((" + r("(", 90) + "1" + r(")", 90) + "))", "not": r("! ", 9000) + "rm x", "redirections": "echo x " + r(">a ", 9000), "assigns": r("A=1 ", 9000) + "rm x", "arrays": "a=(" + r("x ", 9000) + ")",
		"cases": r("case x in x) ", 2000) + "rm x", "functions": r("f() { ", 2000) + "rm x", "ternary": "echo $((" + r("1?", 5000) + "1" + r(":1", 5000) + "))", "expansions": "echo " + r("${a:-", 3000) + r("}", 3000), "expansions at the cap": "echo " + r("${a:-", 99) + "$(rm x)" + r("}", 99), "stars": "echo " + r("*", 30000), "tests": "[[ " + r("! ", 9000) + "x ]]", "test parens": "[[ " + r("( ", 99) + "x" + r(" )", 99) + " ]]",
		"times": r("time ", 9000) + "rm x", "coprocs": r("coproc ", 3000) + "rm x", "unary": "echo $((" + r("- ", 9000) + "1))", "cd": r("cd a;", 900) + "cat x", "paths": "cat " + r("/a", 20000), "many paths": "cat " + r("a/b/c ", 9000), "comma": "echo $((" + r("1,", 20000) + "1))", "assign chain": "((" + r("a=", 9000) + "1))", "xargs": r("xargs ", 3000) + "rm x", "braced vars": "echo " + r("$a", 20000), "dollars": r("$", 60000), "brackets": "echo " + r("[", 20000), "zsh": r("$[", 5000),
	} {
		start := time.Now()
		got := rs.Evaluate(w.bash(ModeBypass, c))
		took := time.Since(start)
		if took > 5*time.Second {
			t.Errorf("%s took %v", name, took)
		} else if took > 100*time.Millisecond {
			t.Logf("%s took %v", name, took)
		}
		if strings.Contains(c, "rm x") && got.Verdict == Allow {
			t.Errorf("%s: allowed: %s", name, got.Reason)
		}
		if strings.HasSuffix(name, "at the cap") && got.Verdict != Deny {
			t.Errorf("%s: got %s at %s: %s", name, got.Verdict, got.Step, got.Reason)
		}
	}
}

// nest puts a command into that many levels of quoted eval.
func nest(c string, levels int) string {
	for range levels {
		c = "eval " + shellQuote(c)
		if len(c) > 60000 {
			break
		}
	}
	return c
}

func ExampleResult_Explain() {
	rs, _ := Compile(RuleLists{Deny: []RuleText{{Text: "bash(rm *)", Origin: Origin{File: "config.json", Line: 3, Column: 14, Key: "permissions.deny[0]"}}}}, Known{Tools: map[string]SubjectKind{"bash": SubjectCommand}})
	r := rs.Evaluate(Input{
		Call:        Call{Tool: "bash", WorkDir: "/", Roots: []string{"/"}},
		Declaration: Declaration{Kind: SubjectCommand, Subject: "go test && sudo rm -rf x", Mutates: true},
		Env:         Env{Mode: ModeDefault},
		Trace:       true,
	})
	fmt.Print(r.Explain())
	// Output:
	// part 1   "go test"
	// part 2   "sudo rm -rf x"
	//          runs a further part, and needs a rule of its own
	// part 3   "rm -rf x"
	//          run by "sudo"
	//   protected    no protected path
	// > deny_rule    the command runs "rm -rf x"
	// rule     deny rule bash(rm *) (config.json:3:14 permissions.deny[0])
	// verdict  deny
	// reason   refused by deny rule bash(rm *) (config.json:3:14 permissions.deny[0]): the command runs "rm -rf x". A rule of the operator forbids this; rephrasing will not help.
}
