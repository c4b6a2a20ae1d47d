package shape_test

import (
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

func host() *adapter.Host {
	return &adapter.Host{Name: "x", Rows: []adapter.Row{
		{Native: "Before", Type: ahp.ToolBefore}, {Native: "After", Type: ahp.ToolAfter}, {Native: "Batch", Type: ahp.ToolBatchAfter},
		{Native: "Sub", Type: ahp.TaskChangeAfter}, {Native: "Start", Type: ahp.SessionStart}, {Native: "Unread", Type: ahp.SessionEnd},
	}}
}

func profile(strict bool) *shape.Profile {
	return &shape.Profile{Host: "x", Strict: strict, MCP: shape.MCPByName, Show: shape.MCPContent, Others: shape.MCPOthers, Kinds: map[string]shape.Kind{
		"Before": shape.Before, "After": shape.After, "Batch": shape.Batch, "Sub": shape.SubagentStart, "Start": shape.SessionStart,
	}}
}

// Each payload lacks what its kind of event must have.
func TestUnknownShapes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		data   string
		strict bool
	}{
		"no name of an event":        {`{"session_id":"s","tool_name":"x"}`, false},
		"an event of no row":         {`{"session_id":"s","hook_event_name":"before","tool_name":"x"}`, false},
		"a row without a kind":       {`{"session_id":"s","hook_event_name":"Unread"}`, false},
		"a call without a tool":      {`{"session_id":"s","hook_event_name":"Before","tool_input":{}}`, false},
		"a call without a session":   {`{"hook_event_name":"Before","tool_name":"x","tool_input":{}}`, true},
		"a call without an input":    {`{"session_id":"s","hook_event_name":"Before","tool_name":"x"}`, true},
		"a session without an id":    {`{"hook_event_name":"Start"}`, false},
		"a batch of nothing":         {`{"session_id":"s","hook_event_name":"Batch","tool_calls":[]}`, false},
		"no batch":                   {`{"session_id":"s","hook_event_name":"Batch"}`, false},
		"a batch of a number":        {`{"session_id":"s","hook_event_name":"Batch","tool_calls":[7]}`, false},
		"a batched call without id":  {`{"session_id":"s","hook_event_name":"Batch","tool_calls":[{"tool_name":"x","tool_input":{}}]}`, false},
		"a sub-agent without a name": {`{"session_id":"s","hook_event_name":"Sub"}`, false},
		"a folder that is a number":  {`{"session_id":"s","cwd":7,"hook_event_name":"Before","tool_name":"x","tool_input":{}}`, false},
	} {
		if e, err := profile(c.strict).Read(host(), adapter.Input{Data: []byte(c.data)}); err == nil {
			t.Errorf("%s is read as %+v", name, e.AHP)
		}
	}
}

// A host that isn't known to send everything is read with less.
func TestLooseShapes(t *testing.T) {
	t.Parallel()
	e, err := profile(false).Read(host(), adapter.Input{Native: "Before", Data: []byte(`{"tool_name":"x"}`)})
	if err != nil || string(e.AHP.Tool.Input) != "{}" || e.AHP.Session != nil || !e.AHP.Call.Synthesized {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestBatchOutcomes(t *testing.T) {
	t.Parallel()
	e, err := profile(true).Read(host(), adapter.Input{Data: []byte(`{"session_id":"s","hook_event_name":"Batch","tool_calls":[
		{"tool_use_id":"1","tool_name":"x","tool_input":{},"status":"success"},{"tool_use_id":"2","tool_name":"mcp__a__b","tool_input":{},"status":"error"},
		{"tool_use_id":"3","tool_name":"x","tool_input":{},"status":"cancelled"}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range e.AHP.Calls {
		got = append(got, c.Call.ID+c.Outcome+string(c.Tool.Origin))
	}
	if s := strings.Join(got, " "); s != "1oknative 2errormcp 3cancellednative" {
		t.Errorf("the calls are %s", s)
	}
}

func TestResultsAsText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		form   func(ahp.Raw) (string, bool)
		others func(ahp.Raw) int
		result string
		text   string
		left   int
		failed bool
	}{
		{shape.MCPContent, shape.MCPOthers, `"plain"`, "plain", 0, false},
		{shape.MCPContent, shape.MCPOthers, `[{"type":"text","text":"a"},{"type":"image","data":"x"},{"type":"text","text":"b"}]`, "a\nb", 1, false},
		{shape.MCPContent, shape.MCPOthers, `{"content":[{"type":"text","text":"a"}],"isError":true}`, "a", 0, true},
		{shape.MCPContent, shape.MCPOthers, `{"content":"a"}`, `{"content":"a"}`, 0, false},
		{shape.MCPContent, shape.MCPOthers, `{"content":[7]}`, `{"content":[7]}`, 0, false},
		{shape.MCPContent, shape.MCPOthers, `{"stdout":"a"}`, `{"stdout":"a"}`, 0, false},
		{shape.LLMContent, shape.LLMOthers, `{"llmContent":"a","returnDisplay":""}`, "a", 0, false},
		{shape.LLMContent, shape.LLMOthers, `{"llmContent":["a",{"text":"b"},{"inlineData":{}}]}`, "a\nb", 1, false},
		{shape.LLMContent, shape.LLMOthers, `{"llmContent":{"text":"b"}}`, "b", 0, false},
		{shape.LLMContent, shape.LLMOthers, `{"llmContent":"a","error":{"message":"m"}}`, "a", 0, true},
		{shape.LLMContent, shape.LLMOthers, `{"error":"m"}`, "m", 0, true},
		{shape.LLMContent, shape.LLMOthers, `"a"`, "a", 0, false},
	} {
		text, failed := c.form(ahp.Raw(c.result))
		if left := c.others(ahp.Raw(c.result)); text != c.text || failed != c.failed || left != c.left {
			t.Errorf("%s is %q, failed %v, without %d", c.result, text, failed, left)
		}
	}
}

func TestServersByName(t *testing.T) {
	t.Parallel()
	for tool, want := range map[string]string{"mcp__a__b": "a b", "mcp__a-b__c__d": "a-b c__d", "mcp__a": "", "mcp____x": "", "Bash": "", "mcp_a_b": ""} {
		got := ""
		if m := shape.MCPByName(nil, tool); m != nil {
			got = m.Server.ID + " " + m.ToolName
		}
		if got != want {
			t.Errorf("%s is %q, expected %q", tool, got, want)
		}
	}
	for tool, want := range map[string]string{"mcp_a_b_c": "a b_c", "mcp_a": "", "mcp__a": "", "bash": ""} {
		got := ""
		if m := shape.MCPByPrefix(tool); m != nil {
			got = m.Server.ID + " " + m.ToolName
		}
		if got != want {
			t.Errorf("%s is %q, expected %q", tool, got, want)
		}
	}
}
