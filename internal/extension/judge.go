package extension

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/run"
	"github.com/abhed/abhed/internal/tool"
)

// ToolCall is one round of asking about a call (gate.md §2 step 2).
type ToolCall struct {
	// Call holds the arguments to judge in this round.
	Call policy.Call
	Decl policy.Declaration
	// Round counts from 1; 0 means 1.
	Round int
	// Original holds the model's arguments; it is sent from round 2.
	Original []byte
	// Final says that backends changed the arguments after the rounds.
	Final bool
	// Sticky holds the names of the extensions whose Match fitted in an earlier
	// round: they are asked again whatever Match says now.
	Sticky map[string]bool
}

// Answer is what one extension made of a call. It can't say "allow": the only
// judgement in it is a policy.Objection.
type Answer struct {
	Name      string
	Objection policy.Objection
	// Args are the whole new arguments that it proposes, as canonical JSON; nil if
	// it changes nothing.
	Args []byte
	// Asked is the answer for the record.
	Asked event.Asked
}

// PolicyHook asks every extension that subscribes to tool_call and whose Match
// fits, all at the same time, and returns their answers sorted by name. A dead
// extension's answer is what its OnFailure says. When ctx ends before an
// extension has answered, that answer is a refusal.
func (h *Host) PolicyHook(ctx context.Context, q ToolCall) []Answer {
	round := max(q.Round, 1)
	r := newRequest(eventToolCall, h.opts.SessionID)
	r.call(q.Call)
	err := r.subject(q.Call)
	r.num("round", round)
	if round > 1 && q.Original != nil && err == nil {
		err = r.object("original", q.Original)
	}
	if q.Final {
		r.flag("final", true)
	}
	return h.judge(ctx, r, err, q.Call, round, func(e *ext) bool {
		return q.Sticky[e.cfg.Name] || e.matches(q.Call, q.Decl)
	})
}

// PermissionRequest asks every extension that subscribes to permission_request
// and whose Match fits, before a person is asked; why is what the person will
// read. Only a refusal counts in an answer.
func (h *Host) PermissionRequest(ctx context.Context, call policy.Call, decl policy.Declaration, why string) []Answer {
	r := newRequest(eventPermission, h.opts.SessionID)
	r.call(call)
	err := r.subject(call)
	r.str("content", why)
	return h.judge(ctx, r, err, call, 0, func(e *ext) bool { return e.matches(call, decl) })
}

// matches reports whether the extension is to judge the call. A Match that fails
// narrows nothing.
func (e *ext) matches(c policy.Call, d policy.Declaration) bool {
	fits := true
	if e.cfg.Match != nil {
		_ = run.Protect(func() error { fits = e.cfg.Match(c, d); return nil })
	}
	return fits
}

// judge asks the selected subscribers of r's event. unsent says why r can't be
// sent to anybody, which refuses the call.
func (h *Host) judge(ctx context.Context, r *request, unsent error, call policy.Call, round int, selected func(*ext) bool) []Answer {
	var asked []*ext
	for _, e := range h.byName {
		if e.cfg.subscribes(r.event) && selected(e) {
			asked = append(asked, e)
		}
	}
	answers := make([]Answer, len(asked))
	group := run.New(context.Background())
	for i, e := range asked {
		group.Go(func(context.Context) error {
			answers[i] = e.judge(ctx, r, unsent, call, round)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		for i, e := range asked {
			if answers[i].Name == "" {
				answers[i] = e.answer(r.event, answer{fail: &failure{class: failBug, msg: err.Error()}}, call, round, 0)
			}
		}
	}
	return answers
}

func (e *ext) judge(ctx context.Context, r *request, unsent error, call policy.Call, round int) Answer {
	if unsent != nil {
		return e.answer(r.event, answer{fail: &failure{class: failBug, msg: unsent.Error()}}, call, round, 0)
	}
	a, took := e.ask(ctx, r)
	return e.answer(r.event, a, call, round, took)
}

// answer turns a reply or a failure into an Answer. If there are both, the
// stricter objection counts.
func (e *ext) answer(ev string, a answer, call policy.Call, round int, took time.Duration) Answer {
	out := Answer{Name: e.cfg.Name, Objection: policy.NoObjection(e.source)}
	out.Asked = event.Asked{Kind: "extension", Name: e.cfg.Name, Version: e.hash, Step: ev, Round: round, MS: took.Milliseconds()}
	if a.reply != nil {
		out.Objection = e.objection(ev, a.reply)
		if ev == eventToolCall && !out.Objection.Denies() && a.reply.args != nil && !bytes.Equal(a.reply.args, call.Args) {
			out.Args = a.reply.args
		}
	}
	out.Asked.Answer = out.Objection.String()
	if out.Args != nil {
		out.Asked.Answer = "rewrite"
		if out.Objection.Asks() {
			out.Asked.Answer = "ask+rewrite"
		}
	}
	if a.fail != nil {
		policyName, obj := e.failed(a.fail)
		out.Asked.Failure, out.Asked.Policy = a.fail.class, policyName
		if a.reply == nil {
			out.Asked.Answer = "failed"
			out.Asked.Reason = cut(a.fail.msg, maxReason)
		} else {
			out.Asked.Answer += "+failed"
		}
		if obj.Denies() && !out.Objection.Denies() || obj.Asks() && !out.Objection.Denies() && !out.Objection.Asks() {
			out.Objection = obj
		}
	}
	if out.Asked.Reason == "" {
		out.Asked.Reason = out.Objection.Reason()
	}
	out.Asked.Code = out.Objection.Code()
	return out
}

// objection returns what a reply objects. It knows no field that permits.
func (e *ext) objection(ev string, r *reply) policy.Objection {
	reason := tool.Clean(cut(r.reason, maxReason))
	switch {
	case r.block:
		if reason == "" {
			reason = fmt.Sprintf("extension %q blocked the call and gave no reason", e.cfg.Name)
		}
		return policy.ObjectDeny(e.source, reason, "")
	case r.ask && ev == eventToolCall:
		if reason == "" {
			reason = fmt.Sprintf("extension %q wants a person to approve the call and gave no reason", e.cfg.Name)
		}
		return policy.ObjectAsk(e.source, reason, "")
	default:
		return policy.NoObjection(e.source)
	}
}

// codeFailed marks the objection of an extension that could not be asked.
const codeFailed = "extension_failed"

// failed returns what a failure means for the call in hand, and its name for the
// record.
func (e *ext) failed(f *failure) (string, policy.Objection) {
	if f.ours() {
		return string(Block), policy.ObjectDeny(e.source, fmt.Sprintf("extension %q could not be asked: %s", e.cfg.Name, f.msg), f.class)
	}
	reason := fmt.Sprintf("extension %q is dead (%s), and its on_failure is %q", e.cfg.Name, cut(f.msg, maxReason), e.cfg.OnFailure)
	switch e.cfg.OnFailure {
	case Skip:
		return string(Skip), policy.NoObjection(e.source)
	case AskPerson:
		return string(AskPerson), policy.ObjectAsk(e.source, reason, codeFailed)
	default:
		return string(Block), policy.ObjectDeny(e.source, reason, codeFailed)
	}
}
