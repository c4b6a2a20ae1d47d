package copilot

import (
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// answer is what the hosts read on standard output. "allow" is no value of any member.
type answer struct {
	// Before a tool, in camelCase.
	Permission       string  `json:"permissionDecision,omitzero"`
	PermissionReason string  `json:"permissionDecisionReason,omitzero"`
	ModifiedArgs     ahp.Raw `json:"modifiedArgs,omitzero"`
	// Elsewhere, in both spellings.
	ModifiedResult *result `json:"modifiedResult,omitzero"`
	ModifiedPrompt *string `json:"modifiedPrompt,omitzero"`
	Context        string  `json:"additionalContext,omitzero"`
	Behavior       string  `json:"behavior,omitzero"`
	Message        string  `json:"message,omitzero"`
	Decision       string  `json:"decision,omitzero"`
	Reason         string  `json:"reason,omitzero"`
	// Before a tool, in PascalCase, and in VS Code.
	Specific *specific `json:"hookSpecificOutput,omitzero"`
	// In VS Code.
	Continue   *bool  `json:"continue,omitzero"`
	StopReason string `json:"stopReason,omitzero"`
}

type result struct {
	Type string `json:"resultType"`
	Text string `json:"textResultForLlm"`
}

type specific struct {
	Event            string  `json:"hookEventName"`
	Permission       string  `json:"permissionDecision,omitzero"`
	PermissionReason string  `json:"permissionDecisionReason,omitzero"`
	UpdatedInput     ahp.Raw `json:"updatedInput,omitzero"`
	Context          string  `json:"additionalContext,omitzero"`
	// The end of a turn, in VS Code.
	Decision string `json:"decision,omitzero"`
	Reason   string `json:"reason,omitzero"`
}

// write says a verdict to Copilot CLI.
func write(e *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	native := e.Row.Native
	switch {
	case v.Deny != "":
		return adapter.Encode(refusal(e, v.Deny))
	case v.Silent():
		return nil, nil
	}
	permission := ""
	if v.Ask != "" {
		permission = "ask"
	}
	context := strings.Join(v.Context, "\n")
	if native == "PreToolUse" {
		return adapter.Encode(answer{Specific: &specific{
			Event: native, Permission: permission, PermissionReason: v.Ask, UpdatedInput: v.Input, Context: context}})
	}
	a := answer{Permission: permission, PermissionReason: v.Ask, ModifiedArgs: v.Input, ModifiedPrompt: v.Prompt, Context: context}
	if v.Output != nil {
		a.ModifiedResult = &result{Type: "success", Text: *v.Output}
	}
	if v.Continue != "" {
		a.Decision, a.Reason = "block", v.Continue
	}
	return adapter.Encode(a)
}

// refusal returns the document of a refusal. Where the event wasn't read, all that is
// known is the installed line's name of it, and VS Code may have run that line: it fires
// its PascalCase events out of a camelCase file too.
func refusal(e *adapter.Event, reason string) answer {
	unread := e.Detail == ""
	before := &specific{Event: "PreToolUse", Permission: "deny", PermissionReason: reason}
	var a answer
	switch {
	case e.Row.Native == "PreToolUse":
		a.Specific = before
	case e.Row.Type == ahp.ToolBefore:
		a.Permission, a.PermissionReason = "deny", reason
		if unread {
			a.Specific = before
		}
	case e.Row.Type == ahp.ToolPermissionRequest:
		a.Behavior, a.Message = "deny", reason
	default:
		a.Decision, a.Reason = "block", reason
		if unread {
			a = stopped(a, reason)
		}
	}
	return a
}

// stopped adds what ends VS Code's turn.
func stopped(a answer, reason string) answer {
	no := false
	a.Continue, a.StopReason = &no, reason
	return a
}

// writeEditor says a verdict to VS Code.
func writeEditor(e *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	if v.Silent() {
		return nil, nil
	}
	native := e.Row.Native
	s := specific{Event: native, Context: strings.Join(v.Context, "\n")}
	var a answer
	switch {
	case v.Deny != "" && e.Row.Type != ahp.ToolBefore:
		return adapter.Encode(stopped(a, v.Deny))
	case v.Deny != "":
		s = specific{Event: native, Permission: "deny", PermissionReason: v.Deny}
	case v.Ask != "":
		s.Permission, s.PermissionReason = "ask", v.Ask
	case v.Stop != "":
		a = stopped(a, v.Stop)
	case v.Continue != "" && native == "Stop":
		s.Decision, s.Reason = "block", v.Continue
	case v.Continue != "":
		a.Decision, a.Reason = "block", v.Continue
	}
	if s.Permission != "" || s.Context != "" || s.Decision != "" {
		a.Specific = &s
	}
	return adapter.Encode(a)
}
