package adapter

import (
	"fmt"
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
	for _, m := range o.Messages {
		if e.Row.Find(ahp.EffectMessage, "") != nil {
			v.Notices = append(v.Notices, Clean(m))
		}
	}
	switch {
	case o.Interrupted || len(o.Denials) > 0:
		v.refuse(e.Row, t)
		return v
	case o.Permission == ahp.PermissionAsk:
		v.ask(e.Row, o, t)
	}
	if v.Deny != "" {
		return v
	}
	v.flow(e.Row, o, t)
	if o.Changed {
		v.modify(e, o, t)
	}
	if o.Candidate != nil { // a supplied result: the call itself must not run
		v.Stood = append(v.Stood, ahp.EffectReturn)
		v.refuseWith(e.Row, "The call was answered by a policy instead of being run: "+Clean(string(o.Candidate.Value)))
	}
	for _, in := range o.Injections {
		for i := range in.Messages {
			v.Context = append(v.Context, Clean(textOf(in.Messages[i].Parts)))
		}
	}
	return v
}

// refuse refuses by the strictest that the row has.
func (v *Verdict) refuse(r *Row, t Texts) {
	switch {
	case r.Denies():
		v.Deny = t.Denial
	case r.Find(ahp.EffectModify, "") != nil && r.Type == ahp.ToolAfter:
		v.Output, v.Stood = &t.Withheld, append(v.Stood, ahp.EffectDeny)
	case r.Find(ahp.EffectFlow, ahp.FlowStop) != nil:
		v.Stop, v.Stood = t.Denial, append(v.Stood, ahp.EffectDeny)
	default:
		v.Lost = append(v.Lost, ahp.EffectDeny)
	}
}

func (v *Verdict) refuseWith(r *Row, reason string) {
	v.refuse(r, Texts{Denial: reason, Withheld: reason})
}

func (v *Verdict) ask(r *Row, o *ahp.Outcome, t Texts) {
	if a := r.Find(ahp.EffectAsk, ""); a != nil && a.How == Native && !o.Changed {
		v.Ask = t.Ask
		return
	} else if a != nil && a.How == Native {
		if m := r.Find(ahp.EffectModify, ""); m != nil && m.How == Native {
			v.Ask = t.Ask
			return
		}
	}
	v.Stood = append(v.Stood, ahp.EffectAsk)
	v.refuseWith(r, t.Ask)
}

func (v *Verdict) flow(r *Row, o *ahp.Outcome, t Texts) {
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
		v.Stood = append(v.Stood, ahp.EffectFlow)
		v.refuseWith(r, reason)
	case ahp.FlowStateContinue:
		v.Continue = Clean(strings.Join(o.Instructions, "\n"))
		if v.Continue == "" {
			v.Continue = "A policy asks for one more step before this turn ends."
		}
	}
}

// modify applies an accepted edit.
func (v *Verdict) modify(e *Event, o *ahp.Outcome, t Texts) {
	a := e.Row.Find(ahp.EffectModify, "")
	if a == nil || a.How == Denies {
		v.Stood = append(v.Stood, ahp.EffectModify)
		reason := "A policy wants this changed, which this agent can't have done for it."
		if tool := o.Event.Tool; tool != nil {
			reason = fmt.Sprintf("A policy wants this call changed, which this agent can't have done for it. Call %s again with this input: %s", Clean(tool.Name), Clean(string(tool.Input)))
		}
		v.refuseWith(e.Row, reason)
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
		v.Lost = append(v.Lost, ahp.EffectModify)
	}
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
