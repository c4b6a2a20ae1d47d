// Package adaptertest holds an adapter against what every adapter owes: events that are
// valid, answers that say nothing but what the host knows, and no silence where
// something can't be read.
//
// It guarantees that every row of a host is asked for every outcome that the protocol
// allows there, that what comes of it is compared with a file of the adapter's own, and
// that each sample is read, or is refused because the test says so.
//
// Do not assume that a host does what its answers ask for: that is known from the host
// alone.
package adaptertest

import (
	"slices"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
)

// Options says what a host's payloads and answers look like.
type Options struct {
	// Update rewrites the golden files in testdata; a test gives its own flag.
	Update bool
	// Samples is a folder of native events, one a file; "" has none.
	Samples string
	// Events holds further native events, by a name of the test's choosing.
	Events map[string]string
	// Unread names samples that are no event of this host, with the reason. A name may
	// end with a star. Reading one must fail.
	Unread map[string]string
	// Native tells the native event of a sample where the payload doesn't: it is what
	// the installed line says. Nil is "" for all.
	Native func(sample string) string
	// Markers are given to each Read.
	Markers map[string]string
	// Event, Tool and Input are the members with the event's name, the tool's name and
	// the tool's input; a dot goes into an object. All of a list are changed together.
	Event, Tool, Input []string
	// Needed are members that every event has, and CallNeeded those that every event
	// about a call has beside the tool's name: without one nothing is read.
	Needed, CallNeeded []string
	// Keys holds, for each native event, the members that its JSON answers may have,
	// objects as "outer.inner". "outer.*" allows everything inside. An event that isn't
	// in it has no JSON answer.
	Keys map[string][]string
	// Prefix is what every answer has to start with, "" for nothing. Keys and the laws are
	// about what follows it.
	Prefix string
	// Document tells that silence is a document too.
	Document bool
	// Call is the call that answers are made for; zero is a shell call.
	Call adapter.Call
}

// Run holds h against o.
func Run(t *testing.T, h *adapter.Host, o Options) {
	if o.Call.Name == "" {
		o.Call = adapter.Call{ID: "call-1", Name: "Bash", Input: ahp.Raw(`{"command":"rm -rf build","timeout":5}`)}
	}
	t.Run("table", func(t *testing.T) { table(t, h, o) })
	t.Run("read", func(t *testing.T) { readAll(t, h, o) })
	t.Run("shapes", func(t *testing.T) { shapes(t, h, o) })
	t.Run("write", func(t *testing.T) { writeAll(t, h, o) })
}

// table checks the host's own description.
func table(t *testing.T, h *adapter.Host, o Options) {
	if h.Name == "" || h.Title == "" || h.Deny.Stream == "" || h.Read == nil || h.Write == nil {
		t.Errorf("the host %q lacks a name, a title, a delivery or a function", h.Name)
	}
	var seen []string
	for i := range h.Rows {
		r := &h.Rows[i]
		if slices.Contains(seen, r.Native) {
			t.Errorf("%s is there twice", r.Native)
		}
		seen = append(seen, r.Native)
		row(t, r)
	}
	if _, err := h.Manifest().Encode(); err != nil {
		t.Errorf("the manifest is not valid: %v", err)
	}
	for name := range o.Keys {
		if h.Row(name) == nil {
			t.Errorf("Keys names %s, which the host doesn't have", name)
		}
	}
}

// row checks one row: an ability that the protocol doesn't know there could never be
// used, and a refusal that stands in must be possible.
func row(t *testing.T, r *adapter.Row) {
	if !r.Type.Known() {
		t.Errorf("%s: %q is no event of the protocol", r.Native, r.Type)
	}
	for i := range r.Can {
		a := &r.Can[i]
		switch {
		case !slices.Contains(r.Type.Effects(), a.Effect):
			t.Errorf("%s: %s is no effect of %s", r.Native, a.Effect, r.Type)
		case (a.Effect == ahp.EffectFlow) != (a.Operation != ""):
			t.Errorf("%s: an operation belongs to flow alone", r.Native)
		case a.Operation != "" && !slices.Contains(r.Type.FlowOperations(), a.Operation):
			t.Errorf("%s: %s is no flow of %s", r.Native, a.Operation, r.Type)
		case r.Find(a.Effect, a.Operation) != a:
			t.Errorf("%s: %s is there twice", r.Native, a.Effect)
		case !slices.Contains([]adapter.How{adapter.Native, adapter.Denies, adapter.Replaces, adapter.Stops}, a.How):
			t.Errorf("%s: %s is enforced by %q", r.Native, a.Effect, a.How)
		case a.Level != adapter.Enforced && a.Level != adapter.BestEffort:
			t.Errorf("%s: %s has the level %q: what isn't enforced isn't listed", r.Native, a.Effect, a.Level)
		case a.How == adapter.Denies && !r.Denies():
			t.Errorf("%s: a refusal stands in for %s, and the host can't refuse", r.Native, a.Effect)
		}
	}
}
