package brokenharness

import (
	"context"

	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// Defects returns all defects.
func Defects() []Defect {
	var out []Defect
	for _, part := range [][]Defect{messageDefects(), registrationDefects(), decisionDefects(), chainDefects(), failureDefects(), observerDefects(), bindingDefects()} {
		out = append(out, part...)
	}
	return out
}

func messageDefects() []Defect {
	return []Defect{
		{Check: "asked", About: "asks nobody", conduct: conduct{unasked: true}},
		{Check: "message.valid", About: "puts an output into the tool of tool.before", wire: wire{out: asks(func(o object) {
			if tool, is := event(o)["tool"].(object); is {
				tool["output"] = "none yet"
			}
		})}},
		{Check: "message.version", About: "names another revision", wire: wire{out: asks(func(o object) { o["params"].(object)["protocolVersion"] = "2031-01-01" })}},
		{Check: "message.id", About: "gives requests ids of their own", wire: wire{exchange: func(ctx context.Context, p *peer, msg []byte) ([]byte, error) {
			id := idOf(msg)
			got, err := p.Transport.Exchange(ctx, edited(msg, func(o object) { o["id"] = "request-" + id }))
			return []byte(strings.ReplaceAll(string(got), "request-"+id, id)), err
		}}},
		{Check: "event.unique", About: "has one id for all calls", wire: wire{exchange: func(ctx context.Context, p *peer, msg []byte) ([]byte, error) {
			id := idOf(msg)
			got, err := p.Transport.Exchange(ctx, edited(msg, func(o object) { o["id"] = "the-event"; event(o)["id"] = "the-event" }))
			return []byte(strings.ReplaceAll(string(got), `"the-event"`, `"`+id+`"`)), err
		}}},
		{Check: "event.members", About: "leaves the path out of tool.before", wire: wire{out: asks(func(o object) { delete(event(o), "path") })}},
		{Check: "native", About: "always sends native data", wire: wire{out: asks(func(o object) { event(o)["native"] = object{"provider": "conform"} })}},
		{Check: "match", About: "tells of files that changed whoever asks for something else", wire: wire{exchange: func(ctx context.Context, p *peer, msg []byte) ([]byte, error) {
			if ms := p.backend.Subscriptions[0].TimeoutMs; ms == nil || *ms < 20000 {
				return p.Transport.Exchange(ctx, msg) // there is no time for more
			}
			e := event(parsed(msg))
			raw, err := strictjson.Marshal(object{"jsonrpc": "2.0", "method": ahp.MethodObserve, "params": object{"protocolVersion": ahp.Version, "event": object{
				"id": fmt.Sprintf("%s-%d", idOf(msg), p.place), "source": e["source"], "time": e["time"], "type": "file.changed",
				"changes": []any{object{"path": "x", "operation": "create", "agentCaused": true}},
			}}})
			if err == nil {
				_ = p.Transport.Notify(ctx, raw)
			}
			return p.Transport.Exchange(ctx, msg)
		}}},
		{Check: "capabilities.deny", About: "doesn't offer deny", wire: wire{out: asks(func(o object) {
			c := o["params"].(object)["capabilities"].(object)
			c["effects"] = slices.DeleteFunc(c["effects"].([]any), func(e any) bool { return e == "deny" })
		})}},
		{Check: "capabilities.bound", About: "offers edits without saying of what", wire: wire{out: asks(func(o object) {
			delete(o["params"].(object)["capabilities"].(object), "modify")
		})}},
	}
}

func registrationDefects() []Defect {
	hooks := func(doc object) []any { list, _ := doc["hooks"].([]any); return list }
	some := func(doc object, f func(hook, sub object) bool) bool {
		for _, h := range hooks(doc) {
			hook := h.(object)
			subs, _ := hook["subscriptions"].([]any)
			for _, s := range subs {
				if f(hook, s.(object)) {
					return true
				}
			}
		}
		return false
	}
	text := func(doc object, words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(fmt.Sprint(doc), w) })
	}
	return []Defect{
		{Check: "registration.unknown", About: "refuses members that it doesn't know", rejects: func(text string) bool { return strings.Contains(text, "x-conform") }},
		{Check: "registration.version", About: "takes any revision", forgives: func(doc object) bool { return doc["protocolVersion"] != ahp.Version }},
		{Check: "registration.hooks", About: "takes a registration of nothing", forgives: func(doc object) bool {
			return !some(doc, func(object, object) bool { return true })
		}},
		{Check: "registration.ids", About: "takes two backends with one id", forgives: func(doc object) bool {
			ids := map[any]bool{}
			for _, h := range hooks(doc) {
				ids[h.(object)["id"]] = true
			}
			return len(ids) < len(hooks(doc))
		}},
		{Check: "registration.values", About: "leaves out what it doesn't understand", forgives: func(doc object) bool {
			return text(doc, "carrier-pigeon", "advise", "tool.sideways", "everything", "tool.permission.*", "session.end", "managed") || some(doc, func(_, s object) bool { return s["content"] == nil })
		}},
		{Check: "registration.policy", About: "has a failure policy and a deadline of its own", forgives: func(doc object) bool {
			return some(doc, func(_, s object) bool {
				return s["mode"] == "observe" && s["timeoutMs"] != nil || s["mode"] == "intercept" && (s["failurePolicy"] == nil || s["failurePolicy"] == "fail-quietly" || s["timeoutMs"] == nil || s["timeoutMs"] == 0.0)
			})
		}},
		{Check: "registration.auth", About: "leaves out authentication that it doesn't understand", forgives: func(doc object) bool {
			return some(doc, func(hook, _ object) bool {
				auth, is := hook["authentication"].(object)
				return is && (auth["type"] == "mtls" || auth["tokenRef"] != nil || hook["transport"].(object)["type"] == "stdio")
			})
		}},
		{Check: "registration.secret", About: "doesn't mind a literal token", forgives: func(doc object) bool { return text(doc, "conform-literal-token") }},
	}
}

