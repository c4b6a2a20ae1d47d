package adapter_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// able returns a row of an event with abilities, each "effect[ operation]:how".
func able(t ahp.EventType, abilities ...string) *adapter.Row {
	r := &adapter.Row{Native: "native", Type: t}
	for _, a := range abilities {
		what, how, _ := strings.Cut(a, ":")
		effect, operation, _ := strings.Cut(what, " ")
		r.Can = append(r.Can, adapter.Ability{Effect: ahp.EffectType(effect), Operation: ahp.FlowOperation(operation), How: adapter.How(how), Level: adapter.Enforced})
	}
	return r
}

// about returns an event of a row with the call or the items that the row is about.
func about(r *adapter.Row) *adapter.Event {
	b := adapter.Base{Session: "s"}
	c := adapter.Call{ID: "1", Name: "run", Input: ahp.Raw(`{"a":1,"b":2}`)}
	e := &adapter.Event{Row: r, Tool: c.Input}
	switch r.Type {
	case ahp.ToolAfter:
		e.AHP = b.ToolAfter(c, adapter.Result{Text: "secret"})
	case ahp.TurnFinishBefore:
		e.AHP = b.Finish("completed", 0, "done", nil)
	default:
		e.AHP = b.ToolBefore(c)
	}
	return e
}

// edited returns an outcome with the call's input, or the result, replaced.
func edited(e *adapter.Event, to string) *ahp.Outcome {
	event := *e.AHP
	tool := *e.AHP.Tool
	if e.Row.Type == ahp.ToolAfter {
		event.Items = ahp.MessageItems(ahp.TextMessage("m", ahp.RoleTool, to))
	} else {
		tool.Input, event.Tool = ahp.Raw(to), &tool
	}
	return &ahp.Outcome{Event: &event, Changed: true, Permission: ahp.PermissionNone}
}

func texts() adapter.Texts { return adapter.Texts{Denial: "no", Ask: "may it?", Withheld: "kept back"} }

// A refusal takes the strictest form that the row has, and is told where there is none.
func TestARefusalTakesTheStrictestForm(t *testing.T) {
	t.Parallel()
	denied := &ahp.Outcome{Denials: []ahp.Denial{{Reason: "x"}}, Permission: ahp.PermissionDeny}
	for _, c := range []struct {
		row   *adapter.Row
		check func(v *adapter.Verdict) bool
	}{
		{able(ahp.ToolBefore, "deny:native", "flow stop:native"), func(v *adapter.Verdict) bool { return v.Deny == "no" && v.Stop == "" && len(v.Stood) == 0 }},
		{able(ahp.ToolAfter, "modify:replaces", "flow stop:native"), func(v *adapter.Verdict) bool {
			return v.Output != nil && *v.Output == "kept back" && v.Stop == "" && slices.Equal(v.Stood, []ahp.EffectType{ahp.EffectDeny})
		}},
		{able(ahp.ToolAfter, "inject:native", "flow stop:native"), func(v *adapter.Verdict) bool {
			return v.Stop == "no" && slices.Equal(v.Stood, []ahp.EffectType{ahp.EffectDeny})
		}},
		{able(ahp.TurnFinishBefore, "flow continue:native"), func(v *adapter.Verdict) bool {
			return v.Silent() && len(v.Stood) == 0 && slices.Equal(v.Lost, []ahp.EffectType{ahp.EffectDeny})
		}},
	} {
		for _, o := range []*ahp.Outcome{denied, {Interrupted: true}} {
			if v := adapter.Settle(about(c.row), o, texts()); !c.check(v) {
				t.Errorf("%s with %v: %+v", c.row.Type, c.row.Can, *v)
			}
		}
	}
}

// The words of a verdict are never blank, though the caller gives blank ones: a host
// takes a blank question for none, and the call runs.
func TestBlankWordsAreWords(t *testing.T) {
	t.Parallel()
	for _, blank := range []string{"", " ", "\n\t"} {
		words := adapter.Texts{Denial: blank, Ask: blank, Withheld: blank}
		e := about(able(ahp.ToolBefore, "deny:native", "ask:native", "flow stop:native"))
		if v := adapter.Settle(e, &ahp.Outcome{Permission: ahp.PermissionAsk, Event: e.AHP}, words); strings.TrimSpace(v.Ask) == "" {
			t.Errorf("a question with the words %q is %+v", blank, *v)
		}
		e.Row = able(ahp.ToolBefore, "deny:native", "ask:denies")
		if v := adapter.Settle(e, &ahp.Outcome{Permission: ahp.PermissionAsk, Event: e.AHP}, words); strings.TrimSpace(v.Deny) == "" {
			t.Errorf("a refusal in place of a question with the words %q is %+v", blank, *v)
		}
		if v := adapter.Settle(e, &ahp.Outcome{Interrupted: true}, words); strings.TrimSpace(v.Deny) == "" {
			t.Errorf("a refusal with the words %q is %+v", blank, *v)
		}
		e.Row = able(ahp.TurnFinishBefore, "flow continue:native")
		if v := adapter.Settle(e, &ahp.Outcome{Flow: ahp.FlowStateContinue, Instructions: []string{blank}, Event: e.AHP}, words); strings.TrimSpace(v.Continue) == "" {
			t.Errorf("a continuation with the words %q is %+v", blank, *v)
		}
	}
}

