package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/policy"
)

// ask is step 6: extensions and backends may still refuse, then a person is asked.
// nil means that the call was approved.
func (j *judgement) ask(ctx context.Context) agent.Ruling {
	why := j.why()
	if r := j.askPermission(ctx, why); r != nil {
		return r
	}
	session := j.approvalKey()
	offered := j.sessionOffered()
	if offered && j.g.approved(session) {
		j.d.Step, j.d.By, j.d.Approvals = "approval", "an approval for this session", []string{session}
		return j.again(ctx)
	}
	if j.g.o.Approver == nil {
		return j.refuse("headless", "the gate, because this call needs a person's approval", strings.Join(why, "; "), "headless")
	}
	q := control.Question{
		Request: newID(), CallID: j.call.ID, Tool: Visible(j.call.Tool), Args: Visible(string(j.call.Args)), WorkDir: Visible(j.call.WorkDir),
		Hash: j.call.Hash(), SessionOffered: offered,
	}
	for _, text := range why {
		q.Why = append(q.Why, Visible(text))
	}
	if !j.unchanged() {
		q.Original = Visible(string(j.original.Args))
	}
	return j.asked(ctx, q, session)
}

// asked puts the question when nobody else's is open.
func (j *judgement) asked(ctx context.Context, q control.Question, session string) agent.Ruling {
	done, ok := j.g.shared.ask(ctx)
	if !ok {
		return j.cancelled()
	}
	defer done()                                   // an approval for the session holds before the next question
	if q.SessionOffered && j.g.approved(session) { // while this question waited for another
		j.d.Step, j.d.By, j.d.Approvals = "approval", "an approval for this session", []string{session}
		return j.again(ctx)
	}
	if err := j.announce(ctx, q); err != nil {
		return &agent.Broken{Err: err}
	}
	limit, cancel := context.WithTimeout(ctx, j.g.o.ApprovalTimeout)
	a, err := j.g.o.Approver.Approve(limit, q)
	expired := errors.Is(limit.Err(), context.DeadlineExceeded) && ctx.Err() == nil
	cancel()
	if ctx.Err() != nil {
		return j.cancelled()
	}
	return j.answered(ctx, q, session, answer{a, err, expired})
}

// announce says in the record, and to who listens, that a person is asked.
func (j *judgement) announce(ctx context.Context, q control.Question) error {
	p := &event.ApprovalRequested{
		Request: q.Request, CallID: q.CallID, Tool: q.Tool, Args: q.Args, Original: q.Original, WorkDir: q.WorkDir,
		Hash: q.Hash, Why: q.Why, SessionOffered: q.SessionOffered,
	}
	if _, err := j.g.o.Log.AppendDurable(event.Draft{Actor: event.ActorGate, Trust: event.TrustHarness, Payload: p}); err != nil {
		return err
	}
	parent := j.requested
	if parent == "" {
		parent = j.g.parents.get(callKey(j.call.ID))
	}
	at := agent.At{TurnID: j.p.TurnID, Turn: j.p.Turn, WorkDir: j.call.WorkDir}
	j.g.attend(ctx, at, &agent.Attention{
		Kind: "approval", Title: "A call of " + q.Tool + " needs an approval", Message: strings.Join(q.Why, "; "),
	}, parent, j.call.Tool)
	return nil
}

// answer is what came of a question.
type answer struct {
	control.Decision
	err     error
	expired bool
}

// answered acts on the answer.
func (j *judgement) answered(ctx context.Context, q control.Question, session string, a answer) agent.Ruling {
	p := &event.Approval{Request: q.Request, CallID: j.call.ID, Hash: q.Hash, By: a.By, Reason: a.Reason}
	refusal, code := "", ""
	switch {
	case a.expired:
		refusal, code, p.By = "nobody answered in time", "expired", "expired"
	case a.err != nil:
		refusal, code = "nobody could be asked: "+a.err.Error(), "approval_failed"
	case a.Hash != q.Hash:
		refusal, code = "the answer was for another call", "wrong_hash"
	case !a.Allow:
		refusal, code = a.Reason, "refused"
	case a.Scope == event.ScopeSession && !q.SessionOffered:
		refusal, code = "an approval for the session was not offered for this call", "scope"
	default:
		p.Allowed, p.Scope = true, event.ScopeOnce
		if a.Scope == event.ScopeSession {
			p.Scope = event.ScopeSession
		}
	}
	if _, err := j.g.o.Log.AppendDurable(event.Draft{Actor: event.ActorUser, Trust: event.TrustOperator, Payload: p}); err != nil {
		return &agent.Broken{Err: err}
	}
	if !p.Allowed {
		step := "approval"
		if a.expired {
			step = "expired"
		}
		return j.refuse(step, "the person who was asked", refusal, code)
	}
	if p.Scope == event.ScopeSession {
		j.g.approve(session)
	}
	j.d.Step, j.d.By = "approval", a.By
	return j.again(ctx)
}

