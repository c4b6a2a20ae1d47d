package hookd_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/hookd"
)

// TestAnIDUsedAgain holds that the answer to one call is none to another that has its id:
// some providers of models count from zero in each message.
func TestAnIDUsedAgain(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	w.register(w.document(hook{mode: "notice", policy: "fail-closed", events: `["tool.before","tool.after"]`}))
	event := func(native, tool, cwd, result string) []byte {
		return fmt.Appendf(nil, `{"session_id":"s","turn_id":"u","cwd":%q,"hook_event_name":%q,"model":"m","permission_mode":"default","tool_name":%q,"tool_input":{"command":"x"},"tool_use_id":"call_0"%s}`, cwd, native, tool, result)
	}
	for i, data := range [][]byte{
		event("PreToolUse", "Bash", w.home, ""), event("PreToolUse", "apply_patch", w.home, ""), event("PreToolUse", "Bash", "/", ""),
		event("PostToolUse", "Bash", w.home, `,"tool_response":"one"`), event("PostToolUse", "Bash", w.home, `,"tool_response":"two"`),
	} {
		for range 2 { // the second is the same delivery
			w.do(hookd.Call{Host: "codex", Data: data})
		}
		if n := strings.Count(w.noted(), "asked"); n != i+1 {
			t.Fatalf("after %s the backend was asked %d times, expected %d", data, n, i+1)
		}
	}
}

// TestALineOfAnotherScope holds that what a line lets pass is judged anew for one that is
// stricter: an administrator's may come second.
func TestALineOfAnotherScope(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	w.register(w.document(hook{mode: "allow", policy: "fail-closed"}))
	event := fmt.Appendf(nil, `{"session_id":"s","turn_id":"u","cwd":%q,"hook_event_name":"PreToolUse","model":"m","permission_mode":"default","tool_name":"Bash","tool_input":{"command":"echo > ~/.codex/hooks.json"},"tool_use_id":"c"}`, w.home)
	if a := w.do(hookd.Call{Host: "codex", Data: event, Unprotected: true}); a.Code != hookd.ExitPass {
		t.Errorf("without protection: %d %q", a.Code, a.Stderr)
	}
	if a := w.do(hookd.Call{Host: "codex", Data: event}); a.Code != hookd.ExitDeny || !strings.Contains(string(a.Stderr), hookd.SelfProtection) {
		t.Errorf("with protection: %d %q", a.Code, a.Stderr)
	}
	write(t, filepath.Join(w.home, ".config", "ahp", "registration.json"), "{")
	broken := []byte(strings.Replace(string(event), `"c"}`, `"d"}`, 1))
	if a := w.do(hookd.Call{Host: "codex", Data: broken, Open: true}); a.Code != hookd.ExitPass {
		t.Errorf("on-missing allow: %d %q", a.Code, a.Stderr)
	}
	if a := w.do(hookd.Call{Host: "codex", Data: broken}); a.Code != hookd.ExitDeny {
		t.Errorf("on-missing deny: %d %q", a.Code, a.Stderr)
	}
}
