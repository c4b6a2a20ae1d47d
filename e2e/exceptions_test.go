package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Field names what of a row an exception is about.
type field string

const (
	ran    field = "ran"
	told   field = "told"
	logged field = "logged"
)

// exception is one thing that a host does not do as the matrix wants it, or that
// nothing can do. It must hold wherever it applies: one that no longer does fails
// the test, so that the list doesn't grow old.
type exception struct {
	// host and versions say whom it is about; empty is all of them.
	host, version string
	scenarios     []Scenario
	policy        string // empty is both
	field         field
	// proof says why it can't be otherwise, and how that is known.
	proof string
}

// exceptions returns the whole list.
func exceptions() []exception {
	return []exception{
		{
			scenarios: []Scenario{Missing}, field: logged,
			proof: "the program that writes the log is the one that is missing; the installed line itself writes none",
		},
		{
			host: "gemini", scenarios: []Scenario{Missing}, policy: PolicyClosed, field: told,
			proof: "the hook before the model's next request has no answer either and refuses it: Gemini CLI tells the person why, and the model nothing",
		},
		{
			host: "qwen", scenarios: []Scenario{Missing}, policy: PolicyClosed, field: told,
			proof: "Qwen Code fires its prompt's hook again before each round of tool results; it has no answer either and refuses: the person is told why, and the model nothing",
		},
		{
			host: "cline", scenarios: []Scenario{Deny, Ask, Rewrite, Crash, Hang, Garbage, Missing}, policy: PolicyClosed, field: told,
			proof: "a cancel ends Cline's run before the model is asked again: there is no request that could tell it",
		},
		{
			host: "cline", scenarios: []Scenario{Deny, Ask, Rewrite}, policy: PolicyOpen, field: told,
			proof: "a cancel ends Cline's run before the model is asked again: there is no request that could tell it",
		},
	}
}

func (e exception) covers(r *Row) bool {
	return (e.host == "" || e.host == r.Host) && (e.version == "" || e.version == r.Version) &&
		slices.Contains(e.scenarios, Scenario(r.Scenario)) && (e.policy == "" || e.policy == r.Policy)
}

// judge returns what of a row is not as it has to be, and notes the exceptions
// that it rests on.
func judge(r *Row, c cell, table []exception) []string {
	var problems []string
	for _, f := range []struct {
		name      field
		got, want bool
	}{{ran, r.Ran, c.runs()}, {told, r.Told, true}, {logged, r.Logged, true}} {
		proof := ""
		for _, e := range table {
			if e.covers(r) && e.field == f.name {
				proof = e.proof
			}
		}
		switch as := f.got == f.want; {
		case proof == "" && !as:
			problems = append(problems, fmt.Sprintf("%s %s, %s: %s is %t, want %t", r.Host, r.Version, c, f.name, f.got, f.want))
		case proof != "" && as:
			problems = append(problems, fmt.Sprintf("%s %s, %s: %s is %t, as it should be; the exception %q no longer holds: remove it", r.Host, r.Version, c, f.name, f.got, proof))
		case proof != "":
			r.Note = strings.TrimPrefix(r.Note+"; "+proof, "; ")
		}
	}
	if r.Changed && c.scenario != Rewrite {
		problems = append(problems, fmt.Sprintf("%s %s, %s: another command ran than the model wrote", r.Host, r.Version, c))
	}
	return problems
}

