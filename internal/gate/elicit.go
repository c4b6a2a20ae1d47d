package gate

import (
	"context"
	"errors"
	"fmt"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/elicitation"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/strictjson"
)

// maxFormAnswers is how often a person is asked for an answer that fits the form.
const maxFormAnswers = 3

// Elicit puts the question of an MCP server: to the backends, which may refuse it or
// answer it, then to a person, then the answer to the backends, which may change it.
// params is the text of the params of elicitation/create, and result that of an
// ElicitResult that answers them. A question that a backend refused is declined; an
// answer that had to be reviewed and was not is withheld, as if the person had
// cancelled. The error is an *ahp.Error for params that can't be understood, another
// for a mode other than form, ctx's end, or a record that can't be written.
func (g *Gate) Elicit(ctx context.Context, at agent.At, server, params string, asker control.Asker) (result string, err error) {
	req, err := elicitation.ParseRequest([]byte(params))
	if err != nil {
		return "", err
	}
	if req.Mode != elicitation.ModeForm {
		return "", fmt.Errorf("the mode %s is not supported, expected %s", req.Mode, elicitation.ModeForm)
	}
	parent := ""
	if g.hears(ahp.UserElicitationRequest) || g.hears(ahp.UserElicitationResult) {
		q, err := g.elicitBefore(at, &agent.ElicitBefore{Server: server, Request: params})
		if err != nil {
			return "", err
		}
		parent = q.event.ID
		defer g.forget(q.event) // no second answer may come
		say := g.consult(ctx, at, q)
		if say.Refusal != nil {
			return refused(ctx, say.Refusal, elicitation.Decline)
		}
		result = say.Text
	}
	if result == "" {
		if result, err = g.fill(ctx, at, server, params, req, asker); err != nil {
			return "", err
		}
	}
	if !g.hears(ahp.UserElicitationResult) {
		return result, nil
	}
	answer, err := elicitation.ParseResult([]byte(result), req)
	if err != nil {
		return "", err
	}
	say := g.consult(ctx, at, g.elicitResult(at, &agent.ElicitResult{Server: server, Action: string(answer.Action), Result: result}, parent))
	if say.Refusal != nil {
		return refused(ctx, say.Refusal, elicitation.Cancel)
	}
	return say.Text, nil
}

// hears reports whether a backend takes events of type t in either mode.
func (g *Gate) hears(t ahp.EventType) bool { return g.o.Backends.wanted(t) }

// forget lets the request of an elicitation wait no longer.
func (g *Gate) forget(e *ahp.Event) {
	if p := g.o.Backends.h.Elicitations(); p != nil {
		p.Drop(e.Source, e.ID)
	}
}

// refused returns the result with an action where a question or its answer was only
// refused, else why the whole fails.
func refused(ctx context.Context, r *agent.Refusal, a elicitation.Action) (string, error) {
	switch {
	case r.Err != nil:
		return "", r.Err
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case r.Interrupted:
		return "", errors.New(r.Reason)
	}
	return resultText(a, nil), nil
}

// fill asks a person until the answer fits the form.
func (g *Gate) fill(ctx context.Context, at agent.At, server, params string, req *elicitation.Request, asker control.Asker) (string, error) {
	var form struct {
		Schema event.Raw `json:"requestedSchema"`
	}
	if err := strictjson.Unmarshal([]byte(params), &form, strictjson.Options{MaxBytes: len(params)}); err != nil {
		return "", err
	}
	q := control.Inquiry{From: "mcp " + server, Text: req.Message, Schema: form.Schema}
	for range maxFormAnswers {
		a, err := g.inquire(ctx, at, q, asker, 0)
		if err != nil {
			return "", err
		}
		if a.action != elicitation.Accept {
			return resultText(a.action, nil), nil
		}
		if err = strictjson.Check([]byte(a.text), strictjson.Options{MaxBytes: maxReply}); err == nil {
			result := resultText(a.action, []byte(a.text))
			if _, err = elicitation.ParseResult([]byte(result), req); err == nil {
				return result, nil
			}
		}
		q.Text = req.Message + "\n\nThe answer before this one does not fit: " + err.Error()
	}
	return resultText(elicitation.Cancel, nil), nil
}

// resultText returns the text of an ElicitResult; content is JSON.
func resultText(a elicitation.Action, content []byte) string {
	if content == nil {
		return fmt.Sprintf(`{"action":%q}`, a)
	}
	return fmt.Sprintf(`{"action":%q,"content":%s}`, a, compact(content))
}

func (g *Gate) elicitBefore(at agent.At, m *agent.ElicitBefore) (*question, error) {
	req, err := elicitation.ParseRequest([]byte(m.Request))
	if err != nil {
		return nil, err
	}
	q := g.ask(ahp.UserElicitationRequest, at)
	e := q.event
	text := ahp.TextPart(e.ID+":request", m.Request)
	e.Elicitation = &ahp.Elicitation{Server: m.Server, Mode: string(req.Mode), Request: &text}
	e.ParentEventID = g.ofTurn(at)
	g.parents.set(elicitKey(m.Server), e.ID)
	q.take = func(out *harness.Outcome, say *agent.Say, d *event.HooksDecided) error {
		if out.Candidate == nil {
			return nil
		}
		say.Text = compact(out.Candidate.Value)
		d.Outcome, d.By = "supplied", backendSource(out.CandidateBy).String()
		say.By = append(say.By, d.By)
		return nil
	}
	return q, nil
}

// elicitResult asks about the answer to the request of the event parent.
func (g *Gate) elicitResult(at agent.At, m *agent.ElicitResult, parent string) *question {
	q := g.ask(ahp.UserElicitationResult, at)
	e := q.event
	text := ahp.TextPart(e.ID+":result", m.Result)
	e.Elicitation = &ahp.Elicitation{Server: m.Server, Mode: string(elicitation.ModeForm), Action: m.Action, Result: &text}
	e.ParentEventID = parent
	q.original = m.Result
	q.take = func(out *harness.Outcome, say *agent.Say, _ *event.HooksDecided) error {
		say.Text = m.Result
		if p := out.Event.Elicitation.Result; out.Changed && p != nil && p.Text != nil {
			say.Text = *p.Text
		}
		return nil
	}
	return q
}
