package adapter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
)

// Verdict is an outcome as one host can enforce it at one event. The zero Verdict is
// silence. Texts are clean and bounded: see Settle.
type Verdict struct {
	// Deny, if not "", refuses. Nothing else counts then.
	Deny string
	// Ask, if not "", has the person asked, with this text as the reason.
	Ask string
	// Input, if not nil, is the whole input that the tool is to run with instead.
	Input ahp.Raw
	// Output, if not nil, is what the model is to see instead of the result.
	Output *string
	// Prompt, if not nil, is what the model is to see instead of the person's text.
	Prompt *string
	// Instructions, if not nil, is what a compaction is to be told instead.
	Instructions *string
	// Context is added for the model, and Notices are shown to the person, in order.
	Context, Notices []string
	// Stop, if not "", ends the turn, for this reason.
	Stop string
	// Continue, if not "", puts the end of the turn off, with this instruction.
	Continue string
	// Stood names effects for which something stricter stands in; Lost names what could
	// not be enforced at all.
	Stood, Lost []ahp.EffectType
}

// Silent reports whether the verdict has no effect.
func (v *Verdict) Silent() bool {
	return v.Deny == "" && v.Ask == "" && v.Input == nil && v.Output == nil && v.Prompt == nil && v.Instructions == nil &&
		len(v.Context) == 0 && len(v.Notices) == 0 && v.Stop == "" && v.Continue == ""
}

// Texts holds the words of a verdict that are the caller's to choose. Each is clean
// and bounded already: see Clean.
type Texts struct {
	// Denial is the reason of a refusal by o's first denial.
	Denial string
	// Ask is the reason of a question, and of the refusal that stands in for it.
	Ask string
	// Withheld stands in place of a result or a prompt that may not be seen.
	Withheld string
}

// Settle turns an outcome into what the host can enforce at e, by the row's abilities
// alone. What the host can't enforce becomes a refusal, a replaced result or the end of
// the turn, whichever the row has, in that order, and is named in Stood; what nothing
// can stand in for is named in Lost. o is for the event e.AHP.
func Settle(e *Event, o *ahp.Outcome, t Texts) *Verdict {
	v := &Verdict{}
	v.say(e.Row, o)
	if o.Interrupted || len(o.Denials) > 0 {
		v.refuse(e.Row, ahp.EffectDeny, t)
		return v
	}
	v.flow(e.Row, o)
	if v.Deny == "" && v.Stop == "" && o.Permission == ahp.PermissionAsk {
		v.ask(e.Row, o, t)
	}
	// A turn that ends runs no call, so that neither its input nor its result matters.
	if v.Deny == "" && o.Changed && (v.Stop == "" || e.Row.Type.Target() != ahp.TargetInput) {
		v.modify(e, o)
	}
	if v.Deny == "" && v.Stop == "" && o.Candidate != nil { // a supplied result: the call itself must not run
		v.instead(e.Row, ahp.EffectReturn, "The call was answered by a policy instead of being run: "+Clean(string(o.Candidate.Value)))
	}
	v.inject(e.Row, o)
	return v
}

// say keeps what the person is to be told.
func (v *Verdict) say(r *Row, o *ahp.Outcome) {
	for _, m := range o.Messages {
		if m = Clean(m); m == "" {
			continue
		}
		if r.Find(ahp.EffectMessage, "") == nil {
			v.lose(ahp.EffectMessage)
			continue
		}
		v.Notices = append(v.Notices, m)
	}
}

// inject keeps what is added for the model.
func (v *Verdict) inject(r *Row, o *ahp.Outcome) {
	for _, in := range o.Injections {
		for i := range in.Messages {
			text := Clean(textOf(in.Messages[i].Parts))
			switch {
			case text == "":
			case r.Find(ahp.EffectInject, "") == nil:
				v.lose(ahp.EffectInject)
			default:
				v.Context = append(v.Context, text)
			}
		}
	}
}

func (v *Verdict) lose(e ahp.EffectType) {
	if !slices.Contains(v.Lost, e) {
		v.Lost = append(v.Lost, e)
	}
}

