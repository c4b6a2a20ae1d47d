package copilot_test

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/copilot"
	"github.com/abhed/abhed/internal/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// load returns the samples of several folders by folder and name.
func load(t *testing.T, folders ...string) map[string]string {
	out := map[string]string{}
	for _, folder := range folders {
		for name, text := range adaptertest.Recorded(t, filepath.Join(require.Shared(t), "samples", folder)) {
			out[folder+"/"+name] = text
		}
	}
	return out
}

func options(t *testing.T, folders ...string) adaptertest.Options {
	o := adaptertest.Options{
		Update: *update, Events: load(t, folders...),
		Event: []string{"hook_event_name", "hookEventName", "hookName"}, Tool: []string{"toolName", "tool_name"},
		Input: []string{"toolArgs", "toolInput", "arguments", "tool_input"}, Keys: keys(),
	}
	// A payload in PascalCase names its event, and what is camelCase there has its line's
	// name in PascalCase.
	o.Native = func(sample string) string {
		name, _, _ := strings.Cut(filepath.Base(sample), ".")
		return name
	}
	return o
}

// keys are the members that each event has in the host's package, as measured. The
// runner's events were never read, so that a refusal has VS Code's members as well:
// TestDialects holds what either alone has.
func keys() map[string][]string {
	out := map[string][]string{
		"preToolUse": append([]string{"permissionDecision", "permissionDecisionReason", "modifiedArgs.*", "additionalContext"},
			specific("permissionDecision", "permissionDecisionReason")...),
		"PreToolUse": specific("permissionDecision", "permissionDecisionReason", "updatedInput.*", "additionalContext"),
	}
	for names, members := range map[string][]string{
		"postToolUse PostToolUse":               {"modifiedResult.resultType", "modifiedResult.textResultForLlm", "additionalContext"},
		"postToolUseFailure PostToolUseFailure": {"additionalContext"},
		"permissionRequest PermissionRequest":   {"behavior", "message"},
		"userPromptSubmitted UserPromptSubmit":  {"decision", "reason", "modifiedPrompt", "additionalContext", "continue", "stopReason"},
		"sessionStart SessionStart":             {"additionalContext"},
		"agentStop Stop":                        {"decision", "reason"},
		"subagentStop SubagentStop":             {"decision", "reason"},
	} {
		for name := range strings.FieldsSeq(names) {
			out[name] = members
		}
	}
	return out
}

func specific(more ...string) []string {
	out := []string{"hookSpecificOutput.hookEventName"}
	for _, m := range more {
		out = append(out, "hookSpecificOutput."+m)
	}
	return out
}

const common = `"sessionId":"s","timestamp":1,"cwd":"/repo"`

func TestHost(t *testing.T) {
	o := options(t, "copilot", "copilot-cli", "copilot-pascal")
	for name, text := range load(t, "vscode-copilot") {
		o.Events[name] = text
	}
	o.Unread = map[string]string{"vscode-copilot/*": "VS Code's", "preToolUse.vscode-reads-the-file": "VS Code's"}
	for name, text := range map[string]string{
		"preToolUse.empty":                 `{` + common + `,"toolName":"list","toolArgs":""}`,
		"postToolUseFailure":               `{` + common + `,"toolName":"bash","toolArgs":{"command":"x"},"error":"no such file"}`,
		"postToolUseFailure.object":        `{` + common + `,"toolName":"bash","toolArgs":{"command":"x"},"error":{"message":"no such file","name":"Error"}}`,
		"postToolUse.denied":               `{` + common + `,"toolName":"bash","toolArgs":{"command":"x"},"toolResult":{"resultType":"denied","textResultForLlm":"no"}}`,
		"preCompact":                       `{` + common + `,"trigger":"manual","customInstructions":"be short"}`,
		"errorOccurred":                    `{` + common + `,"error":{"message":"no model","name":"Error"},"errorContext":"model_call","recoverable":false}`,
		"sessionEnd.aborted":               `{` + common + `,"reason":"user_exit"}`,
		"PreCompact":                       `{"hook_event_name":"PreCompact","session_id":"s","cwd":"/repo","trigger":"auto","custom_instructions":"be short"}`,
		"SubagentStop":                     `{"hook_event_name":"SubagentStop","session_id":"s","cwd":"/repo","agent_id":"a","stop_hook_active":true}`,
		"PostToolUseFailure":               `{"hook_event_name":"PostToolUseFailure","session_id":"s","cwd":"/repo","tool_name":"Bash","tool_input":{},"error":"broke"}`,
		"ErrorOccurred":                    `{"hook_event_name":"ErrorOccurred","session_id":"s","cwd":"/repo","error":{"message":"no model"},"error_context":"model_call"}`,
		"preToolUse.vscode-reads-the-file": `{"hookEventName":"PreToolUse","sessionId":"s","cwd":"/repo","tool_name":"run_in_terminal","tool_input":{"command":"ls"},"tool_use_id":"t"}`,
	} {
		o.Events[name] = text
	}
	adaptertest.Run(t, copilot.Host(), o)
}

