package conformance

import (
	"strings"

	"github.com/abhed/abhed/ahp"
)

// chainRows are the checks of several subscriptions.
func chainRows() []harnessRow {
	chain := func(id, requirements, about string, judge func(*view, ...*played), plays ...string) harnessRow {
		return harnessRow{id: id, requirements: requirements, about: about, profile: ProfileToolInterception, plays: plays, judge: judge}
	}
	effective := chain("chain.edit", "AHP-EDIT-001", "The next interceptor is asked about the edited input", judgeEffective, playChain)
	effective.after = []string{"chain.order", "edit.replace"}
	ends := chain("chain.deny", "AHP-COMP-001", "After a deny nobody else is asked", judgeEnds, playChain)
	ends.after = []string{"chain.order", "deny"}
	downgrade := chain("chain.downgrade", "AHP-REG-002", "Who wasn't asked after a deny is told once, and who was asked isn't", judgeDowngrade, playLifecycle, playChain)
	downgrade.profile, downgrade.after = ProfileObservation, []string{"chain.deny"}
	stop := chain("chain.stop", "AHP-COMP-001", "After a stop nobody else is asked", judgeStopEnds, playStop)
	stop.after = []string{"stop", "chain.order"}
	return []harnessRow{
		chain("chain.order", "AHP-COMP-001", "Interceptors are asked in the order of the registration", judgeOrder, playChain),
		chain("chain.serial", "AHP-COMP-001", "An interceptor is asked when the one before has answered", judgeSerial, playChain),
		effective, ends, downgrade, stop,
	}
}

// policyRows are the checks of chains that need those of failures.
func policyRows() []harnessRow {
	row := func(id, about string, judge func(*view, ...*played), after ...string) harnessRow {
		return harnessRow{id: id, requirements: "AHP-COMP-001 AHP-FAIL-001", about: about, profile: ProfileToolInterception,
			plays: []string{playPolicies}, judge: judge, after: after}
	}
	return []harnessRow{
		row("chain.closed", "After a failure that is closed nobody else is asked", judgeClosedEnds, "closed.error", "chain.order"),
		row("chain.open", "After a failure that is open the next is asked, and may deny", judgeOpenGoesOn, "open.error", "deny", "chain.order"),
	}
}

// backendsOf returns the backends that were asked about a call, in order.
func (r *played) backendsOf(call int) string {
	var b strings.Builder
	for _, a := range r.asks(call) {
		b.WriteByte(byte('a' + a.backend))
	}
	return b.String()
}

func judgeOrder(v *view, plays ...*played) {
	for _, r := range plays {
		if got := r.backendsOf(0); got != "aab" {
			v.blame(r, r.about(0), "two subscriptions of a and one of b were asked in the order %q, expected \"aab\"", got)
		}
		v.fine(r, r.about(0)...)
	}
}

func judgeSerial(v *view, plays ...*played) {
	for _, r := range plays {
		for _, a := range r.asks(0) {
			v.fine(r, a.line, a.reply)
			if a.busy {
				v.blame(r, r.about(0), "a request came while another about the same call was pending")
			}
		}
	}
}

func judgeEffective(v *view, plays ...*played) {
	v.nothing("the harness doesn't offer to replace the input")
	for _, r := range plays {
		list := r.asks(1)
		if len(list) == 0 || !list[0].offersEdit("replace") {
			continue
		}
		for _, a := range list[1:] {
			v.fine(r, list[0].reply, a.line)
			if command, _ := a.input()["command"].(string); !strings.Contains(command, marker(1)+"-other") {
				v.blame(r, []int{list[0].reply, a.line}, "the request after an edit still has the command %q", command)
			}
		}
		if len(list) < 3 {
			v.blame(r, r.about(1), "after an edit %d of 3 subscriptions were asked", len(list))
		}
	}
}

func judgeEnds(v *view, plays ...*played) {
	for _, r := range plays {
		for call, want := range map[int]string{2: "a", 3: "aa"} {
			if got := r.backendsOf(call); len(got) > len(want) {
				v.blame(r, r.about(call), "the chain %q was asked, expected %q: the last of it denied", got, want)
			}
			v.ran(r, call, false, "a deny")
		}
	}
}

// judgeDowngrade is about observations, which a harness may not have at all.
func judgeDowngrade(v *view, plays ...*played) {
	v.nothing("the harness takes no observers")
	for _, r := range plays {
		if r.play.name == playLifecycle {
			if r.refused() {
				return
			}
			continue
		}
		// The second call from the end is denied by the first subscription of a: its
		// other one and b are left. At the last call b alone is.
		for call, want := range map[int]map[int]int{2: {0: 1, 1: 1}, 3: {1: 1}} {
			got := map[int]int{}
			lines := r.about(call)
			for _, a := range r.of(call, ahp.MethodObserve, ahp.ToolBefore) {
				got[a.backend]++
				lines = append(lines, a.line)
			}
			v.fine(r, lines...)
			for backend := range r.play.backends {
				if got[backend] != want[backend] {
					v.blame(r, lines, "backend %c was told %d times of a call that was denied before all were asked, expected %d", 'a'+backend, got[backend], want[backend])
				}
			}
		}
	}
}

func judgeStopEnds(v *view, plays ...*played) {
	v.nothing("the harness doesn't offer to stop")
	for _, r := range plays {
		list := r.asks(0)
		if len(list) == 0 || !list[0].offersStop() {
			continue
		}
		v.fine(r, r.about(0)...)
		if len(list) > 1 {
			v.blame(r, r.about(0), "another interceptor was asked after a stop")
		}
	}
}

func judgeClosedEnds(v *view, plays ...*played) {
	for _, r := range plays {
		v.fine(r, r.about(1)...)
		if got := r.backendsOf(1); strings.Contains(got, "c") {
			v.blame(r, r.about(1), "the backend after the one that failed closed was asked")
		}
	}
}

func judgeOpenGoesOn(v *view, plays ...*played) {
	for _, r := range plays {
		if got := r.backendsOf(0); !strings.HasSuffix(got, "bc") {
			v.blame(r, r.about(0), "after a failure that is open the backends asked are %q, expected those after it too", got)
		}
		v.ran(r, 0, false, "a deny behind a failure that is open")
		v.ran(r, 2, true, "no objection behind a failure that is open")
	}
}