func decisionDefects() []Defect {
	is := func(t ahp.EffectType, op ahp.Operation) func(ahp.Effect) bool {
		return func(e ahp.Effect) bool {
			m, edits := e.(*ahp.Modify)
			return e.EffectType() == t && (!edits || m.Operation == op)
		}
	}
	return []Defect{
		{Check: "before", About: "runs a call while it asks", conduct: conduct{eager: true}},
		{Check: "deny", About: "runs what was denied", conduct: conduct{stubborn: true}},
		{Check: "deny.reason", About: "doesn't say why", conduct: conduct{mute: true}},
		{Check: "own-rules", About: "drops its own rules when it has a registration", conduct: conduct{lawless: true}},
		{Check: "message", About: "takes a message for an objection", wire: wire{exchange: sole(is(ahp.EffectMessage, ""), &ahp.Deny{Reason: "a message came"})}},
		{Check: "response.unknown", About: "refuses responses with unknown members", wire: wire{exchange: func(ctx context.Context, p *peer, msg []byte) ([]byte, error) {
			got, err := p.Transport.Exchange(ctx, msg)
			if contains(got, "x-conform") {
				return nil, &ahp.Failure{Class: ahp.FailMalformed, Detail: "an unknown member"}
			}
			return got, err
		}}},
		{Check: "response.form", About: "wants a response to start with the brace", wire: wire{exchange: func(ctx context.Context, p *peer, msg []byte) ([]byte, error) {
			got, err := p.Transport.Exchange(ctx, msg)
			if strings.HasPrefix(string(got), " ") {
				return nil, &ahp.Failure{Class: ahp.FailMalformed, Detail: "it doesn't start with a brace"}
			}
			return got, err
		}}},
		{Check: "edit.replace", About: "accepts a replaced input and runs the first one", wire: wire{exchange: sole(is(ahp.EffectModify, ahp.OpReplace))}},
		{Check: "edit.merge", About: "accepts a merged input and runs the first one", wire: wire{exchange: sole(is(ahp.EffectModify, ahp.OpMerge))}},
		{Check: "return", About: "runs a call whose result was supplied", wire: wire{exchange: sole(is(ahp.EffectReturn, ""))}},
		{Check: "ask", About: "approves in nobody's name", conduct: conduct{generous: true}},
		{Check: "stop", About: "goes on after a stop", wire: wire{exchange: sole(is(ahp.EffectFlow, ""))}},
	}
}

func chainDefects() []Defect {
	return []Defect{
		{Check: "chain.order", About: "asks the last backend first", doc: func(doc object) { slices.Reverse(doc["hooks"].([]any)) }},
		{Check: "chain.serial", About: "asks all subscriptions of a backend at once", wire: wire{exchange: atOnce}},
		{Check: "chain.edit", About: "asks everybody about the first input", wire: wire{out: func(p *peer, o object, msg []byte) []byte {
			if o["method"] != ahp.MethodIntercept {
				return msg
			}
			first, _ := p.s.remember(idOf(msg), slices.Clone(msg))
			return first
		}}},
		{Check: "chain.deny", About: "asks on after a deny", wire: wire{exchange: after(func(_ *peer, effects []ahp.Effect, _ []byte) bool {
			return slices.ContainsFunc(effects, func(e ahp.Effect) bool { return e.EffectType() == ahp.EffectDeny })
		})}},
		{Check: "chain.downgrade", About: "tells nobody of a chain that ended", wire: wire{notify: func(p *peer, _ object) bool { return hasMode(p.backend, ahp.ModeObserve) > 0 }}},
		{Check: "chain.stop", About: "asks on after a stop", wire: wire{exchange: after(func(_ *peer, effects []ahp.Effect, _ []byte) bool {
			return slices.ContainsFunc(effects, func(e ahp.Effect) bool { return e.EffectType() == ahp.EffectFlow })
		})}},
		{Check: "chain.closed", About: "asks on after a failure that is closed", wire: wire{exchange: after(func(p *peer, _ []ahp.Effect, got []byte) bool {
			return contains(got, `"error":`) && p.backend.Subscriptions[0].FailurePolicy == ahp.FailClosed
		})}},
		{Check: "chain.open", About: "asks nobody else after a failure that is open", wire: wire{exchange: func(ctx context.Context, p *peer, msg []byte) ([]byte, error) {
			if _, over := p.s.remember("?"+idOf(msg), nil); over && p.place > 0 {
				return reply(msg), nil
			}
			p.s.forget("?" + idOf(msg))
			got, err := p.Transport.Exchange(ctx, msg)
			if contains(got, `"error":`) && p.backend.Subscriptions[0].FailurePolicy == ahp.FailOpen {
				p.s.remember("?"+idOf(msg), nil)
			}
			return got, err
		}}},
	}
}