func TestVSCode(t *testing.T) {
	o := options(t, "vscode-copilot")
	o.Native = func(string) string { return "preToolUse" } // the line's, which says nothing of the event
	o.Keys = map[string][]string{
		"PreToolUse": specific("permissionDecision", "permissionDecisionReason", "additionalContext"), "PostToolUse": append(specific("additionalContext"), "continue", "stopReason"),
		"UserPromptSubmit": {"continue", "stopReason"}, "SessionStart": specific("additionalContext"),
		"Stop": specific("decision", "reason"), "SubagentStop": {"decision", "reason"},
	}
	for name, text := range map[string]string{
		"SessionStart": `{"hookEventName":"SessionStart","sessionId":"s","cwd":"/repo","source":"new"}`,
		"SubagentStop": `{"hookEventName":"SubagentStop","sessionId":"s","cwd":"/repo","agent_id":"a","stop_hook_active":true}`,
		"PreCompact":   `{"hookEventName":"PreCompact","sessionId":"s","cwd":"/repo","trigger":"auto"}`,
	} {
		o.Events[name] = text
	}
	t.Chdir(filepath.Join("testdata", "vscode"))
	adaptertest.Run(t, copilot.VSCode(), o)
}

// TestDialects: the same verdict in the words of whoever asked. Those of Copilot are
// measured.
func TestDialects(t *testing.T) {
	call := `"tool_name":"Bash","tool_input":{"command":"ls"}`
	text := "[withheld]"
	cli, editor := copilot.Host(), copilot.VSCode()
	for name, c := range map[string]struct {
		host          *adapter.Host
		native, event string
		verdict       adapter.Verdict
		want          string
	}{
		"camelCase call": {cli, "preToolUse", `{` + common + `,"toolName":"bash","toolArgs":"{\"command\":\"ls\"}"}`, adapter.Verdict{Deny: "no"},
			`{"permissionDecision":"deny","permissionDecisionReason":"no"}`},
		"PascalCase call": {cli, "PreToolUse", `{"hook_event_name":"PreToolUse","session_id":"s",` + call + `}`, adapter.Verdict{Deny: "no"},
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`},
		"VS Code's call out of a camelCase file": {editor, "preToolUse", `{"hookEventName":"PreToolUse","sessionId":"s",` + call + `}`, adapter.Verdict{Deny: "no"},
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`},
		"rewrite": {cli, "preToolUse", `{` + common + `,"toolName":"bash","toolArgs":{"command":"ls"}}`, adapter.Verdict{Input: ahp.Raw(`{"command":"true"}`)},
			`{"modifiedArgs":{"command":"true"}}`},
		"PascalCase rewrite": {cli, "", `{"hook_event_name":"PreToolUse","session_id":"s",` + call + `}`, adapter.Verdict{Input: ahp.Raw(`{"command":"true"}`)},
			`{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"true"}}}`},
		"PascalCase result": {cli, "", `{"hook_event_name":"PostToolUse","session_id":"s",` + call + `,"tool_result":{"result_type":"success","text_result_for_llm":"x"}}`,
			adapter.Verdict{Output: &text, Context: []string{"mind"}}, `{"modifiedResult":{"resultType":"success","textResultForLlm":"[withheld]"},"additionalContext":"mind"}`},
		"request in PascalCase": {cli, "PermissionRequest", `{"hookName":"permissionRequest",` + common + `,"toolName":"bash","toolInput":{}}`, adapter.Verdict{Deny: "no"},
			`{"behavior":"deny","message":"no"}`},
		"prompt": {cli, "userPromptSubmitted", `{` + common + `,"prompt":"x"}`, adapter.Verdict{Deny: "no"}, `{"decision":"block","reason":"no"}`},
		"PascalCase prompt": {cli, "", `{"hook_event_name":"UserPromptSubmit","session_id":"s","prompt":"x"}`, adapter.Verdict{Deny: "no"},
			`{"decision":"block","reason":"no"}`},
		"VS Code's prompt": {editor, "", `{"hookEventName":"UserPromptSubmit","sessionId":"s","prompt":"x"}`, adapter.Verdict{Deny: "no"},
			`{"continue":false,"stopReason":"no"}`},
		"end":            {cli, "agentStop", `{` + common + `,"stop_hook_active":false}`, adapter.Verdict{Continue: "more"}, `{"decision":"block","reason":"more"}`},
		"PascalCase end": {cli, "", `{"hook_event_name":"Stop","session_id":"s"}`, adapter.Verdict{Continue: "more"}, `{"decision":"block","reason":"more"}`},
		"VS Code's end": {editor, "", `{"hookEventName":"Stop","sessionId":"s"}`, adapter.Verdict{Continue: "more"},
			`{"hookSpecificOutput":{"hookEventName":"Stop","decision":"block","reason":"more"}}`},
		"VS Code's sub-agent's end": {editor, "", `{"hookEventName":"SubagentStop","sessionId":"s","agent_id":"a"}`, adapter.Verdict{Continue: "more"},
			`{"decision":"block","reason":"more"}`},
	} {
		e, err := c.host.Read(adapter.Input{Data: []byte(c.event), Native: c.native})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := c.host.Write(e, &c.verdict); err != nil || string(got) != c.want {
			t.Errorf("%s\n  found    %s %v\n  expected %s", name, got, err, c.want)
		}
	}
}

