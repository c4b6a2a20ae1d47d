// Package adapter is the contract between the native hooks of coding agents and the
// Agent Hooks Protocol: what a native event means as an event of the protocol, and how
// an outcome is said in a host's own dialect.
//
// It guarantees that an effect which a host can't enforce becomes the nearest stricter
// thing that it can, by the host's table of abilities alone (Settle), that nothing is
// advertised which the table doesn't hold, and that a verdict without any effect is
// silence: no native "allow" exists here. Adapters are pure functions: they read
// neither files nor the clock nor the environment.
//
// Do not assume that a host does what its table says in every version: the table says
// how each ability is known. Do not assume that an event is complete: what a host
// doesn't tell isn't made up, but for ids, which are marked as synthesized.
package adapter

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/abhed/abhed/ahp"
)

// Host is one agent's hook dialect. Its functions are pure, and safe for concurrent
// use; so is a Host that nobody changes.
type Host struct {
	// Name is the name on the command line, such as "claude-code".
	Name string
	// Title is the name that people know, such as "Claude Code".
	Title string
	// Deny is how the host reads a refusal.
	Deny Delivery
	// Rows holds every native event that the host has and that means something here,
	// each once. A native event that isn't in it is an unknown shape.
	Rows []Row
	// Deduplicates tells that the host runs an identical command once per event,
	// though two of its files name it.
	Deduplicates bool
	// Markers names the variables by which the host's hooks are recognised, where the
	// hook files of another host led to it.
	Markers []string
	// Read says what a native event means. The error is for an unknown shape: a caller
	// answers it by policy, never with silence.
	Read func(in Input) (*Event, error)
	// Write says a verdict, which Settle made for e, in the dialect: for a refusal the
	// text that Deny delivers, for anything else what goes to standard output with exit
	// code 0. It gives no text only for a verdict without any effect, but for hosts that
	// need a document. e may have nothing but its Row.
	Write func(e *Event, v *Verdict) ([]byte, error)
}

// Stream is one of a hook's output streams.
type Stream string

// The streams.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Delivery says by which exit code and on which stream a host takes a refusal.
type Delivery struct {
	Exit   int
	Stream Stream
}

// Input is one native event as the host gave it.
type Input struct {
	// Data is what came on standard input, without a byte order mark; it isn't empty.
	Data []byte
	// Native names the event where the installed line says it, because the payload of
	// such a host doesn't.
	Native string
	// Markers holds the variables that Host.Markers names, those that are set.
	Markers map[string]string
}

// Event is what a native event means.
type Event struct {
	Row *Row
	// AHP is the event of the protocol without id, source and time, which are the
	// caller's to give. An empty Call.ID is for the caller to make up; Synthesized is
	// set then.
	AHP *ahp.Event
	// Version is the host's version, "" where it doesn't say.
	Version string
	// Tool is the native input of a call as it came, for a host that wants it back with
	// a rewrite; nil elsewhere.
	Tool ahp.Raw
	// Native, if not nil, is what may be passed on as the native event instead of
	// Input.Data: the payload without contents that nobody selected.
	Native ahp.Raw
	// Agent tells that the event is of a sub-agent.
	Agent bool
	// Detail is what the dialect itself has to remember between Read and Write, such as
	// which of two spellings the host used.
	Detail string
}

// How says by what means an effect is enforced.
type How string

// The means.
const (
	// Native: the host has the effect itself.
	Native How = "native"
	// Denies: a refusal stands in for the effect.
	Denies How = "denies"
	// Replaces: the result is replaced by a text.
	Replaces How = "replaces"
	// Stops: the end of the turn stands in for the effect.
	Stops How = "stops"
)

// Level says how sure an effect is.
type Level string

// The levels of the coverage matrix.
const (
	Enforced   Level = "enforced"
	BestEffort Level = "best effort"
	Observe    Level = "observe"
	None       Level = "none"
)

// Ability is one effect that a host can enforce at one event.
type Ability struct {
	Effect ahp.EffectType
	// Operation is set for the effect flow alone.
	Operation ahp.FlowOperation
	How       How
	Level     Level
	// Merges tells, of the rewrite of an input, that the host merges it into the call's
	// own: no member can be taken away so, and a refusal stands in where one has to be.
	Merges bool
	// Note says what to know of it, such as a case in which it doesn't hold; "" for
	// nothing.
	Note string
}

// Row is one native event of a host with what can be enforced there.
type Row struct {
	// Native is the event's name in the host's configuration.
	Native string
	// Type is the event of the protocol that it becomes.
	Type ahp.EventType
	// Can holds the abilities. Without any the event is only observed.
	Can []Ability
	// Deny is how a refusal is delivered at this event; nil is as Host.Deny says.
	Deny *Delivery
	// Continuations bounds how often in a row the end of a turn may be put off; zero
	// means once.
	Continuations int64
	// Note says what to know of the event; "" for nothing.
	Note string
}

