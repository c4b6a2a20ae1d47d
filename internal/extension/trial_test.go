package extension_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/strictjson"
)

// try runs Test.
func try(t *testing.T, cfg extension.Config, o extension.TestOptions) *extension.Report {
	t.Helper()
	rep, err := extension.Test(context.Background(), cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// sessionOrder is the order in which Test sends the events.
func sessionOrder() []string {
	return []string{
		"list_tools", "session_start", "user_prompt_submit", "before_agent_start", "context", "tool_call", "permission_request",
		"tool_result", "invoke_tool", "before_compact", "notification", "subagent_end", "turn_end", "session_end",
	}
}

func eventsOf(rep *extension.Report) []string {
	var out []string
	for _, x := range rep.Exchanges {
		out = append(out, x.Event)
	}
	return out
}

func TestTestSendsEveryEvent(t *testing.T) {
	t.Parallel()
	rep := try(t, fakeExt(t, "a", actions{"list_tools": oneTool, "invoke_tool": `{"result":"r"}`, "tool_call": `{"log":"seen"}`}), extension.TestOptions{})
	if d := cmp.Diff(sessionOrder(), eventsOf(rep)); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	all, sent := extension.Events(), eventsOf(rep)
	slices.Sort(all)
	slices.Sort(sent)
	if !slices.Equal(all, sent) {
		t.Errorf("the protocol has %v, Test sends %v", all, sent)
	}
	if len(rep.Findings) > 0 || rep.Name != "a" || !slices.Equal(rep.Tools, []string{"t"}) {
		t.Errorf("got %+v", rep)
	}
	for _, x := range rep.Exchanges {
		if !x.Subscribed || x.Received == "" || x.Took <= 0 || strictjson.Check([]byte(x.Sent), strictjson.Options{}) != nil {
			t.Errorf("exchange %+v", x)
		}
		if !strings.HasPrefix(x.Sent, `{"event":"`+x.Event+`","session_id":"ext-test","seq":`) {
			t.Errorf("%s sent %s", x.Event, x.Sent)
		}
		if (x.Event == "tool_call") != slices.Equal(x.Notes, []string{"seen"}) {
			t.Errorf("%s: notes %q", x.Event, x.Notes)
		}
	}
	if i := slices.Index(eventsOf(rep), "invoke_tool"); !strings.Contains(rep.Exchanges[i].Sent, `"tool":"t","args":{"id":"sample","n":1}`) {
		t.Errorf("invoke_tool sent %s", rep.Exchanges[i].Sent)
	}
}

func TestTestFinds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		on     actions
		events []string
		event  string // of the only finding; "-" for none at all
		want   string
	}{
		{"wrong type", actions{"user_prompt_submit": `{"block":"yes"}`}, nil, "user_prompt_submit", `"block" can't be used: found a string, expected a boolean`},
		{"death", actions{"context": "@stderr a traceback && @exit 3"}, nil, "context", "it is dead: exit: the process ended: exit code 3; its standard error ended with: a traceback"},
		{"no JSON", actions{"tool_result": "ok"}, nil, "tool_result", `the reply starts with "ok`},
		{"no effect there", actions{"permission_request": `{"ask":true}`}, nil, "permission_request", `has "ask", which has no effect there`},
		{"allow", actions{"tool_call": `{"allow":true}`}, nil, "tool_call", `so there is no "allow"`},
		{"near miss", actions{"before_compact": `{"cancle":true}`}, nil, "before_compact", `"cancle" is one edit away from "cancel"`},
		{"bad index", actions{"context": `{"keep":[0,9]}`}, nil, "context", "its keep names 9, which is no message's index; there were 5 messages"},
		{"wrong number", actions{"turn_end": "@seq 1"}, nil, "turn_end", "out_of_step"},
		{"two replies", actions{"session_end": `@raw "{}\n{}\n"`}, nil, "session_end", "which answers no request"},
		{"an endless rewrite", actions{"tool_call": "@more command x"}, nil, "tool_call", `its rewrite isn't idempotent: asked about the arguments that it had made itself, it changed them again, to {"command":"go test ./...xx"`},
		{"an endless result", actions{"tool_result": "@append x"}, nil, "tool_result", "its rewrite isn't idempotent: shown the result that it had made itself"},
		{"a rewrite", actions{"tool_call": "@set command ls", "tool_result": "@replace AKIA [key]"}, nil, "-", ""},
		{"a tool that is no tool", actions{"list_tools": `{"tools":[{"name":"x"}]}`}, nil, "list_tools", "it has no schema"},
		{"a tool's name is taken", actions{"list_tools": `{"tools":[{"name":"bash","schema":{"type":"object"}}]}`}, nil, "list_tools", "the name of a tool that exists already"},
		{"a tool without a result", actions{"list_tools": oneTool}, nil, "invoke_tool", "answered without a result"},
		{"every field in its place", actions{
			"user_prompt_submit": `{"block":true,"reason":"r","log":"l"}`, "before_agent_start": `{"system":"s"}`, "context": `{"keep":[4,0]}`,
			"tool_call": `{"block":true,"ask":true,"reason":"r"}`, "permission_request": `{"block":true}`, "tool_result": `{"content":"c","is_error":true}`,
			"before_compact": `{"cancel":true,"summary":"s"}`, "list_tools": oneTool, "invoke_tool": `{"content":"","is_error":true}`, "turn_end": `{"log":"l"}`,
		}, nil, "-", ""},
		{"no tool, no result", nil, nil, "-", ""},
		{"dead at an event that it never gets", actions{"context": "@exit 3"}, []string{"tool_call"}, "-", ""},
		{"an event that it never gets", actions{"context": `{"block":true}`}, []string{"tool_call"}, "-", ""},
		{"dead from the start", actions{"start": "@exit 4"}, nil, "list_tools", "exit code 4"},
		{"doesn't end", actions{"session_end": `{} && @hang`}, nil, "", "goes on running for more than 1s after its standard input was closed: killed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg := with(fakeExt(t, "a", tt.on), func(c *extension.Config) { c.Events = tt.events })
			rep := try(t, cfg, extension.TestOptions{Taken: []string{"bash"}})
			if tt.event == "-" {
				if len(rep.Findings) > 0 {
					t.Errorf("findings %+v", rep.Findings)
				}
			} else if len(rep.Findings) == 0 || rep.Findings[0].Event != tt.event || !strings.Contains(rep.Findings[0].Text, tt.want) {
				t.Errorf("findings %+v, want one of %q with %q", rep.Findings, tt.event, tt.want)
			}
			for _, f := range rep.Findings[min(len(rep.Findings), 1):] {
				if f.Event == rep.Findings[0].Event && f.Event != "invoke_tool" {
					continue // the same thing in other words
				}
				t.Errorf("also %+v", f)
			}
			if tt.event != "list_tools" && len(rep.Exchanges) < len(sessionOrder()) {
				t.Errorf("only %v were sent", eventsOf(rep))
			}
		})
	}
}