// TestUnread: of an event that couldn't be read, only the line's name is known. VS Code
// may have run that line, and each of the two ignores the other's members.
func TestUnread(t *testing.T) {
	h := copilot.Host()
	for native, want := range map[string]string{
		"preToolUse":          `{"permissionDecision":"deny","permissionDecisionReason":"no","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`,
		"PreToolUse":          `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`,
		"permissionRequest":   `{"behavior":"deny","message":"no"}`,
		"PermissionRequest":   `{"behavior":"deny","message":"no"}`,
		"userPromptSubmitted": `{"decision":"block","reason":"no","continue":false,"stopReason":"no"}`,
		"UserPromptSubmit":    `{"decision":"block","reason":"no","continue":false,"stopReason":"no"}`,
		"postToolUse":         ``,
		"nonesuch":            ``,
	} {
		if got := string(h.Refusal(native, "no")); got != want {
			t.Errorf("%s\n  found    %s\n  expected %s", native, got, want)
		}
	}
}

// TestNamed: a camelCase payload has no name, so that the line's counts, and what the
// payload says of itself has to agree with it.
func TestNamed(t *testing.T) {
	call := `{` + common + `,"toolName":"bash","toolArgs":{"command":"ls"}}`
	request := `{"hookName":"permissionRequest",` + common + `,"toolName":"bash","toolInput":{"command":"ls"}}`
	for _, c := range []struct {
		native, event, row string
	}{
		{"preToolUse", call, "preToolUse"}, {"", call, ""}, {"nonesuch", call, ""},
		{"permissionRequest", request, "permissionRequest"}, {"PermissionRequest", request, "PermissionRequest"}, {"", request, "permissionRequest"},
		{"preToolUse", request, ""},
		{"preToolUse", `{"hookName":7,` + common + `,"toolName":"bash","toolArgs":{}}`, ""},
		{"preToolUse", `{` + common + `,"toolName":"bash","toolArgs":"not json"}`, ""},
		{"preToolUse", `{` + common + `,"toolName":"bash","toolArgs":"[1]"}`, ""},
	} {
		e, err := copilot.Host().Read(adapter.Input{Data: []byte(c.event), Native: c.native})
		switch {
		case c.row == "" && err == nil:
			t.Errorf("%s was read as %q of a line that says %q", c.event, e.Row.Native, c.native)
		case c.row != "" && (err != nil || e.Row.Native != c.row):
			t.Errorf("%s, of a line that says %q: %v, expected %s", c.event, c.native, err, c.row)
		}
	}
}
