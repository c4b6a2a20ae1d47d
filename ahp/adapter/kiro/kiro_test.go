package kiro_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/kiro"
	"github.com/abhed/abhed/internal/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// load returns the samples of several folders by folder and name.
func load(t *testing.T, folders ...string) map[string]string {
	out := map[string]string{}
	for _, folder := range folders {
		for name, text := range adaptertest.Recorded(t, filepath.Join(require.Shared(t), "samples", folder)) {
			out[folder+"/"+name] = text
		}
	}
	return out
}

func TestHost(t *testing.T) {
	events := load(t, "kiro-cli", "amazon-q", "kiro-v1")
	for name, text := range map[string]string{
		"agentSpawn":       `{"hook_event_name":"agentSpawn","cwd":"/repo"}`,
		"stop":             `{"hook_event_name":"stop","cwd":"/repo"}`,
		"failed":           `{"hook_event_name":"postToolUse","cwd":"/repo","tool_name":"@git/push","tool_input":{"remote":"origin"},"tool_response":{"success":false,"result":[{"text":"rejected"}]}}`,
		"SessionStart":     `{"hook_event_name":"agentSpawn","cwd":"/repo","session_id":"kiro-1"}`,
		"SessionEnd":       `{"hook_event_name":"sessionEnd","cwd":"/repo","session_id":"kiro-1"}`,
		"UserPromptSubmit": `{"hook_event_name":"userPromptSubmit","cwd":"/repo","session_id":"kiro-1","prompt":"hello"}`,
		"PostToolUse":      `{"hook_event_name":"PostToolUse","cwd":"/repo","session_id":"kiro-1","tool_name":"@git/push","tool_input":{"remote":"origin"},"tool_response":{"success":true,"result":["done","twice"]}}`,
		"PreTaskExec":      `{"hook_event_name":"preTaskExec","cwd":"/repo","session_id":"kiro-1","task":"write the parser"}`,
		"PostTaskExec":     `{"hook_event_name":"postTaskExec","cwd":"/repo","session_id":"kiro-1","task_id":"3"}`,
	} {
		events[name] = text
	}
	adaptertest.Run(t, kiro.Host(), adaptertest.Options{
		Update: *update, Events: events, Event: []string{"hook_event_name"}, Tool: []string{"tool_name"}, Input: []string{"tool_input"},
		Call: adapter.Call{Name: "execute_bash", Input: ahp.Raw(`{"command":"rm -rf build","timeout":5}`)},
	})
}

// TestFolder: without a session's id the folder still is where relative paths start.
func TestFolder(t *testing.T) {
	read := func(cwd string) *ahp.Session {
		e, err := kiro.Host().Read(adapter.Input{Data: []byte(`{"hook_event_name":"preToolUse","cwd":"` + cwd + `","tool_name":"fs_write","tool_input":{}}`)})
		if err != nil {
			t.Fatal(err)
		}
		return e.AHP.Session
	}
	one, again, other := read("/a"), read("/a"), read("/b")
	if one.Cwd != "/a" || !one.Synthesized || one.ID != again.ID || one.ID == other.ID {
		t.Errorf("found %+v, %+v, %+v; expected one made-up id per folder", one, again, other)
	}
}

// TestPromptOfAnAgent: an agent file's prompt can't be refused, so that nothing may be
// offered there; a v1 file's can, and is known by its session.
func TestPromptOfAnAgent(t *testing.T) {
	h := kiro.Host()
	for session, want := range map[string]string{"": "userPromptSubmit", `,"session_id":"s"`: "UserPromptSubmit"} {
		e, err := h.Read(adapter.Input{Data: []byte(`{"hook_event_name":"userPromptSubmit","cwd":"/repo","prompt":"hello"` + session + `}`)})
		if err != nil {
			t.Fatal(err)
		}
		text, err := h.Write(e, adapter.Settle(e, &ahp.Outcome{Event: e.AHP, Interrupted: true}, adaptertest.Texts()))
		denies := want == "UserPromptSubmit"
		if err != nil || e.Row.Native != want || e.Row.Denies() != denies || len(text) > 0 != denies {
			t.Errorf("read as %s, refused with %q, %v; expected %s", e.Row.Native, text, err, want)
		}
	}
}
