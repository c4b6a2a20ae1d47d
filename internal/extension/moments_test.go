package extension_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/policy"
)

// main1 is turn 3 of the main agent.
func main1() extension.At {
	return extension.At{Turn: 3, Agent: policy.Agent{ID: "main"}}
}

// history is a conversation with two calls in one message and their results.
func history() []*event.Message {
	text := func(role event.Role, s string) *event.Message {
		return &event.Message{Role: role, Parts: []event.Part{event.TextPart(s)}}
	}
	result := func(id, name, s string, images ...event.Image) *event.Message {
		return &event.Message{Role: event.RoleTool, Parts: []event.Part{{ToolResult: &event.ToolResult{CallID: id, Name: name, Content: s, Images: images}}}}
	}
	reasoning := "I look first."
	return []*event.Message{
		text(event.RoleUser, "begin"),
		{Role: event.RoleAssistant, Parts: []event.Part{
			{Reasoning: &reasoning}, event.TextPart("two "), event.TextPart("calls"),
			{ToolCall: &event.ToolCall{ID: "c1", Name: "read", Args: `{"path":"a","event":"x"}`}},
			{ToolCall: &event.ToolCall{ID: "c2", Name: "bash", Args: `{broken`}},
		}},
		result("c1", "read", "1: a/<b>\n", event.Image{MediaType: "image/png", Data: "AAAA"}),
		result("c2", "bash", "no\x00pe"),
		text(event.RoleAssistant, "done"),
		text(event.RoleUser, "go on"),
	}
}

// TestWireOfMoments is TestWire for what is no tool call.
func TestWireOfMoments(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	cfg := with(fakeExt(t, "a", nil), func(c *extension.Config) { c.Env = append(c.Env, fakeLog+"="+log) })
	h := start(t, nil, cfg)
	ctx, at := context.Background(), main1()
	h.PromptSubmit(ctx, extension.At{}, "fix \"it\"\n")
	h.AgentStart(ctx, at, "You are.")
	h.Context(ctx, at, history())
	h.BeforeCompact(ctx, extension.At{Turn: 1, Agent: policy.Agent{ID: "s-1", Depth: 2}}, history()[:1])
	h.BeforeCompact(ctx, extension.At{}, nil)
	h.Notification(ctx, at, "look", "bash")
	h.Notification(ctx, at, "at this", "")
	h.SubagentEnd(ctx, extension.At{Turn: 2, Agent: policy.Agent{ID: "s-1", Depth: 1}}, "found")
	h.TurnEnd(ctx, at, "answer")
	h.SessionEnd(ctx, "completed")

	const who = `"turn":3,"agent":{"id":"main","depth":0}`
	want := []string{
		`{"event":"list_tools","session_id":"s-1","seq":1}`,
		`{"event":"user_prompt_submit","session_id":"s-1","seq":2,"content":"fix \"it\"\n"}`,
		`{"event":"before_agent_start","session_id":"s-1","seq":3,` + who + `,"system":"You are."}`,
		`{"event":"context","session_id":"s-1","seq":4,` + who + `,"messages":[` +
			`{"index":0,"role":"user","content":"begin"},` +
			`{"index":1,"role":"assistant","content":"I look first.\ntwo calls\nread {\"path\":\"a\",\"event\":\"x\"}\nbash {broken","tool":"read","call_id":"c1"},` +
			`{"index":2,"role":"tool","content":"1: a/<b>\n\n[image image/png]","tool":"read","call_id":"c1"},` +
			`{"index":3,"role":"tool","content":"no\\x00pe","tool":"bash","call_id":"c2"},` +
			`{"index":4,"role":"assistant","content":"done"},` +
			`{"index":5,"role":"user","content":"go on"}]}`,
		`{"event":"before_compact","session_id":"s-1","seq":5,"turn":1,"agent":{"id":"s-1","depth":2},"messages":[{"index":0,"role":"user","content":"begin"}]}`,
		`{"event":"before_compact","session_id":"s-1","seq":6,"messages":[]}`,
		`{"event":"notification","session_id":"s-1","seq":7,` + who + `,"content":"look","tool":"bash"}`,
		`{"event":"notification","session_id":"s-1","seq":8,` + who + `,"content":"at this"}`,
		`{"event":"subagent_end","session_id":"s-1","seq":9,"turn":2,"agent":{"id":"s-1","depth":1},"content":"found"}`,
		`{"event":"turn_end","session_id":"s-1","seq":10,` + who + `,"content":"answer"}`,
		`{"event":"session_end","session_id":"s-1","seq":11,"reason":"completed"}`,
	}
	got := strings.Split(strings.TrimSuffix(strings.Join(logLines(t, log), ""), "\n"), "\n")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
}

