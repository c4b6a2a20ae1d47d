package extension

import (
	"context"
	"slices"
	"time"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/run"
	"github.com/abhed/abhed/internal/tool"
)

// At says where in a session something happens that is no tool call.
type At struct {
	// Turn counts from 1; 0 means outside any turn and isn't sent.
	Turn int
	// Agent is whose run it is; without an ID it isn't sent.
	Agent policy.Agent
	// Prompt is the person's newest message, one of those given to Context, which
	// drops it never. nil, or one that isn't among them, means the newest message of
	// RoleUser: right only where nobody but a person writes such messages.
	Prompt *event.Message
}

// Subscribes reports whether an extension has a say at the named event: one that
// subscribes to it and is alive, or dead with an OnFailure that still counts. It
// takes no longer than a look at each extension's state, so that nothing need be
// built for an event that nobody wants.
func (h *Host) Subscribes(event string) bool {
	return slices.ContainsFunc(h.exts, func(e *ext) bool {
		return e.cfg.subscribes(event) && (e.cfg.OnFailure != Skip || e.alive())
	})
}

// alive reports whether the judging process can be asked.
func (e *ext) alive() bool { return e.judging != nil && e.judging.failure() == nil }

// polled is what one extension answered to an event that is no tool call.
type polled struct {
	*ext
	answer
	took time.Duration
}

// poll asks every subscriber of r's event at the same time and returns the answers
// sorted by name, so that nothing made of them depends on the configuration's order.
func (h *Host) poll(ctx context.Context, r *request) []polled {
	var out []polled
	for _, e := range h.byName {
		if e.cfg.subscribes(r.event) {
			// What a panic leaves behind.
			bug := &failure{class: failBug, msg: "this program failed while asking"}
			out = append(out, polled{ext: e, answer: answer{fail: bug}})
		}
	}
	group := run.New(context.Background())
	for i := range out {
		group.Go(func(context.Context) error {
			p := &out[i]
			p.answer, p.took = p.ask(ctx, r)
			return nil
		})
	}
	_ = group.Wait() // see bug above
	return out
}

// asked returns the answer for the record, as if it said nothing. A failure is in
// it, with what it leads to where a dead extension has a veto.
func (p *polled) asked(ev string, vetoes bool) event.Asked {
	out := event.Asked{
		Kind: "extension", Name: p.cfg.Name, Version: p.hash, Step: ev, Answer: "none", MS: p.took.Milliseconds(),
	}
	if p.fail == nil {
		return out
	}
	out.Answer, out.Failure, out.Policy = "failed", p.fail.class, string(Skip)
	out.Reason = tool.Clean(cut(p.fail.msg, maxReason))
	if vetoes {
		out.Policy, _ = p.failed(p.fail)
	}
	return out
}

// vetoed returns why a failure stands against going on, or "".
func (p *polled) vetoed() string {
	if p.fail == nil {
		return ""
	}
	if _, obj := p.failed(p.fail); obj.Asks() || obj.Denies() {
		return obj.Reason()
	}
	return ""
}

// words returns the reply's reason as it goes to the record and to people.
func (r *reply) words() string { return tool.Clean(cut(r.reason, maxReason)) }

// mark puts what a reply came to into the record's answer, beside a failure.
func mark(a *event.Asked, answer, reason string) {
	if a.Failure != "" {
		answer += "+failed"
	}
	a.Answer = answer
	if reason != "" {
		a.Reason = reason
	}
}
