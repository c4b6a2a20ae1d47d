package cursor_test

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/cursor"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const common = `"conversation_id":"conv-1","generation_id":"gen-1","model":"m","cursor_version":"2.6.0","workspace_roots":["/repo"],"user_email":"dev@example.com","transcript_path":null`

func options(t *testing.T) adaptertest.Options {
	return adaptertest.Options{
		Update: *update, Samples: filepath.Join(require.Shared(t), "samples", "cursor"),
		Events: map[string]string{
			"sessionStart":                     `{"hook_event_name":"sessionStart",` + common + `,"session_id":"conv-1","composer_mode":"agent"}`,
			"sessionEnd":                       `{"hook_event_name":"sessionEnd",` + common + `,"session_id":"conv-1","reason":"aborted"}`,
			"subagentStop":                     `{"hook_event_name":"subagentStop",` + common + `,"status":"error","loop_count":2,"summary":"broke"}`,
			"preCompact":                       `{"hook_event_name":"preCompact",` + common + `,"trigger":"manual"}`,
			"afterAgentResponse":               `{"hook_event_name":"afterAgentResponse",` + common + `,"text":"Done."}`,
			"preToolUse of an MCP tool":        `{"hook_event_name":"preToolUse",` + common + `,"tool_name":"MCP:create_issue","tool_input":{"title":"x"},"tool_use_id":"tool-1"}`,
			"beforeMCPExecution by a command":  `{"hook_event_name":"beforeMCPExecution",` + common + `,"tool_name":"create_issue","tool_input":"{}","command":"/usr/bin/mcp-server --token s3cret"}`,
			"beforeMCPExecution by an address": `{"hook_event_name":"beforeMCPExecution",` + common + `,"tool_name":"create_issue","tool_input":"{}","url":"https://user:s3cret@mcp.example.com/v1?key=s3cret#s3cret"}`,
		},
		Event: []string{"hook_event_name"}, Tool: []string{"tool_name"}, Input: []string{"tool_input"},
		Keys: map[string][]string{
			"sessionStart": {"additional_context"}, "beforeSubmitPrompt": {"continue", "user_message"},
			"preToolUse": {"permission", "user_message", "agent_message", "updated_input.*"}, "beforeShellExecution": {"permission", "user_message", "agent_message"},
			"beforeMCPExecution": {"permission", "user_message", "agent_message"}, "beforeReadFile": {"permission", "user_message", "agent_message"},
			"postToolUse": {"additional_context"}, "subagentStart": {"permission", "user_message", "agent_message"},
			"subagentStop": {"followup_message"}, "stop": {"followup_message"},
		},
		Document: true, Call: adapter.Call{ID: "tool-1", Name: "Shell", Input: ahp.Raw(`{"command":"rm -rf build","timeout":5}`)},
	}
}

func TestHost(t *testing.T) {
	adaptertest.Run(t, cursor.Host(), options(t))
}

// TestGuest runs the dialect of a line that was found in Claude Code's files.
func TestGuest(t *testing.T) {
	o := options(t)
	o.Keys, o.Document = nil, false
	o.Events["PreToolUse"] = `{"hook_event_name":"PreToolUse",` + common + `,"session_id":"conv-1","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"tool-1"}`
	o.Events["UserPromptSubmit"] = `{"hook_event_name":"UserPromptSubmit",` + common + `,"prompt":"hello"}`
	o.Events["Stop"] = `{"hook_event_name":"Stop",` + common + `,"stop_hook_active":true}`
	t.Chdir(filepath.Join("testdata", "guest"))
	adaptertest.Run(t, cursor.Guest(), o)
}

// TestContentsStayOut: the file that is about to be read is in the payload, and a policy
// that asks for neither must not be handed it.
func TestContentsStayOut(t *testing.T) {
	text := `{"hook_event_name":"beforeReadFile",` + common + `,"file_path":"/repo/.env","content":"KEY=s3cret","attachments":[]}`
	e, err := cursor.Host().Read(adapter.Input{Data: []byte(text)})
	if err != nil {
		t.Fatal(err)
	}
	adaptertest.Complete(e.AHP)
	data, err := e.AHP.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "s3cret") || strings.Contains(string(e.Native), "s3cret") || strings.Contains(string(e.Tool), "s3cret") {
		t.Errorf("the contents are in the event:\n%s\n%s", data, e.Native)
	}
	if !strings.Contains(string(e.Native), `"file_path":"/repo/.env"`) {
		t.Errorf("the native form has lost more than the contents: %s", e.Native)
	}
}