// refuse does the strictest that the row has, in place of the effect of.
func (v *Verdict) refuse(r *Row, of ahp.EffectType, t Texts) {
	switch {
	case r.Denies():
		v.Deny = Reason(t.Denial) // a refusal is never empty
		if of == ahp.EffectDeny {
			return
		}
	case r.Find(ahp.EffectModify, "") != nil && r.Type == ahp.ToolAfter:
		v.Output = &t.Withheld
	case r.Find(ahp.EffectFlow, ahp.FlowStop) != nil:
		v.Stop = Reason(t.Denial)
	default:
		v.lose(of)
		return
	}
	v.Stood = append(v.Stood, of)
}

// instead refuses for a reason of its own in place of the effect of.
func (v *Verdict) instead(r *Row, of ahp.EffectType, reason string) {
	v.refuse(r, of, Texts{Denial: reason, Withheld: reason})
}

func (v *Verdict) ask(r *Row, o *ahp.Outcome, t Texts) {
	question := t.Ask
	if strings.TrimSpace(question) == "" { // a blank question would be none
		question = "A policy asks whether this may run."
	}
	native := func(e ahp.EffectType) bool {
		a := r.Find(e, "")
		return a != nil && a.How == Native
	}
	if native(ahp.EffectAsk) && (!o.Changed || native(ahp.EffectModify)) {
		v.Ask = question
		return
	}
	v.instead(r, ahp.EffectAsk, question)
}

func (v *Verdict) flow(r *Row, o *ahp.Outcome) {
	switch o.Flow {
	case ahp.FlowStateStop:
		reason := Clean(o.StopReason)
		if reason == "" {
			reason = "A policy ended this turn."
		}
		if a := r.Find(ahp.EffectFlow, ahp.FlowStop); a != nil && a.How == Native {
			v.Stop = reason
			return
		}
		v.instead(r, ahp.EffectFlow, reason)
	case ahp.FlowStateContinue:
		if r.Find(ahp.EffectFlow, ahp.FlowContinue) == nil {
			v.lose(ahp.EffectFlow)
			return
		}
		v.Continue = Clean(strings.Join(o.Instructions, "\n"))
		if v.Continue == "" {
			v.Continue = "A policy asks for one more step before this turn ends."
		}
	}
}

// modify applies an accepted edit.
func (v *Verdict) modify(e *Event, o *ahp.Outcome) {
	a := e.Row.Find(ahp.EffectModify, "")
	if a == nil || a.How == Denies || a.How == Stops || a.Merges && removes(e, o) {
		reason := "A policy wants this changed, which this agent can't have done for it."
		if tool := o.Event.Tool; tool != nil && e.Row.Type.Target() == ahp.TargetInput {
			reason = fmt.Sprintf("A policy wants this call changed, which this agent can't have done for it. Call %s again with this input: %s", Clean(tool.Name), Clean(string(tool.Input)))
		}
		v.instead(e.Row, ahp.EffectModify, reason)
		return
	}
	switch e.Row.Type.Target() {
	case ahp.TargetInput:
		v.Input = o.Event.Tool.Input
	case ahp.TargetOutput:
		text := Printable(textOfMessages(o.Event.Items.Messages))
		v.Output = &text
	case ahp.TargetPrompt:
		text := Printable(textOfMessages(o.Event.Items.Messages))
		v.Prompt = &text
	case ahp.TargetInstructions:
		text := Printable(textOf(o.Event.Instructions))
		v.Instructions = &text
	default:
		v.lose(ahp.EffectModify)
	}
}

// removes reports whether an accepted edit takes a member of the call's input away, or
// whether that isn't known.
func removes(e *Event, o *ahp.Outcome) bool {
	was, err := ParseObject(e.Tool)
	if err != nil {
		return true
	}
	is, err := ParseObject(o.Event.Tool.Input)
	if err != nil {
		return true
	}
	for name := range was.members {
		if _, still := is.members[name]; !still {
			return true
		}
	}
	return false
}

func textOfMessages(list []ahp.Message) string {
	var texts []string
	for i := range list {
		texts = append(texts, textOf(list[i].Parts))
	}
	return strings.Join(texts, "\n")
}

func textOf(parts []ahp.Part) string {
	var texts []string
	for i := range parts {
		if p := &parts[i]; p.Text != nil {
			texts = append(texts, *p.Text)
		}
	}
	return strings.Join(texts, "\n")
}
