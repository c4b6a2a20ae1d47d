package hosts_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

// payloads calls f with each sample of a folder.
func payloads(t *testing.T, folder string, f func(name string, data []byte)) {
	files, err := filepath.Glob(filepath.Join(require.Shared(t), "samples", folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no samples of %s: %v", folder, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		f(folder+"/"+filepath.Base(file), data)
	}
}

// all are the markers of every host.
func all() map[string]string {
	out := map[string]string{}
	for _, m := range hosts.Markers() {
		out[m] = "1"
	}
	return out
}

// TestRecogniseByPayload: what another agent sends to a line in Claude Code's files is
// known with and without its variables, and Claude Code's own is, whatever variables it
// was started with.
func TestRecogniseByPayload(t *testing.T) {
	t.Parallel()
	if len(all()) < 2 {
		t.Fatalf("the markers are %v", hosts.Markers())
	}
	named := hosts.Lookup("claude-code")
	for folder, want := range map[string]string{
		"claude": "claude-code", "copilot-pascal": "copilot", "vscode-copilot": "vscode", "cursor": "cursor", "continue": "continue",
	} {
		payloads(t, folder, func(name string, data []byte) {
			if got := hosts.Recognise(named, data, nil); got == nil || got.Name != want {
				t.Errorf("%s: found %v, expected %s", name, got, want)
			}
			if folder == "continue" { // a variable decides where an empty path is all there is
				return
			}
			if got := hosts.Recognise(named, data, all()); got == nil || got.Name != want {
				t.Errorf("%s, with every marker: found %v, expected %s", name, got, want)
			}
		})
	}
}

// TestRecogniseInCopilotsFiles: VS Code runs those too, and Copilot's own events stay its.
func TestRecogniseInCopilotsFiles(t *testing.T) {
	t.Parallel()
	named := hosts.Lookup("copilot")
	for folder, want := range map[string]string{"copilot": "copilot", "copilot-cli": "copilot", "copilot-pascal": "copilot", "vscode-copilot": "vscode"} {
		payloads(t, folder, func(name string, data []byte) {
			if got := hosts.Recognise(named, data, all()); got.Name != want {
				t.Errorf("%s: found %s, expected %s", name, got.Name, want)
			}
		})
	}
}

// TestRecogniseByMarker: a payload without a member of anybody's own.
func TestRecogniseByMarker(t *testing.T) {
	t.Parallel()
	named := hosts.Lookup("claude-code")
	plain := `{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/repo","tool_name":"Bash","tool_input":{"command":"ls","timestamp":1,"conversation_id":"c"}`
	for marker, want := range map[string]string{"": "claude-code", "COPILOT_CLI": "copilot", "CURSOR_VERSION": "cursor", "NONESUCH": "claude-code"} {
		for text, want := range map[string]string{plain + `}`: want, plain + `,"transcript_path":"/t.jsonl"}`: "claude-code"} {
			if got := hosts.Recognise(named, []byte(text), map[string]string{marker: "1"}); got.Name != want {
				t.Errorf("%s with %q: found %s, expected %s", text, marker, got.Name, want)
			}
		}
	}
}

// TestClaudeCodeWithATime: Claude Code's own events stay its own if it adds a member that
// Copilot has: a request for permission is refused otherwise in each of them.
func TestClaudeCodeWithATime(t *testing.T) {
	t.Parallel()
	payloads(t, "claude", func(name string, data []byte) {
		with := append([]byte(`{"timestamp":"2026-11-30T12:00:00Z",`), data[strings.IndexByte(string(data), '{')+1:]...)
		if !strings.Contains(name, "PermissionRequest") {
			return
		}
		if got := hosts.Recognise(hosts.Lookup("claude-code"), with, all()); got.Name != "claude-code" {
			t.Errorf("%s: found %s", name, got.Name)
		}
	})
}

// TestRecogniseNothing: what can't be read is the named host's to refuse, and a line of
// any other host has no guests.
func TestRecogniseNothing(t *testing.T) {
	t.Parallel()
	named := hosts.Lookup("claude-code")
	for _, text := range []string{"", " \n", "\xef\xbb\xbf", "null", "[]", "7", `{"timestamp":1`, `{"timestamp":1,"timestamp":2}`, `{"sessionId":"\ud800"}`, "junk\n{}"} {
		if got := hosts.Recognise(named, []byte(text), all()); got != named {
			t.Errorf("%q: found %s, expected the named host", text, got.Name)
		}
	}
	for _, h := range hosts.All() {
		if h.Name == "claude-code" {
			continue
		}
		if got := hosts.Recognise(h, []byte(`{"timestamp":1,"sessionId":"s","cursor_version":"2"}`), all()); got != h {
			t.Errorf("a line of %s is served as %s", h.Name, got.Name)
		}
	}
	if hosts.Recognise(nil, []byte(`{}`), nil) != nil {
		t.Error("a host is made up")
	}
}

// TestGuestsBlockThroughTheNamedWrapper: the wrapper can print an answer with exit code 0,
// or deliver a refusal as the named host has it, and no third thing.
func TestGuestsBlockThroughTheNamedWrapper(t *testing.T) {
	t.Parallel()
	for _, line := range []struct{ named, folders string }{
		{"claude-code", "copilot-pascal vscode-copilot cursor continue"}, {"copilot", "vscode-copilot"},
	} {
		named := hosts.Lookup(line.named)
		for folder := range strings.FieldsSeq(line.folders) {
			refusals := 0
			payloads(t, folder, func(name string, data []byte) {
				h := hosts.Recognise(named, data, nil)
				e, err := hosts.Read(h, adapter.Input{Data: data})
				if err != nil {
					t.Errorf("%s can't be read by %s: %v", name, h.Name, err)
					return
				}
				if e.Row.Denies() {
					refusals++
					blocks(t, name, named, h, e)
					blocks(t, name, named, h, &adapter.Event{Row: e.Row})
				}
			})
			if refusals == 0 {
				t.Errorf("no sample of %s can be refused: nothing was tried", folder)
			}
		}
	}
}

// blocks holds that a refusal of e by h gets through named's wrapper.
func blocks(t *testing.T, name string, named, h *adapter.Host, e *adapter.Event) {
	const reason = "policy X: no"
	text, err := h.Write(e, &adapter.Verdict{Deny: reason})
	d := h.Delivery(e.Row)
	answer := d == adapter.Delivery{Exit: 0, Stream: adapter.Stdout}
	switch {
	case err != nil:
		t.Errorf("%s: %v", name, err)
	case !answer && d.Exit != named.Deny.Exit: // the words go where the wrapper puts them; the code blocks
		t.Errorf("%s is refused by %+v, which the wrapper of %s has no word for", name, d, named.Name)
	case !answer && string(text) != reason:
		t.Errorf("%s is refused with %q on %s", name, text, d.Stream)
	case answer && !refuses(e.Row, text):
		t.Errorf("%s is answered with %s, which isn't known to block", name, text)
	}
}

// refuses reports whether a document has what is known to block at an event.
func refuses(r *adapter.Row, text []byte) bool {
	var a struct {
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
		Behavior string `json:"behavior"`
		Message  string `json:"message"`
		Continue *bool  `json:"continue"`
		Stop     string `json:"stopReason"`
		Specific struct {
			Event      string `json:"hookEventName"`
			Permission string `json:"permissionDecision"`
			Reason     string `json:"permissionDecisionReason"`
		} `json:"hookSpecificOutput"`
	}
	if strictjson.Unmarshal(text, &a, strictjson.Options{RejectUnknown: true}) != nil {
		return false
	}
	switch r.Type {
	case ahp.ToolBefore:
		return a.Specific.Event == "PreToolUse" && a.Specific.Permission == "deny" && a.Specific.Reason != ""
	case ahp.ToolPermissionRequest:
		return a.Behavior == "deny" && a.Message != ""
	}
	return a.Decision == "block" && a.Reason != "" || a.Continue != nil && !*a.Continue && a.Stop != ""
}

// TestGuestsAskForNothingElse: what a guest isn't known to read is never said to it.
func TestGuestsAskForNothingElse(t *testing.T) {
	t.Parallel()
	named := hosts.Lookup("claude-code")
	payloads(t, "cursor", func(name string, data []byte) {
		h := hosts.Recognise(named, data, nil)
		e, err := hosts.Read(h, adapter.Input{Data: data})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		adaptertest.Complete(e.AHP)
		c := e.Row.Capabilities(0)
		if c == nil {
			return
		}
		for _, effect := range c.Effects {
			if effect != ahp.EffectDeny && effect != ahp.EffectAsk && effect != ahp.EffectModify {
				t.Errorf("%s offers %s", name, effect)
			}
		}
		for _, one := range adaptertest.Cases(e) {
			v := adapter.Settle(e, one.Outcome, adaptertest.Texts())
			text, err := h.Write(e, v)
			if err != nil || v.Deny == "" && len(strings.TrimSpace(string(text))) > 0 {
				t.Errorf("%s, %s: says %q, %v", name, one.Name, text, err)
			}
		}
	})
}
