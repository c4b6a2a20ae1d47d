package conformance

import (
	"slices"
	"strings"
	"time"

	"github.com/abhed/abhed/ahp/ahptest/fault"
)

// ended is when the command ended.
func (r *played) ended() time.Time { return r.began.Add(r.took) }

// bindingPlays are the runs for one binding alone.
func (e *harnessEnv) bindingPlays() []*play {
	if e.binding == HTTP {
		refuses := func(policy string) []actor {
			f, _ := fault.Find("status_401")
			return []actor{{bearer: true, subs: []any{interceptor(policy, generous, "tool.before")},
				answer: func(*stage, *arrival) reaction { return reaction{fault: &f} }}}
		}
		keeper := agrees(nil)
		keeper.bearer = true
		return []*play{
			{name: playBearer, calls: repeated(2, touch()), backends: []actor{keeper, agrees(nil)}},
			{name: playRefused, calls: repeated(1, touch()), backends: refuses("fail-closed")},
			{name: playRefusedTo, calls: repeated(1, touch()), backends: refuses("fail-open")},
			{name: playNoToken, calls: repeated(1, touch()), backends: []actor{keeper}, noToken: true},
		}
	}
	out := []*play{{name: playPublic, calls: repeated(1, touch()), backends: []actor{agrees(nil)}}}
	if e.binding == StdioPersistent {
		late := &lateBackend{}
		out = append(out, &play{name: playLate, calls: repeated(4, touch()), limit: e.opts.Deadline, backends: []actor{{
			subs: []any{interceptor("fail-open", e.ms(), "tool.before"), gate()}, answer: late.answer,
		}}})
	}
	return out
}

// lateBackend has two subscriptions. The first one is patient for a short time and
// fails open; the second decides. What comes too late for the first is sent when
// the second is asked about the next call.
type lateBackend struct{ first []byte }

func (l *lateBackend) answer(_ *stage, a *arrival) reaction {
	agree := append(effects(a), '\n')
	switch {
	case !a.asks():
	case a.call == 0 && a.nth == 0:
		l.first = agree
		return reaction{silent: true}
	case a.call == 1 && a.nth > 0:
		return reaction{wrong: true, raw: append(slices.Clone(l.first), append(effects(a, deny(denyReason)), '\n')...)}
	case a.call == 2 && a.nth > 0:
		return reaction{wrong: true, raw: append(agree, append(effects(a, deny(denyReason)), '\n')...)}
	}
	return reaction{}
}

// bindingRows are the checks of stdio and HTTP.
func bindingRows() []harnessRow {
	web, pipes := []Binding{HTTP}, []Binding{StdioPersistent, StdioPerEvent}
	return []harnessRow{
		{id: "stdio.framing", requirements: "AHP-STDIO-001", profile: ProfileStdio, bindings: pipes,
			about: "A message is one JSON object on one line that ends with a newline", plays: []string{playPlain, playDecisions, playChain, playLifecycle}, judge: judgeFraming},
		{id: "stdio.per-event", requirements: "AHP-STDIO-001.f", profile: ProfileStdio, bindings: []Binding{StdioPerEvent},
			about: "A process for one event gets one message and the end of its input", plays: []string{playPlain, playChain}, judge: judgePerEvent},
		{id: "stdio.environment", requirements: "AHP-STDIO-001.g", level: Should, profile: ProfileStdio, bindings: pipes,
			about: "A backend's process doesn't get the environment of the harness", plays: []string{playPublic}, judge: judgeEnvironment},
		{id: "http.request", requirements: "AHP-HTTP-001", profile: ProfileHTTP, bindings: web,
			about: "A message is one JSON object in one POST with the media type of JSON", plays: []string{playPlain, playDecisions, playChain, playLifecycle}, judge: judgeFraming},
		{id: "http.redirect", requirements: "AHP-HTTP-001.h", profile: ProfileHTTP, bindings: web,
			about: "A redirect is not followed", plays: []string{playClosed, playOpen}, judge: judgeRedirect},
		{id: "bearer.sent", requirements: "AHP-AUTH-001", profile: ProfileHTTP, bindings: web,
			about: "A registered token is sent as one Authorization header, to its backend and nobody else", plays: []string{playBearer, playPlain}, judge: judgeBearer},
		{id: "bearer.secret", requirements: "AHP-SEC-001.b", profile: ProfileHTTP, bindings: web,
			about: "A token is in no message and in nothing that the harness writes", plays: []string{playBearer, playRefused, playRefusedTo}, judge: judgeSecret},
		{id: "bearer.refused", requirements: "AHP-AUTH-001.b", profile: ProfileHTTP, bindings: web, after: []string{"bearer.sent", "closed.credential", "open.credential"},
			about: "Where a token is refused no other identity is tried, and the failure policy holds", plays: []string{playRefused, playRefusedTo}, judge: judgeRefusedToken},
		{id: "bearer.missing", requirements: "AHP-AUTH-001.b", profile: ProfileHTTP, bindings: web,
			about: "Without the registered token nothing is sent and nothing is run", plays: []string{playNoToken}, judge: judgeMissing},
	}
}

