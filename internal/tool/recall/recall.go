// Package recall is the tool that reads back a result which stands in the
// conversation as a stub only.
//
// It guarantees that it returns what the call's result was when the model could
// read it: as extensions and backends left it, never the original.
//
// Do not assume that a result is still true: it is as old as its call.
package recall

import (
	"context"
	"fmt"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
)

// maxPiece is how much one call returns, in bytes.
const maxPiece = 64 << 10

// Tool is the recall tool. Make it with New.
type Tool struct {
	lookup func(by policy.Agent, callID string) (string, bool)
}

var _ tool.Tool = (*Tool)(nil)

// New returns the tool. lookup returns the result of a call of the agent by, false if
// there is none that stands as a stub.
func New(lookup func(by policy.Agent, callID string) (string, bool)) *Tool { return &Tool{lookup} }

type args struct {
	CallID string `json:"call_id"`
	Offset int64  `json:"offset"`
}

const schema = `{
  "type": "object",
  "properties": {
    "call_id": {"type": "string", "minLength": 1, "description": "The call_id that the stub names."},
    "offset": {"type": "integer", "minimum": 0, "description": "Where to begin, in bytes. Default 0."}
  },
  "required": ["call_id"],
  "additionalProperties": false
}`

// Spec returns the tool's description for the model.
func (t *Tool) Spec() tool.Spec {
	return tool.Spec{
		Name: "recall", Version: "1", Fixed: true, Schema: []byte(schema),
		Description: "Read a result of an earlier call again that was taken out of the context to make room. The stub in its place names its call_id.",
	}
}

// Declare says that reading back changes nothing.
func (t *Tool) Declare(raw []byte) policy.Declaration {
	a, _ := tool.Decode[args](raw)
	return policy.Declaration{Kind: policy.SubjectText, Subject: a.CallID}
}

// Run returns a piece of the result.
func (t *Tool) Run(_ context.Context, g tool.Grant) (tool.Result, error) {
	a, err := tool.Decode[args](g.Args())
	if err != nil {
		return tool.Result{}, err
	}
	text, ok := t.lookup(g.Call().Agent, a.CallID)
	switch {
	case !ok:
		return tool.Fail(fmt.Sprintf("No result of a call %q was taken out of the context.", a.CallID)), nil
	case a.Offset > int64(len(text)):
		return tool.Fail(fmt.Sprintf("The result has %d bytes; offset %d lies behind its end.", len(text), a.Offset)), nil
	}
	rest := text[a.Offset:]
	if len(rest) <= maxPiece {
		return tool.OK(rest), nil
	}
	return tool.OK(rest[:maxPiece] + fmt.Sprintf("\n[abhed] %d more bytes: go on with offset %d", len(rest)-maxPiece, a.Offset+maxPiece)), nil
}
