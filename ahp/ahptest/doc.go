// Package ahptest helps to test harnesses and backends of the Agent Hooks
// Protocol: fake backends that answer as a test says, and a menu of faults, each
// in process, as a real process, and over HTTP.
//
// It guarantees that every fault of the menu names the class of operational
// failure that a harness must see, per carrier, so that a test can run the whole
// menu against any harness; and that what it starts ends with the test.
//
// Do not assume that a fake judges anything: it says what it was told to say.
//
// Real processes are the test's own binary, run again: call RunIfChild first in
// TestMain.
package ahptest

import (
	"time"

	"github.com/abhed/abhed/ahp"
)

// Int64 returns a pointer to n, for optional members.
func Int64(n int64) *int64 { return &n }

// ToolBefore returns a valid tool.before event with the given id and input, which
// is a JSON object.
func ToolBefore(id, input string) *ahp.Event {
	return &ahp.Event{
		ID: id, Source: "urn:ahp:test", Type: ahp.ToolBefore, Time: ahp.Timestamp(time.Unix(1767225600, 0)),
		Session: &ahp.Session{ID: "session"}, Call: &ahp.Identity{ID: "call-" + id}, Path: "native",
		Tool: &ahp.Tool{Name: "bash", Origin: ahp.OriginNative, Input: ahp.Raw(input)},
	}
}

// ToolAfter returns a valid tool.after event of an executed call.
func ToolAfter(id, output string) *ahp.Event {
	e := ToolBefore(id, "{}")
	e.Type, e.Outcome, e.Execution = ahp.ToolAfter, "ok", ahp.Executed()
	e.Items = ahp.MessageItems(ahp.TextMessage(id+":out", ahp.RoleTool, output))
	return e
}

// FullCapabilities returns everything that may be advertised at t.
func FullCapabilities(t ahp.EventType) *ahp.Capabilities {
	c := &ahp.Capabilities{Effects: t.Effects()}
	if c.Effects == nil {
		c.Effects = []ahp.EffectType{}
	}
	if c.Has(ahp.EffectModify) {
		c.Modify = map[ahp.Target]ahp.ModifyCapability{t.Target(): {Replace: true, Merge: true}}
	}
	if c.Has(ahp.EffectFlow) {
		c.Flow = &ahp.FlowCapability{Operations: t.FlowOperations()}
		if len(c.Flow.Operations) > 1 {
			c.Flow.RemainingContinuations, c.Flow.ContinuationCount = Int64(1), Int64(0)
		}
	}
	if c.Has(ahp.EffectInject) {
		c.Inject = &ahp.InjectCapability{Context: ahp.ContextInjection{Append: true, DeliverAt: []ahp.Delivery{ahp.DeliverNow, ahp.DeliverNextTurn}}}
	}
	if t == ahp.UserElicitationRequest || t == ahp.UserElicitationResult {
		c.Elicitation = &ahp.ElicitationCapability{Form: &ahp.ElicitationMode{}, URL: &ahp.ElicitationMode{}}
	}
	return c
}

// Without returns c without the given effects.
func Without(c *ahp.Capabilities, drop ...ahp.EffectType) *ahp.Capabilities {
	out := *c
	out.Effects = []ahp.EffectType{}
	for _, e := range c.Effects {
		keep := true
		for _, d := range drop {
			keep = keep && e != d
		}
		if keep {
			out.Effects = append(out.Effects, e)
		}
	}
	if !out.Has(ahp.EffectModify) {
		out.Modify = nil
	}
	if !out.Has(ahp.EffectFlow) {
		out.Flow = nil
	}
	if !out.Has(ahp.EffectInject) {
		out.Inject = nil
	}
	return &out
}

// Manifest returns a manifest that offers every event in every mode that it has,
// with everything that may be advertised.
func Manifest() *ahp.Manifest {
	m := &ahp.Manifest{
		Gaps: []ahp.Gap{}, Transports: []string{"http", "stdio", "in_process"}, Authentication: []string{"bearer"},
		ToolPaths: []string{"native"}, ContentCategories: []string{"text"}, CorrelationIdentityFields: []string{"id", "call.id"},
		ManagedPolicy: ahp.ManagedPolicy{Scopes: []string{"user", "project", "managed"}},
	}
	for _, t := range ahp.EventTypes() {
		e := ahp.ManifestEvent{Event: t, Modes: []ahp.Mode{ahp.ModeObserve}}
		if t.Interceptable() {
			e.Modes = append(e.Modes, ahp.ModeIntercept)
			e.Capabilities = FullCapabilities(t)
		}
		m.Events = append(m.Events, e)
	}
	return m
}

// Intercept returns a subscription that intercepts the events, sees all content,
// and waits for timeout.
func Intercept(policy ahp.FailurePolicy, timeout time.Duration, events ...string) ahp.Subscription {
	return ahp.Subscription{
		Events: events, Mode: ahp.ModeIntercept, TimeoutMs: Int64(timeout.Milliseconds()), FailurePolicy: policy,
		Content: map[string]ahp.Selection{"default": ahp.SelectBody},
	}
}

// Observe returns a subscription that observes the events and sees all content.
func Observe(events ...string) ahp.Subscription {
	return ahp.Subscription{Events: events, Mode: ahp.ModeObserve, Content: map[string]ahp.Selection{"default": ahp.SelectBody}}
}