func TestTestTimeout(t *testing.T) {
	t.Parallel()
	cfg := with(fakeExt(t, "a", actions{"list_tools": oneTool, "tool_call": "@hang", "invoke_tool": "@hang", "session_end": `{"blok":1}`}), func(c *extension.Config) {
		c.Timeout, c.InvokeTimeout = 2*time.Second, 300*time.Millisecond
	})
	rep := try(t, cfg, extension.TestOptions{})
	var got []string
	for _, f := range rep.Findings {
		got = append(got, f.Event)
	}
	if d := cmp.Diff([]string{"tool_call", "invoke_tool", "invoke_tool", "session_end"}, got); d != "" {
		t.Errorf("findings %+v (-want +got):\n%s", rep.Findings, d)
	}
	x := rep.Exchanges[slices.Index(eventsOf(rep), "tool_call")]
	if x.Received != "" || x.Took < 2*time.Second || x.Sent == "" {
		t.Errorf("exchange %+v", x)
	}
	if d := cmp.Diff(sessionOrder(), eventsOf(rep)); d != "" { // it was started anew for the others
		t.Errorf("events (-want +got):\n%s", d)
	}
}

func TestTestOptions(t *testing.T) {
	t.Parallel()
	rep := try(t, fakeExt(t, "a", actions{"list_tools": oneTool}), extension.TestOptions{NoInvoke: true, Tool: "write", Args: []byte(`{"path":"a"}`)})
	if slices.Contains(eventsOf(rep), "invoke_tool") || len(rep.Findings) > 0 {
		t.Errorf("the tool was run: %+v", rep)
	}
	if x := rep.Exchanges[5]; !strings.HasSuffix(x.Sent, `"tool":"write","args":{"path":"a"},"round":1}`) {
		t.Errorf("sent %s", x.Sent)
	}
	var fault *extension.StartError
	if rep, err := extension.Test(context.Background(), extension.Config{Name: "a"}, extension.TestOptions{}); !errors.As(err, &fault) || rep == nil {
		t.Errorf("no command: %v", err)
	}
	for _, args := range []string{`[]`, `{`, `{"a":1,"a":2}`} {
		if _, err := extension.Test(context.Background(), fakeExt(t, "a", nil), extension.TestOptions{Args: []byte(args)}); err == nil {
			t.Errorf("arguments %s were taken", args)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	rep, err := extension.Test(ctx, fakeExt(t, "a", actions{"session_start": "@hang"}), extension.TestOptions{})
	if !errors.Is(err, context.DeadlineExceeded) || len(rep.Exchanges) > 2 {
		t.Errorf("interrupted: %v, %+v", err, rep)
	}
}

func TestTestProgramThatIsNotThere(t *testing.T) {
	t.Parallel()
	rep := try(t, extension.Config{Name: "a", Command: "/nowhere/program"}, extension.TestOptions{})
	if len(rep.Findings) != 1 || !strings.Contains(rep.Findings[0].Text, "it is dead: start: ") || len(rep.Exchanges) != 1 {
		t.Errorf("got %+v", rep)
	}
}
