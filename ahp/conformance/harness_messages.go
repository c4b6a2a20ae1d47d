package conformance

import (
	"errors"
	"fmt"
	"strings"

	"github.com/abhed/abhed/ahp"
)

// everyPlay are the runs whose messages are judged: all in which backends behave.
func everyPlay() []string {
	return []string{playPlain, playDecisions, playEffects, playStop, playChain, playPolicies, playLifecycle, playObservers}
}

// messageRows are the checks of what a harness sends.
func messageRows() []harnessRow {
	return []harnessRow{
		{id: asked, requirements: "AHP-RPC-002 AHP-TB-001", profile: ProfileBase, plays: []string{playPlain}, judge: judgeAsked,
			about: "Each call is asked about by hooks/intercept, and is run where nobody objects"},
		{id: "message.valid", requirements: "AHP-RPC-001 AHP-CORE-003.e AHP-CORE-003.f AHP-CONTENT-001", profile: ProfileBase, plays: everyPlay(), judge: judgeValid,
			about: "Every message is valid by the protocol's schema"},
		{id: "message.version", requirements: "AHP-VER-001", profile: ProfileBase, plays: everyPlay(), judge: judgeKind(ahp.KindVersion),
			about: "Every message names the revision"},
		{id: "message.id", requirements: "AHP-RPC-002.b", profile: ProfileBase, plays: everyPlay(), judge: judgeKind(ahp.KindCorrelation),
			about: "The id of a decision request is the id of its event"},
		{id: "event.unique", requirements: "AHP-CORE-004", profile: ProfileBase, plays: []string{playPlain, playDecisions, playChain, playLifecycle}, judge: judgeUnique,
			about: "Two events have two ids, and one event has the same for everybody"},
		{id: "event.members", requirements: "AHP-TB-001", profile: ProfileToolInterception, plays: []string{playPlain, playDecisions}, judge: judgeMembers,
			about: "tool.before has the call, the tool with the very input, and the path"},
		{id: "native", requirements: "AHP-SEC-001", level: MustNot, profile: ProfileBase, plays: everyPlay(), judge: judgeNative,
			about: "Native data is sent only to a subscription that asks for it"},
		{id: "match", requirements: "AHP-REG-002", profile: ProfileBase, plays: []string{playPlain, playDecisions, playEffects, playBearer}, judge: judgeMatch,
			about: "A subscription gets the events that it selects, in its mode, and no other"},
		{id: "capabilities.deny", requirements: "AHP-CAP-002", profile: ProfileToolInterception, plays: everyPlay(), judge: judgeDenyOffered,
			about: "Every request at tool.before offers deny"},
		{id: "capabilities.bound", requirements: "AHP-CAP-001 AHP-CAP-002", profile: ProfileToolInterception, plays: everyPlay(), judge: judgeKind(ahp.KindCapability),
			about: "Nothing is offered that an event can't have, and options say what is offered"},
	}
}

// answersAtAll says why the plain play shows no harness; "" if it does.
func answersAtAll(r *played) string {
	switch {
	case r.killed:
		return "the command did not end in time"
	case len(r.arrivals) == 0 && !r.clean():
		return fmt.Sprintf("no message came, and the command ended with %s", r.exit)
	case len(r.arrivals) == 0:
		return "no message came"
	}
	for _, call := range []int{0, 2} {
		if len(r.asks(call)) == 0 {
			return fmt.Sprintf("no hooks/intercept of tool.before about call %d came", call)
		}
		if !r.ran[call] {
			return fmt.Sprintf("call %d, to which nobody objected, was not run", call)
		}
	}
	if len(r.asks(1)) == 0 {
		return "no hooks/intercept of tool.before about call 1 came"
	}
	if !r.clean() {
		return fmt.Sprintf("every call was made or refused, and the command ended with %s", r.exit)
	}
	return ""
}

func judgeAsked(v *view, plays ...*played) {
	for _, r := range plays {
		var lines []int
		for _, a := range r.arrivals {
			lines = append(lines, a.line, a.reply)
		}
		lines = append(lines, r.endLine, r.filesLine)
		if why := answersAtAll(r); why != "" {
			v.blame(r, lines, "%s", why)
		}
		v.fine(r, lines...)
	}
}

// kinds of broken rules that have a check of their own.
func ownKind(k ahp.Kind) bool {
	return k == ahp.KindVersion || k == ahp.KindCorrelation || k == ahp.KindCapability
}

// flaw is the rule that a message breaks, or nil.
func (a *arrival) flaw() *ahp.Error {
	_, err := ahp.DecodeRequest(a.raw)
	var e *ahp.Error
	if err == nil {
		return nil
	}
	if errors.As(err, &e) {
		return e
	}
	return &ahp.Error{Kind: ahp.KindShape, Offset: -1, Found: "a message that can't be read", Err: err}
}

