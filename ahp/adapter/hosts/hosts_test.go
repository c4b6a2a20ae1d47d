package hosts_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/hosts"
)

// order is that of the first release.
const order = "claude-code codex gemini qwen opencode kilo pi crush copilot cursor droid goose cline kiro windsurf openhands kimi auggie continue"

func TestHostsAreOrderedAndComplete(t *testing.T) {
	t.Parallel()
	var names []string
	for _, h := range hosts.All() {
		names = append(names, h.Name)
		if found := hosts.Lookup(h.Name); found == nil || found.Name != h.Name {
			t.Errorf("%s isn't found by its name", h.Name)
		}
	}
	if got := strings.Join(names, " "); got != order {
		t.Errorf("the hosts are\n%s\nexpected\n%s", got, order)
	}
	if hosts.Lookup("nonesuch") != nil || hosts.Lookup("") != nil {
		t.Error("a host is found that isn't there")
	}
}

// What one caller does to a host is no other's.
func TestHostsAreTheCallers(t *testing.T) {
	t.Parallel()
	h := hosts.Lookup("claude-code")
	h.Rows[0].Can = nil
	if hosts.Lookup("claude-code").Rows[0].Can == nil {
		t.Error("a change of one host is seen by the next caller")
	}
}

func TestReadAddsTheKind(t *testing.T) {
	t.Parallel()
	h := hosts.Lookup("claude-code")
	for tool, kind := range map[string]string{"Bash": "shell", "Write": "file_write", "Edit": "file_edit", "Read": "file_read", "mcp__a__b": "mcp", "Nonesuch": "other"} {
		e, err := hosts.Read(h, adapter.Input{Data: []byte("\xef\xbb\xbf {\"session_id\":\"s\",\"cwd\":\"/repo\",\"hook_event_name\":\"PreToolUse\",\"tool_name\":\"" + tool + "\",\"tool_input\":{},\"tool_use_id\":\"1\"}\n")})
		if err != nil {
			t.Errorf("%s: %v", tool, err)
			continue
		}
		if e.AHP.Tool.Kind != kind {
			t.Errorf("%s is of the kind %q, expected %q", tool, e.AHP.Tool.Kind, kind)
		}
	}
}

// An empty event is read by none: nothing may be concluded from it.
func TestNothingIsNoEvent(t *testing.T) {
	t.Parallel()
	for _, h := range hosts.All() {
		for _, data := range []string{"", "\n", "\xef\xbb\xbf", "null", "{}", "[]", `"x"`, "7", "PreToolUse"} {
			if e, err := hosts.Read(h, adapter.Input{Data: []byte(data), Native: h.Rows[0].Native}); err == nil {
				t.Errorf("%s reads %q as %s", h.Name, data, e.AHP.Type)
			}
		}
	}
}

// Every host can refuse a call before it runs, and says so to whoever asks.
func TestEveryHostCanRefuseACall(t *testing.T) {
	t.Parallel()
	for _, h := range hosts.All() {
		calls := slices.DeleteFunc(slices.Clone(h.Rows), func(r adapter.Row) bool { return r.Type != ahp.ToolBefore || !r.Denies() })
		if len(calls) == 0 {
			t.Errorf("%s has no event before a call that can be refused", h.Name)
		}
		for i := range h.Rows {
			r := &h.Rows[i]
			if text := h.Refusal(r.Native, "because"); (len(text) > 0) != r.Denies() {
				t.Errorf("%s: at %s a refusal is %q, and the table says %v", h.Name, r.Native, text, r.Denies())
			}
		}
		if h.Refusal("Nonesuch", "because") != nil || h.Blank("Nonesuch") != nil {
			t.Errorf("%s answers an event that it doesn't have", h.Name)
		}
	}
}