// TestNoSecretOfAServer: an address and a command line may hold secrets.
func TestNoSecretOfAServer(t *testing.T) {
	for _, name := range []string{"beforeMCPExecution by a command", "beforeMCPExecution by an address"} {
		e, err := cursor.Host().Read(adapter.Input{Data: []byte(options(t).Events[name])})
		if err != nil {
			t.Fatal(err)
		}
		adaptertest.Complete(e.AHP)
		if data, err := e.AHP.Encode(); err != nil || strings.Contains(string(data), "s3cret") {
			t.Errorf("%s: %v\n%s", name, err, data)
		}
	}
}

// TestOneCall: events about one kind of action have an input that is the same before and
// after, from which an id is made up.
func TestOneCall(t *testing.T) {
	tool := func(text string) *ahp.Tool {
		e, err := cursor.Host().Read(adapter.Input{Data: []byte(text)})
		if err != nil {
			t.Fatal(err)
		}
		return e.AHP.Tool
	}
	for _, c := range []struct{ before, after string }{
		{`"hook_event_name":"beforeShellExecution","command":"ls","cwd":"/repo","sandbox":false`, `"hook_event_name":"afterShellExecution","command":"ls","output":"a","duration":1,"sandbox":false`},
		{`"hook_event_name":"beforeMCPExecution","tool_name":"t","tool_input":"{\"a\":1}","url":"https://x.example"`, `"hook_event_name":"afterMCPExecution","tool_name":"t","tool_input":"{\"a\":1}","result_json":"{}","duration":1`},
	} {
		b, a := tool("{"+c.before+","+common+"}"), tool("{"+c.after+","+common+"}")
		if b.Name != a.Name || !strictjson.Equal(b.Input, a.Input) {
			t.Errorf("before %s %s\nafter  %s %s", b.Name, b.Input, a.Name, a.Input)
		}
	}
}

// TestUnreadable: what says nothing of what is about to happen is no event.
func TestUnreadable(t *testing.T) {
	for _, text := range []string{
		`"hook_event_name":"beforeShellExecution","cwd":"/repo"`,
		`"hook_event_name":"beforeShellExecution","command":["ls"]`,
		`"hook_event_name":"beforeReadFile","content":"x"`,
		`"hook_event_name":"beforeMCPExecution","tool_name":"t","tool_input":"not json"`,
		`"hook_event_name":"afterFileEdit","file_path":"/a","edits":7`,
		`"hook_event_name":"subagentStart"`,
		`"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}`, // a guest's name, to a line of our own
		`"tool_name":"Shell","tool_input":{}`,
	} {
		if _, err := cursor.Host().Read(adapter.Input{Data: []byte("{" + text + "," + common + "}")}); err == nil {
			t.Errorf("%s was read as an event", text)
		}
	}
}

// TestContinuations: the host goes on at most five times, and says how often it did.
func TestContinuations(t *testing.T) {
	for count, left := range map[string]int64{"0": 5, "4": 1} {
		e, err := cursor.Host().Read(adapter.Input{Data: []byte(`{"hook_event_name":"stop",` + common + `,"status":"completed","loop_count":` + count + `}`)})
		if err != nil {
			t.Fatal(err)
		}
		c := e.Row.Capabilities(e.AHP.ContinuationCount)
		if c == nil || c.Flow == nil || *c.Flow.RemainingContinuations != left {
			t.Errorf("after %s: %+v, expected %d left", count, c, left)
		}
	}
	e, err := cursor.Host().Read(adapter.Input{Data: []byte(`{"hook_event_name":"stop",` + common + `,"status":"completed","loop_count":5}`)})
	if err != nil {
		t.Fatal(err)
	}
	if c := e.Row.Capabilities(e.AHP.ContinuationCount); c != nil && c.Flow != nil {
		t.Errorf("a sixth is offered: %+v", c.Flow)
	}
}
