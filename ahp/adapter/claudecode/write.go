package claudecode

import (
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// answer is what the host reads on standard output. "allow" is no value of any member.
type answer struct {
	shape.Halt              // continue, stopReason
	SystemMessage string    `json:"systemMessage,omitzero"`
	shape.Block             // decision, reason
	Specific      *specific `json:"hookSpecificOutput,omitzero"`
}

type specific struct {
	Event             string          `json:"hookEventName"`
	Permission        string          `json:"permissionDecision,omitzero"`
	PermissionReason  string          `json:"permissionDecisionReason,omitzero"`
	UpdatedInput      ahp.Raw         `json:"updatedInput,omitzero"`
	AdditionalContext string          `json:"additionalContext,omitzero"`
	UpdatedOutput     any             `json:"updatedToolOutput,omitzero"`
	Decision          *shape.Behavior `json:"decision,omitzero"`
}

// write says a verdict.
func write(e *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	native := e.Row.Native
	if v.Deny != "" && native == "PreSkillShellCommand" { // which document it reads isn't known
		return []byte(adapter.Reason(v.Deny)), nil
	}
	if v.Deny != "" {
		return adapter.Encode(refusal(e.Row, adapter.Reason(v.Deny)))
	}
	if v.Silent() {
		return nil, nil
	}
	a := answer{SystemMessage: strings.Join(v.Notices, "\n")}
	s := specific{Event: native, AdditionalContext: strings.Join(v.Context, "\n")}
	if v.Ask != "" {
		s.Permission, s.PermissionReason = "ask", v.Ask
	}
	s.UpdatedInput = v.Input
	if v.Output != nil {
		s.UpdatedOutput = output(e, *v.Output)
	}
	if v.Stop != "" {
		a.Halt = shape.HaltFor(v.Stop)
		if e.Row.Type == ahp.ToolBefore { // the call would run before the turn ends
			s.Permission, s.PermissionReason = "deny", v.Stop
		}
	}
	if v.Continue != "" {
		a.Decision, a.Reason = "block", v.Continue
	}
	if s.Permission != "" || s.UpdatedInput != nil || s.AdditionalContext != "" || s.UpdatedOutput != nil {
		a.Specific = &s
	}
	return adapter.Encode(a)
}

// refusal is the document of a refusal at an event.
func refusal(r *adapter.Row, reason string) answer {
	switch r.Type {
	case ahp.ToolPermissionRequest: // exit code 2 would leave the normal prompt
		return answer{Specific: &specific{Event: r.Native, Decision: &shape.Behavior{Behavior: "deny", Message: reason}}}
	case ahp.ToolBefore:
		return answer{Specific: &specific{Event: r.Native, Permission: "deny", PermissionReason: reason}}
	}
	return answer{Block: shape.Block{Decision: "block", Reason: reason}}
}
