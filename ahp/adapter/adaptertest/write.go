package adaptertest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// Case is one outcome by a name.
type Case struct {
	Name    string
	Outcome *ahp.Outcome
}

// The texts that answers are made with.
const (
	denial   = "policy X: no"
	question = "policy X: may it?"
	withheld = "policy X keeps this back"
)

// Texts returns the words that answers are made with.
func Texts() adapter.Texts {
	return adapter.Texts{Denial: denial, Ask: question, Withheld: withheld}
}

// Event returns an event of a row, for call where the row is about one.
func Event(r *adapter.Row, call adapter.Call) *adapter.Event {
	b := adapter.Base{Session: "session-1", Cwd: "/repo"}
	e := &adapter.Event{Row: r}
	switch r.Type {
	case ahp.ToolBefore:
		e.AHP, e.Tool = b.ToolBefore(call), call.Input
	case ahp.ToolAfter:
		e.AHP, e.Tool = b.ToolAfter(call, adapter.Result{Text: "made it"}), call.Input
	case ahp.ToolPermissionRequest:
		e.AHP, e.Tool = b.PermissionRequest(call, nil), call.Input
	case ahp.TurnStart:
		e.AHP = b.Prompt("do it", []byte("seed"))
	case ahp.TurnFinishBefore:
		e.AHP = b.Finish("completed", 0, "done", []byte("seed"))
	case ahp.ContextCompactBefore:
		e.AHP = b.CompactBefore("auto", "be short")
	default:
		e.AHP = b.Event(r.Type)
	}
	return e
}

// Cases returns every outcome that the protocol allows at e, and a refusal everywhere:
// a policy that fails closed refuses whatever the event is.
func Cases(e *adapter.Event) []Case {
	var out []Case
	t := e.Row.Type
	add := func(name string, o ahp.Outcome) {
		if o.Event == nil {
			o.Event = e.AHP
		}
		if o.Permission == "" {
			o.Permission = ahp.PermissionNone
		}
		out = append(out, Case{name, &o})
	}
	has := func(x ahp.EffectType) bool { return slices.Contains(t.Effects(), x) }
	flows := t.FlowOperations()
	add("pass", ahp.Outcome{})
	if !t.Interceptable() {
		return out
	}
	denials := []ahp.Denial{{Reason: denial}}
	add("deny", ahp.Outcome{Denials: denials, Permission: ahp.PermissionDeny})
	add("deny and say", ahp.Outcome{Denials: denials, Permission: ahp.PermissionDeny, Messages: []string{"look"}})
	add("interrupted", ahp.Outcome{Interrupted: true})
	if has(ahp.EffectAllow) {
		add("allow", ahp.Outcome{Permission: ahp.PermissionAllow})
	}
	if has(ahp.EffectAsk) {
		add("ask", ahp.Outcome{Permission: ahp.PermissionAsk})
	}
	if has(ahp.EffectModify) {
		changes(e, add)
	}
	if has(ahp.EffectReturn) {
		add("return", ahp.Outcome{Candidate: &ahp.Candidate{Value: ahp.Raw(`"instead"`)}})
	}
	inject := []*ahp.Inject{{DeliverAt: ahp.DeliverNow, Messages: []ahp.Message{ahp.TextMessage("m", ahp.RoleUser, "mind the gap")}}}
	if has(ahp.EffectInject) {
		add("inject", ahp.Outcome{Injections: inject})
		add("inject and say", ahp.Outcome{Injections: inject, Messages: []string{"look"}})
	}
	if has(ahp.EffectMessage) {
		add("say", ahp.Outcome{Messages: []string{"look", "twice"}})
	}
	if slices.Contains(flows, ahp.FlowStop) {
		add("stop", ahp.Outcome{Flow: ahp.FlowStateStop, StopReason: "enough"})
	}
	if slices.Contains(flows, ahp.FlowContinue) {
		add("continue", ahp.Outcome{Flow: ahp.FlowStateContinue, Instructions: []string{"run the tests"}})
	}
	return out
}

