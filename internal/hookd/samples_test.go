package hookd_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/require"
)

// TestRecordedEvents holds that a recorded event of a real agent is judged, and not
// answered by policy: with a backend that has no objection every one passes, and with
// one that denies each call before a tool is refused, in the host's own form.
func TestRecordedEvents(t *testing.T) {
	samples := filepath.Join(require.Shared(t), "samples")
	for host, folder := range map[string]string{
		"claude-code": "claude", "codex": "codex", "gemini": "gemini", "qwen": "qwen", "crush": "crush", "copilot": "copilot", "cursor": "cursor", "droid": "droid",
		"goose": "goose", "cline": "cline", "kiro": "kiro-cli", "windsurf": "windsurf", "openhands": "openhands", "kimi": "kimi", "auggie": "auggie", "continue": "continue",
	} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			yes, no := newWorld(t, hookd.Options{}), newWorld(t, hookd.Options{})
			yes.register(yes.document(hook{mode: "allow", policy: "fail-closed"}, hook{mode: "allow", events: `["*"]`}))
			no.register(no.document(hook{mode: "deny", policy: "fail-closed"}))
			files, err := filepath.Glob(filepath.Join(samples, folder, "*.json"))
			if err != nil || len(files) == 0 {
				t.Fatal(files, err)
			}
			judged, refused := 0, 0
			for i, file := range files {
				native, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".json"), ".")
				native, _, _ = strings.Cut(native, "-")
				h := hosts.Lookup(host)
				row := h.Row(native)
				if row == nil {
					continue // an event that AHP isn't installed on
				}
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				call := hookd.Call{Host: host, Native: native, Data: data}
				before := len(yes.log())
				if a := yes.do(call); a.Code != hookd.ExitPass {
					t.Errorf("%s: %d %q %q", file, a.Code, a.Stdout, a.Stderr)
				}
				for _, e := range yes.log()[before:] {
					if e.Problem != "" {
						t.Errorf("%s: %s", file, e.Problem)
					}
				}
				judged++
				if row.Type != "tool.before" || !row.Denies() {
					continue
				}
				call.Data = distinct(data, i)
				a := no.do(call)
				if said := string(a.Stdout) + said(a); a.Code == hookd.ExitPass || !strings.Contains(said, "not in this house") {
					t.Errorf("%s: %d %q isn't a refusal", file, a.Code, said)
				}
				if e := no.last(); e.Decision != hooklog.Deny || e.Tool == "" || e.Call == "" {
					t.Errorf("%s: in the log: %+v", file, e)
				}
				refused++
			}
			if judged == 0 || refused == 0 {
				t.Errorf("%d events were judged and %d calls refused, expected some of both", judged, refused)
			}
		})
	}
}

// distinct puts an event into a session of its own, so that no call is a repeated one.
func distinct(data []byte, n int) []byte {
	var m map[string]json.RawMessage
	if json.Unmarshal(data, &m) != nil {
		return data
	}
	for _, name := range []string{"session_id", "sessionId", "conversation_id", "trajectory_id", "taskId"} {
		if m[name] != nil {
			m[name] = json.RawMessage(fmt.Sprintf("%q", fmt.Sprint("session-", n)))
		}
	}
	out, err := json.Marshal(m)
	if err != nil {
		return data
	}
	return out
}

// TestTheSameEventTwice: a host that runs the hooks of two of its files asks twice about
// one call, and the backends hear of it once.
func TestTheSameEventTwice(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	w.register(w.document(hook{mode: "deny", policy: "fail-closed"}))
	event := func(id, command string) []byte {
		return fmt.Appendf(nil, `{"session_id":"s","turn_id":"u","cwd":%q,"hook_event_name":"PreToolUse","model":"m","permission_mode":"default","tool_name":"Bash","tool_input":{"command":%q},"tool_use_id":%q}`, w.home, command, id)
	}
	answers := make(chan hookd.Answer, 4)
	for range 4 {
		go func() { answers <- w.do(hookd.Call{Host: "codex", Data: event("c1", "echo hi")}) }()
	}
	for range 4 {
		if a := <-answers; a.Code != hookd.ExitDeny || !strings.Contains(said(a), "not in this house") {
			t.Errorf("%d %q", a.Code, said(a))
		}
	}
	if n := strings.Count(w.noted(), "asked"); n != 1 {
		t.Errorf("the backend was asked %d times, expected once", n)
	}
	w.do(hookd.Call{Host: "codex", Data: event("c2", "echo hi")})
	w.do(hookd.Call{Host: "codex", Data: event("c2", "echo ho")}) // another input under the same id is another call
	if n := strings.Count(w.noted(), "asked"); n != 3 {
		t.Errorf("the backend was asked %d times, expected 3 times", n)
	}
}

