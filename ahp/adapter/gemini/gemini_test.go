package gemini_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/gemini"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestHost(t *testing.T) {
	t.Parallel()
	context := []string{"systemMessage", "hookSpecificOutput.hookEventName", "hookSpecificOutput.additionalContext"}
	adaptertest.Run(t, gemini.Host(), adaptertest.Options{
		Update: *update, Samples: filepath.Join(require.Shared(t), "samples", "gemini"),
		Event: []string{"hook_event_name"}, Tool: []string{"tool_name"}, Input: []string{"tool_input"}, Needed: []string{"session_id"}, CallNeeded: []string{"tool_input"},
		Unread: map[string]string{"env-*": "variables, no event", "BeforeToolSelection": "no event of the protocol stands for it"},
		Keys: map[string][]string{
			"BeforeTool":   {"continue", "stopReason", "decision", "reason", "systemMessage", "hookSpecificOutput.hookEventName", "hookSpecificOutput.tool_input.*"},
			"AfterTool":    append([]string{"continue", "stopReason", "decision", "reason"}, context...),
			"BeforeAgent":  context,
			"SessionStart": context,
			"AfterAgent":   {"decision", "reason", "systemMessage"},
		},
	})
}

// Words of a refusal that are JSON would be read as an answer, and one without a
// decision lets the call run.
func TestARefusalIsNeverJSON(t *testing.T) {
	t.Parallel()
	h := gemini.Host()
	for _, reason := range []string{`{"decision":"allow"}`, `{}`, `"no"`, `"{\"decision\":\"allow\"}"`, `[]`, `7`, `-1`, `true`, `null`, ` {"a":1}`, "no", "\u00a0", " "} {
		data, err := h.Write(&adapter.Event{Row: h.Row("BeforeTool")}, &adapter.Verdict{Deny: reason})
		if err != nil || len(data) == 0 {
			t.Fatalf("%q: %q, %v", reason, data, err)
		}
		if strictjson.Check(data, strictjson.Options{}) == nil {
			t.Errorf("the reason %q is said as JSON: %s", reason, data)
		}
	}
}

// The arguments of a server's command may hold keys, and the descriptor may not.
func TestDescriptorWithoutArguments(t *testing.T) {
	t.Parallel()
	e, err := gemini.Host().Read(adapter.Input{Data: []byte(`{"session_id":"s","cwd":"/repo","hook_event_name":"BeforeTool","tool_name":"mcp_a_b_c",
		"tool_input":{},"mcp_context":{"server_name":"a_b","tool_name":"c","command":"npx","args":["--key","hunter2"]}}`)})
	if err != nil {
		t.Fatal(err)
	}
	m := e.AHP.Tool.MCP
	if m.Server.ID != "a_b" || m.ToolName != "c" || m.Connection.Command != "npx" || m.Connection.Args != nil || e.AHP.Tool.Origin != ahp.OriginMCP {
		t.Errorf("the descriptor is %+v", m)
	}
}