// A turn that ends runs no call: neither a question nor a rewrite is left of it, but
// what may not be seen is still kept back.
func TestAStopBeatsWhatComesBeforeACall(t *testing.T) {
	t.Parallel()
	e := about(able(ahp.ToolBefore, "deny:native", "ask:native", "modify:native", "flow stop:native"))
	o := edited(e, `{"a":2,"b":2}`)
	o.Permission, o.Flow, o.StopReason, o.Candidate = ahp.PermissionAsk, ahp.FlowStateStop, "enough", &ahp.Candidate{Value: ahp.Raw("1")}
	if v := adapter.Settle(e, o, texts()); v.Stop != "enough" || v.Ask != "" || v.Input != nil || v.Deny != "" {
		t.Errorf("%+v", *v)
	}
	e = about(able(ahp.ToolAfter, "modify:native", "flow stop:native"))
	o = edited(e, "***")
	o.Flow, o.StopReason = ahp.FlowStateStop, "enough"
	if v := adapter.Settle(e, o, texts()); v.Stop != "enough" || v.Output == nil || *v.Output != "***" {
		t.Errorf("%+v", *v)
	}
}

// A rewrite is applied where the host does it, and refused where it would run something
// else than what the policy wants.
func TestARewriteIsWholeOrRefused(t *testing.T) {
	t.Parallel()
	merging := able(ahp.ToolBefore, "deny:native", "modify:native")
	merging.Can[1].Merges = true
	for _, c := range []struct {
		name    string
		row     *adapter.Row
		input   string
		applied bool
	}{
		{"replaced", able(ahp.ToolBefore, "deny:native", "modify:native"), `{"a":1}`, true},
		{"merged", merging, `{"a":9,"b":2,"c":3}`, true},
		{"merged, a member less", merging, `{"a":9}`, false},
		{"merged, a member is null", merging, `{"a":9,"b":null}`, true},
		{"ignored", able(ahp.ToolBefore, "deny:native", "modify:denies"), `{"a":9,"b":2}`, false},
		{"ends the run", able(ahp.ToolBefore, "deny:native", "modify:stops"), `{"a":9,"b":2}`, false},
		{"unknown", able(ahp.ToolBefore, "deny:native"), `{"a":9,"b":2}`, false},
	} {
		e := about(c.row)
		v := adapter.Settle(e, edited(e, c.input), texts())
		if applied := string(v.Input) == c.input && v.Deny == ""; applied != c.applied || !applied && (!strings.Contains(v.Deny, c.input) || !slices.Contains(v.Stood, ahp.EffectModify)) {
			t.Errorf("%s: %+v", c.name, *v)
		}
	}
	e := about(merging)
	o := edited(e, `{"a":1,"b":2}`)
	if e.Tool = nil; adapter.Settle(e, o, texts()).Deny == "" {
		t.Error("a rewrite is merged into an input that isn't known")
	}
	after := about(able(ahp.ToolAfter, "flow stop:native"))
	if v := adapter.Settle(after, edited(after, "***"), texts()); v.Stop == "" || strings.Contains(v.Stop, `{"a"`) {
		t.Errorf("an edit of a result asks for the call again: %+v", *v)
	}
}

// What a row can't do is told, whichever effect it is.
func TestWhatIsLostIsTold(t *testing.T) {
	t.Parallel()
	e := about(able(ahp.ToolAfter))
	o := edited(e, "***")
	o.Flow, o.Instructions, o.Messages = ahp.FlowStateContinue, []string{"go"}, []string{"look"}
	o.Injections = []*ahp.Inject{{Messages: []ahp.Message{ahp.TextMessage("m", ahp.RoleUser, "mind")}}}
	v := adapter.Settle(e, o, texts())
	for _, x := range []ahp.EffectType{ahp.EffectModify, ahp.EffectFlow, ahp.EffectMessage, ahp.EffectInject} {
		if !slices.Contains(v.Lost, x) {
			t.Errorf("%s isn't told to be lost: %v", x, v.Lost)
		}
	}
	if !v.Silent() {
		t.Errorf("a row that can do nothing does %+v", *v)
	}
}

// Words in a host's place for words are not JSON, which some hosts would read.
func TestWordsAreNotJSON(t *testing.T) {
	t.Parallel()
	for _, s := range []string{`{}`, `{"decision":"allow"}`, "\ufeff{}", "\u00a0[1]", "\u200b\"x\"", "7", "-1", "true", "null", " false "} {
		if w := adapter.Words(s); !strings.HasPrefix(w, "Policy: ") {
			t.Errorf("%q stays %q", s, w)
		}
	}
	for _, s := range []string{"no", "<b>", "truely", "Ünder", "(x)", ""} {
		if w := adapter.Words(s); w != s {
			t.Errorf("%q becomes %q", s, w)
		}
	}
	if adapter.Reason("\u200b") == "" || adapter.Reason(" ") == "" {
		t.Error("a blank reason stays blank")
	}
}