func TestPromptSubmit(t *testing.T) {
	t.Parallel()
	dead := func(name string, f extension.OnFailure) extension.Config {
		return with(fakeExt(t, name, actions{"start": "@exit 1"}), func(c *extension.Config) { c.OnFailure = f })
	}
	says := func(name, reply string) extension.Config {
		return fakeExt(t, name, actions{"user_prompt_submit": reply})
	}
	tests := []struct {
		name    string
		configs []extension.Config
		refused bool
		by, why string
		answers string
	}{
		{"no opinion", []extension.Config{says("a", `{}`), says("b", `{"block":false,"reason":"x"}`)}, false, "", "", "none none"},
		{"one blocks", []extension.Config{says("z", `{}`), says("b", `{"block":true,"reason":"no keys"}`)}, true, "b", "no keys", "deny none"},
		{"two block", []extension.Config{says("z", `{"block":true,"reason":"last"}`), says("b", `{"block":true}`)}, true, "b", `extension "b" blocked the message and gave no reason`, "deny deny"},
		{"ask does nothing", []extension.Config{says("a", `{"ask":true,"args":{},"allow":true}`)}, false, "", "", "none"},
		{"dead, skip", []extension.Config{dead("a", extension.Skip)}, false, "", "", "failed"},
		{"dead, ask", []extension.Config{dead("a", extension.AskPerson)}, true, "a", `its on_failure is "ask"`, "failed"},
		{"dead, block", []extension.Config{dead("a", extension.Block), says("b", `{}`)}, true, "a", `its on_failure is "block"`, "failed none"},
		{"blocks and fails", []extension.Config{with(says("a", `{"block":true,"reason":"r"} && more`), func(c *extension.Config) { c.OnFailure = extension.Skip })}, true, "a", "r", "deny+failed"},
		{"not subscribed", []extension.Config{with(says("a", `{"block":true}`), func(c *extension.Config) { c.Events = []string{"tool_call"} })}, false, "", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := start(t, nil, tt.configs...)
			got := h.PromptSubmit(context.Background(), main1(), "hello")
			if got.Refused != tt.refused || got.By != tt.by || !strings.Contains(got.Reason, tt.why) || (tt.why == "") != (got.Reason == "") {
				t.Errorf("got %+v", got)
			}
			if s := answersOf(got.Asked); s != tt.answers && !(tt.answers == "deny+failed" && s == "deny") {
				t.Errorf("asked %q, want %q", s, tt.answers)
			}
			for _, a := range got.Asked {
				if a.Kind != "extension" || a.Step != "user_prompt_submit" || a.Version == "" || (a.Failure != "") != strings.Contains(a.Answer, "failed") {
					t.Errorf("asked %+v", a)
				}
			}
		})
	}
	h := start(t, nil, fakeExt(t, "a", nil))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if got := h.PromptSubmit(ctx, main1(), "x"); !got.Refused || got.Asked[0].Failure != "interrupted" {
		t.Errorf("interrupted: %+v", got)
	}
}

// answersOf joins what was answered.
func answersOf(asked []event.Asked) string {
	var out []string
	for _, a := range asked {
		out = append(out, a.Answer)
	}
	return strings.Join(out, " ")
}