// TestJudge proves that the matrix can fail.
func TestJudge(t *testing.T) {
	table := []exception{{host: "cline", scenarios: []Scenario{Deny}, field: told, proof: "it ends"}}
	for _, c := range []struct {
		about string
		row   Row
		cell  cell
		want  string
	}{
		{"as it should be", Row{Host: "pi", Told: true, Logged: true}, cell{Deny, PolicyClosed}, ""},
		{"ran in spite of a deny", Row{Host: "pi", Ran: true, Told: true, Logged: true}, cell{Deny, PolicyClosed}, "ran is true, want false"},
		{"ran in spite of a crash", Row{Host: "pi", Ran: true, Told: true, Logged: true}, cell{Crash, PolicyClosed}, "ran is true, want false"},
		{"ran, as the policy says", Row{Host: "pi", Ran: true, Told: true, Logged: true}, cell{Crash, PolicyOpen}, ""},
		{"did not run", Row{Host: "pi", Told: true, Logged: true}, cell{Allow, PolicyClosed}, "ran is false, want true"},
		{"not told", Row{Host: "pi", Logged: true}, cell{Deny, PolicyClosed}, "told is false, want true"},
		{"not logged", Row{Host: "pi", Told: true}, cell{Deny, PolicyClosed}, "logged is false, want true"},
		{"changed by nobody", Row{Host: "pi", Changed: true, Told: true, Logged: true}, cell{Deny, PolicyClosed}, "another command ran"},
		{"changed by the backend", Row{Host: "pi", Changed: true, Told: true, Logged: true}, cell{Rewrite, PolicyClosed}, ""},
		{"an exception", Row{Host: "cline", Logged: true}, cell{Deny, PolicyClosed}, ""},
		{"an exception for others", Row{Host: "pi", Logged: true}, cell{Deny, PolicyClosed}, "told is false"},
		{"an exception for another scenario", Row{Host: "cline", Logged: true}, cell{Crash, PolicyClosed}, "told is false"},
		{"an exception that no longer holds", Row{Host: "cline", Told: true, Logged: true}, cell{Deny, PolicyClosed}, "no longer holds"},
	} {
		c.row.Scenario, c.row.Policy = string(c.cell.scenario), c.cell.policy
		got := strings.Join(judge(&c.row, c.cell, table), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.about, got, c.want)
		}
		if c.about == "an exception" && c.row.Note != "it ends" {
			t.Errorf("%s: the proof is not noted: %q", c.about, c.row.Note)
		}
	}
}

// TestTells proves that what the model was told is looked at.
func TestTells(t *testing.T) {
	for _, c := range []struct {
		cell cell
		told string
		want bool
	}{
		{cell{Allow, PolicyClosed}, made, true},
		{cell{Allow, PolicyClosed}, refusal, false},
		{cell{Allow, PolicyClosed}, "Output: (empty), Exit Code: 0", true},
		{cell{Crash, PolicyClosed}, "Exit Code: 0", false},
		{cell{Deny, PolicyClosed}, "denied: " + refusal, true},
		{cell{Deny, PolicyClosed}, "denied", false},
		{cell{Deny, PolicyClosed}, made + refusal, false},
		{cell{Ask, PolicyOpen}, "wants a person to decide", true},
		{cell{Ask, PolicyOpen}, "", false},
		{cell{Rewrite, PolicyClosed}, "rewritten-it", true},
		{cell{Rewrite, PolicyClosed}, made, false},
		{cell{Crash, PolicyClosed}, guardID + " gave no answer", true},
		{cell{Crash, PolicyClosed}, "no", false},
		{cell{Crash, PolicyOpen}, made, true},
		{cell{Hang, PolicyOpen}, guardID, false},
		{cell{Missing, PolicyClosed}, "ahp is missing", true},
		{cell{Missing, PolicyClosed}, "", false},
	} {
		if got := c.cell.tells([]string{"before", c.told}, "Exit Code: 0"); got != c.want {
			t.Errorf("%s told %q: %t, want %t", c.cell, c.told, got, c.want)
		}
	}
}

// TestExceptionsAreArgued holds the list to its form.
func TestExceptionsAreArgued(t *testing.T) {
	hosts := []string{""}
	for _, a := range agents() {
		hosts = append(hosts, a.host)
	}
	for i, e := range exceptions() {
		if !slices.Contains(hosts, e.host) || len(e.scenarios) == 0 || len(e.proof) < 40 || !slices.Contains([]field{ran, told, logged}, e.field) {
			t.Errorf("exception %d: want a known host, scenarios, a field and a proof: %+v", i, e)
		}
	}
}