// TestMadeUpIDs: a host that gives calls no id gets one, which is the same before and
// after the call, and another for another call.
func TestMadeUpIDs(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	w.register(w.document(hook{mode: "notice", policy: "fail-closed", events: `["tool.before","tool.after"]`}))
	event := func(native, command, more string) []byte {
		return fmt.Appendf(nil, `{"session_id":"s","cwd":%q,"hook_event_name":%q,"timestamp":"2026-11-30T11:33:57.154Z","tool_name":"run_shell_command","tool_input":{"command":%q}%s}`, w.home, native, command, more)
	}
	result := `,"tool_response":{"llmContent":"x","returnDisplay":"x"}`
	var ids []string
	for _, data := range [][]byte{event("BeforeTool", "a", ""), event("BeforeTool", "b", ""), event("BeforeTool", "a", ""), event("AfterTool", "b", result), event("AfterTool", "a", result), event("AfterTool", "a", result)} {
		w.do(hookd.Call{Host: "gemini", Data: data})
		e := w.last()
		if !e.CallSynthesized || e.Problem != "" {
			t.Fatalf("%+v", e)
		}
		ids = append(ids, e.Call)
	}
	w.register(w.document(hook{mode: "deny", policy: "fail-closed"}))
	w.do(hookd.Call{Host: "gemini", Data: event("BeforeTool", "c", "")}) // refused: nothing comes after it
	w.register(w.document(hook{mode: "notice", policy: "fail-closed", events: `["tool.before","tool.after"]`}))
	w.do(hookd.Call{Host: "gemini", Data: event("BeforeTool", "c", "")})
	ran := w.last().Call
	w.do(hookd.Call{Host: "gemini", Data: event("AfterTool", "c", result)})
	if after := w.last().Call; after != ran {
		t.Errorf("the call that ran has the id %s before and %s after", ran, after)
	}
	if ids[0] == ids[1] || ids[0] == ids[2] || ids[3] != ids[1] || ids[4] != ids[0] || ids[5] != ids[2] {
		t.Errorf("%q", ids)
	}
}

// TestAnotherHostRunsTheLine: Copilot runs the hooks of Claude Code's files, and takes a
// refusal with its reason from standard output alone.
func TestAnotherHostRunsTheLine(t *testing.T) {
	samples := filepath.Join(require.Shared(t), "samples")
	data, err := os.ReadFile(filepath.Join(samples, "copilot-pascal", "PreToolUse.Bash.json"))
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, hookd.Options{})
	w.register(w.document(hook{mode: "deny", policy: "fail-closed"}))
	a := w.do(hookd.Call{Data: data, Markers: map[string]string{"COPILOT_CLI": "1"}})
	if a.Code != hookd.ExitDeliver || len(a.Stderr) > 0 || !strings.Contains(string(a.Stdout), `"deny"`) || !strings.Contains(string(a.Stdout), "not in this house") {
		t.Errorf("%d %q %q", a.Code, a.Stdout, a.Stderr)
	}
	if e := w.last(); e.Host != "copilot" {
		t.Errorf("the log says that %s asked", e.Host)
	}
}

// TestAnUnreadableEndIsNoRefusal: where the end of a turn can't be read, a refusal would
// have the agent go on, and come to its end again, for ever.
func TestAnUnreadableEndIsNoRefusal(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	w.register(w.document(hook{mode: "allow", policy: "fail-closed"}))
	for _, host := range []string{"claude-code", "codex", "droid"} {
		for _, native := range []string{"Stop", "SubagentStop", "PreToolUse"} {
			want := hookd.ExitPass
			if native == "PreToolUse" {
				want = hookd.ExitDeny
			}
			if a := w.do(hookd.Call{Host: host, Data: fmt.Appendf(nil, `{"session_id":"s","hook_event_name":%q,"x":`, native)}); a.Code != want {
				t.Errorf("%s %s: %d %q", host, native, a.Code, said(a))
			}
		}
	}
}
