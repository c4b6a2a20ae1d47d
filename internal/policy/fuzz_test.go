package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/strictjson"
)

func FuzzCompile(f *testing.F) {
	for _, s := range []string{"bash(go *)", "read(**/a/**/b/**)", `bash(\*)`, "*(~/x)", "mcp__up__*", "fetch(https://*.x/*)", "bash((", "read(**/**/**/**/**)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rs, problems := Compile(RuleLists{Ask: []RuleText{{Text: text}}}, knownTools)
		if rs == nil && len(problems) == 0 {
			t.Fatal("no rule set and no problem")
		}
		for _, p := range problems {
			if p.Msg == "" {
				t.Fatal("a problem says nothing")
			}
		}
		if rs == nil {
			return
		}
		if back, _, err := restoreOf(rs); err != nil || back.Hash() != rs.Hash() {
			t.Fatalf("%q can't be stored: %v", text, err)
		}
		in := Input{Call: Call{Tool: "read", WorkDir: "/", Roots: []string{"/"}}, Declaration: Declaration{Kind: SubjectPath, Subject: text}, Env: Env{Mode: ModeBypass}}
		rs.Evaluate(in)
	})
}

func restoreOf(rs *Ruleset) (*Ruleset, Env, error) {
	doc, _, err := rs.Snapshot(Env{})
	if err != nil {
		return nil, Env{}, err
	}
	return Restore(doc)
}

func FuzzEvaluate(f *testing.F) {
	for _, list := range [][]string{
		{"go test ./... | head", "rm -rf x", `$'\x64d' if=a`, "{a,b}{c,d}", "cat <<E\n$(x)\nE", "bash <<'E'\nrm x\nE", "f() { f|f& }; f", "a[$(x)]=1", "((1+2))", "[[ -n $x ]]", "env -S 'a b' c", "git -c x=y push +a", "find . -exec rm {} +", "xargs -I X rm X", "cd a && >b", "eval 'eval x'", "case x in a|b) ;; esac", "echo ${x@P} ${a[1]} ${!b} ${c:1:2} ${d//e/f}", "\x01", "~/x ~y", "r[\"m\"] x", "sudo -u", "timeout", "env", "bash -c", "su -c", "! ! x", "((x) )", "a=(b c)", "exec 3>&1 4<x", "{ rm,} x"},
	} {
		for _, s := range list {
			f.Add(s)
		}
	}
	rs, problems := Compile(RuleLists{
		Deny: texts([]string{"bash(rm *)", "read(**/.env)", "write(/etc/**)"}), Ask: texts([]string{"bash(git push*)", "read(~/**)"}), Allow: texts([]string{"bash(go *)", "bash(echo *)"}),
	}, knownTools)
	if rs == nil {
		f.Fatal(problems)
	}
	w := world{root: "/nowhere/work", home: "/nowhere/home", bin: "/usr/bin"}
	f.Fuzz(func(t *testing.T, command string) {
		start := time.Now()
		in := w.bash(ModeDefault, command)
		in.Trace = true
		got := rs.Evaluate(in)
		if took := time.Since(start); took > 20*time.Second {
			t.Fatalf("took %v", took)
		}
		if got.Verdict < Allow || got.Verdict > Deny || got.Step == "" || got.Reason == "" || len(got.Trace) == 0 || !got.Trace[len(got.Trace)-1].Matched {
			t.Fatalf("an incomplete result: %+v", got)
		}
		got.Explain()
		if b, err := strictjson.Marshal(got); err != nil && utf8Valid(command) {
			t.Fatalf("not encodable: %v %s", err, b)
		}
		// A denied command in front keeps it denied as far as it is parsed.
		if got := rs.Evaluate(w.bash(ModeBypass, "rm x\n"+command)); got.Verdict == Allow {
			t.Fatalf("%q is allowed after a denied command", command)
		}
		if strings.ContainsRune(command, 0) && got.Verdict == Allow {
			t.Fatal("a NUL byte is allowed")
		}
	})
}

func utf8Valid(s string) bool { return strings.ToValidUTF8(s, "") == s }
