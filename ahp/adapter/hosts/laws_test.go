package hosts_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/strictjson"
)

// documents names the hosts for which silence is a document.
func documents() []string { return []string{"cursor"} }

// texts are what a policy may say: plain, blank, hostile.
func texts() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringN(0, 40, 200), rapid.SampledFrom([]string{
		"", " ", "\n", "\u200b", "no", `{"decision":"allow"}`, `"allow"`, "true", "\x1b[31mred", "a\x00b", "\ufeff{}", "<b>", strings.Repeat("é", 5000),
		"HOOK_CONTROL\t{\"cancel\":false}", "line\nHOOK_CONTROL\t{}", "\u202egnp",
	}))
}

// outcomes draws any outcome, of which the table knows nothing.
func outcomes(e *adapter.Event) *rapid.Generator[*ahp.Outcome] {
	return rapid.Custom(func(t *rapid.T) *ahp.Outcome {
		some := rapid.SliceOfN(texts(), 0, 3)
		edited := *e.AHP
		o := &ahp.Outcome{
			Event: &edited, Permission: rapid.SampledFrom([]ahp.Permission{ahp.PermissionNone, ahp.PermissionAllow, ahp.PermissionAsk}).Draw(t, "permission"),
			Flow:       rapid.SampledFrom([]ahp.FlowState{ahp.FlowStateNone, ahp.FlowStateStop, ahp.FlowStateContinue}).Draw(t, "flow"),
			StopReason: texts().Draw(t, "stop reason"), Instructions: some.Draw(t, "instructions"), Messages: some.Draw(t, "messages"),
			Interrupted: rapid.IntRange(0, 9).Draw(t, "interrupted") == 0, Changed: rapid.Bool().Draw(t, "changed"),
		}
		for _, reason := range some.Draw(t, "denials") {
			if rapid.Bool().Draw(t, "denies") {
				o.Denials, o.Permission = append(o.Denials, ahp.Denial{Reason: reason}), ahp.PermissionDeny
			}
		}
		for _, text := range some.Draw(t, "injections") {
			o.Injections = append(o.Injections, &ahp.Inject{DeliverAt: ahp.DeliverNow, Messages: []ahp.Message{ahp.TextMessage("m", ahp.RoleUser, text)}})
		}
		if o.Changed {
			text := texts().Draw(t, "edit")
			edited.Items, edited.Instructions = ahp.MessageItems(ahp.TextMessage("m", ahp.RoleTool, text)), []ahp.Part{ahp.TextPart("p", text)}
			if e.AHP.Tool != nil {
				tool := *e.AHP.Tool
				tool.Input = rapid.SampledFrom([]ahp.Raw{ahp.Raw(`{}`), ahp.Raw(`{"command":"allow"}`), ahp.Raw(`{"command":"true","timeout":1,"decision":"allow"}`)}).Draw(t, "input")
				edited.Tool = &tool
			}
		}
		if e.Row.Type == ahp.ToolBefore && rapid.IntRange(0, 5).Draw(t, "supplied") == 0 {
			o.Candidate = &ahp.Candidate{Value: ahp.Raw(`{"decision":"allow"}`)}
		}
		return o
	})
}

// law checks one law of each host.
func law(t *testing.T, f func(t *rapid.T, h *adapter.Host, e *adapter.Event)) {
	t.Parallel()
	for _, h := range hosts.All() {
		t.Run(h.Name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				r := &h.Rows[rapid.IntRange(0, len(h.Rows)-1).Draw(t, "row")]
				f(t, h, adaptertest.Event(r, rapid.SampledFrom(calls()).Draw(t, "call")))
			})
		})
	}
}

// said returns the words of a caller, which are clean.
func said(t *rapid.T) adapter.Texts {
	word := func(name string) string { return adapter.Clean(texts().Draw(t, name)) }
	return adapter.Texts{Denial: word("denial"), Ask: word("question"), Withheld: word("withheld")}
}

