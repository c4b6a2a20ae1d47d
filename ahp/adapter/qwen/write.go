package qwen

import (
	"strings"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// answer is what the host reads: on standard error with exit code 2, else on standard
// output.
type answer struct {
	shape.Halt            // continue, stopReason
	shape.Block           // decision, reason
	Specific    *specific `json:"hookSpecificOutput,omitzero"`
}

type specific struct {
	Event             string          `json:"hookEventName"`
	Permission        string          `json:"permissionDecision,omitzero"`
	PermissionReason  string          `json:"permissionDecisionReason,omitzero"`
	AdditionalContext string          `json:"additionalContext,omitzero"`
	Decision          *shape.Behavior `json:"decision,omitzero"`
}

// write says a verdict.
func write(e *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	native := e.Row.Native
	if v.Deny != "" {
		reason := adapter.Reason(v.Deny)
		if native == "PermissionRequest" {
			return adapter.Encode(answer{Specific: &specific{Event: native, Decision: &shape.Behavior{Behavior: "deny", Message: reason}}})
		}
		return adapter.Encode(answer{Halt: shape.HaltFor(reason), Block: shape.Block{Decision: "deny", Reason: reason}})
	}
	if v.Silent() {
		return nil, nil
	}
	a, s := answer{}, specific{Event: native, AdditionalContext: strings.Join(v.Context, "\n")}
	if v.Ask != "" {
		s.Permission, s.PermissionReason = "ask", v.Ask
	}
	if v.Output != nil {
		a.Halt = shape.HaltFor(adapter.Reason(*v.Output))
	}
	if v.Continue != "" {
		a.Decision, a.Reason = "block", v.Continue
	}
	if s.Permission != "" || s.AdditionalContext != "" {
		a.Specific = &s
	}
	return adapter.Encode(a)
}
