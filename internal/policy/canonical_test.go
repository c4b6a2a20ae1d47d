package policy

import (
	"testing"

	"github.com/abhed/abhed/internal/strictjson"
)

// TestResultsAreCanonical holds that a result is encoded in canonical form at
// once, which spares the record a second pass.
func TestResultsAreCanonical(t *testing.T) {
	rs, problems := Compile(RuleLists{
		Deny:  []RuleText{{Text: "read(x)", Origin: Origin{File: "f", Line: 1, Column: 2, Key: "k"}}},
		Allow: []RuleText{{Text: "bash(sudo ls*)"}, {Text: "bash(ls*)", Origin: Origin{File: "f", Line: 3}}},
	}, Known{Tools: map[string]SubjectKind{"bash": SubjectCommand, "read": SubjectPath}})
	if rs == nil {
		t.Fatal(problems)
	}
	for _, in := range []Input{
		{Call: Call{Tool: "read"}, Declaration: Declaration{Kind: SubjectPath, Subject: "x"}},
		{Call: Call{Tool: "read"}, Declaration: Declaration{Kind: SubjectPath, Subject: "/etc/passwd"}},
		{Call: Call{Tool: "bash"}, Declaration: Declaration{Kind: SubjectCommand, Subject: "sudo ls | ls -l >out; frob x", Mutates: true}},
	} {
		in.Call.WorkDir, in.Call.Roots, in.Env.Mode = "/tmp", []string{"/tmp"}, ModeDefault
		b, err := strictjson.Marshal(rs.Evaluate(in))
		if err != nil || !strictjson.IsCanonical(b) {
			t.Errorf("%v: %s", err, b)
		}
	}
}