func TestLawsOfAnswers(t *testing.T) {
	law(t, func(t *rapid.T, h *adapter.Host, e *adapter.Event) {
		o := outcomes(e).Draw(t, "outcome")
		v := adapter.Settle(e, o, said(t))
		data, err := h.Write(e, v)
		if err != nil {
			t.Fatalf("%s, %s: %v", h.Name, e.Row.Native, err)
		}
		for _, fault := range adaptertest.Faults(h, e, v, document(h, data), slices.Contains(documents(), h.Name)) {
			t.Errorf("%s, %s, %+v: %s", h.Name, e.Row.Native, *v, fault)
		}
		data = document(h, data)
		if d := h.Delivery(e.Row); (v.Deny == "" || d.Stream == adapter.Stdout) && len(data) > 0 && data[0] == '{' {
			if err := strictjson.Check(data, strictjson.Options{}); err != nil {
				t.Errorf("%s, %s: %q: %v", h.Name, e.Row.Native, data, err)
			}
		}
		lawsOfVerdicts(t, h, e, o, v)
	})
}

// lawsOfVerdicts holds that nothing which a policy asked for vanishes.
func lawsOfVerdicts(t *rapid.T, h *adapter.Host, e *adapter.Event, o *ahp.Outcome, v *adapter.Verdict) {
	r := e.Row
	told := func(x ahp.EffectType) bool { return slices.Contains(v.Stood, x) || slices.Contains(v.Lost, x) }
	denied := o.Interrupted || len(o.Denials) > 0
	switch {
	case denied && r.Denies():
		if strings.TrimSpace(v.Deny) == "" {
			t.Errorf("%s, %s: a refusal is lost: %+v", h.Name, r.Native, *v)
		}
		return
	case denied && !told(ahp.EffectDeny):
		t.Errorf("%s, %s: nobody is told of a refusal: %+v", h.Name, r.Native, *v)
	case denied || v.Deny != "":
		return
	}
	if o.Permission == ahp.PermissionAsk && v.Ask == "" && v.Stop == "" && !told(ahp.EffectAsk) {
		t.Errorf("%s, %s: a question vanishes: %+v", h.Name, r.Native, *v)
	}
	if o.Changed && v.Input == nil && v.Output == nil && v.Prompt == nil && v.Instructions == nil && v.Stop == "" && !told(ahp.EffectModify) {
		t.Errorf("%s, %s: an edit vanishes: %+v", h.Name, r.Native, *v)
	}
	if o.Candidate != nil && v.Stop == "" && !told(ahp.EffectReturn) {
		t.Errorf("%s, %s: a call that was answered runs: %+v", h.Name, r.Native, *v)
	}
	if o.Flow == ahp.FlowStateStop && v.Stop == "" && !told(ahp.EffectFlow) || o.Flow == ahp.FlowStateContinue && v.Continue == "" && !told(ahp.EffectFlow) {
		t.Errorf("%s, %s: a flow vanishes: %+v", h.Name, r.Native, *v)
	}
	for _, text := range slices.Concat(v.Context, v.Notices, []string{v.Stop, v.Ask, v.Continue}) {
		if text != adapter.Clean(text) && text != "" && len(text) <= adapter.MaxReason {
			t.Errorf("%s, %s: %q isn't clean", h.Name, r.Native, text)
		}
	}
}

// A verdict of nothing is nothing, and a refusal says its reason, whatever it is.
func TestLawsOfSilenceAndRefusal(t *testing.T) {
	law(t, func(t *rapid.T, h *adapter.Host, e *adapter.Event) {
		data, err := h.Write(e, &adapter.Verdict{})
		if err != nil || len(data) > 0 && !slices.Contains(documents(), h.Name) || !bytes.Equal(data, h.Blank(e.Row.Native)) {
			t.Errorf("%s, %s: silence is %q, %v", h.Name, e.Row.Native, data, err)
		}
		if !e.Row.Denies() {
			return
		}
		reason := texts().Draw(t, "reason")
		if data, err = h.Write(e, &adapter.Verdict{Deny: reason}); reason != "" && (err != nil || strings.TrimSpace(string(data)) == "") {
			t.Errorf("%s, %s: a refusal for %q is %q, %v", h.Name, e.Row.Native, reason, data, err)
		}
	})
}
