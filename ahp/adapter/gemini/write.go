package gemini

import (
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// answer is what the host reads on standard output.
type answer struct {
	shape.Halt              // continue, stopReason
	shape.Block             // decision, reason
	SystemMessage string    `json:"systemMessage,omitzero"`
	Specific      *specific `json:"hookSpecificOutput,omitzero"`
}

type specific struct {
	Event             string  `json:"hookEventName"`
	Input             ahp.Raw `json:"tool_input,omitzero"`
	AdditionalContext string  `json:"additionalContext,omitzero"`
}

// write says a verdict.
func write(e *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	if v.Deny != "" {
		return []byte(adapter.Reason(v.Deny)), nil
	}
	if v.Silent() {
		return nil, nil
	}
	notices := strings.Join(v.Notices, "\n")
	s := specific{Event: e.Row.Native, Input: v.Input, AdditionalContext: strings.Join(v.Context, "\n")}
	a := answer{}
	switch {
	case v.Output != nil:
		a.Decision, a.Reason = "deny", adapter.Reason(*v.Output)
	case v.Continue != "":
		a.Decision, a.Reason = "deny", v.Continue
	}
	if v.Stop != "" {
		a.Halt = shape.HaltFor(v.Stop)
		if e.Row.Type == ahp.ToolBefore { // both members refuse the call
			a.Decision, a.Reason = "deny", v.Stop
		}
	}
	if s.Input != nil || s.AdditionalContext != "" {
		a.Specific = &s
	}
	if a == (answer{}) {
		return []byte(adapter.Words(notices)), nil // plain text is shown to the person
	}
	a.SystemMessage = notices
	return adapter.Encode(a)
}
