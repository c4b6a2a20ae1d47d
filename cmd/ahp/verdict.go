package main

import (
	"slices"

	"github.com/abhed/abhed/ahp"
)

// verdict is what a host that allows everything and never prompts makes of an
// outcome. Its JSON form is the output of "ahp evaluate": a member that has nothing
// to say is absent, and a result of null is present.
type verdict struct {
	// ID is the id that the line of input has.
	ID       ahp.Raw  `json:"id"`
	Decision string   `json:"decision"`
	Executed bool     `json:"executed"`
	Messages []string `json:"messages"`
	// Input is the effective input, for events with a tool.
	Input ahp.Raw `json:"input,omitzero"`
	// Result is the supplied result that is really selected.
	Result ahp.Raw       `json:"result,omitzero"`
	Flow   ahp.FlowState `json:"flow,omitzero"`
	// The two are there where the request accepts continuations.
	ContinuationInstructions []string  `json:"continuationInstructions,omitzero"`
	ContinuationRemaining    *int64    `json:"continuationRemaining,omitzero"`
	Injections               []ahp.Raw `json:"injections,omitzero"`
	// HostRefused tells that the host's own check of the input failed.
	HostRefused bool `json:"hostRefused,omitzero"`
}

// verdictOf returns the verdict on an outcome of a request that advertised caps.
// accepts is the host's own check of a tool's input.
func verdictOf(out *ahp.Outcome, caps *ahp.Capabilities, accepts func(input ahp.Raw) bool) (*verdict, error) {
	v := &verdict{Decision: string(ahp.PermissionAllow), Messages: append([]string{}, out.Messages...)}
	if out.Permission.Stricter(ahp.PermissionAllow) {
		v.Decision = string(out.Permission)
	}
	if t := out.Event.Tool; t != nil {
		v.Input = t.Input
		v.HostRefused = !accepts(t.Input)
	}
	v.Executed = out.Event.Type == ahp.ToolBefore && out.MayExecute() && !v.HostRefused
	if out.Candidate != nil && v.Decision == string(ahp.PermissionAllow) && !v.HostRefused {
		v.Result = out.Candidate.Value
	}
	if out.Flow != ahp.FlowStateNone {
		v.Flow = out.Flow
	}
	if caps.Flow != nil && slices.Contains(caps.Flow.Operations, ahp.FlowContinue) {
		left := *caps.Flow.RemainingContinuations
		if out.Flow == ahp.FlowStateContinue {
			left--
		}
		v.ContinuationInstructions, v.ContinuationRemaining = append([]string{}, out.Instructions...), &left
	}
	for _, i := range out.Injections {
		raw, err := ahp.EncodeEffect(i)
		if err != nil {
			return nil, err
		}
		v.Injections = append(v.Injections, raw)
	}
	return v, nil
}
