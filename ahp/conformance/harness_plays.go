package conformance

import (
	"strings"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest/fault"
)

// The names of the plays.
const (
	playPlain      = "plain"
	playDecisions  = "decisions"
	playEffects    = "effects"
	playRules      = "own-rules"
	playStop       = "stop"
	playChain      = "chain"
	playPolicies   = "policies"
	playClosed     = "faults-closed"
	playOpen       = "faults-open"
	playSilent     = "silent-closed"
	playSilentOpen = "silent-open"
	playGone       = "gone-closed"
	playGoneOpen   = "gone-open"
	playLaunch     = "launch-closed"
	playLate       = "late"
	playLifecycle  = "lifecycle"
	playObservers  = "observers"
	playBearer     = "bearer"
	playRefused    = "bearer-refused"
	playRefusedTo  = "bearer-refused-open"
	playNoToken    = "bearer-missing"
	playUnknown    = "unknown-members"
	playPublic     = "environment"
)

// generous is a deadline that is never meant to pass, in milliseconds.
const generous = 20000

// interceptor returns a subscription that decides about events.
func interceptor(policy string, ms int64, events ...any) object {
	return object{"events": events, "mode": "intercept", "timeoutMs": ms, "failurePolicy": policy, "content": object{"default": "body"}}
}

// gate is a subscription to tool.before that is meant to be kept.
func gate() object { return interceptor("fail-closed", generous, "tool.before") }

// observer returns a subscription that sees events.
func observer(selection string, events ...any) object {
	return object{"events": events, "mode": "observe", "content": object{"default": selection}}
}

// agrees is a backend that has a say on tool calls and nothing against them.
func agrees(answer func(*stage, *arrival) reaction) actor {
	return actor{subs: []any{gate()}, answer: answer}
}

// says returns a reaction with effects.
func says(a *arrival, list ...any) reaction { return reaction{raw: append(effects(a, list...), '\n')} }

func deny(reason string) object    { return object{"type": "deny", "reason": reason} }
func notice(text string) object    { return object{"type": "message", "text": text} }
func replaced(value object) object { return edited("replace", value) }
func merged(value object) object   { return edited("merge", value) }
func edited(op string, v any) object {
	return object{"type": "modify", "target": "input", "operation": op, "value": v}
}

func repeated(n int, c call) []call {
	out := make([]call, n)
	for i := range out {
		out[i] = c
	}
	return out
}

// other is the input of a call as a backend rewrites it: it makes another file.
func (a *arrival) other() object {
	input := object{}
	for name, v := range a.input() {
		input[name] = v
	}
	command, _ := input["command"].(string)
	input["command"] = strings.ReplaceAll(command, marker(a.call), marker(a.call)+"-other")
	return input
}

// play returns the play of that name, nil if this run has none.
func (e *harnessEnv) play(name string) *play {
	for _, p := range e.plays {
		if p.name == name {
			return p
		}
	}
	return nil
}

// allPlays returns all plays of this run, fresh.
func (e *harnessEnv) allPlays() []*play {
	out := []*play{
		{name: playPlain, calls: repeated(3, touch()), backends: []actor{agrees(answerPlain)}},
		{name: playDecisions, calls: repeated(6, touch()), backends: []actor{agrees(answerDecisions)}},
		{name: playEffects, calls: repeated(4, touch()), backends: []actor{agrees(answerEffects)}},
		{name: playStop, calls: repeated(2, touch()), backends: []actor{agrees(answerStop), agrees(nil)}},
		{name: playChain, calls: repeated(4, touch()), backends: []actor{{subs: []any{gate(), gate()}, answer: answerChain}, agrees(answerHeld)}},
		{name: playPolicies, calls: repeated(3, touch()), backends: []actor{
			{subs: []any{interceptor("fail-open", e.ms(), "tool.before")}, answer: answerFailing(0, 2)}, agrees(answerFailing(1)), agrees(answerLast),
		}},
		{name: playUnknown, calls: repeated(1, touch()), backends: []actor{agrees(nil)}, doc: strange},
		{name: playLifecycle, calls: lifecycleCalls(), backends: []actor{
			{subs: []any{gate(), observer("body", "*")}, answer: answerPlain},
			{subs: []any{observer("omit", "*")}}, {subs: []any{observer("metadata", "*")}},
		}},
		{name: playObservers, calls: repeated(2, touch()), backends: e.badObservers(), limit: e.opts.Grace},
	}
	if e.opts.RefusedInput != nil {
		out = append(out, &play{name: playRules, calls: repeated(2, call{input: string(e.opts.RefusedInput)}), backends: []actor{agrees(answerRules)}})
	}
	for _, part := range [][]*play{e.faultPlays(), e.gonePlays(), e.bindingPlays(), refusedPlays(e.binding)} {
		out = append(out, part...)
	}
	return out
}

// ms is the deadline of what isn't answered well.
func (e *harnessEnv) ms() int64 { return max(1, e.opts.Deadline.Milliseconds()) }

// heldBack is how long an answer is held back to see what a harness does meanwhile.
const heldBack = 80 * time.Millisecond

// denyReason is what a person should find in what the harness says.
const denyReason = "conform-reason-of-a-denial"

// mustNotShow is the text of messages in answers that count for nothing.
const mustNotShow = "must not be shown"

func answerPlain(_ *stage, a *arrival) reaction {
	switch {
	case !a.asks():
		return reaction{}
	case a.call == 0:
		return reaction{hold: heldBack}
	case a.call == 1:
		return says(a, deny(denyReason))
	}
	return reaction{}
}

