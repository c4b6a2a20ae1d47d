package harness

import (
	"fmt"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
)

// checkRegistration holds what a registration must satisfy beyond its own shape
// (§15): everything that it asks for is advertised.
func checkRegistration(reg *ahp.Registration, m *ahp.Manifest) error {
	list := Misfits(reg, m)
	if len(list) == 0 {
		return nil
	}
	x := &list[0]
	if x.Subscription < 0 {
		return fmt.Errorf("harness: backend %s: %s", x.Backend, x.Why)
	}
	return fmt.Errorf("harness: backend %s, subscription %d: %s", x.Backend, x.Subscription, x.Why)
}

func checkSubscription(s *ahp.Subscription, m *ahp.Manifest) string {
	selects := false
	for i := range m.Events {
		e := &m.Events[i]
		selects = selects || slices.Contains(e.Modes, s.Mode) && s.Selects(e.Event)
	}
	if !selects {
		return fmt.Sprintf("%s to %s in mode %s selects nothing that is advertised", "subscription", strings.Join(s.Events, ", "), s.Mode)
	}
	for _, sel := range s.Events {
		if t := ahp.EventType(sel); t.Known() && m.Advertises(t, s.Mode) == nil {
			return fmt.Sprintf("the event %s isn't advertised in mode %s", t, s.Mode)
		}
	}
	if s.TimeoutMs != nil {
		if low := m.Limits.MinTimeoutMs; low != nil && *s.TimeoutMs < *low {
			return fmt.Sprintf("timeoutMs %d is less than the least, %d", *s.TimeoutMs, *low)
		}
		if high := m.Limits.MaxTimeoutMs; high != nil && *s.TimeoutMs > *high {
			return fmt.Sprintf("timeoutMs %d is more than the most, %d", *s.TimeoutMs, *high)
		}
	}
	if s.Scope != "" && !slices.Contains(m.ManagedPolicy.Scopes, s.Scope) {
		return fmt.Sprintf("scope %q can't be held here", s.Scope)
	}
	return ""
}

// matches reports whether s is to get e in its mode. A filter is a hint, and drops
// an event only where it is certain: never for a tool of unknown kind (§15), and
// never where the filter itself is empty or holds a word that this harness doesn't
// know, which may mean anything.
func (s *subscription) matches(e *ahp.Event, mode ahp.Mode) bool {
	if s.cfg.Mode != mode || !s.takes[e.Type] {
		return false
	}
	f := s.cfg.Filters
	if f == nil {
		return true
	}
	if s.pathsKnown && e.Path != "" && !slices.Contains(f.Paths, e.Path) {
		return false
	}
	if s.kindsKnown && e.Tool != nil && isKnownKind(e.Tool.Kind) && !slices.Contains(f.ToolKinds, e.Tool.Kind) {
		return false
	}
	return true
}

// learn notes which of the filters are certain.
func (s *subscription) learn(m *ahp.Manifest) {
	f := s.cfg.Filters
	if f == nil {
		return
	}
	s.pathsKnown = len(f.Paths) > 0 && !slices.ContainsFunc(f.Paths, func(p string) bool { return !slices.Contains(m.ToolPaths, p) })
	s.kindsKnown = len(f.ToolKinds) > 0 && !slices.ContainsFunc(f.ToolKinds, func(k string) bool { return !isKnownKind(k) && k != "mcp" && k != "other" })
}

// isKnownKind reports whether kind has a common meaning; any other may be
// anything.
func isKnownKind(kind string) bool {
	switch kind {
	case "shell", "file_read", "file_write", "file_edit", "search", "fetch", "task":
		return true
	}
	return false
}
