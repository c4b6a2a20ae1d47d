// Package ask is the tool by which an agent asks the person a question.
//
// It guarantees that the call ends: with the person's answer, with the word that
// nobody can be asked, or with the end of its context.
//
// Do not assume that an answer is one of the choices.
package ask

import (
	"context"
	"strings"

	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
)

// Options are what the tool works with.
type Options struct {
	// Ask puts the question, for the agent that calls. Required.
	Ask func(ctx context.Context, by policy.Agent, question string, choices []string) (control.Reply, error)
}

// Tool is the ask_user tool. Make it with New.
type Tool struct{ o Options }

var _ tool.Tool = (*Tool)(nil)

// New returns the tool.
func New(o Options) *Tool { return &Tool{o} }

type args struct {
	Question string   `json:"question"`
	Choices  []string `json:"choices"`
}

const schema = `{
  "type": "object",
  "properties": {
    "question": {"type": "string", "minLength": 1, "maxLength": 4000, "description": "One question, with what the person must know to answer it."},
    "choices": {"type": "array", "maxItems": 10, "items": {"type": "string", "minLength": 1, "maxLength": 200}, "description": "Answers to choose from, if there are few. The person may answer otherwise."}
  },
  "required": ["question"],
  "additionalProperties": false
}`

// Spec returns the tool's description for the model.
func (t *Tool) Spec() tool.Spec {
	return tool.Spec{
		Name: "ask_user", Version: "1", Fixed: true, Schema: []byte(schema),
		Description: "Ask the person a question when only they can decide. Nobody may be there: then go on with what is most likely wanted, and say so at the end.",
	}
}

// Declare says that a question changes nothing.
func (t *Tool) Declare(raw []byte) policy.Declaration {
	a, _ := tool.Decode[args](raw)
	return policy.Declaration{Kind: policy.SubjectText, Subject: a.Question}
}

// Run asks and waits.
func (t *Tool) Run(ctx context.Context, g tool.Grant) (tool.Result, error) {
	a, err := tool.Decode[args](g.Args())
	if err != nil {
		return tool.Result{}, err
	}
	r, err := t.o.Ask(ctx, g.Call().Agent, tool.Clean(a.Question), a.Choices)
	switch {
	case err != nil:
		return tool.Fail("Nobody answered: " + err.Error() + ". Go on with what is most likely wanted, and say at the end what you assumed."), nil
	case r.Declined:
		return tool.Fail("The person can't be asked, or won't answer. Go on with what is most likely wanted, and say at the end what you assumed."), nil
	case strings.TrimSpace(r.Text) == "":
		return tool.Fail("The person answered nothing."), nil
	}
	return tool.OK(r.Text), nil
}
