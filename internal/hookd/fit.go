package hookd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
)

// Fit returns a copy of reg that holds for one host, whose manifest is m, with a note
// for each thing that doesn't: one registration serves hosts of different power. A
// subscription to events that this host doesn't have never fires; one that would
// intercept, fail-open, where the host can only be watched, watches. A fail-closed one
// there would promise what can't be held: the error says so, and nothing is skipped.
func Fit(reg *ahp.Registration, m *ahp.Manifest) (*ahp.Registration, []string, error) {
	out := &ahp.Registration{ProtocolVersion: reg.ProtocolVersion}
	var notes []string
	for i := range reg.Hooks {
		b := reg.Hooks[i]
		b.Subscriptions = nil
		for j := range reg.Hooks[i].Subscriptions {
			list, said, err := fitOne(&reg.Hooks[i].Subscriptions[j], m)
			if err != nil {
				return nil, nil, fmt.Errorf("backend %s, subscription %d: %w", b.ID, j, err)
			}
			for _, s := range said {
				notes = append(notes, fmt.Sprintf("backend %s, subscription %d: %s", b.ID, j, s))
			}
			b.Subscriptions = append(b.Subscriptions, list...)
		}
		if len(b.Subscriptions) > 0 {
			out.Hooks = append(out.Hooks, b)
		}
	}
	if bad := harness.Misfits(out, m); len(bad) > 0 {
		return nil, nil, fmt.Errorf("backend %s, subscription %d: %s", bad[0].Backend, bad[0].Subscription, bad[0].Why)
	}
	return out, notes, nil
}

// fitOne returns what becomes of one subscription.
func fitOne(s *ahp.Subscription, m *ahp.Manifest) (out []ahp.Subscription, notes []string, err error) {
	keep, watch := *s, *s
	keep.Events, watch.Events = nil, nil
	watch.Mode, watch.TimeoutMs, watch.FailurePolicy = ahp.ModeObserve, nil, ""
	for _, selector := range s.Events {
		t := ahp.EventType(selector)
		switch {
		case s.FailurePolicy == ahp.FailClosed && (t.Known() && !blocks(m.Advertises(t, s.Mode)) || !t.Known() && !selects(selector, m, blocks)):
			return nil, nil, fmt.Errorf("found fail-closed for %s, which this host has no way to block; expected fail-open, or a subscription without it", selector)
		case t.Known() && m.Advertises(t, s.Mode) != nil, !t.Known() && selects(selector, m, has(s.Mode)):
			keep.Events = append(keep.Events, selector)
		case s.Mode == ahp.ModeIntercept && (t.Known() && m.Advertises(t, ahp.ModeObserve) != nil || !t.Known() && selects(selector, m, has(ahp.ModeObserve))):
			watch.Events = append(watch.Events, selector)
			notes = append(notes, fmt.Sprintf("%s is only observed here: this host can't be kept from it", selector))
		default:
			notes = append(notes, fmt.Sprintf("%s never happens here: this host has no hook for it", selector))
		}
	}
	if len(keep.Events) > 0 {
		out = append(out, keep)
	}
	if len(watch.Events) > 0 {
		out = append(out, watch)
	}
	return out, notes, nil
}

// blocks reports whether something can be kept from happening, or its result from being
// seen, at the event of a row of the manifest, which may be nil.
func blocks(row *ahp.ManifestEvent) bool {
	if row == nil || row.Capabilities == nil {
		return false
	}
	c := row.Capabilities
	return c.Has(ahp.EffectDeny) || row.Event == ahp.ToolAfter && c.Has(ahp.EffectModify) || c.Flow != nil && slices.Contains(c.Flow.Operations, ahp.FlowStop)
}

// has reports, of a row of the manifest, whether it has a mode.
func has(mode ahp.Mode) func(*ahp.ManifestEvent) bool {
	return func(row *ahp.ManifestEvent) bool { return slices.Contains(row.Modes, mode) }
}

// selects reports whether a wildcard selects an event that m offers, and for which is
// holds.
func selects(selector string, m *ahp.Manifest, is func(*ahp.ManifestEvent) bool) bool {
	family, wild := strings.CutSuffix(selector, "*")
	return wild && slices.ContainsFunc(m.Events, func(e ahp.ManifestEvent) bool {
		return strings.HasPrefix(string(e.Event), family) && is(&e)
	})
}