func TestAgentStart(t *testing.T) {
	t.Parallel()
	rec := &record{}
	says := func(name, reply string) extension.Config {
		return fakeExt(t, name, actions{"before_agent_start": reply})
	}
	h := start(t, rec,
		says("z", `{"system":"First.\u0000"}`), says("quiet", `{"system":null}`), says("empty", `{"system":""}`),
		with(fakeExt(t, "dead", actions{"start": "@exit 1"}), func(c *extension.Config) { c.OnFailure = extension.Block }),
		says("most", `{"system":"`+strings.Repeat("m", 64<<10)+`"}`), says("more", `{"system":"`+strings.Repeat("m", 64<<10+1)+`"}`),
		says("a", `{"system":"Last.","reason":"why"}`),
	)
	got := h.AgentStart(context.Background(), main1(), "You are.")
	want := []extension.Appended{{By: "z", Text: `First.\x00`}, {By: "most", Text: strings.Repeat("m", 64<<10)}, {By: "a", Text: "Last."}}
	if d := cmp.Diff(want, got.Append); d != "" {
		t.Errorf("appended (-want +got):\n%s", d)
	}
	if s := got.System("You are."); !strings.HasPrefix(s, "You are.\n\nFirst.\\x00\n\nmmm") || !strings.HasSuffix(s, "m\n\nLast.") {
		t.Errorf("system text %.40q … %q", s, s[len(s)-12:])
	}
	if s := (&extension.AgentStartAnswer{}).System("same"); s != "same" {
		t.Errorf("nothing appended: %q", s)
	}
	if s, want := answersOf(got.Asked), "rewrite failed none none rewrite none rewrite"; s != want { // a dead empty more most quiet z
		t.Errorf("asked %q, want %q", s, want)
	}
	if a := got.Asked[1]; a.Policy != "skip" || a.Failure == "" { // there is nothing to veto
		t.Errorf("the dead one: %+v", a)
	}
	if w := rec.lines("more", "warning"); len(w) != 1 || !strings.Contains(w[0], "65537 bytes, the limit is 65536") {
		t.Errorf("warnings %q", w)
	}
}

