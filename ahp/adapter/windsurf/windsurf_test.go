package windsurf_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/windsurf"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestHost(t *testing.T) {
	common := `"trajectory_id":"traj-1","execution_id":"exec-1","timestamp":"2026-04-27T10:00:00Z","model_name":"m"`
	adaptertest.Run(t, windsurf.Host(), adaptertest.Options{
		Update: *update, Samples: filepath.Join(require.Shared(t), "samples", "windsurf"),
		Events: map[string]string{
			"post_run_command":      `{"agent_action_name":"post_run_command",` + common + `,"tool_info":{"command_line":"git push origin main","cwd":"/repo"}}`,
			"post_mcp_tool_use":     `{"agent_action_name":"post_mcp_tool_use",` + common + `,"tool_info":{"mcp_server_name":"github","mcp_tool_name":"create_issue","mcp_tool_arguments":{"title":"crash on save"},"mcp_result":"#42"}}`,
			"post_read_code":        `{"agent_action_name":"post_read_code",` + common + `,"tool_info":{"file_path":"/repo/.env"}}`,
			"post_write_code":       `{"agent_action_name":"post_write_code",` + common + `,"tool_info":{"file_path":"/repo/main.go","edits":[]}}`,
			"post_cascade_response": `{"agent_action_name":"post_cascade_response",` + common + `,"tool_info":{"response":"Done."}}`,
		},
		Event: []string{"agent_action_name"}, Input: []string{"tool_info"},
		Call: adapter.Call{Name: "pre_run_command", Input: ahp.Raw(`{"command_line":"rm -rf build","cwd":"/repo"}`)},
	})
}

// TestOneCall: an id that is made up from a call has to be the same before and after it.
func TestOneCall(t *testing.T) {
	h := windsurf.Host()
	read := func(text string) *ahp.Tool {
		e, err := h.Read(adapter.Input{Data: []byte(text)})
		if err != nil {
			t.Fatal(err)
		}
		return e.AHP.Tool
	}
	info := `{"mcp_server_name":"s","mcp_tool_name":"t","mcp_tool_arguments":{"a":1}`
	before := read(`{"agent_action_name":"pre_mcp_tool_use","trajectory_id":"x","tool_info":` + info + `}}`)
	after := read(`{"agent_action_name":"post_mcp_tool_use","trajectory_id":"x","tool_info":` + info + `,"mcp_result":"r"}}`)
	if before.Name != after.Name || !strictjson.Equal(before.Input, after.Input) {
		t.Errorf("before %s %s\nafter  %s %s", before.Name, before.Input, after.Name, after.Input)
	}
}

// TestUnreadable: what says nothing of what is about to run is no event.
func TestUnreadable(t *testing.T) {
	for _, text := range []string{
		`{"agent_action_name":"pre_run_command","tool_info":{}}`,
		`{"agent_action_name":"pre_run_command"}`,
		`{"agent_action_name":"pre_run_command","tool_info":{"command_line":["ls"]}}`,
		`{"agent_action_name":"pre_write_code","tool_info":{"edits":[]}}`,
		`{"agent_action_name":"pre_mcp_tool_use","tool_info":{"mcp_server_name":"s"}}`,
		`{"agent_action_name":"pre_mcp_tool_use","tool_info":{"mcp_server_name":"s","mcp_tool_name":"t","mcp_tool_arguments":7}}`,
		`{"agent_action_name":"pre_user_prompt","tool_info":{}}`,
		`{"tool_info":{"command_line":"ls"}}`,
	} {
		if _, err := windsurf.Host().Read(adapter.Input{Data: []byte(text)}); err == nil {
			t.Errorf("%s was read as an event", text)
		}
	}
}
