package policy

import (
	"strings"
	"testing"
)

// TestRulesThatCantBeStored holds that Compile refuses them, whatever of them it is, and
// that what it doesn't refuse has a stored form and the hash of that.
func TestRulesThatCantBeStored(t *testing.T) {
	tools := map[string]SubjectKind{"bash": SubjectCommand}
	plain := RuleText{Text: "bash(rm *)", Origin: Origin{File: "a.json", Key: "deny[0]"}}
	in := func(change func(*RuleText)) []RuleText {
		r := plain
		change(&r)
		return []RuleText{r}
	}
	for name, c := range map[string]struct {
		lists RuleLists
		known Known
		bad   bool
	}{
		"plain":     {lists: RuleLists{Deny: []RuleText{plain}}, known: Known{Tools: tools}},
		"large":     {lists: RuleLists{Ask: in(func(r *RuleText) { r.Origin.Key = strings.Repeat("k", maxStorable) })}, known: Known{Tools: tools}},
		"a rule":    {lists: RuleLists{Allow: in(func(r *RuleText) { r.Text = "bash(rm \xff)" })}, known: Known{Tools: tools}, bad: true},
		"a file":    {lists: RuleLists{Ask: in(func(r *RuleText) { r.Origin.File = "\xff" })}, known: Known{Tools: tools}, bad: true},
		"a key":     {lists: RuleLists{Deny: in(func(r *RuleText) { r.Origin.Key = "\xff" })}, known: Known{Tools: tools}, bad: true},
		"a tool":    {known: Known{Tools: map[string]SubjectKind{"\xff": SubjectText}}, bad: true},
		"a server":  {known: Known{Tools: tools, MCPServers: []string{"\xff"}}, bad: true},
		"two texts": {lists: RuleLists{Deny: append(in(func(r *RuleText) { r.Text = "\xff" }), plain)}, known: Known{Tools: tools}, bad: true},
	} {
		set, problems := Compile(c.lists, c.known)
		if (set == nil) != c.bad {
			t.Errorf("%s: found %v, %v", name, set != nil, problems)
		}
		if set == nil {
			continue
		}
		want, err := encode(rulesJSON{snapshotVersion, set.lists, set.known})
		if err != nil || string(set.JSON()) != string(want) || set.Hash() != digest(want) {
			t.Errorf("%s: found %.200s, %s, expected %.200s, %v", name, set.JSON(), set.Hash(), want, err)
		}
	}
}