// again is the check before a permit: the rules and paths in force now, which may
// be an hour after the question. A stricter outcome counts.
func (j *judgement) again(ctx context.Context) agent.Ruling {
	if ctx.Err() != nil {
		return j.cancelled()
	}
	before := max(j.onOriginal.Verdict, j.onFinal.Verdict)
	was := j.onFinal
	step, by, approvals := j.d.Step, j.d.By, j.d.Approvals
	if err := j.evaluate(); err != nil {
		return &agent.Broken{Err: err}
	}
	j.d.RulesPermit = raw(j.onFinal)
	if now := max(j.onOriginal.Verdict, j.onFinal.Verdict); now > before {
		return j.refuse("permit", ruleText(j.onFinal), "the rules became stricter while the question was open: "+j.onFinal.Reason, "stricter_now")
	}
	if p, ok := place(was, j.decl); ok {
		if q, ok := place(j.onFinal, j.decl); !ok || p != q {
			return j.refuse("permit", "the gate", "the path leads elsewhere than when the question was asked", "place_changed")
		}
	}
	j.d.Step, j.d.By, j.d.Approvals = step, by, approvals
	return nil
}

// askPermission is the last word of extensions and backends before a person is
// asked; nil means that none refused.
func (j *judgement) askPermission(ctx context.Context, why []string) agent.Ruling {
	before := len(j.objections)
	if j.g.o.Extensions != nil {
		for _, a := range j.g.o.Extensions.PermissionRequest(ctx, j.call, j.decl, strings.Join(why, "; ")) {
			j.object(a.Objection, "extension")
			j.d.Asked = append(j.d.Asked, a.Asked)
		}
	}
	if !j.denied() {
		j.backendPermission(ctx)
	}
	if ctx.Err() != nil {
		return j.cancelled()
	}
	if j.stop != nil {
		return j.stopRuling()
	}
	for _, o := range j.objections[before:] {
		if o.Denies() {
			j.d.Verdict = policy.Deny.String()
			return j.refuse(j.refusedAt, o.Source().String(), o.Reason(), o.Code())
		}
	}
	return nil
}

// why lists who asks, with the reasons.
func (j *judgement) why() []string {
	var out []string
	for _, o := range j.objections {
		if o.Asks() {
			out = append(out, fmt.Sprintf("%s: %s", o.Source(), o.Reason()))
		}
	}
	for _, r := range []policy.Result{j.onOriginal, j.onFinal} {
		if text := r.Reason; r.Verdict == policy.Ask && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// sessionOffered reports whether an approval may hold for the session: not when a
// destructive row, an unjudgeable command, an ask rule or an objection asked.
func (j *judgement) sessionOffered() bool {
	for _, o := range j.objections {
		if o.Asks() {
			return false
		}
	}
	for _, r := range []policy.Result{j.onOriginal, j.onFinal} {
		if r.Verdict == policy.Ask && r.Step != policy.StepDefault {
			return false
		}
	}
	return true
}

// approvalKey is the hash of (tool, final arguments, working directory), and of the
// roots: those of a sub-agent may be others.
func (j *judgement) approvalKey() string {
	sum := sha256.Sum256([]byte(fmt.Sprintf("%q %q %q %q", j.call.Tool, j.call.WorkDir, j.call.Roots, j.call.Args)))
	return hex.EncodeToString(sum[:])
}

func (g *Gate) approved(key string) bool {
	g.shared.mu.Lock()
	defer g.shared.mu.Unlock()
	return g.shared.approvals[key]
}

func (g *Gate) approve(key string) {
	g.shared.mu.Lock()
	defer g.shared.mu.Unlock()
	g.shared.approvals[key] = true
}

// Visible returns s with every character that a terminal might hide, reorder or
// obey written as an escape.
func Visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t' || unicode.IsPrint(r) && !unicode.Is(unicode.Cf, r):
			b.WriteRune(r)
		case r == unicode.ReplacementChar:
			b.WriteString(`\ufffd`)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
