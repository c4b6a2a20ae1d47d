package gate

import (
	"context"
	"fmt"
	"strings"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/policy"
)

// settle is steps 5 to 7: from the joined verdict to a ruling.
func (j *judgement) settle(ctx context.Context) agent.Ruling {
	if j.stop != nil {
		return j.stopRuling()
	}
	switch j.verdict {
	case policy.Allow:
		j.d.Step, j.d.By, j.d.Reason = "rules", ruleText(j.onFinal), j.onFinal.Reason
	case policy.Ask:
		if ruling := j.ask(ctx); ruling != nil {
			return ruling
		}
	default:
		return j.refuseJoined()
	}
	if ctx.Err() != nil {
		return j.cancelled()
	}
	if j.candidate != nil {
		j.d.Outcome, j.d.By = "supplied", j.candidate.by
		if err := j.record(); err != nil {
			return &agent.Broken{Err: err}
		}
		return &agent.Supplied{Call: j.call, Decl: j.decl, Content: j.candidate.content, By: j.candidate.by}
	}
	return j.permit()
}

// permit records the decision and only then mints.
func (j *judgement) permit() agent.Ruling {
	var at *policy.Place
	if j.decl.Kind == policy.SubjectPath {
		p, ok := place(j.onFinal, j.decl)
		if !ok {
			return j.refuse("permit", "the gate", "the place of the path could not be determined", "no_place")
		}
		at = &p
	}
	j.d.Outcome = "run"
	if err := j.record(); err != nil {
		return &agent.Broken{Err: err}
	}
	return &agent.Run{Permit: j.g.o.Minter.Mint(j.call, at), Call: j.call, Decl: j.decl}
}

// refuseJoined refuses on the strictest of objections and rules.
func (j *judgement) refuseJoined() agent.Ruling {
	for _, o := range j.objections {
		if o.Denies() {
			return j.refuse(j.refusedAt, o.Source().String(), o.Reason(), o.Code())
		}
	}
	r := j.onFinal
	if r.Verdict != policy.Deny {
		r = j.onOriginal
	}
	return j.refuse("rules", ruleText(r), r.Reason, string(r.Step))
}

// ruleText names what in the rules settled a verdict.
func ruleText(r policy.Result) string {
	if r.Rule == nil {
		return "the rules, at step " + string(r.Step)
	}
	return r.Rule.String()
}

// refuse records a denial and words it for the model.
func (j *judgement) refuse(step, by, reason, code string) agent.Ruling {
	j.d.Outcome, j.d.Step, j.d.By, j.d.Reason, j.d.Code = "deny", step, by, reason, code
	if j.rules == nil {
		j.d.Verdict = policy.Deny.String() // it was refused before the rules were asked
	}
	if err := j.record(); err != nil {
		return &agent.Broken{Err: err}
	}
	return &agent.Refused{Text: refusalText(step, by, reason), Same: j.call.Tool + "\x00" + j.same(), Call: j.call}
}

// same identifies the call for counting repeats: what the model sent.
func (j *judgement) same() string {
	if j.original.Args != nil {
		return string(j.original.Args)
	}
	return j.p.Call.Args
}

func refusalText(step, by, reason string) string {
	switch step {
	case "args":
		return reason
	case "rules":
		return "Not run: " + reason // it names the rule
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Not run: refused by %s.", by)
	if reason != "" {
		fmt.Fprintf(&b, " Reason: %s", reason)
		if !strings.HasSuffix(reason, ".") {
			b.WriteByte('.')
		}
	}
	if step == "headless" {
		b.WriteString(" Nobody can be asked in this run.")
	}
	b.WriteString(" The same action in other words will be refused too; do it another way, or say what you would need.")
	return b.String()
}

func (j *judgement) stopRuling() agent.Ruling {
	j.d.Outcome, j.d.Step, j.d.By, j.d.Reason = "stopped", "stop", j.stop.by, j.stop.reason
	if err := j.record(); err != nil {
		return &agent.Broken{Err: err}
	}
	return &agent.Stopped{Call: j.call, By: j.stop.by, Reason: j.stop.reason}
}

func (j *judgement) cancelled() agent.Ruling {
	j.d.Outcome, j.d.Step, j.d.Reason = "cancelled", "cancel", "the turn was cancelled while the call was judged"
	if err := j.record(); err != nil {
		return &agent.Broken{Err: err}
	}
	return &agent.Cancelled{Call: j.call}
}

// record completes the decision event and puts it on disk.
func (j *judgement) record() error {
	d := &j.d
	if j.call.Args != nil {
		d.FinalHash = d.OriginalHash
		if !j.unchanged() {
			d.Final, d.FinalHash = event.Raw(j.call.Args), j.call.Hash()
		}
		d.SubjectKind, d.Subject, d.Mutates = j.decl.Kind.String(), j.decl.Subject, j.decl.Mutates
	}
	if j.rules != nil {
		d.RulesHash, d.Mode = j.rules.hash, j.rules.env.Mode.String()
		d.RulesOriginal = raw(j.onOriginal)
		if !j.unchanged() {
			d.RulesFinal = raw(j.onFinal)
		}
		if d.Verdict == "" {
			d.Verdict = j.verdict.String()
		}
	}
	d.MS = j.g.o.Now().Sub(j.began).Milliseconds()
	_, err := j.g.o.Log.AppendDurable(event.Draft{Actor: event.ActorGate, Trust: event.TrustHarness, Payload: d})
	return err
}
