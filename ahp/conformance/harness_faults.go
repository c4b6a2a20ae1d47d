package conformance

import (
	"fmt"
	"strings"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest/fault"
)

// faultGroup is a kind of operational failure: one check per failure policy.
type faultGroup struct {
	id, about string
	// rules are the requirements beside that of failure policies.
	rules    string
	level    Level
	bindings []Binding
	faults   []string
	// plays are other runs than that of the menu, for fail-closed and for fail-open.
	closed, open string
}

// faultGroups returns the groups. The faults are those of the menu, beside one of
// our own, which knows what the harness at hand doesn't offer.
func faultGroups() []faultGroup {
	stdioAndHTTP := everywhere()
	web := []Binding{HTTP}
	return []faultGroup{
		{id: "silence", about: "doesn't answer in time", bindings: stdioAndHTTP, faults: []string{"never", "late"}, closed: playSilent, open: playSilentOpen},
		{id: "loss", about: "can't be reached, or is gone before it has answered", bindings: stdioAndHTTP, faults: []string{"half_line", "dies_during", "dies_after"}, closed: playGone, open: playGoneOpen},
		{id: "malformed", rules: "AHP-RPC-001.a AHP-RPC-001.i AHP-RPC-001.j", about: "answers with what is no JSON-RPC response", bindings: stdioAndHTTP,
			faults: []string{"garbage", "bad_utf8", "batch", "no_effects", "result_and_error", "old_jsonrpc", "twice"}},
		{id: "doubtful", rules: "AHP-RPC-001.k AHP-RPC-001.m", about: "answers with what strict readers refuse", level: Should, bindings: stdioAndHTTP,
			faults: []string{"duplicate_keys", "lone_surrogate", "byte_order_mark", "stray", "huge_line"}},
		{id: "other-id", rules: "AHP-RPC-001.a", about: "answers another request", bindings: stdioAndHTTP, faults: []string{"wrong_id"}},
		{id: "error", about: "answers with an error", bindings: stdioAndHTTP, faults: []string{"rpc_error", "version_error", "event_error"}},
		{id: "version", rules: "AHP-VER-001", about: "answers in another revision", bindings: stdioAndHTTP, faults: []string{"other_version"}},
		{id: "effect", rules: "AHP-DEC-001 AHP-CAP-001 AHP-CORE-003.g", about: "answers with an effect that is unknown, malformed or not offered", bindings: stdioAndHTTP,
			faults: []string{"unknown_effect", "malformed_effect", "extra_effect_member", "edits_nothing", ownUnoffered}},
		{id: "status", about: "answers with another HTTP status", bindings: web, faults: []string{"status_500", "status_201", "status_204"}},
		{id: "credential", about: "answers with status 401", bindings: web, faults: []string{"status_401"}},
		{id: "media-type", about: "answers in another media type", bindings: web, faults: []string{"media_type", "event_stream"}},
	}
}

// Faults of our own.
const (
	ownUnoffered = "unoffered_effect"
	// ownEdit is an edit that is offered, beside an unknown effect.
	ownEdit = "half_good"
)

// carrier is what the menu calls a binding.
func (b Binding) carrier() fault.Carrier {
	switch b {
	case HTTP:
		return fault.HTTP
	case StdioPerEvent:
		return fault.StdioPerEvent
	}
	return fault.StdioPersistent
}

// fails reports whether a fault is an operational failure over a binding.
func fails(name string, b Binding) bool {
	if name == ownUnoffered || name == ownEdit {
		return true
	}
	f, known := fault.Find(name)
	return known && f.Classes[b.carrier()] != ""
}

// inMenu returns the faults that the plays of the menu have, in order.
func (e *harnessEnv) inMenu() []string {
	var out []string
	for _, g := range faultGroups() {
		for _, name := range g.faults {
			if g.id != "silence" && fails(name, e.binding) {
				out = append(out, name)
			}
		}
	}
	if e.binding == HTTP {
		out = append(out, "redirect")
	}
	return append(out, ownEdit)
}

// wrongly marks an answer that breaks the protocol on purpose.
func wrongly(re reaction) reaction {
	re.wrong = true
	return re
}

