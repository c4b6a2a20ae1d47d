package abhed

import (
	"context"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/tool"
)

// Tool is a tool of the program's own. It is a tool like any other: in the model's
// list, judged by the gate, recorded.
type Tool struct {
	// Name is 1 to 64 of the characters A-Z a-z 0-9 _ -, and nobody else's. Version is in
	// the record, so that a decision can be understood later.
	Name, Version string
	// Description is for the model.
	Description string
	// Schema is the JSON Schema of the arguments, of type object. A call whose arguments
	// don't fit is refused before anybody is asked.
	Schema []byte
	// ReadOnly says that a call changes nothing; it may then run beside others.
	ReadOnly bool
	// Subject names the argument, a string, that permission rules are matched with; ""
	// means that rules name the tool alone.
	Subject string
	// Run does the work. It is called only for a call that the gate lets run. The error is
	// for the model, as a failure of the tool.
	Run func(ctx context.Context, c Call) (string, error)
}

// Call is one tool call.
type Call struct {
	ID, Tool string
	// Args is a JSON object, the receiver's.
	Args []byte
	// WorkDir is the working directory, Roots the folders of the workspace.
	WorkDir string
	Roots   []string
	// AgentID and Depth name who calls; the main agent has depth 0.
	AgentID string
	Depth   int
	// Mutates and Subject are what the tool declares of the call.
	Mutates bool
	Subject string
}

// Hook judges calls, the one rule being that it may veto and never permit: there is no
// Objection that allows.
type Hook struct {
	// Name is in the record.
	Name string
	// Judge is called before a call runs, by several goroutines at once. A panic refuses
	// the call.
	Judge func(ctx context.Context, c Call) Objection
}

// Objection is what a hook has against a call. The zero Objection is none.
type Objection struct{ o policy.Objection }

// Deny returns an objection that refuses a call. The reason is for the model and the
// record.
func Deny(reason string) Objection {
	return Objection{policy.ObjectDeny(policy.Source{}, reason, "")}
}

// Ask returns an objection that forces an approval by a person.
func Ask(reason string) Objection { return Objection{policy.ObjectAsk(policy.Source{}, reason, "")} }

func (h Hook) judge(ctx context.Context, c policy.Call, d policy.Declaration) policy.Objection {
	return h.Judge(ctx, callOf(c, d)).o
}

func callOf(c policy.Call, d policy.Declaration) Call {
	return Call{
		ID: c.ID, Tool: c.Tool, Args: append([]byte(nil), c.Args...), WorkDir: c.WorkDir, Roots: append([]string(nil), c.Roots...),
		AgentID: c.Agent.ID, Depth: c.Agent.Depth, Mutates: d.Mutates, Subject: d.Subject,
	}
}

// embedded is a Tool as the harness has it.
type embedded struct{ t Tool }

var _ tool.Tool = (*embedded)(nil)

// Spec returns what the model is told.
func (e *embedded) Spec() tool.Spec {
	return tool.Spec{Name: e.t.Name, Version: e.t.Version, Description: e.t.Description, Schema: e.t.Schema}
}

// Declare says what rules are matched with.
func (e *embedded) Declare(args []byte) policy.Declaration {
	d := policy.Declaration{Mutates: !e.t.ReadOnly}
	if e.t.Subject == "" {
		return d
	}
	d.Kind = policy.SubjectText
	var members map[string]any
	if strictjson.Unmarshal(args, &members, strictjson.Options{}) == nil {
		d.Subject, _ = members[e.t.Subject].(string)
	}
	return d
}

// Run runs the program's function on a permit of the gate.
func (e *embedded) Run(ctx context.Context, g tool.Grant) (tool.Result, error) {
	c := g.Call()
	text, err := e.t.Run(ctx, callOf(c, e.Declare(c.Args)))
	if err != nil {
		return tool.Fail(err.Error()), nil
	}
	return tool.OK(text), nil
}
