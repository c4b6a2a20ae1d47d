package boundary

import (
	"context"
	"fmt"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/elicitation"
)

// Elicitation is a question of an MCP server to a person.
type Elicitation struct {
	// Server is the server's id.
	Server string
	// Request is the JSON text of the complete elicitation/create params.
	Request ahp.Raw
	Turn    *Turn
	// Parent is the id of the event that led to it, or "".
	Parent string
}

// ElicitResult is how a question was answered.
type ElicitResult struct {
	Verdict
	// Answer is the JSON text of the complete ElicitResult to send to the server. It
	// is never empty: where the question was refused it declines, and where there is
	// no answer that may be used it cancels.
	Answer ahp.Raw
	// Result is Answer, read; its content satisfies the form.
	Result *elicitation.Result
}

// Elicit has a question judged, has exec ask the person if nothing stands against
// it, and has the answer judged (§21). exec gets the parsed request and returns the
// JSON text of a complete ElicitResult. One that doesn't answer the request, or
// doesn't satisfy its form, makes the status Failed, with what is wrong in Err. A
// refused question has no event after it.
//
// The error is an *ahp.Error for a request that breaks MCP, which nobody was asked
// about; else a bug here, in the harness or in exec (a panic), or harness.ErrClosed.
func (b *Boundary) Elicit(ctx context.Context, q Elicitation, exec func(ctx context.Context, q *elicitation.Request) (ahp.Raw, error)) (r ElicitResult, err error) {
	defer func() {
		r.seal(err)
		r.end()
	}()
	asked, err := elicitation.ParseRequest(q.Request)
	if err != nil {
		return r, err
	}
	before, err := b.elicitEvent(ahp.UserElicitationRequest, &q, string(asked.Mode), "")
	if err != nil {
		return r, err
	}
	part, err := jsonPart(q.Request)
	if err != nil {
		return r, err
	}
	before.Elicitation.Request = part
	if waiting := b.h.Elicitations(); waiting != nil {
		// Whether or not anybody is asked about the request, its result may be.
		if _, err := waiting.Add(before); err != nil {
			return r, err
		}
		defer waiting.Drop(before.Source, before.ID)
	}
	out, err := b.ask(ctx, &r.Verdict, before, q.Turn, nil)
	if err != nil {
		return r, err
	}
	var answer ahp.Raw
	switch r.judged(out); r.Status {
	case Passed:
		bug := r.execute(ctx, func() (err error) {
			answer, err = exec(ctx, asked)
			return err
		})
		if bug != nil {
			return r, bug
		}
		if ctx.Err() != nil {
			r.Status, r.Reason = Interrupted, reasonInterrupted
		}
	case Supplied:
		answer = out.Candidate.Value
	}
	if !r.OK() {
		return r, nil
	}
	err = b.elicitAfter(ctx, &r, &q, asked, before.ID, answer)
	return r, err
}

// end makes sure that there is an answer.
func (r *ElicitResult) end() {
	switch {
	case r.OK() && r.Answer != nil:
		return
	case r.refused() || r.Status == Stopped:
		r.Answer, r.Result = ahp.Raw(`{"action":"decline"}`), &elicitation.Result{Action: elicitation.Decline}
	default:
		r.Answer, r.Result = ahp.Raw(`{"action":"cancel"}`), &elicitation.Result{Action: elicitation.Cancel}
	}
}

func (b *Boundary) elicitEvent(t ahp.EventType, q *Elicitation, mode, parent string) (*ahp.Event, error) {
	if parent == "" {
		parent = q.Parent
	}
	e, err := b.event(t, q.Turn, parent)
	if err != nil {
		return nil, err
	}
	e.Elicitation = &ahp.Elicitation{Server: q.Server, Mode: mode}
	return e, nil
}

func jsonPart(text ahp.Raw) (*ahp.Part, error) {
	id, err := newID()
	if err != nil {
		return nil, err
	}
	p := ahp.TextPart(id, string(text))
	return &p, nil
}

// elicitAfter has an answer judged.
func (b *Boundary) elicitAfter(ctx context.Context, r *ElicitResult, q *Elicitation, asked *elicitation.Request, parent string, answer ahp.Raw) error {
	result, err := elicitation.ParseResult(answer, asked)
	if err != nil {
		r.Status, r.Reason, r.Err = Failed, reasonFailed, fmt.Errorf("boundary: the answer doesn't fit the request: %w", err)
		return nil
	}
	e, err := b.elicitEvent(ahp.UserElicitationResult, q, string(asked.Mode), parent)
	if err != nil {
		return err
	}
	e.Elicitation.Action = string(result.Action)
	if e.Elicitation.Result, err = jsonPart(answer); err != nil {
		return err
	}
	out, err := b.ask(ctx, &r.Verdict, e, q.Turn, nil)
	if err != nil {
		return err
	}
	if !r.checked(out) {
		return nil
	}
	text := *out.Event.Elicitation.Result.Text
	r.Answer = ahp.Raw(text)
	r.Result, err = elicitation.ParseResult(r.Answer, asked)
	return err
}