func judgeFraming(v *view, plays ...*played) {
	for _, r := range plays {
		for _, a := range r.arrivals {
			switch {
			case a.framing != "" && !strings.HasPrefix(a.framing, "a process for one"):
				v.blame(r, []int{a.line}, "%s", a.framing)
			case a.body == nil && v.env.binding == HTTP:
				v.blame(r, []int{a.line}, "the body isn't one JSON object")
			default:
				v.fine(r, a.line)
			}
		}
	}
}

func judgePerEvent(v *view, plays ...*played) {
	for _, r := range plays {
		for _, a := range r.arrivals {
			if strings.HasPrefix(a.framing, "a process for one") {
				v.blame(r, []int{a.line}, "%s", a.framing)
				continue
			}
			if end := r.tells(a.link, saysEOF); end > 0 {
				v.fine(r, a.line, end)
			} else {
				v.blame(r, []int{a.line, a.reply}, "the process got a message and no end of its input")
			}
		}
	}
}

func judgeEnvironment(v *view, plays ...*played) {
	for _, r := range plays {
		for i, names := range r.names {
			line := r.tells(i+1, saysNames)
			v.fine(r, line)
			if slices.Contains(names, varToken) || slices.Contains(names, varCalls) {
				v.blame(r, []int{line}, "the process has the variables of the harness, %s among them", varToken)
				return
			}
		}
	}
}

func judgeRedirect(v *view, plays ...*played) {
	for _, r := range plays {
		v.fine(r, r.about(slices.Index(v.env.inMenu(), "redirect")*v.env.step())...)
		for _, a := range r.strays {
			v.blame(r, []int{a.line}, "a request came where a redirect led")
		}
	}
}

func judgeBearer(v *view, plays ...*played) {
	for _, r := range plays {
		if r.play.name == playBearer && len(r.arrivals) == 0 {
			v.blame(r, nil, "the backend with a token was not asked")
		}
		for _, a := range r.arrivals {
			values := a.header.Values("Authorization")
			switch wants := r.play.backends[a.backend].bearer; {
			case wants && (len(values) != 1 || values[0] != "Bearer "+v.env.token):
				v.blame(r, []int{a.line, r.tells(a.link, saysToken)}, "the registered token wasn't sent as one Authorization header")
			case !wants && len(values) > 0:
				v.blame(r, []int{a.line, r.tells(a.link, saysToken)}, "a backend without authentication got an Authorization header")
			default:
				v.fine(r, a.line, r.tells(a.link, saysToken))
			}
		}
	}
}

func judgeSecret(v *view, plays ...*played) {
	for _, r := range plays {
		for _, a := range r.arrivals {
			v.fine(r, a.line, r.endLine)
			if strings.Contains(string(a.raw), v.env.token) {
				v.blame(r, []int{a.line}, "the token is in a message")
			}
		}
		if strings.Contains(r.output, v.env.token) {
			v.blame(r, nil, "the token is in what the harness wrote")
		}
	}
}

func judgeRefusedToken(v *view, plays ...*played) {
	for _, r := range plays {
		for _, a := range r.arrivals {
			if got := a.header.Get("Authorization"); got != "Bearer "+v.env.token {
				v.blame(r, []int{a.line}, "a request without the registered token came")
			}
		}
		v.ran(r, 0, r.play.name == playRefusedTo, "a backend that refuses the token")
	}
}

func judgeMissing(v *view, plays ...*played) {
	for _, r := range plays {
		v.fine(r, 1, r.endLine, r.filesLine)
		for _, a := range r.arrivals {
			v.blame(r, []int{a.line}, "a request was sent without the registered token")
		}
		if r.ran[0] {
			v.blame(r, nil, "the call was run")
		} else if !r.refused() && len(r.arrivals) == 0 {
			v.blame(r, nil, "the command began all the same: exit code 0 says that the registration was taken")
		}
	}
}