func judgeValid(v *view, plays ...*played) {
	for _, r := range plays {
		for _, a := range r.arrivals {
			e := a.flaw()
			switch {
			case a.framing != "" && v.env.binding != HTTP: // stdio.framing says so
			case e == nil:
				v.fine(r, a.line)
			case ownKind(e.Kind) || a.asks() && memberOf(a) != "": // others say so
			case e.Requirement == "AHP-CAP-002" || strings.HasPrefix(e.Pointer, "/params/capabilities"):
			default:
				v.blame(r, []int{a.line}, "%v", e)
			}
		}
	}
}

func judgeKind(k ahp.Kind) func(*view, ...*played) {
	return func(v *view, plays ...*played) {
		for _, r := range plays {
			for _, a := range r.arrivals {
				e := a.flaw()
				mine := e != nil && (e.Kind == k || k == ahp.KindCapability && strings.HasPrefix(e.Pointer, "/params/capabilities"))
				switch {
				case mine && k == ahp.KindCapability && a.eventType() == ahp.ToolBefore && !a.offers(ahp.EffectDeny): // capabilities.deny says so
				case mine:
					v.blame(r, []int{a.line}, "%v", e)
				default:
					v.fine(r, a.line)
				}
			}
		}
	}
}

// judgeUnique goes by calls: the requests about one call have one id, which no
// other call has. An event after is another event.
func judgeUnique(v *view, plays ...*played) {
	for _, r := range plays {
		owner := map[string]*arrival{}
		byCall := map[int]string{}
		for _, a := range r.arrivals {
			id, _ := a.event()["id"].(string)
			if id == "" {
				continue
			}
			v.fine(r, a.line)
			if first := owner[id]; first == nil {
				owner[id] = a
			} else if first.call != a.call || first.eventType() != a.eventType() {
				v.blame(r, []int{first.line, a.line}, "two events have the id %q", id)
			}
			if a.call < 0 || a.eventType() != ahp.ToolBefore {
				continue
			}
			if other, known := byCall[a.call]; known && other != id {
				v.blame(r, []int{owner[other].line, a.line}, "the same tool.before has two ids")
			}
			byCall[a.call] = id
		}
	}
}

// memberOf says which member of a tool.before is missing; "" is none.
func memberOf(a *arrival) string {
	event := a.event()
	c, _ := event["call"].(object)
	tool, _ := event["tool"].(object)
	if id, _ := c["id"].(string); id == "" {
		return "call.id"
	}
	if name, _ := tool["name"].(string); name == "" {
		return "tool.name"
	}
	if _, is := tool["input"].(object); !is {
		return "tool.input"
	}
	if path, _ := event["path"].(string); path == "" {
		return "path"
	}
	return ""
}

func judgeMembers(v *view, plays ...*played) {
	for _, r := range plays {
		ids := map[string]int{}
		for i := range r.play.calls {
			for _, a := range r.asks(i) {
				v.fine(r, a.line)
				if name := memberOf(a); name != "" {
					v.blame(r, []int{a.line}, "tool.before has no %s", name)
					continue
				}
				want := strings.ReplaceAll(r.play.calls[i].command, "{}", r.dir+"/"+marker(i))
				if got, _ := a.input()["command"].(string); got != want {
					v.blame(r, []int{a.line}, "the input's command is %q, the call's is %q", got, want)
				}
				id := a.event()["call"].(object)["id"].(string)
				if other, known := ids[id]; known && other != i {
					v.blame(r, []int{a.line}, "two calls have the id %q", id)
				}
				ids[id] = i
			}
		}
	}
}

func judgeNative(v *view, plays ...*played) {
	for _, r := range plays {
		for _, a := range r.arrivals {
			v.fine(r, a.line)
			if _, there := a.event()["native"]; there {
				v.blame(r, []int{a.line}, "the event has native data, which no subscription asks for")
			}
		}
	}
}

func judgeMatch(v *view, plays ...*played) {
	for _, r := range plays {
		for _, a := range r.arrivals {
			if a.body == nil {
				continue
			}
			v.fine(r, a.line)
			if a.method() != ahp.MethodCapabilities && !a.asks() {
				v.blame(r, []int{a.line}, "%s of %s came, the only subscription intercepts tool.before", a.method(), a.eventType())
			}
		}
	}
}

func judgeDenyOffered(v *view, plays ...*played) {
	for _, r := range plays {
		for _, a := range r.arrivals {
			if !a.asks() {
				continue
			}
			v.fine(r, a.line)
			if !a.offers(ahp.EffectDeny) {
				v.blame(r, []int{a.line}, "the request doesn't offer deny")
			}
		}
	}
}
