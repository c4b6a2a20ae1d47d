package qwen

import (
	"strings"

	"github.com/abhed/abhed/ahp/adapter"
)

// answer is what the host reads: on standard error with exit code 2, else on standard
// output.
type answer struct {
	Continue   *bool     `json:"continue,omitzero"`
	StopReason string    `json:"stopReason,omitzero"`
	Decision   string    `json:"decision,omitzero"`
	Reason     string    `json:"reason,omitzero"`
	Specific   *specific `json:"hookSpecificOutput,omitzero"`
}

type specific struct {
	Event             string    `json:"hookEventName"`
	Permission        string    `json:"permissionDecision,omitzero"`
	PermissionReason  string    `json:"permissionDecisionReason,omitzero"`
	AdditionalContext string    `json:"additionalContext,omitzero"`
	Decision          *behavior `json:"decision,omitzero"`
}

type behavior struct {
	Behavior string `json:"behavior"`
	Message  string `json:"message,omitzero"`
}

// write says a verdict.
func write(e *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	no := false
	native := e.Row.Native
	if v.Deny != "" {
		reason := adapter.Reason(v.Deny)
		if native == "PermissionRequest" {
			return adapter.Encode(answer{Specific: &specific{Event: native, Decision: &behavior{"deny", reason}}})
		}
		return adapter.Encode(answer{Continue: &no, StopReason: reason, Decision: "deny", Reason: reason})
	}
	if v.Silent() {
		return nil, nil
	}
	a, s := answer{}, specific{Event: native, AdditionalContext: strings.Join(v.Context, "\n")}
	if v.Ask != "" {
		s.Permission, s.PermissionReason = "ask", v.Ask
	}
	if v.Output != nil {
		a.Continue, a.StopReason = &no, adapter.Reason(*v.Output)
	}
	if v.Continue != "" {
		a.Decision, a.Reason = "block", v.Continue
	}
	if s.Permission != "" || s.AdditionalContext != "" {
		a.Specific = &s
	}
	return adapter.Encode(a)
}