func answerDecisions(_ *stage, a *arrival) reaction {
	if !a.asks() {
		return reaction{}
	}
	switch a.call {
	case 0:
		list := []any{}
		if a.offers(ahp.EffectMessage) {
			list = append(list, notice("conform-message"))
		}
		if a.offers(ahp.EffectAllow) {
			list = append(list, object{"type": "allow"})
		}
		if a.offersEdit("replace") {
			list = append(list, replaced(a.other()))
		}
		if a.offers(ahp.EffectReturn) {
			list = append(list, object{"type": "return", "value": "conform-result"})
		}
		return says(a, append(list, deny(denyReason))...)
	case 1:
		return says(a, deny(denyReason), object{"type": "deny", "reason": "another", "code": "org.example.conform", "extensions": object{"org.example.conform": 1}})
	case 2:
		if a.offers(ahp.EffectMessage) {
			return says(a, notice("conform-message"))
		}
	case 3, 4:
		result := object{"protocolVersion": ahp.Version, "effects": []any{}, "x-conform": object{"unknown": true}, "extensions": object{"org.example.conform": []any{nil}}}
		if a.call == 4 {
			result["effects"] = []any{deny(denyReason)}
		}
		raw, err := encode(object{"jsonrpc": "2.0", "id": a.body["id"], "result": result, "x-conform": nil})
		if err == nil {
			return reaction{raw: append(raw, '\n')}
		}
	case 5:
		return reaction{raw: a.roomy()}
	}
	return reaction{}
}

// roomy is a response without an objection in another form: the members in no
// order, white space between them, and a megabyte of it.
func (a *arrival) roomy() []byte {
	id, err := encode(a.body["id"])
	if err != nil {
		return nil // it was decoded from JSON
	}
	space := strings.Repeat(" \t", 1<<19)
	return []byte(" {" + space + `"result" : { "effects":[ ] , "protocolVersion" :"draft"}, "id":` + string(id) + ` ,"jsonrpc":"2.0" }` + "\n")
}

// answerEffects returns for each call one effect that the harness may not offer.
func answerEffects(_ *stage, a *arrival) reaction {
	switch {
	case !a.asks():
	case a.call == 0 && a.offersEdit("replace"):
		return says(a, replaced(a.other()))
	case a.call == 1 && a.offersEdit("merge"):
		return says(a, merged(object{"command": a.other()["command"]}))
	case a.call == 2 && a.offers(ahp.EffectReturn):
		return says(a, object{"type": "return", "value": "conform-result"})
	case a.call == 3 && a.offers(ahp.EffectAsk):
		return says(a, object{"type": "ask"})
	}
	return reaction{}
}

func answerRules(_ *stage, a *arrival) reaction {
	if a.asks() && a.call == 1 && a.offers(ahp.EffectAllow) {
		return says(a, object{"type": "allow"})
	}
	return reaction{}
}

func answerStop(_ *stage, a *arrival) reaction {
	if a.asks() && a.offersStop() {
		return says(a, object{"type": "flow", "operation": "stop", "reason": "conform-stop"})
	}
	return reaction{}
}

func answerHeld(_ *stage, a *arrival) reaction {
	if a.call == 0 {
		return reaction{hold: heldBack}
	}
	return reaction{}
}

// answerChain is a backend with two subscriptions: which of them a request is for
// is told by their order alone.
func answerChain(_ *stage, a *arrival) reaction {
	switch {
	case !a.asks():
	case a.call == 0:
		return reaction{hold: heldBack}
	case a.call == 1 && a.nth == 0 && a.offersEdit("replace"):
		return says(a, replaced(a.other()))
	case a.call == 2 && a.nth == 0, a.call == 3 && a.nth == 1:
		return says(a, deny(denyReason))
	}
	return reaction{}
}

// answerFailing is a backend that answers some calls with an error.
func answerFailing(calls ...int) func(*stage, *arrival) reaction {
	return func(_ *stage, a *arrival) reaction {
		for _, c := range calls {
			if a.asks() && a.call == c {
				f, _ := fault.Find("rpc_error")
				return reaction{fault: &f}
			}
		}
		return reaction{}
	}
}

// answerLast denies the first call.
func answerLast(_ *stage, a *arrival) reaction {
	if a.asks() && a.call == 0 {
		return says(a, deny(denyReason))
	}
	return reaction{}
}

// strange adds members that no revision knows to a registration.
func strange(doc object) {
	doc["x-conform"] = object{"unknown": true}
	for _, hook := range doc["hooks"].([]any) {
		h := hook.(object)
		h["x-conform"] = []any{1}
		h["transport"].(object)["x-conform"] = "unknown"
		for _, sub := range h["subscriptions"].([]any) {
			sub.(object)["x-conform"] = nil
		}
	}
}

// outputWord is what a command writes; it is in no command in this form.
const outputWord = "conform-output"

func lifecycleCalls() []call {
	return []call{{command: "touch '{}'; printf '%s-%s' conform output"}, touch(), {command: "touch '{}'; exit 3"}}
}

// badObservers are backends that do what they must not about notifications.
func (e *harnessEnv) badObservers() []actor {
	sees := []any{observer("body", "tool.before")}
	out := []actor{
		{subs: sees, answer: func(_ *stage, a *arrival) reaction { return says(a, deny("conform-observer")) }},
		{subs: sees, answer: func(*stage, *arrival) reaction { return reaction{silent: true} }, deaf: true, stays: true},
		{subs: sees, deaf: true, answer: func(*stage, *arrival) reaction {
			f, _ := fault.Find("status_500")
			return reaction{fault: &f}
		}},
	}
	return out
}

// closedPort is an address of this machine at which nobody listens. A port that
// was free a moment ago won't do: sessions run beside each other, and the system
// soon gives it to the listener of another one.
const closedPort = "127.0.0.1:1"