// changes adds accepted edits.
func changes(e *adapter.Event, add func(string, ahp.Outcome)) {
	edited := *e.AHP
	switch e.Row.Type.Target() {
	case ahp.TargetInput:
		input := func(text string) *ahp.Event {
			one, tool := *e.AHP, *e.AHP.Tool
			tool.Input, one.Tool = ahp.Raw(text), &tool
			return &one
		}
		add("modify", ahp.Outcome{Event: input(`{"command":"true","timeout":5}`), Changed: true})
		add("modify by a removal", ahp.Outcome{Event: input(`{"command":"true"}`), Changed: true})
		if slices.Contains(e.Row.Type.Effects(), ahp.EffectAsk) {
			add("modify and ask", ahp.Outcome{Event: input(`{"command":"true","timeout":5}`), Changed: true, Permission: ahp.PermissionAsk})
		}
	case ahp.TargetInstructions:
		edited.Instructions = []ahp.Part{ahp.TextPart("i", "be shorter")}
		add("modify", ahp.Outcome{Event: &edited, Changed: true})
	default:
		edited.Items = ahp.MessageItems(ahp.TextMessage("m", ahp.RoleTool, "[withheld]"))
		add("modify", ahp.Outcome{Event: &edited, Changed: true})
	}
}

// writeAll says every outcome at every event, and compares the answers with the golden
// file, which is the table of the host's abilities as well.
func writeAll(t *testing.T, h *adapter.Host, o Options) {
	var b strings.Builder
	for i := range h.Rows {
		r := &h.Rows[i]
		fmt.Fprintf(&b, "== %s, %s\n", r.Native, r.Type)
		for _, a := range r.Can {
			fmt.Fprintf(&b, "can %s: %s, %s%s\n", strings.TrimSpace(string(a.Effect)+" "+string(a.Operation)), a.How, a.Level, note(a.Note))
		}
		if r.Note != "" {
			b.WriteString("note" + note(r.Note) + "\n")
		}
		e := Event(r, o.Call)
		for _, c := range Cases(e) {
			v := adapter.Settle(e, c.Outcome, Texts())
			data, err := h.Write(e, v)
			if err != nil {
				t.Errorf("%s, %s: %v", r.Native, c.Name, err)
				continue
			}
			judge(t, h, &o, e, c, v, data)
			fmt.Fprintf(&b, "%s: %s%s\n", c.Name, delivered(h, r, v, data), left(v))
		}
	}
	golden(t, o.Update, "write.golden", b.String())
}

func note(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// delivered says what reaches the host, and how.
func delivered(h *adapter.Host, r *adapter.Row, v *adapter.Verdict, data []byte) string {
	if v.Deny != "" {
		d := h.Delivery(r)
		return fmt.Sprintf("refuses, exit %d, %s: %s", d.Exit, d.Stream, data)
	}
	if len(data) == 0 {
		return "nothing"
	}
	return "says " + string(data)
}

func left(v *adapter.Verdict) string {
	var out string
	if len(v.Stood) > 0 {
		out += fmt.Sprintf(" | stands in for %v", v.Stood)
	}
	if len(v.Lost) > 0 {
		out += fmt.Sprintf(" | lost %v", v.Lost)
	}
	return out
}

// judge holds one answer against the laws that every host's answers keep.
func judge(t *testing.T, h *adapter.Host, o *Options, e *adapter.Event, c Case, v *adapter.Verdict, data []byte) {
	name := e.Row.Native + ", " + c.Name
	rest, is := bytes.CutPrefix(data, []byte(o.Prefix))
	if data = rest; !is && len(rest) > 0 {
		t.Errorf("%s: the answer doesn't start with %q: %q", name, o.Prefix, rest)
	}
	for _, fault := range Faults(h, e, v, data, o.Document) {
		t.Errorf("%s: %s", name, fault)
	}
	if doc := ahp.Raw(data); doc.IsObject() {
		allowed := o.Keys[e.Row.Native]
		paths(doc, "", func(path string, _ ahp.Raw) {
			if !slices.ContainsFunc(allowed, func(k string) bool { return covers(k, path) }) {
				t.Errorf("%s: the member %s isn't one that this host knows at this event: %s", name, path, data)
			}
		})
	}
}

// covers reports whether a key of Options.Keys stands for path.
func covers(key, path string) bool {
	outer, all := strings.CutSuffix(key, ".*")
	return key == path || strings.HasPrefix(key, path+".") || all && strings.HasPrefix(path, outer+".")
}
