package hookd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hooklog"
)

// canary is the event of Claude Code for a canary.
func canary(native, tool, id, dir string) []byte {
	return fmt.Appendf(nil, `{"session_id":%q,"cwd":%q,"hook_event_name":%q,"tool_name":%q,"tool_input":{"canary":%q},"tool_use_id":%q,"tool_response":{}}`, id, dir, native, tool, id, id)
}

// TestCanary: an announced canary is answered once, as its name says, whatever the
// policy says, and the log has it under its id.
func TestCanary(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	w.register(w.document(hook{mode: "deny", policy: "fail-closed"}, hook{mode: "allow", events: `["*"]`}))
	for tool, want := range map[string]int{hookd.CanaryDeny: hookd.ExitDeny, hookd.CanaryPass: hookd.ExitPass} {
		id := "canary-" + strings.TrimPrefix(tool, "ahp_canary_") + "-1"
		if _, err := hookd.AnnounceCanary(w.judge.StateDir(), id); err != nil {
			t.Fatal(err)
		}
		if _, err := hookd.AnnounceCanary(w.judge.StateDir(), id); err == nil {
			t.Error("the same canary was announced twice")
		}
		a := w.do(hookd.Call{Data: canary("PreToolUse", tool, id, w.home)})
		e := w.last()
		if a.Code != want || e.ID != id || e.Tool != tool || e.Problem != "" || len(e.Answers) != 1 || e.Answers[0].Backend != hookd.Canary {
			t.Errorf("%s: %d %s, in the log %+v", tool, a.Code, a.Stderr, e)
		}
		if want == hookd.ExitDeny && (!strings.Contains(said(a), hookd.Canary) || e.Decision != hooklog.Deny || e.Reason == "") {
			t.Errorf("%s: %q, in the log %+v", tool, a.Stderr, e)
		}
		if n := w.noted(); n != "" {
			t.Errorf("%s: a backend heard of it: %q", tool, n)
		}
	}
}

// TestACanaryIsNoWayAroundAPolicy: a tool of that name which nobody announced, or which
// was announced for one call, is judged like any other.
func TestACanaryIsNoWayAroundAPolicy(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	w.register(w.document(hook{mode: "deny", policy: "fail-closed"}))
	announce := func(id string) string {
		t.Helper()
		if _, err := hookd.AnnounceCanary(w.judge.StateDir(), id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	refused := func(what string, data []byte) {
		t.Helper()
		if a := w.do(hookd.Call{Data: data}); a.Code != hookd.ExitDeny || !strings.Contains(said(a), "com.example.b0") {
			t.Errorf("%s: %d %q", what, a.Code, said(a))
		}
	}
	refused("not announced", canary("PreToolUse", hookd.CanaryPass, "canary-a", w.home))
	w.do(hookd.Call{Data: canary("PreToolUse", hookd.CanaryPass, announce("canary-b"), w.home)})
	refused("once more", []byte(strings.Replace(string(canary("PreToolUse", hookd.CanaryPass, "canary-b", w.home)), `"tool_use_id":"canary-b"`, `"tool_use_id":"other"`, 1)))
	refused("another tool", canary("PreToolUse", "Bash", announce("canary-c"), w.home))
	old := announce("canary-d")
	past := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(w.judge.StateDir(), "canary", old), past, past); err != nil {
		t.Fatal(err)
	}
	refused("announced long ago", canary("PreToolUse", hookd.CanaryPass, old, w.home))
	after := announce("canary-e")
	w.do(hookd.Call{Data: canary("PostToolUse", hookd.CanaryPass, after, w.home)})
	if _, err := os.Lstat(filepath.Join(w.judge.StateDir(), "canary", after)); err != nil {
		t.Errorf("an event after a call took the canary: %v", err)
	}
	for _, id := range []string{"canary-", "../canary-x", "canary-../x", "canary-X", "x", "canary-" + strings.Repeat("a", 65)} {
		if _, err := hookd.AnnounceCanary(w.judge.StateDir(), id); err == nil {
			t.Errorf("the id %q was announced", id)
		}
	}
}
