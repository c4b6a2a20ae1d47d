// Package task is the tool by which an agent gives work to a sub-agent.
//
// It guarantees that it runs nothing itself: it hands the task to Options.Run and
// returns what came of it. Every call that the sub-agent makes passes the gate like
// the agent's own.
//
// Do not assume that a sub-agent knows anything of the conversation: it gets the
// prompt and nothing else.
package task

import (
	"context"
	"fmt"
	"strings"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
)

// Request is one task.
type Request struct {
	// CallID is the call that gives it, Title a few words on it.
	CallID, Title string
	Prompt        string
	// ReadOnly gives the sub-agent only tools that change nothing.
	ReadOnly bool
	// Worktree lets it work in a git worktree of its own.
	Worktree bool
}

// Reply is what came of a task.
type Reply struct {
	// Text is the sub-agent's answer, "" if there is none; Reason why it ended.
	Text, Reason, Detail string
	Completed            bool
	// Notes are what the harness says of it, such as where its worktree is.
	Notes []string
}

// Options are what the tool works with. Run is required.
type Options struct {
	// Run does a task for the agent that calls. Its error says that the task could not
	// be started.
	Run func(ctx context.Context, by policy.Agent, r Request) (Reply, error)
}

// Tool is the task tool. Make it with New.
type Tool struct{ o Options }

var _ tool.Tool = (*Tool)(nil)

// New returns the tool.
func New(o Options) *Tool { return &Tool{o} }

type args struct {
	Description string `json:"description"`
	Prompt      string `json:"prompt"`
	ReadOnly    bool   `json:"read_only"`
	Worktree    bool   `json:"worktree"`
}

const schema = `{
  "type": "object",
  "properties": {
    "description": {"type": "string", "minLength": 1, "maxLength": 200, "description": "The task in three to ten words."},
    "prompt": {"type": "string", "minLength": 1, "description": "Everything that the sub-agent must know: the goal, the files, the constraints, and what to report. It doesn't see this conversation."},
    "read_only": {"type": "boolean", "description": "Give it only tools that change nothing. Default false."},
    "worktree": {"type": "boolean", "description": "Let it work in a git worktree of its own, so that its changes don't touch yours; the result says where they are. Default false."}
  },
  "required": ["description", "prompt"],
  "additionalProperties": false
}`

// Spec returns the tool's description for the model.
func (t *Tool) Spec() tool.Spec {
	return tool.Spec{
		Name: "task", Version: "1", Fixed: true, Schema: []byte(schema), ContentMembers: []string{"prompt"},
		Description: "Give a task to a sub-agent with a fresh context, and get its report. Good for searches and for work that can be done apart; several tasks in one reply run side by side. It has your permissions and your limits.",
	}
}

// Declare says that the call itself changes nothing: each of the sub-agent's calls is
// judged by itself.
func (t *Tool) Declare(raw []byte) policy.Declaration {
	a, err := tool.Decode[args](raw)
	if err != nil {
		return policy.Declaration{Kind: policy.SubjectText, Mutates: true}
	}
	return policy.Declaration{Kind: policy.SubjectText, Subject: a.Description}
}

// Run gives the task away and waits for its end.
func (t *Tool) Run(ctx context.Context, g tool.Grant) (tool.Result, error) {
	a, err := tool.Decode[args](g.Args())
	if err != nil {
		return tool.Result{}, err
	}
	r, err := t.o.Run(ctx, g.Call().Agent, Request{CallID: g.Call().ID, Title: a.Description, Prompt: a.Prompt, ReadOnly: a.ReadOnly, Worktree: a.Worktree})
	if err != nil {
		return tool.Fail("The task was not started: " + err.Error()), nil
	}
	var b strings.Builder
	switch {
	case r.Completed && r.Text == "":
		b.WriteString("The sub-agent ended without a report.\n")
	case r.Completed:
		b.WriteString(r.Text)
		b.WriteString("\n")
	default:
		fmt.Fprintf(&b, "The sub-agent did not finish: %s", r.Reason)
		if r.Detail != "" {
			b.WriteString(": " + r.Detail)
		}
		b.WriteString("\n")
		if r.Text != "" {
			b.WriteString("Its last words:\n" + r.Text + "\n")
		}
	}
	for _, n := range r.Notes {
		b.WriteString("[abhed] " + n + "\n")
	}
	return tool.Result{Content: b.String(), IsError: !r.Completed}, nil
}
