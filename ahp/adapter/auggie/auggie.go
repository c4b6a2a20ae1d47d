// Package auggie is the hook dialect of Augment's auggie (read in its package, 0.36.0).
//
// It guarantees that a refusal is exit code 2 with the reason on standard error and
// nothing on standard output.
//
// Do not assume that what its schema takes is done: permissionDecision "ask" is read and
// then dropped, so that the call runs, and what a hook says at the start of a session,
// at a prompt and at the end of a turn is shown at most. A crash or a time-out of a hook
// lets the call run. In a sub-agent the tool events fire as well, and nothing says so.
package auggie

import (
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// Host returns the dialect.
func Host() *adapter.Host {
	h := &adapter.Host{
		Name: "auggie", Title: "Augment (auggie)", Deny: adapter.Delivery{Exit: 2, Stream: adapter.Stderr},
		Rows: rows(), Write: write,
	}
	h.Read = func(in adapter.Input) (*adapter.Event, error) { return read(h, in) }
	return h
}

func read(h *adapter.Host, in adapter.Input) (*adapter.Event, error) {
	o, err := adapter.ParseObject(in.Data)
	if err != nil {
		return nil, err
	}
	p := &shape.Profile{
		Host: "auggie", Session: []string{"conversation_id"}, Result: []string{"tool_output"}, PromptText: []string{"user_prompt"},
		Strict: true, MCP: mcp, Own: stop,
		Kinds: map[string]shape.Kind{
			"PreToolUse": shape.Before, "PostToolUse": shape.After, "PromptSubmit": shape.Prompt, "Stop": shape.Own,
			"SessionStart": shape.SessionStart, "SessionEnd": shape.SessionEnd, "Notification": shape.Notification,
		},
	}
	if o.Has("tool_error") {
		p.Kinds["PostToolUse"] = shape.Failure
	}
	return p.ReadAs(h, in, o, o.Need("hook_event_name"))
}

// mcp returns the descriptor of an MCP tool. The server is known only where the
// installed entry asks for includeMCPMetadata.
func mcp(o *adapter.Object, tool string) *ahp.MCP {
	if !o.Bool("is_mcp_tool") {
		return nil
	}
	given := o.Object("mcp_metadata")
	if server := given.Text("mcpExecutedToolServerName"); server != "" {
		name := given.Text("mcpExecutedToolName")
		if name == "" {
			name = tool
		}
		m := adapter.InferMCP(server, name)
		m.Provenance = "runtime"
		return m
	}
	m := adapter.InferMCP("unknown", tool)
	if m != nil {
		m.Server.Name = ""
	}
	return m
}

// stop reads the end of a turn, whose cause the host tells.
func stop(_ string, o *adapter.Object, b *adapter.Base, data []byte) *ahp.Event {
	outcomes := map[string]string{"interrupted": "cancelled", "max_iterations": "max_iterations", "error": "failed", "empty_completion": "failed"}
	outcome := outcomes[o.Text("agent_stop_cause")]
	if outcome == "" {
		outcome = "completed"
	}
	return b.Finish(outcome, 0, "", data)
}

func rows() []adapter.Row {
	can := func(e ahp.EffectType, how adapter.How, note string) adapter.Ability {
		return adapter.Ability{Effect: e, How: how, Level: adapter.Enforced, Note: note}
	}
	const read = "read in the package, 0.36.0"
	notice := can(ahp.EffectMessage, adapter.Native, read)
	return []adapter.Row{
		{Native: "PreToolUse", Type: ahp.ToolBefore, Can: []adapter.Ability{
			can(ahp.EffectDeny, adapter.Native, read), can(ahp.EffectAsk, adapter.Denies, `the host reads "ask" and runs the call`),
			can(ahp.EffectModify, adapter.Native, read+"; of several hooks the last one's rewrite counts"), notice,
		}},
		{Native: "PostToolUse", Type: ahp.ToolAfter, Can: []adapter.Ability{can(ahp.EffectInject, adapter.Native, read+"; put behind the result"), notice}},
		{Native: "PromptSubmit", Type: ahp.TurnStart, Note: "the host doesn't wait for it", Can: []adapter.Ability{notice}},
		{Native: "Stop", Type: ahp.TurnFinishBefore, Note: "the host drops what a hook says"},
		{Native: "SessionStart", Type: ahp.SessionStart, Note: "the host drops what the model is to be told", Can: []adapter.Ability{notice}},
		{Native: "SessionEnd", Type: ahp.SessionEnd},
		{Native: "Notification", Type: ahp.UserAttention},
	}
}

// answer is what the host reads on standard output after exit code 0.
type answer struct {
	SystemMessage string          `json:"systemMessage,omitzero"`
	Specific      *shape.Specific `json:"hookSpecificOutput,omitzero"`
}

// write says a verdict. A rewrite needs no permission beside it.
func write(e *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	if v.Deny != "" {
		return []byte(adapter.Reason(v.Deny)), nil
	}
	if v.Silent() {
		return nil, nil
	}
	return adapter.Encode(answer{SystemMessage: strings.Join(v.Notices, "\n"), Specific: shape.SpecificFor(e, v)})
}
