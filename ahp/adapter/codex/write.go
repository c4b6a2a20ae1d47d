package codex

import (
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// answer is what the host reads on standard output. It has no member that the schema of
// one of the events below lacks where it is written.
type answer struct {
	Decision string    `json:"decision,omitzero"`
	Reason   string    `json:"reason,omitzero"`
	Specific *specific `json:"hookSpecificOutput,omitzero"`
}

type specific struct {
	Event             string  `json:"hookEventName"`
	Permission        string  `json:"permissionDecision,omitzero"`
	UpdatedInput      ahp.Raw `json:"updatedInput,omitzero"`
	AdditionalContext string  `json:"additionalContext,omitzero"`
}

// write says a verdict.
func write(e *adapter.Event, v *adapter.Verdict) ([]byte, error) {
	if v.Deny != "" {
		return []byte(adapter.Reason(v.Deny)), nil // with a blank reason the call would run
	}
	if v.Silent() {
		return nil, nil
	}
	context := strings.Join(v.Context, "\n")
	switch {
	case v.Output != nil: // the context goes into the one text that is known to arrive
		return adapter.Encode(answer{Decision: "block", Reason: replacement(*v.Output, context)})
	case v.Continue != "":
		return adapter.Encode(answer{Decision: "block", Reason: v.Continue})
	}
	s := specific{Event: e.Row.Native, AdditionalContext: context, UpdatedInput: v.Input}
	if v.Input != nil {
		s.Permission = "allow"
	}
	return adapter.Encode(answer{Specific: &s})
}

// replacement is never blank: a block without a reason is void.
func replacement(output, context string) string {
	text := strings.Trim(output+"\n"+context, "\n")
	if strings.TrimSpace(text) == "" {
		return "(nothing)"
	}
	return text
}