// Find returns the ability for an effect, or nil. op is for the effect flow.
func (r *Row) Find(t ahp.EffectType, op ahp.FlowOperation) *Ability {
	for i := range r.Can {
		if a := &r.Can[i]; a.Effect == t && a.Operation == op {
			return a
		}
	}
	return nil
}

// Denies reports whether the host can refuse at this event.
func (r *Row) Denies() bool { return r.Find(ahp.EffectDeny, "") != nil }

// Capabilities returns what the row advertises (§9), or nil for an event that is only
// observed. done is how often this turn's end was put off already.
func (r *Row) Capabilities(done int64) *ahp.Capabilities {
	if len(r.Can) == 0 || !r.Type.Interceptable() {
		return nil
	}
	var effects []ahp.EffectType
	var flow []ahp.FlowOperation
	for i := range r.Can {
		a := &r.Can[i]
		if !slices.Contains(r.Type.Effects(), a.Effect) {
			continue
		}
		if a.Effect == ahp.EffectFlow {
			if a.Operation == ahp.FlowContinue && done >= max(r.Continuations, 1) {
				continue
			}
			flow = append(flow, a.Operation)
		}
		if !slices.Contains(effects, a.Effect) {
			effects = append(effects, a.Effect)
		}
	}
	c := ahp.NewCapabilities(r.Type, effects...)
	if c.Flow != nil {
		c.Flow.Operations = flow
		if slices.Contains(flow, ahp.FlowContinue) {
			left := max(r.Continuations, 1) - done
			c.Flow.RemainingContinuations, c.Flow.ContinuationCount = &left, &done
		}
	}
	if c.Inject != nil {
		c.Inject.Context.DeliverAt = []ahp.Delivery{ahp.DeliverNow}
	}
	return c
}

// Row returns the row of a native event, or nil.
func (h *Host) Row(native string) *Row {
	for i := range h.Rows {
		if h.Rows[i].Native == native {
			return &h.Rows[i]
		}
	}
	return nil
}

// Delivery returns how a refusal is delivered at a row's event.
func (h *Host) Delivery(r *Row) Delivery {
	if r.Deny != nil {
		return *r.Deny
	}
	return h.Deny
}

// Manifest returns what the host promises to send and to enforce (§9). Where two
// native events become one event of the protocol, it offers what either can: a
// request says what holds for its own event.
func (h *Host) Manifest() *ahp.Manifest {
	var rows []ahp.ManifestEvent
	for _, t := range ahp.EventTypes() {
		wide, found := Row{Type: t}, false
		for i := range h.Rows {
			if r := &h.Rows[i]; r.Type == t {
				found = true
				wide.Continuations = max(wide.Continuations, r.Continuations)
				for _, a := range r.Can {
					if wide.Find(a.Effect, a.Operation) == nil {
						wide.Can = append(wide.Can, a)
					}
				}
			}
		}
		if !found {
			continue
		}
		row := ahp.NewManifestEvent(t, ahp.ModeObserve)
		if c := wide.Capabilities(0); c != nil {
			row.Modes, row.Capabilities = append(row.Modes, ahp.ModeIntercept), c
		}
		rows = append(rows, row)
	}
	m := ahp.NewManifest(rows...)
	m.Authentication = []string{"bearer", "oauth"}
	return m
}

// Refusal returns what the host must be told to refuse at a native event when there is
// no verdict; nil where it can't refuse, or where Native is unknown to it.
func (h *Host) Refusal(native, reason string) []byte {
	row := h.Row(native)
	if row == nil || !row.Denies() {
		return nil
	}
	text, err := h.Write(&Event{Row: row}, &Verdict{Deny: Reason(reason)})
	if err != nil {
		return nil
	}
	return text
}

// Blank returns what the host must be told to go on at a native event; nil where
// silence does.
func (h *Host) Blank(native string) []byte {
	row := h.Row(native)
	if row == nil {
		return nil
	}
	text, err := h.Write(&Event{Row: row}, &Verdict{})
	if err != nil {
		return nil
	}
	return text
}

// Trim returns what a host put on standard input without a byte order mark and without
// white space around it. An empty event is an error: nothing may be concluded from it.
func Trim(data []byte) ([]byte, error) {
	all := len(data)
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))
	if len(data) == 0 {
		return nil, fmt.Errorf("the native event is empty: found %d bytes of nothing on standard input, expected one JSON document", all)
	}
	return data, nil
}
