package adaptertest

import (
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/internal/strictjson"
)

// RunOpenCode holds the dialect of opencode or of a fork of it, h, against what Run asks.
// samples is the folder of what was recorded, and version the host's that was.
func RunOpenCode(t *testing.T, h *adapter.Host, update bool, samples, version string) {
	Run(t, h, Options{
		Update: update, Events: bridged(t, samples, version), Call: adapter.Call{ID: "call-1", Name: "bash", Input: ahp.Raw(`{"command":"rm -rf build"}`)},
		Event: []string{"hook", "input.event.type"}, Tool: []string{"input.tool"}, Input: []string{"output.args", "input.args"},
		Needed:     []string{"hook", "input", "input.sessionID", "input.event", "input.event.properties", "input.event.properties.sessionID"},
		CallNeeded: []string{"output"},
		Unread:     notBridged(), Keys: map[string][]string{
			"tool.execute.before": {"args.*", "reason"}, "tool.execute.after": {"output", "context"}, "chat.message": {"context", "reason"},
		},
	})
}

// notBridged returns the recorded calls that the bridge doesn't hand on.
func notBridged() map[string]string {
	return map[string]string{
		"chat.headers": "no event of the protocol", "chat.params": "likewise", "config": "likewise", "experimental.*": "likewise",
		"shell.env": "likewise", "tool.definition": "likewise", "init": "no hook", "event-[a-r]*": "likewise",
		"event-session.diff": "likewise", "event-session.status": "likewise", "event-session.updated": "likewise", "event-session.drained": "likewise",
	}
}

// bridged returns the calls of hooks as the bridge hands them on: those that were
// recorded, and those that were measured and not kept.
func bridged(t *testing.T, samples, version string) map[string]string {
	t.Helper()
	out := map[string]string{
		"mcp-after":   `{"bridge":"1","hook":"tool.execute.after","input":{"tool":"demo_echo","sessionID":"ses_1","callID":"call_1","args":{"text":"hi"}},"output":{"content":[{"type":"text","text":"hi"},{"type":"image","data":"AA==","mimeType":"image/png"}],"isError":true},"directory":"/","worktree":"/"}`,
		"mcp-before":  `{"bridge":"1","hook":"tool.execute.before","input":{"tool":"demo_echo","sessionID":"ses_1","callID":"call_1"},"output":{"args":{"text":"hi"}},"directory":"/","worktree":"/"}`,
		"file-prompt": `{"bridge":"1","hook":"chat.message","input":{"sessionID":"ses_1","agent":"build"},"output":{"message":{"id":"msg_1","role":"user"},"parts":[{"type":"text","text":"look at"},{"type":"file","url":"file:///repo/a.png"},{"type":"text","text":"this"}]},"directory":"/repo"}`,
		"child":       `{"bridge":"1","hook":"event","input":{"event":{"type":"session.created","properties":{"sessionID":"ses_2","info":{"id":"ses_2","parentID":"ses_1","version":"` + version + `","directory":"/repo"}}}},"directory":"/repo"}`,
	}
	for name, data := range Recorded(t, samples) {
		hook, members := name, `"input":`+data
		if strings.HasPrefix(name, "event-") {
			hook = "event"
		}
		var arguments []ahp.Raw
		if strictjson.Unmarshal([]byte(data), &arguments, strictjson.Options{}) == nil && len(arguments) == 2 {
			members = `"input":` + string(arguments[0]) + `,"output":` + string(arguments[1])
		}
		out[name] = `{"bridge":"1","hook":"` + hook + `",` + members + `,"directory":"/repo/sub","worktree":"/repo"}`
	}
	return out
}

// RefusesOpenCode holds that h reads no document of the bridge whose shape is unknown.
func RefusesOpenCode(t *testing.T, h *adapter.Host) {
	for name, doc := range map[string]string{
		"a hook's name as an event":        `{"hook":"event","input":{"event":{"type":"tool.execute.before","properties":{"tool":"bash","sessionID":"s"}}},"output":{"args":{}}}`,
		"an event's name as a hook":        `{"hook":"session.idle","input":{"sessionID":"s"}}`,
		"an event without a type":          `{"hook":"event","input":{"event":{"properties":{"sessionID":"s"}}}}`,
		"a call without a session":         `{"hook":"tool.execute.before","input":{"tool":"bash","callID":"c"},"output":{"args":{}}}`,
		"a call without its second half":   `{"hook":"tool.execute.before","input":{"tool":"bash","sessionID":"s","callID":"c"}}`,
		"a call without arguments":         `{"hook":"tool.execute.before","input":{"tool":"todoread","sessionID":"s","callID":"c"},"output":{}}`,
		"a result without arguments":       `{"hook":"tool.execute.after","input":{"tool":"todoread","sessionID":"s","callID":"c"},"output":{"output":"x"}}`,
		"a call whose arguments are null":  `{"hook":"tool.execute.before","input":{"tool":"todoread","sessionID":"s","callID":"c"},"output":{"args":null}}`,
		"a call whose id is a number":      `{"hook":"tool.execute.before","input":{"tool":"bash","sessionID":"s","callID":7},"output":{"args":{}}}`,
		"a result whose parts are no list": `{"hook":"tool.execute.after","input":{"tool":"bash","sessionID":"s","callID":"c","args":{}},"output":{"content":"x"}}`,
		"a result that is a number":        `{"hook":"tool.execute.after","input":{"tool":"bash","sessionID":"s","callID":"c","args":{}},"output":{"output":7}}`,
		"a prompt whose part is no object": `{"hook":"chat.message","input":{"sessionID":"s"},"output":{"message":{"id":"m"},"parts":["text"]}}`,
		"a prompt whose text is a list":    `{"hook":"chat.message","input":{"sessionID":"s"},"output":{"message":{"id":"m"},"parts":[{"type":"text","text":["x"]}]}}`,
		"a prompt without its second half": `{"hook":"chat.message","input":{"sessionID":"s"}}`,
	} {
		if e, err := h.Read(adapter.Input{Data: []byte(doc)}); err == nil {
			t.Errorf("%s was read as %s", name, e.Row.Native)
		}
	}
}