// misbehaves returns what a backend does that has a fault.
func misbehaves(name string, a *arrival) reaction {
	switch name {
	case ownUnoffered:
		effect := object{"type": "allow"}
		if a.offers(ahp.EffectAllow) {
			effect = object{"type": "flow", "operation": "continue", "instruction": "go on"} // never at tool.before (§10)
		}
		return wrongly(says(a, notice(mustNotShow), effect))
	case ownEdit:
		list := []any{notice(mustNotShow)}
		if a.offersEdit("replace") {
			list = append(list, replaced(a.other()))
		}
		return wrongly(says(a, append(list, object{"type": "teleport"})...))
	}
	f, _ := fault.Find(name)
	return reaction{fault: &f}
}

// faultPlays are the runs in which a backend misbehaves at each call in another
// way. At a process that stays every second call is answered well, so that a
// harness has the occasion to start it again.
func (e *harnessEnv) faultPlays() []*play {
	var out []*play
	step := e.step()
	add := func(name, policy string, ms int64, faults []string) {
		out = append(out, &play{name: name, calls: repeated(len(faults)*step, touch()), limit: time.Duration(ms) * time.Millisecond * time.Duration(2*len(faults)),
			backends: []actor{{subs: []any{interceptor(policy, ms, "tool.before")}, answer: func(_ *stage, a *arrival) reaction {
				if !a.asks() || a.call < 0 || a.call%step != 0 {
					return reaction{}
				}
				return misbehaves(faults[a.call/step], a)
			}}}})
	}
	// What is answered at once gets more time, so that a slow machine isn't taken for
	// a silent backend; a harness that goes on listening after bad answers needs it.
	add(playClosed, "fail-closed", 5*e.ms(), e.inMenu())
	add(playOpen, "fail-open", 5*e.ms(), e.inMenu())
	add(playSilent, "fail-closed", e.ms(), silentFaults())
	add(playSilentOpen, "fail-open", e.ms(), silentFaults())
	return out
}

// silentFaults are the faults that a deadline ends.
func silentFaults() []string { return []string{"never", "late"} }

// step is how many calls there are per fault.
func (e *harnessEnv) step() int {
	if e.binding == StdioPersistent {
		return 2
	}
	return 1
}

// gonePlays are the runs with a backend that can't be reached.
func (e *harnessEnv) gonePlays() []*play {
	var out []*play
	for name, policy := range map[string]string{playGone: "fail-closed", playGoneOpen: "fail-open"} {
		b := actor{subs: []any{interceptor(policy, e.ms(), "tool.before")}, deaf: true}
		if e.binding == HTTP {
			b.transport = object{"type": "http", "url": "http://" + closedPort + "/"}
		}
		out = append(out, &play{name: name, calls: repeated(1, touch()), backends: []actor{b}, limit: e.opts.Deadline})
	}
	if e.binding != HTTP {
		out = append(out, &play{name: playLaunch, calls: repeated(1, touch()), limit: e.opts.Deadline, backends: []actor{{
			subs:      []any{interceptor("fail-closed", e.ms(), "tool.before")},
			transport: object{"type": "stdio", "command": "/nonexistent/ahp-conform-backend", "lifecycle": ahp.LifecyclePersistent},
		}}})
	}
	return out
}

// failureRows are the checks of failure policies.
func failureRows() []harnessRow {
	rows := []harnessRow{{
		id: "deadline", requirements: "AHP-FAIL-002", profile: ProfileToolInterception,
		about: "The wait for a decision ends with the deadline of the subscription", plays: []string{playSilent, playSilentOpen}, judge: judgeDeadline,
	}}
	for _, policy := range []string{"closed", "open"} {
		for _, g := range faultGroups() {
			row := harnessRow{
				id: policy + "." + g.id, requirements: "AHP-FAIL-001 " + g.rules, profile: ProfileToolInterception, level: g.level, bindings: g.bindings,
				about: fmt.Sprintf("A fail-%s subscription whose backend %s denies the call", policy, g.about),
				plays: []string{playClosed}, judge: judgeFaults(g, policy),
			}
			extra := g.closed
			if policy == "open" {
				row.about = strings.Replace(row.about, "denies the call", "doesn't keep the call from running", 1)
				row.plays, extra = []string{playOpen}, g.open
			}
			if policy == "closed" {
				row.after = []string{"before"}
			}
			if extra != "" {
				row.plays = append(row.plays, extra)
			}
			if g.id == "loss" && policy == "closed" {
				row.plays = append(row.plays, playLaunch)
			}
			if g.id == "silence" {
				row.plays, row.after = []string{extra}, append(row.after, "deadline")
			}
			rows = append(rows, row)
		}
	}
	return append(rows,
		harnessRow{id: "atomic", requirements: "AHP-EDIT-001 AHP-DEC-001", profile: ProfileToolInterception,
			about: "Nothing of a response that is refused is applied or shown", plays: []string{playClosed, playOpen, playSilent, playSilentOpen}, judge: judgeAtomic},
		harnessRow{id: "retry", requirements: "AHP-CORE-004", profile: ProfileBase,
			about: "A request that is sent again is the same, ids and all", plays: []string{playClosed, playOpen, playSilent, playSilentOpen}, judge: judgeRetry},
		harnessRow{id: "late", requirements: "AHP-FAIL-002", profile: ProfileToolInterception, bindings: []Binding{StdioPersistent},
			about: "A reply that comes too late, or twice, counts for nothing", plays: []string{playLate}, judge: judgeLate,
			// One process tells replies apart by their ids, which both subscriptions share.
			after: []string{"deadline", "deny", "event.unique", "open.silence", "retry"}},
	)
}

