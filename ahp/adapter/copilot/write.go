package copilot

import (
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// answer is what the hosts read on standard output. "allow" is no value of any member.
type answer struct {
	// camelCase, before and after a tool.
	Permission       string  `json:"permissionDecision,omitzero"`
	PermissionReason string  `json:"permissionDecisionReason,omitzero"`
	ModifiedArgs     ahp.Raw `json:"modifiedArgs,omitzero"`
	ModifiedResult   *result `json:"modifiedResult,omitzero"`
	ModifiedPrompt   *string `json:"modifiedPrompt,omitzero"`
	Context          string  `json:"additionalContext,omitzero"`
	// A request for permission.
	Behavior string `json:"behavior,omitzero"`
	Message  string `json:"message,omitzero"`
	// Prompts, and the end of a turn.
	Decision string `json:"decision,omitzero"`
	Reason   string `json:"reason,omitzero"`
	// PascalCase and VS Code.
	Specific *specific `json:"hookSpecificOutput,omitzero"`
	// VS Code.
	Continue   *bool  `json:"continue,omitzero"`
	StopReason string `json:"stopReason,omitzero"`
}

type result struct {
	Type string `json:"resultType"`
	Text string `json:"textResultForLlm"`
}

type specific struct {
	Event            string    `json:"hookEventName"`
	Permission       string    `json:"permissionDecision,omitzero"`
	PermissionReason string    `json:"permissionDecisionReason,omitzero"`
	UpdatedInput     ahp.Raw   `json:"updatedInput,omitzero"`
	Context          string    `json:"additionalContext,omitzero"`
	Behavior         *behavior `json:"decision,omitzero"`
}

type behavior struct {
	Behavior string `json:"behavior"`
	Message  string `json:"message,omitzero"`
}

// stop is VS Code's own form at the end of a turn.
type stop struct {
	Specific struct {
		Event    string `json:"hookEventName"`
		Decision string `json:"decision"`
		Reason   string `json:"reason"`
	} `json:"hookSpecificOutput"`
}

// write says a verdict in the dialect that the event was in.
func write(e *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	if v.Silent() {
		return nil, nil
	}
	if v.Deny != "" {
		return adapter.Encode(refusal(e, v.Deny))
	}
	native := e.Row.Native
	if v.Continue != "" && e.Detail == vscode && native == "Stop" {
		var a stop
		a.Specific.Event, a.Specific.Decision, a.Specific.Reason = native, "block", v.Continue
		return adapter.Encode(a)
	}
	var a answer
	if v.Continue != "" {
		a.Decision, a.Reason = "block", v.Continue
	}
	context := strings.Join(v.Context, "\n")
	if spelling(native) == pascal {
		s := specific{Event: native, UpdatedInput: v.Input, Context: context}
		if v.Ask != "" {
			s.Permission, s.PermissionReason = "ask", v.Ask
		}
		if s.Permission != "" || s.UpdatedInput != nil || s.Context != "" {
			a.Specific = &s
		}
		return adapter.Encode(a)
	}
	a.ModifiedArgs, a.ModifiedPrompt, a.Context = v.Input, v.Prompt, context
	if v.Ask != "" {
		a.Permission, a.PermissionReason = "ask", v.Ask
	}
	if v.Output != nil {
		a.ModifiedResult = &result{Type: "success", Text: *v.Output}
	}
	return adapter.Encode(a)
}

// spelling returns the spelling of an event's name.
func spelling(native string) string {
	if native != "" && native[0] >= 'A' && native[0] <= 'Z' {
		return pascal
	}
	return camel
}

// twin returns the PascalCase name of a camelCase gate, under which VS Code fires it out
// of the same file.
func twin(native string) string {
	switch native {
	case "preToolUse":
		return "PreToolUse"
	case "userPromptSubmitted":
		return "UserPromptSubmit"
	}
	return native
}

// refusal returns the document of a refusal. Where the event couldn't be read, all that
// is known is the installed line's name of it, and the host may be VS Code that found
// Copilot's file: the document then holds what either reads. More members than a host
// knows don't void its answer (measured).
func refusal(e *adapter.Event, reason string) answer {
	native, unread := e.Row.Native, e.Detail == ""
	var a answer
	switch e.Row.Type {
	case ahp.ToolBefore:
		if spelling(native) == camel {
			a.Permission, a.PermissionReason = "deny", reason
		}
		if spelling(native) == pascal || unread {
			a.Specific = &specific{Event: twin(native), Permission: "deny", PermissionReason: reason}
		}
	case ahp.ToolPermissionRequest:
		a.Behavior, a.Message = "deny", reason
		if spelling(native) == pascal {
			a.Specific = &specific{Event: native, Behavior: &behavior{"deny", reason}}
		}
	default:
		if e.Detail != vscode { // unread as well
			a.Decision, a.Reason = "block", reason
		}
		if e.Detail == vscode || unread {
			no := false
			a.Continue, a.StopReason = &no, reason
		}
	}
	return a
}
