package shape

import (
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// Halt is the members continue and stopReason of an answer. A host's answer embeds it,
// and the others of this file, only if that host knows both members.
type Halt struct {
	Continue   *bool  `json:"continue,omitzero"`
	StopReason string `json:"stopReason,omitzero"`
}

// HaltFor returns what ends the run or the turn for reason.
func HaltFor(reason string) Halt {
	no := false
	return Halt{Continue: &no, StopReason: reason}
}

// Block is the members decision and reason of an answer. Hosts differ in the word that
// refuses.
type Block struct {
	Decision string `json:"decision,omitzero"`
	Reason   string `json:"reason,omitzero"`
}

// Behavior is the decision inside hookSpecificOutput about a question of the host for
// permission.
type Behavior struct {
	Behavior string `json:"behavior"`
	Message  string `json:"message,omitzero"`
}

// Specific is hookSpecificOutput of a host that reads a rewrite and context in it, and
// no decision.
type Specific struct {
	Event             string  `json:"hookEventName"`
	UpdatedInput      ahp.Raw `json:"updatedInput,omitzero"`
	AdditionalContext string  `json:"additionalContext,omitzero"`
}

// SpecificFor returns the rewrite and the context of a verdict, nil if it has neither.
func SpecificFor(e *adapter.Event, v *adapter.Verdict) *Specific {
	s := &Specific{Event: e.Row.Native, UpdatedInput: v.Input, AdditionalContext: strings.Join(v.Context, "\n")}
	if s.UpdatedInput == nil && s.AdditionalContext == "" {
		return nil
	}
	return s
}
