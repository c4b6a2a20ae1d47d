package conformance

import (
	"strings"

	"github.com/abhed/abhed/ahp"
)

// decisionRows are the checks of what a harness makes of effects.
func decisionRows() []harnessRow {
	decision := func(id, requirements, about string, judge func(*view, ...*played), plays ...string) harnessRow {
		return harnessRow{id: id, requirements: requirements, about: about, profile: ProfileToolInterception, plays: plays, judge: judge}
	}
	reason := decision("deny.reason", "AHP-DEC-002.a", "The reason of a denial is told to who reads about the call", judgeReason, playPlain)
	reason.level, reason.after = Should, []string{"deny"}
	rules := decision("own-rules", "AHP-DEC-003 AHP-SEC-001", "What the harness's own rules refuse is refused, whether nobody objects or somebody allows", judgeRules, playRules)
	rules.level = MustNot
	greased := decision("response.unknown", "AHP-CORE-003.a AHP-CORE-003.b AHP-EXT-001", "Unknown members around the effects, and extensions, change nothing", judgeGreased, playDecisions)
	greased.after = []string{"deny"}
	rows := []harnessRow{
		decision("before", "AHP-TB-001", "A call isn't run before its tool.before is answered", judgeBefore, playPlain, playDecisions, playEffects, playChain, playLifecycle),
		decision("deny", "AHP-DEC-002", "A call that is denied isn't run, whatever else the response says", judgeDeny, playPlain, playDecisions),
		reason, rules,
		decision("message", "AHP-DEC-001", "A response with a message alone lets the call run", judgeMessage, playDecisions),
		greased,
		decision("response.form", "AHP-RPC-001.e AHP-RPC-001.n", "White space, the order of members and a large size change nothing", func(v *view, plays ...*played) {
			for _, r := range plays {
				v.ran(r, 5, true, "no effects, in a megabyte")
			}
		}, playDecisions),
		decision("edit.replace", "AHP-EDIT-001", "An input that is replaced is the one that runs", judgeEdit(0, "replace"), playEffects),
		decision("edit.merge", "AHP-EDIT-001", "An input that is merged is the one that runs", judgeEdit(1, "merge"), playEffects),
		decision("return", "AHP-DEC-001", "A call whose result is supplied isn't run", judgeNotRun(2, ahp.EffectReturn), playEffects),
		decision("ask", "AHP-DEC-001", "A call that needs an approval which nobody gives isn't run", judgeNotRun(3, ahp.EffectAsk), playEffects),
		decision("stop", "AHP-COMP-001", "After a stop neither this call nor a later one is run", judgeStop, playStop),
	}
	for i := range rows[1:] {
		rows[i+1].after = append(rows[i+1].after, "before")
	}
	return rows
}

func judgeBefore(v *view, plays ...*played) {
	for _, r := range plays {
		for _, a := range r.arrivals {
			switch {
			case !a.asks():
			case a.early:
				v.blame(r, []int{a.line}, "the call had run when its tool.before came")
			case a.hasty:
				v.blame(r, []int{a.line, a.reply}, "the call ran before its tool.before was answered")
			default:
				v.fine(r, a.line, a.reply)
			}
		}
	}
}

func judgeDeny(v *view, plays ...*played) {
	for _, r := range plays {
		if r.play.name == playPlain {
			v.ran(r, 1, false, "a deny")
			continue
		}
		v.ran(r, 0, false, "a deny behind other effects")
		if r.did(0, "-other") {
			v.blame(r, r.about(0), "a deny behind other effects: the edited call was run")
		}
		v.ran(r, 1, false, "two denies")
	}
}

func judgeReason(v *view, plays ...*played) {
	for _, r := range plays {
		v.fine(r, append(r.about(1), r.reasonLine)...)
		if !strings.Contains(r.output, denyReason) {
			v.blame(r, r.about(1), "%q is in nothing that the harness wrote", denyReason)
		}
	}
}

func judgeRules(v *view, plays ...*played) {
	v.nothing("no input is known that the harness's own rules refuse; give one (refused input)")
	for _, r := range plays {
		for i, what := range []string{"an empty list of effects", "an allow"} {
			list := r.asks(i)
			switch {
			case r.ran[i]:
				v.blame(r, r.about(i), "%s: what the harness's own rules refuse was run", what)
			case len(list) > 0 && (i == 0 || list[0].offers(ahp.EffectAllow)):
				v.fine(r, r.about(i)...)
			}
		}
	}
}

func judgeMessage(v *view, plays ...*played) {
	v.nothing("message isn't offered")
	for _, r := range plays {
		for _, a := range r.asks(2) {
			if a.offers(ahp.EffectMessage) {
				v.ran(r, 2, true, "a message")
			}
		}
	}
}

func judgeGreased(v *view, plays ...*played) {
	for _, r := range plays {
		v.ran(r, 3, true, "no effects and unknown members")
		v.ran(r, 4, false, "a deny and unknown members")
	}
}

func judgeEdit(call int, operation string) func(*view, ...*played) {
	return func(v *view, plays ...*played) {
		v.nothing("the harness doesn't offer to %s the input", operation)
		for _, r := range plays {
			list := r.asks(call)
			if len(list) == 0 || !list[0].offersEdit(operation) {
				continue
			}
			switch {
			case r.ran[call]:
				v.blame(r, r.about(call), "the call was run with its first input")
			case !r.did(call, "-other"):
				v.blame(r, r.about(call), "the call was not run with the new input")
			default:
				v.fine(r, r.about(call)...)
			}
		}
	}
}

func judgeNotRun(call int, effect ahp.EffectType) func(*view, ...*played) {
	return func(v *view, plays ...*played) {
		v.nothing("%s isn't offered", effect)
		for _, r := range plays {
			if list := r.asks(call); len(list) > 0 && list[0].offers(effect) {
				v.ran(r, call, false, string(effect))
			}
		}
	}
}

func judgeStop(v *view, plays ...*played) {
	v.nothing("the harness doesn't offer to stop")
	for _, r := range plays {
		list := r.asks(0)
		if len(list) == 0 || !list[0].offersStop() {
			continue
		}
		for i := range r.ran {
			if r.ran[i] {
				v.blame(r, append(r.about(0), r.about(i)...), "call %d was run after call 0 was answered with a stop", i)
			}
		}
		v.fine(r, r.about(0)...)
	}
}