func (s *session) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.memory, name)
}

// after asks the backends after one whose answer ended the chain.
func after(ended func(p *peer, effects []ahp.Effect, got []byte) bool) func(context.Context, *peer, []byte) ([]byte, error) {
	return func(ctx context.Context, p *peer, msg []byte) ([]byte, error) {
		got, err := p.Transport.Exchange(ctx, msg)
		if err == nil && ended(p, effectsOf(msg, got), got) {
			p.others(ctx, msg)
		}
		return got, err
	}
}

// atOnce asks a backend about a session's first call as often as it has
// subscriptions, at the same time.
func atOnce(ctx context.Context, p *peer, msg []byte) ([]byte, error) {
	if hasMode(p.backend, ahp.ModeIntercept) < 2 || !contains(msg, "call000") {
		return p.Transport.Exchange(ctx, msg)
	}
	name := "reply to " + idOf(msg)
	if second, known := p.s.remember(name, nil); known {
		return second, nil
	}
	type answer struct {
		got []byte
		err error
	}
	other := make(chan answer, 1)
	go func() {
		got, err := p.Transport.Exchange(ctx, msg)
		other <- answer{got, err}
	}()
	got, err := p.Transport.Exchange(ctx, msg)
	second := <-other
	p.s.forget(name)
	p.s.remember(name, second.got)
	return got, err
}

func observerDefects() []Defect {
	return []Defect{
		{Check: "observe", About: "forgets the last observer", wire: wire{notify: func(p *peer, o object) bool {
			return p.place < 2 || typeOf(o) != string(ahp.ToolBefore)
		}}},
		{Check: "content", About: "sends everybody everything", doc: func(doc object) {
			for _, h := range doc["hooks"].([]any) {
				subs, _ := h.(object)["subscriptions"].([]any)
				for _, s := range subs {
					if c, is := s.(object)["content"].(object); is && (c["default"] == "omit" || c["default"] == "metadata") {
						c["default"] = "body"
					}
				}
			}
		}},
		{Check: "manifest", About: "promises less than it offers", wire: wire{out: func(_ *peer, o object, msg []byte) []byte {
			if typeOf(o) != string(ahp.SessionStart) {
				return msg
			}
			return edited(msg, func(o object) {
				for _, row := range event(o)["manifest"].(object)["events"].([]any) {
					if c, is := row.(object)["capabilities"].(object); is {
						c["effects"] = slices.DeleteFunc(c["effects"].([]any), func(e any) bool { return e == "ask" })
					}
				}
			})
		}}},
		{Check: "after", About: "gives the result of a call another id", wire: wire{out: func(_ *peer, o object, msg []byte) []byte {
			if typeOf(o) != string(ahp.ToolAfter) {
				return msg
			}
			return edited(msg, func(o object) { event(o)["call"] = object{"id": "another"} })
		}}},
		{Check: "observers", About: "runs nothing that nobody decides about", conduct: conduct{anxious: true}},
	}
}

func bindingDefects() []Defect {
	return []Defect{
		{Check: "stdio.framing", About: "ends a message with an empty line", wire: wire{mangle: "blank"}},
		{Check: "stdio.per-event", About: "leaves the input of a process open that it asks", wire: wire{mangle: "open"}},
		{Check: "stdio.environment", About: "gives its own environment away", wire: wire{environ: true}},
		{Check: "late", About: "takes a late reply for that to the next request", wire: wire{mangle: "latest"}},
		{Check: "http.request", About: "calls its messages plain text", wire: wire{trip: func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }}},
		{Check: "http.redirect", About: "follows redirects", wire: wire{exchange: func(ctx context.Context, p *peer, msg []byte) ([]byte, error) {
			got, err := p.Transport.Exchange(ctx, msg)
			if err != nil && strings.Contains(err.Error(), "307") {
				_ = p.post(ctx, "/elsewhere", msg)
			}
			return got, err
		}}},
		{Check: "bearer.sent", About: "shows every backend its token", wire: wire{trip: func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+ownToken())
		}}},
		{Check: "bearer.secret", About: "logs its token", conduct: conduct{chatty: true}},
		{Check: "bearer.refused", About: "tries without the token where that is refused", wire: wire{exchange: func(ctx context.Context, p *peer, msg []byte) ([]byte, error) {
			got, err := p.Transport.Exchange(ctx, msg)
			if failure(msg, got, err) == ahp.FailAuth && p.backend.Authentication != nil {
				_ = p.post(ctx, "", msg)
			}
			return got, err
		}}},
		{Check: "bearer.missing", About: "sends an empty phrase for a token that is missing", wire: wire{token: "anonymous"}},
	}
}
