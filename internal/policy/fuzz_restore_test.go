package policy

import "testing"

// FuzzRestore holds that whatever is accepted as stored rules judges and is stored
// again as the same rules.
func FuzzRestore(f *testing.F) {
	rs, problems := Compile(RuleLists{Deny: []RuleText{{Text: "bash(rm *)", Origin: Origin{File: "f", Line: 1}}}, Allow: []RuleText{{Text: "read"}}},
		Known{Tools: map[string]SubjectKind{"bash": SubjectCommand, "read": SubjectPath}})
	if rs == nil {
		f.Fatal(problems)
	}
	doc, _, err := rs.Snapshot(Env{Mode: ModeDefault, Home: "/h"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(doc)
	f.Add([]byte(`{"version":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		rs, env, err := Restore(data)
		if err != nil {
			return
		}
		in := Input{Call: Call{Tool: "bash", WorkDir: "/w", Roots: []string{"/w"}}, Declaration: Declaration{Kind: SubjectCommand, Subject: "rm -rf x", Mutates: true}, Env: env}
		if v := rs.Evaluate(in).Verdict; v < Allow || v > Deny {
			t.Fatalf("restored rules give the verdict %d", v)
		}
		stored, hash, err := rs.Snapshot(env)
		if err != nil {
			t.Fatalf("restored rules can't be stored: %v", err)
		}
		again, env2, err := Restore(stored)
		if err != nil {
			t.Fatalf("%s is refused: %v", stored, err)
		}
		if _, hash2, err := again.Snapshot(env2); err != nil || hash2 != hash {
			t.Fatalf("the rules changed by being stored: %s, %s (%v)", hash, hash2, err)
		}
	})
}
