package ahp

import (
	"fmt"
	"slices"
)

// NewManifest returns a manifest of the rows that is valid as it is: every
// required member is there, the transports are stdio and http, the tool path is
// "native", and the gaps state this package's bounds on one message. A harness adds
// what it promises beyond that; the caller owns the result.
func NewManifest(rows ...ManifestEvent) *Manifest {
	return &Manifest{
		Events: slices.Clip(append([]ManifestEvent{}, rows...)),
		Gaps: []Gap{
			{Path: "message", Reason: fmt.Sprintf("a message has at most %d bytes and %d levels", MaxMessageBytes, MaxDepth)},
			{Path: "limits", Reason: "a limit that isn't stated is not known"},
		},
		Transports: []string{TransportStdio, TransportHTTP}, Authentication: []string{},
		ToolPaths: []string{"native"}, ContentCategories: []string{"text"},
		ManagedPolicy:             ManagedPolicy{Scopes: []string{}},
		CorrelationIdentityFields: []string{"id", "source"},
	}
}

// NewManifestEvent returns the row of event type t. With ModeIntercept it has
// every capability that NewCapabilities gives for t.
func NewManifestEvent(t EventType, modes ...Mode) ManifestEvent {
	row := ManifestEvent{Event: t, Modes: slices.Clone(modes)}
	if slices.Contains(modes, ModeIntercept) {
		row.Capabilities = NewCapabilities(t, t.Effects()...)
	}
	return row
}

// NewCapabilities returns capabilities with the effects and with the widest option
// block for each at t: both operations on t's target, flow stop, and both
// deliveries. Flow continue and elicitations are left to the caller, who knows the
// counts and the modes. The caller owns the result; Validate tells whether t allows
// the effects.
func NewCapabilities(t EventType, effects ...EffectType) *Capabilities {
	c := &Capabilities{Effects: append([]EffectType{}, effects...)}
	if c.Has(EffectModify) {
		c.Modify = map[Target]ModifyCapability{t.Target(): {Replace: true, Merge: true}}
	}
	if c.Has(EffectFlow) {
		c.Flow = &FlowCapability{Operations: []FlowOperation{FlowStop}}
	}
	if c.Has(EffectInject) {
		c.Inject = &InjectCapability{Context: ContextInjection{Append: true, DeliverAt: []Delivery{DeliverNow, DeliverNextTurn}}}
	}
	return c
}
