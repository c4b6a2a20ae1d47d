package goose_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/goose"
	"github.com/abhed/abhed/internal/require"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestHost(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, goose.Host(), adaptertest.Options{
		Update: *update, Samples: filepath.Join(require.Shared(t), "samples", "goose"), Events: made,
		Event: []string{"event"}, Tool: []string{"tool_name"}, Input: []string{"tool_input"},
		Needed: []string{"event", "session_id"}, CallNeeded: []string{"tool_input"},
		Keys: map[string][]string{
			"Stop": {"decision", "reason"},
		},
	})
}

// made are events in the documented form.
var made = map[string]string{
	"allowed":            `{"event":"PreToolUseResult","session_id":"goose-0001","tool_name":"developer__shell","tool_input":{"command":"ls"},"tool_call_id":"call-1","decision":"allow","policy_evaluated":true}`,
	"unasked":            `{"event":"PreToolUseResult","session_id":"goose-0001","tool_name":"developer__shell","tool_input":{"command":"ls"},"tool_call_id":"call-1","decision":"allow"}`,
	"PostToolUse":        `{"event":"PostToolUse","session_id":"goose-0001","tool_name":"developer__shell","tool_input":{"command":"ls"},"tool_output":"a.txt","working_dir":"/repo","tool_call_id":"call-1"}`,
	"PostToolUseFailure": `{"event":"PostToolUseFailure","session_id":"goose-0001","tool_name":"developer__shell","tool_input":{"command":"ls"},"error":"no such file","working_dir":"/repo","tool_call_id":"call-1"}`,
	"UserPromptSubmit":   `{"event":"UserPromptSubmit","session_id":"goose-0001","message":"do it","working_dir":"/repo"}`,
	"SessionStart":       `{"event":"SessionStart","session_id":"goose-0001","working_dir":"/repo"}`,
	"SessionEnd":         `{"event":"SessionEnd","session_id":"goose-0001","working_dir":"/repo"}`,
	"Stop":               `{"event":"Stop","session_id":"goose-0001","working_dir":"/repo"}`,
}

func TestOnlyAllowIsAPermission(t *testing.T) {
	t.Parallel()
	h := goose.Host()
	for _, word := range []string{"block", "deny", "ALLOW", "ask", "new"} {
		e, err := h.Read(adapter.Input{Data: []byte(`{"event":"PreToolUseResult","session_id":"s","tool_name":"t","tool_input":{},"decision":"` + word + `"}`)})
		if err != nil {
			t.Fatal(err)
		}
		if e.AHP.Decision != "deny" {
			t.Errorf("the decision %q is read as %s", word, e.AHP.Decision)
		}
	}
	if _, err := h.Read(adapter.Input{Data: []byte(`{"event":"PreToolUseResult","session_id":"s","tool_name":"t","tool_input":{}}`)}); err == nil {
		t.Error("a result without a decision is read")
	}
}

func TestEventsThatTellTwiceAreUnknown(t *testing.T) {
	t.Parallel()
	for _, event := range []string{"BeforeReadFile", "AfterFileEdit", "BeforeShellExecution", "AfterShellExecution", "preToolUse"} {
		if _, err := goose.Host().Read(adapter.Input{Data: []byte(`{"event":"` + event + `","session_id":"s","tool_name":"t","tool_input":{}}`)}); err == nil {
			t.Errorf("%s is read", event)
		}
	}
}
