package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/abhed/abhed/ahp/elicitation"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/tool"
)

// maxReply is the size in bytes of the largest answer of a person that is taken.
const maxReply = elicitation.MaxTextBytes

// answered is what came of a question that isn't about a call.
type answered struct {
	action elicitation.Action
	text   string
	by     string
}

// Inquire asks a person what isn't about a call, when nothing else is being asked,
// and waits for at most timeout; zero means Options.ApprovalTimeout. Question and
// answer are in the record. Whoever isn't there, is silent or fails has declined. The
// error is ctx's end, a schema that isn't JSON, or a record that can't be written.
func (g *Gate) Inquire(ctx context.Context, at agent.At, q control.Inquiry, asker control.Asker, timeout time.Duration) (control.Reply, error) {
	a, err := g.inquire(ctx, at, q, asker, timeout)
	if err != nil || a.action != elicitation.Accept {
		return control.Reply{Declined: true}, err
	}
	return control.Reply{Text: a.text}, nil
}

func (g *Gate) inquire(ctx context.Context, at agent.At, q control.Inquiry, asker control.Asker, timeout time.Duration) (answered, error) {
	if q.Schema != nil {
		if err := strictjson.Check(q.Schema, strictjson.Options{MaxBytes: elicitation.MaxTextBytes}); err != nil {
			return answered{}, fmt.Errorf("the schema of the answer is not JSON: %w", err)
		}
	}
	done, ok := g.shared.ask(ctx)
	if !ok {
		return answered{}, context.Cause(ctx)
	}
	defer done()
	choices := q.Choices
	q.Request, q.From, q.Text, q.Choices = newID(), Visible(q.From), Visible(q.Text), nil
	for _, c := range choices {
		q.Choices = append(q.Choices, Visible(c))
	}
	asked := &event.QuestionRequested{Request: q.Request, From: q.From, Text: q.Text, Choices: q.Choices, Schema: event.Raw(q.Schema)}
	if err := g.durable(event.ActorGate, event.TrustUntrusted, asked); err != nil {
		return answered{}, err
	}
	a := answered{action: elicitation.Decline, by: "headless"}
	if asker != nil {
		g.attend(ctx, at, &agent.Attention{Kind: "question", Title: q.From + " asks", Message: q.Text}, "", "")
		a = g.put(ctx, q, asker, timeout)
	}
	if i := slices.Index(q.Choices, a.text); i >= 0 && a.action == elicitation.Accept {
		a.text = choices[i] // as it was before it was made visible
	}
	p := &event.QuestionAnswered{Request: q.Request, Action: string(a.action), Text: a.text, By: a.by}
	if err := g.durable(event.ActorUser, event.TrustOperator, p); err != nil {
		return answered{}, err
	}
	if ctx.Err() != nil {
		return answered{}, context.Cause(ctx)
	}
	return a, nil
}

// put asks the person.
func (g *Gate) put(ctx context.Context, q control.Inquiry, asker control.Asker, timeout time.Duration) answered {
	if timeout <= 0 {
		timeout = g.o.ApprovalTimeout
	}
	limit, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	reply, err := asker.Ask(limit, q)
	switch {
	case ctx.Err() != nil:
		return answered{action: elicitation.Cancel, by: "interrupted"}
	case errors.Is(limit.Err(), context.DeadlineExceeded):
		return answered{action: elicitation.Cancel, by: "expired"}
	case err != nil:
		return answered{action: elicitation.Cancel, by: "nobody: " + tool.Clean(cut(err.Error(), 4096))}
	case reply.Declined:
		return answered{action: elicitation.Decline, by: "user"}
	case len(reply.Text) > maxReply:
		return answered{action: elicitation.Cancel, by: fmt.Sprintf("the gate: an answer of %d bytes, the limit is %d", len(reply.Text), maxReply)}
	}
	return answered{action: elicitation.Accept, text: tool.Clean(reply.Text), by: "user"}
}

// durable puts p on disk.
func (g *Gate) durable(by event.Actor, trust event.Trust, p event.Payload) error {
	_, err := g.o.Log.AppendDurable(event.Draft{Actor: by, Trust: trust, Payload: p})
	return err
}