func TestBeforeCompact(t *testing.T) {
	t.Parallel()
	says := func(name, reply string) extension.Config {
		return fakeExt(t, name, actions{"before_compact": reply})
	}
	dead := func(f extension.OnFailure) extension.Config {
		return with(fakeExt(t, "dead", actions{"start": "@exit 1"}), func(c *extension.Config) { c.OnFailure = f })
	}
	tests := []struct {
		name    string
		configs []extension.Config
		cancel  bool
		summary string
		by, why string
	}{
		{"no opinion", []extension.Config{says("a", `{"cancel":false,"summary":null}`)}, false, "", "", ""},
		{"a summary", []extension.Config{says("b", `{"summary":"short\u0000"}`), says("a", `{}`)}, false, `short\x00`, "b", ""},
		{"the same twice", []extension.Config{says("b", `{"summary":"s"}`), says("a", `{"summary":"s"}`)}, false, "s", "a b", ""},
		{"two different", []extension.Config{says("b", `{"summary":"s"}`), says("a", `{"summary":"t"}`)}, false, "", "", `the extensions "a", "b" gave different summaries`},
		{"two of three differ", []extension.Config{says("b", `{"summary":"s"}`), says("a", `{"summary":"t"}`), says("c", `{"summary":"s"}`)}, false, "", "", "different summaries"},
		{"cancel wins", []extension.Config{says("a", `{"summary":"s"}`), says("b", `{"cancel":true,"reason":"keep it"}`)}, true, "", "b", "keep it"},
		{"cancel and summary in one", []extension.Config{says("a", `{"summary":"s","cancel":true}`)}, true, "", "a", `"a" cancelled the compaction and gave no reason`},
		{"a blank summary", []extension.Config{says("a", `{"summary":" \n"}`), says("b", `{"summary":"s"}`)}, false, "s", "b", ""},
		{"a large summary", []extension.Config{fakeExt(t, "a", actions{"before_compact": "@summary 1048577"})}, false, "", "", ""},
		{"the largest", []extension.Config{fakeExt(t, "a", actions{"before_compact": "@summary 1048576"})}, false, strings.Repeat("s", 1<<20), "a", ""},
		{"dead, skip", []extension.Config{dead(extension.Skip), says("b", `{"summary":"s"}`)}, false, "s", "b", ""},
		{"dead, ask", []extension.Config{dead(extension.AskPerson), says("b", `{"summary":"s"}`)}, true, "", "dead", `its on_failure is "ask"`},
		{"dead, block", []extension.Config{dead(extension.Block)}, true, "", "dead", `its on_failure is "block"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := start(t, nil, tt.configs...).BeforeCompact(context.Background(), main1(), history())
			summary := ""
			if got.Summary != nil {
				summary = *got.Summary
			}
			if got.Cancel != tt.cancel || summary != tt.summary || strings.Join(got.By, " ") != tt.by || !strings.Contains(got.Reason, tt.why) || (tt.why == "") != (got.Reason == "") {
				t.Errorf("got %+v with summary %.60q of %d bytes", got, summary, len(summary))
			}
		})
	}
}

// TestStates holds all that a list of the extensions shows.
func TestStates(t *testing.T) {
	t.Parallel()
	clock := time.Unix(0, 0)
	h, err := extension.Start(context.Background(), []extension.Config{
		with(fakeExt(t, "b", actions{"list_tools": oneTool, "invoke_tool": `{"result":"r"}`}), func(c *extension.Config) { c.OnFailure = extension.Block }),
		with(fakeExt(t, "a", actions{"start": "@exit 3"}), func(c *extension.Config) { c.Events = []string{"context", "turn_end"} }),
	}, extension.Options{Now: func() time.Time { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	h.PromptSubmit(context.Background(), main1(), "x")
	invoke(t, context.Background(), h, "t", `{}`)
	got := h.States()
	if got[0].Pid <= 0 || got[0].ToolPid <= 0 || got[1].Pid != 0 {
		t.Errorf("processes of %+v", got)
	}
	got[0].Pid, got[0].ToolPid = 0, 0
	want := []extension.State{
		{Name: "b", State: "started", OnFailure: "block", Tools: []string{"t"}, Calls: 2, ToolCalls: 1},
		{Name: "a", State: "dead", OnFailure: "skip", Events: []string{"context", "turn_end"}, Calls: 1, LastError: "the process ended: exit code 3"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("states (-want +got):\n%s", d)
	}
	h.Close()
	if s := h.States(); s[0].State != extension.StateEnded || s[1].State != extension.StateDead {
		t.Errorf("after Close: %+v", s)
	}
}

func TestSubscribes(t *testing.T) {
	t.Parallel()
	only := func(name string, f extension.OnFailure, on actions, events ...string) extension.Config {
		return with(fakeExt(t, name, on), func(c *extension.Config) { c.OnFailure, c.Events = f, events })
	}
	dead := actions{"start": "@exit 1"}
	h := start(t, nil,
		only("alive", extension.Skip, nil, "context"), only("stands aside", extension.Skip, dead, "turn_end"),
		only("still counts", extension.Block, dead, "before_compact"), only("asks", extension.AskPerson, dead, "user_prompt_submit"),
	)
	for ev, want := range map[string]bool{
		"context": true, "turn_end": false, "before_compact": true, "user_prompt_submit": true, "tool_call": false, "no such event": false,
	} {
		if got := h.Subscribes(ev); got != want {
			t.Errorf("Subscribes(%q) = %v", ev, got)
		}
	}
	all := start(t, nil, fakeExt(t, "a", nil))
	for _, ev := range extension.Events() {
		if !all.Subscribes(ev) {
			t.Errorf("an extension without events isn't subscribed to %s", ev)
		}
	}
	if (&extension.Host{}).Subscribes("context") {
		t.Error("a host without extensions says yes")
	}
}
