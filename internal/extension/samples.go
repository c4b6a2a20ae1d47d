package extension

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/strictjson"
)

// sample is one event with its data.
type sample struct {
	event string
	send  func(context.Context)
}

// samples returns the events in the order of a session; list_tools has been sent.
func (t *trial) samples() []sample {
	at := t.at()
	sub := At{Turn: 1, Agent: policy.Agent{ID: "sub-1", Depth: 1}}
	list := []sample{
		{eventSessionStart, func(ctx context.Context) {
			t.host.SessionStart(ctx, Session{Workspace: "/home/person/project", Model: "sample-model", Mode: "default"})
		}},
		{eventPrompt, func(ctx context.Context) { t.host.PromptSubmit(ctx, at, "Fix the failing test.") }},
		{eventAgentStart, func(ctx context.Context) { t.host.AgentStart(ctx, at, "You are a coding agent.") }},
		{eventContext, func(ctx context.Context) { t.host.Context(ctx, at, t.conversation()) }},
		{eventToolCall, t.sendCall},
		{eventPermission, func(ctx context.Context) {
			t.host.PermissionRequest(ctx, t.call(), policy.Declaration{Mutates: true}, "this is no read-only tool")
		}},
		{eventToolResult, t.sendResult},
	}
	if !t.o.NoInvoke {
		list = append(list, sample{eventInvokeTool, t.invokeTool})
	}
	return append(list,
		sample{eventCompact, func(ctx context.Context) { t.host.BeforeCompact(ctx, at, t.conversation()) }},
		sample{eventNotification, func(ctx context.Context) {
			t.host.Notification(ctx, at, "A call waits for your approval.", t.call().Tool)
			t.host.exts[0].notices.settle(ctx)
		}},
		sample{eventSubagentEnd, func(ctx context.Context) {
			t.host.SubagentEnd(ctx, sub, "I found the cause.")
			t.host.exts[0].notices.settle(ctx)
		}},
		sample{eventTurnEnd, func(ctx context.Context) {
			t.host.TurnEnd(ctx, at, "The test passes now.")
			t.host.exts[0].notices.settle(ctx)
		}},
		sample{eventSessionEnd, func(ctx context.Context) { t.host.SessionEnd(ctx, "completed") }},
	)
}

// call is the sample call.
func (t *trial) call() policy.Call {
	c := policy.Call{ID: "call-1", Tool: t.o.Tool, Args: t.o.Args, Turn: 1, Agent: t.at().Agent}
	if c.Tool == "" {
		c.Tool = "bash"
	}
	if len(c.Args) == 0 {
		c.Args = []byte(`{"command":"go test ./...","description":"Run the tests"}`)
	}
	return c
}

// conversation is a short history with a call and its result.
func (t *trial) conversation() []*event.Message {
	c := t.call()
	return []*event.Message{
		{Role: event.RoleUser, Parts: []event.Part{event.TextPart("Fix the failing test.")}},
		{Role: event.RoleAssistant, Parts: []event.Part{
			event.TextPart("I run the tests first."), {ToolCall: &event.ToolCall{ID: c.ID, Name: c.Tool, Args: string(c.Args)}},
		}},
		{Role: event.RoleTool, Parts: []event.Part{{ToolResult: &event.ToolResult{CallID: c.ID, Name: c.Tool, Content: sampleResult}}}},
		{Role: event.RoleAssistant, Parts: []event.Part{event.TextPart("One of them fails.")}},
		{Role: event.RoleUser, Parts: []event.Part{event.TextPart("Go on.")}},
	}
}

// sampleResult holds something for a redactor to find: an identifier that its maker
// uses in examples.
const sampleResult = "--- FAIL: TestUpload\n    upload_test.go:12: key AKIAIOSFODNN7EXAMPLE is not valid\nFAIL\n"

