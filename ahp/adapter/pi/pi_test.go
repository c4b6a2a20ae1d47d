package pi_test

import (
	"flag"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/pi"
	"github.com/abhed/abhed/internal/require"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestHost(t *testing.T) {
	t.Parallel()
	events := documents(t, "pi")
	for name, doc := range documents(t, "pi22") {
		events["1.6-"+name] = doc
	}
	maps.Copy(events, made)
	adaptertest.Run(t, pi.Host(), adaptertest.Options{
		Update: *update, Events: events, Call: adapter.Call{ID: "call-1", Name: "bash", Input: ahp.Raw(`{"command":"rm -rf build"}`)},
		Event: []string{"hook", "event.type"}, Tool: []string{"event.toolName"}, Input: []string{"event.input"},
		Needed: []string{"hook", "event", "event.type", "ctx", "ctx.sessionId"}, CallNeeded: []string{"event.input"},
		Unread: unread, Keys: map[string][]string{
			"tool_call": {"args.*", "reason"}, "tool_result": {"output", "context"}, "before_agent_start": {"context"}, "input": {"reason"},
		},
	})
}

// unread are recorded events that the bridge doesn't hand on. Those of 1.6 have a prefix.
var unread = map[string]string{
	"*after_provider_*": "the bridge doesn't listen to it", "*agent_end": "likewise", "agent_start": "likewise", "1.6-agent_start": "likewise",
	"*before_provider_*": "likewise", "*context": "likewise", "*message_end": "likewise", "*message_start": "likewise",
	"*resources_discover": "likewise", "*tool_execution_*": "likewise", "*turn_end": "likewise", "*turn_start": "likewise",
	"*ctx": "no event", "load": "no event", "1.6-load": "no event",
}

const ctx = `"ctx":{"cwd":"/repo","sessionId":"01a22c3e-f8e7-7261-86ce-57e51c40c7e8","sessionFile":"/home/user/s.jsonl"}`

// documents returns the recorded events as the bridge hands them on.
func documents(t *testing.T, version string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for name, data := range adaptertest.Recorded(t, filepath.Join(require.Shared(t), "samples", version)) {
		hook, _, _ := strings.Cut(name, "-")
		out[name] = `{"bridge":"1","hook":"` + hook + `","event":` + data + `,` + ctx + `}`
	}
	return out
}

// made are events that the package documents, as the bridge hands them on.
var made = map[string]string{
	"inner-call":    `{"bridge":"1","hook":"tool_call","event":{"type":"tool_call","toolName":"bash","toolCallId":"call_0/1","parentToolCallId":"call_0","input":{"command":"ls"}},` + ctx + `}`,
	"mcp-call":      `{"bridge":"1","hook":"tool_call","event":{"type":"tool_call","toolName":"mcp__demo_srv__echo_text","toolCallId":"call_1","input":{"text":"hi"}},` + ctx + `}`,
	"image-result":  `{"bridge":"1","hook":"tool_result","event":{"type":"tool_result","toolName":"read","toolCallId":"call_1","input":{"path":"a.png"},"content":[{"type":"text","text":"a.png"},{"type":"image","data":"AA==","mimeType":"image/png"}],"isError":false},` + ctx + `}`,
	"failed-result": `{"bridge":"1","hook":"tool_result","event":{"type":"tool_result","toolName":"bash","toolCallId":"call_1","input":{"command":"false"},"content":[{"type":"text","text":"exit code 1"}],"isError":true},` + ctx + `}`,
	"custom-start":  `{"bridge":"1","hook":"before_agent_start","event":{"type":"before_agent_start","messageType":"custom","message":{"customType":"x","content":[{"type":"text","text":"go on"}]}},` + ctx + `}`,
	"custom-text":   `{"bridge":"1","hook":"before_agent_start","event":{"type":"before_agent_start","messageType":"custom","message":{"customType":"x","content":"go on"}},` + ctx + `}`,
	"fork":          `{"bridge":"1","hook":"session_start","event":{"type":"session_start","reason":"fork","previousSessionFile":"/home/user/r.jsonl"},` + ctx + `}`,
	"reload":        `{"bridge":"1","hook":"session_start","event":{"type":"session_start","reason":"reload"},` + ctx + `}`,
	"reload-end":    `{"bridge":"1","hook":"session_shutdown","event":{"type":"session_shutdown","reason":"reload"},` + ctx + `}`,
	"picture-input": `{"bridge":"1","hook":"input","event":{"type":"input","text":"look","images":[{"type":"image"}],"source":"rpc"},` + ctx + `}`,
}

func TestShapesOfTheBridgeThatAreUnknown(t *testing.T) {
	t.Parallel()
	h := pi.Host()
	for name, doc := range map[string]string{
		"a hook and an event of two names": `{"hook":"session_start","event":{"type":"tool_call","toolName":"bash","toolCallId":"c","input":{}},` + ctx + `}`,
		"an event without a type":          `{"hook":"tool_call","event":{"toolName":"bash","toolCallId":"c","input":{}},` + ctx + `}`,
		"a call without a session":         `{"hook":"tool_call","event":{"type":"tool_call","toolName":"bash","toolCallId":"c","input":{}},"ctx":{"cwd":"/repo"}}`,
		"a call without what is around it": `{"hook":"tool_call","event":{"type":"tool_call","toolName":"bash","toolCallId":"c","input":{}}}`,
		"a call whose id is a number":      `{"hook":"tool_call","event":{"type":"tool_call","toolName":"bash","toolCallId":7,"input":{}},` + ctx + `}`,
		"a result whose content is text":   `{"hook":"tool_result","event":{"type":"tool_result","toolName":"bash","toolCallId":"c","input":{},"content":"x"},` + ctx + `}`,
		"a prompt that is a list":          `{"hook":"before_agent_start","event":{"type":"before_agent_start","prompt":["x"]},` + ctx + `}`,
	} {
		if e, err := h.Read(adapter.Input{Data: []byte(doc)}); err == nil {
			t.Errorf("%s was read as %s", name, e.Row.Native)
		}
	}
}