// judgeFaults holds that each fault of a group has the effect of the policy.
func judgeFaults(g faultGroup, policy string) func(*view, ...*played) {
	return func(v *view, plays ...*played) {
		for _, r := range plays {
			var list []string
			switch r.play.name {
			case playClosed, playOpen:
				list = v.env.inMenu()
			case playSilent, playSilentOpen:
				list = silentFaults()
			default: // a backend that can't be reached asks for no proof that it was asked
				what := map[string]string{playLaunch: "a program that isn't there"}[r.play.name]
				if what == "" {
					what = "a backend that can't be reached"
				}
				if r.ran[0] == (policy == "closed") {
					v.blame(r, nil, "%s: the call was %s", what, map[bool]string{true: "run", false: "not run"}[r.ran[0]])
				} else {
					v.fine(r, 1, r.endLine, r.filesLine)
				}
				continue
			}
			for i, name := range list {
				if in(g.faults, name) {
					v.ran(r, i*v.env.step(), policy == "open", name)
				}
			}
		}
	}
}

func in(list []string, name string) bool {
	for _, s := range list {
		if s == name {
			return true
		}
	}
	return false
}

func judgeDeadline(v *view, plays ...*played) {
	for _, r := range plays {
		for i, name := range silentFaults() {
			call := i * v.env.step()
			list := r.asks(call)
			if len(list) == 0 {
				continue // closed.silence and open.silence say so
			}
			// A retry may come within the deadline; the end is what comes next, or the
			// command's own.
			end := r.ended()
			for _, a := range r.arrivals {
				if a.call > call && a.at.Before(end) {
					end = a.at
				}
			}
			took := end.Sub(list[0].at)
			if bound := v.env.opts.Deadline + v.env.opts.Grace; took > bound {
				v.blame(r, r.about(call), "%s: nothing else happened for %d ms, with a deadline of %d ms", name, took.Milliseconds(), v.env.ms())
			} else {
				v.fine(r, r.about(call)...)
			}
		}
	}
}

func judgeAtomic(v *view, plays ...*played) {
	for _, r := range plays {
		for i, name := range v.env.inMenu() {
			call := i * v.env.step()
			if name == ownEdit && len(r.asks(call)) > 0 {
				v.fine(r, r.about(call)...)
				if r.did(call, "-other") {
					v.blame(r, r.about(call), "the edit in a response that has an unknown effect was applied")
				}
			}
		}
		if strings.Contains(r.output, mustNotShow) {
			v.blame(r, nil, "the message in a response that counts for nothing was shown")
		}
	}
}

func judgeRetry(v *view, plays ...*played) {
	v.nothing("nothing was sent again")
	for _, r := range plays {
		for call := range r.play.calls {
			list := r.asks(call)
			for i := 1; i < len(list); i++ {
				if string(list[i].raw) == string(list[0].raw) || ahp.Raw(list[i].raw).Equal(list[0].raw) {
					v.fine(r, list[0].line, list[i].line)
				} else {
					v.blame(r, []int{list[0].line, list[i].line}, "the second request about the same call is another")
				}
			}
		}
	}
}

func judgeLate(v *view, plays ...*played) {
	for _, r := range plays {
		v.ran(r, 0, true, "a call whose fail-open backend was silent")
		v.ran(r, 1, false, "a call that is denied after the late reply to another")
		v.ran(r, 2, true, "a call that is answered twice, the second time with a deny")
		v.ran(r, 3, true, "the call after that")
	}
}