// sendCall asks about the call, and about what the extension made of it.
func (t *trial) sendCall(ctx context.Context) {
	c := t.call()
	first := t.host.PolicyHook(ctx, ToolCall{Call: c, Decl: policy.Declaration{Mutates: true}, Round: 1})
	if len(first) == 0 || first[0].Args == nil || strictjson.Equal(first[0].Args, c.Args) {
		return
	}
	t.again(eventToolCall, "with the arguments that it made of them")
	q := ToolCall{Call: c, Decl: policy.Declaration{Mutates: true}, Round: 2, Original: c.Args}
	q.Call.Args = first[0].Args
	second := t.host.PolicyHook(ctx, q)
	if len(second) > 0 && second[0].Args != nil && !strictjson.Equal(second[0].Args, q.Call.Args) {
		t.finding(fmt.Sprintf("its rewrite isn't idempotent: asked about the arguments that it had made itself, it changed them again, to %s; after three rounds a session refuses the call", cut(string(second[0].Args), 500)))
	}
}

// sendResult asks about a result, and about what the extension made of it.
func (t *trial) sendResult(ctx context.Context) {
	c, d := t.call(), policy.Declaration{Mutates: true}
	first := t.host.ToolResult(ctx, c, d, sampleResult, true)
	if len(first.RewrittenBy) == 0 || first.Withheld {
		return
	}
	t.again(eventToolResult, "with what it made of it")
	second := t.host.ToolResult(ctx, c, d, first.Content, first.IsError)
	if len(second.RewrittenBy) > 0 {
		t.finding(fmt.Sprintf("its rewrite isn't idempotent: shown the result that it had made itself, it changed it again, to %q; beside other extensions a session withholds the result", cut(second.Content, 500)))
	}
}

// invokeTool runs the first tool that the extension provides.
func (t *trial) invokeTool(ctx context.Context) {
	e := t.host.exts[0]
	c := policy.Call{ID: "call-2", Tool: "sample_tool", Args: []byte(`{}`), Turn: 1, Agent: t.at().Agent}
	if len(e.tools) > 0 {
		c.Tool, c.Args = e.tools[0].spec.Name, sampleArgs(e.tools[0].spec.Schema)
	}
	a := e.invoke.run(ctx, c)
	switch {
	case a.reply == nil:
		t.finding("the tool gave no result: " + a.fail.msg)
	case a.reply.result == nil && a.reply.content == nil:
		t.finding("it answered without a result; give a string, which may be empty")
	}
}

// sampleArgs returns arguments that fit a simple schema.
func sampleArgs(schema []byte) []byte {
	var s struct {
		Properties map[string]struct {
			Type    jsontext.Value   `json:"type"`
			Enum    []jsontext.Value `json:"enum"`
			Const   jsontext.Value   `json:"const"`
			Default jsontext.Value   `json:"default"`
		} `json:"properties"`
	}
	if strictjson.Unmarshal(schema, &s, strictjson.Options{}) != nil {
		return []byte(`{}`)
	}
	args := map[string]jsontext.Value{}
	for name, p := range s.Properties {
		switch {
		case len(p.Const) > 0:
			args[name] = p.Const
		case len(p.Enum) > 0:
			args[name] = p.Enum[0]
		case len(p.Default) > 0:
			args[name] = p.Default
		default:
			args[name] = sampleValue(string(p.Type))
		}
	}
	out, err := strictjson.Marshal(args)
	if err != nil {
		return []byte(`{}`)
	}
	return out
}

// sampleValue returns a value of a schema's type.
func sampleValue(kind string) jsontext.Value {
	switch kind {
	case `"integer"`, `"number"`:
		return jsontext.Value("1")
	case `"boolean"`:
		return jsontext.Value("true")
	case `"array"`:
		return jsontext.Value("[]")
	case `"object"`:
		return jsontext.Value("{}")
	case `"null"`:
		return jsontext.Value("null")
	default:
		return jsontext.Value(`"sample"`)
	}
}
