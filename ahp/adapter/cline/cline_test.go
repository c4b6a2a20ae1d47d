package cline_test

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/cline"
	"github.com/abhed/abhed/internal/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const common = `"clineVersion":"3.40.0","timestamp":"1","taskId":"task-1","workspaceRoots":["/repo"],"userId":"u"`

func TestHost(t *testing.T) {
	adaptertest.Run(t, cline.Host(), adaptertest.Options{
		Update: *update, Samples: filepath.Join(require.Shared(t), "samples", "cline"),
		Events: map[string]string{
			"PreToolUse of the extension":  `{"hookName":"PreToolUse",` + common + `,"preToolUse":{"toolName":"execute_command","parameters":{"command":"ls","requires_approval":"false"}}}`,
			"PreToolUse of an MCP tool":    `{"hookName":"PreToolUse",` + common + `,"preToolUse":{"toolName":"use_mcp_tool","parameters":{"server_name":"github","tool_name":"create_issue","arguments":"{\"title\":\"x\"}"}}}`,
			"PreToolUse in a sub-agent":    `{"hookName":"tool_call",` + common + `,"agent_id":"a2","parent_agent_id":"a1","tool_call":{"id":"c1","name":"run_commands","input":{"commands":["ls"]}}}`,
			"PostToolUse of the extension": `{"hookName":"PostToolUse",` + common + `,"postToolUse":{"toolName":"execute_command","parameters":{"command":"ls"},"result":"a.txt","success":false,"executionTimeMs":12}}`,
			"UserPromptSubmit":             `{"hookName":"UserPromptSubmit",` + common + `,"userPromptSubmit":{"prompt":"hello","attachments":[]}}`,
			"TaskResume":                   `{"hookName":"agent_resume",` + common + `,"taskResume":{"taskMetadata":{},"previousState":{}}}`,
			"TaskCancel":                   `{"hookName":"agent_abort",` + common + `,"reason":"user"}`,
			"TaskError":                    `{"hookName":"agent_error",` + common + `,"error":{"name":"Error","message":"no model"}}`,
			"SessionShutdown":              `{"hookName":"session_shutdown",` + common + `,"reason":"exit"}`,
			"PreCompact":                   `{"hookName":"pre_compact",` + common + `,"preCompact":{}}`,
		},
		Native: func(sample string) string {
			name, _, _ := strings.Cut(sample, " ")
			name, _, _ = strings.Cut(name, ".")
			return name
		},
		Event: []string{"hookName"},
		Tool:  []string{"tool_call.name", "tool_result.name", "preToolUse.toolName", "postToolUse.toolName"},
		Input: []string{"tool_call.input", "tool_result.input", "preToolUse.parameters", "postToolUse.parameters"},
		Keys:  keys("UserPromptSubmit", "PreToolUse", "PostToolUse"), Prefix: "HOOK_CONTROL\t",
		Call: adapter.Call{ID: "call-1", Name: "run_commands", Input: ahp.Raw(`{"command":"rm -rf build","timeout":5}`)},
	})
}

func keys(natives ...string) map[string][]string {
	out := map[string][]string{}
	for _, n := range natives {
		out[n] = []string{"cancel", "errorMessage", "contextModification"}
	}
	return out
}

// TestOtherFile: a file that is given another event's payload must not answer for it.
func TestOtherFile(t *testing.T) {
	call := `{"hookName":"tool_call",` + common + `,"tool_call":{"id":"c","name":"run_commands","input":{}}}`
	for _, native := range []string{"PostToolUse", "TaskStart", "pretooluse", "Nonesuch"} {
		if _, err := cline.Host().Read(adapter.Input{Data: []byte(call), Native: native}); err == nil {
			t.Errorf("a call was read as %s", native)
		}
	}
	if e, err := cline.Host().Read(adapter.Input{Data: []byte(call)}); err != nil || e.Row.Native != "PreToolUse" {
		t.Errorf("a call of which the line says nothing: %v", err)
	}
}

// TestExtension: the extension's documentation knows no line but the document.
func TestExtension(t *testing.T) {
	h := cline.Host()
	e, err := h.Read(adapter.Input{Native: "PreToolUse", Data: []byte(`{"hookName":"PreToolUse",` + common + `,"preToolUse":{"toolName":"execute_command","parameters":{"command":"ls"}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	data, err := h.Write(e, &adapter.Verdict{Deny: "no"})
	if want := `{"cancel":true,"errorMessage":"no"}`; err != nil || string(data) != want {
		t.Errorf("found %q, %v; expected %q", data, err, want)
	}
	if got, want := string(h.Refusal("PreToolUse", "no")), "HOOK_CONTROL\t"+`{"cancel":true,"errorMessage":"no"}`; got != want {
		t.Errorf("of an unread event: found %q, expected %q", got, want)
	}
}
