package conformance

import (
	"strings"

	"github.com/abhed/abhed/ahp"
)

// observerRows are the checks of what is observed: the profile of those who have
// observers at all.
func observerRows() []harnessRow {
	row := func(id, requirements, about string, judge func(*view, ...*played), play string) harnessRow {
		return harnessRow{id: id, requirements: requirements, about: about, profile: ProfileObservation, plays: []string{play}, judge: observed(judge)}
	}
	seen := row("observe", "AHP-RPC-002 AHP-REG-002", "An observer is told of each call once by hooks/observe, also where its backend decides too", judgeObserved, playLifecycle)
	withheld := row("content", "AHP-CONTENT-002", "Content that is omitted, or shown as metadata, is in no message", judgeContent, playLifecycle)
	manifest := row("manifest", "AHP-CAP-001", "A request offers nothing beyond the manifest of session.start", judgeManifest, playLifecycle)
	after := row("after", "AHP-TB-001.a", "tool.after has the id of its call and says truly whether the call was run", judgeAfter, playLifecycle)
	for _, r := range []*harnessRow{&withheld, &manifest, &after} {
		r.after = []string{"message.valid"}
	}
	after.after = append(after.after, "deny")
	return []harnessRow{
		seen, withheld, manifest, after,
		row("observers", "AHP-REG-002.a", "Observers that reply, fail or hang change nothing and hold nothing up", judgeBadObservers, playObservers),
	}
}

// observed leaves a check out for a harness that takes no observers.
func observed(judge func(*view, ...*played)) func(*view, ...*played) {
	return func(v *view, plays ...*played) {
		for _, r := range plays {
			if r.refused() {
				v.nothing("the harness takes no observers")
				continue
			}
			judge(v, r)
		}
	}
}

func judgeObserved(v *view, plays ...*played) {
	for _, r := range plays {
		for call := range r.play.calls {
			told := map[int]int{}
			var lines []int
			for _, a := range r.of(call, ahp.MethodObserve, ahp.ToolBefore) {
				told[a.backend]++
				lines = append(lines, a.line)
			}
			if call == 1 {
				// It was denied. Backend a decided, and observes as well.
				lines = append(lines, r.about(call)...)
			}
			v.fine(r, lines...)
			for backend := range r.play.backends {
				if told[backend] != 1 {
					v.blame(r, append(lines, r.about(call)...), "backend %c was told %d times of call %d, expected once", 'a'+backend, told[backend], call)
				}
			}
		}
		for _, a := range r.arrivals {
			if _, has := a.body["id"]; has && a.method() == ahp.MethodObserve {
				v.blame(r, []int{a.line}, "an observation has an id, as if it called for an answer")
			}
		}
	}
}

// judgeContent looks at the two backends that select no bodies.
func judgeContent(v *view, plays ...*played) {
	v.nothing("no content was sent to anybody")
	for _, r := range plays {
		for _, a := range r.arrivals {
			if a.backend == 0 && hasBody(a.event()) {
				v.fine(r, a.line) // there is something to leave out
			}
			if a.backend == 0 {
				continue
			}
			if a.eventType() == ahp.ToolAfter {
				v.shows(r, a.line)
			}
			if strings.Contains(string(a.raw), outputWord) {
				v.blame(r, []int{a.line}, "the output of a command is in a message to backend %c, which selects none", 'a'+a.backend)
			} else if hasBody(a.event()) {
				v.blame(r, []int{a.line}, "a part with its body is in a message to backend %c, which selects none", 'a'+a.backend)
			}
		}
	}
}

// hasBody reports whether some part of an event has its body. What a tool is given
// is no part.
func hasBody(v any) bool {
	switch v := v.(type) {
	case object:
		if v["selection"] == "body" && v["kind"] != nil {
			return true
		}
		for name, member := range v {
			if name != "tool" && name != "native" && hasBody(member) {
				return true
			}
		}
	case []any:
		for _, member := range v {
			if hasBody(member) {
				return true
			}
		}
	}
	return false
}

func judgeManifest(v *view, plays ...*played) {
	v.nothing("no session.start with a manifest came")
	for _, r := range plays {
		var wide *ahp.Manifest
		line := 0
		for _, a := range r.arrivals {
			q, err := ahp.DecodeRequest(a.raw)
			if err != nil {
				continue // message.valid says so
			}
			switch q := q.(type) {
			case *ahp.Observe:
				if q.Event.Type == ahp.SessionStart && q.Event.Manifest != nil {
					wide, line = q.Event.Manifest, a.line
					v.fine(r, a.line)
				}
			case *ahp.Intercept:
				if wide == nil {
					continue
				}
				v.fine(r, line, a.line)
				if why := beyond(q, wide); why != "" {
					v.blame(r, []int{line, a.line}, "%s", why)
				}
			}
		}
	}
}

// beyond says what a request offers beyond a manifest.
func beyond(q *ahp.Intercept, m *ahp.Manifest) string {
	for i := range m.Events {
		if e := &m.Events[i]; e.Event == q.Event.Type {
			if e.Capabilities == nil || !q.Capabilities.Within(e.Capabilities) {
				return "the request at " + string(q.Event.Type) + " offers more than the manifest"
			}
			return ""
		}
	}
	return "the manifest doesn't have " + string(q.Event.Type)
}

func judgeAfter(v *view, plays ...*played) {
	v.nothing("no tool.after came")
	for _, r := range plays {
		for call := range r.play.calls {
			var id any
			for _, a := range r.of(call, ahp.MethodObserve, ahp.ToolBefore) {
				id = idOfCall(a)
			}
			for _, a := range r.of(call, ahp.MethodObserve, ahp.ToolAfter) {
				v.fine(r, a.line, r.filesLine)
				execution, _ := a.event()["execution"].(object)
				status := execution["status"]
				switch ran := r.ran[call]; {
				case idOfCall(a) != id:
					v.blame(r, []int{a.line}, "the id of the call was %v before and is %v after", id, idOfCall(a))
				case ran && status != "executed":
					v.blame(r, []int{a.line}, "call %d was run, and its tool.after says %v", call, status)
				case !ran && status == "executed":
					v.blame(r, []int{a.line}, "call %d was not run, and its tool.after says that it was", call)
				}
			}
		}
	}
}

func idOfCall(a *arrival) any {
	c, _ := a.event()["call"].(object)
	return c["id"]
}

func judgeBadObservers(v *view, plays ...*played) {
	for _, r := range plays {
		v.fine(r, r.endLine, r.filesLine)
		if r.killed {
			v.blame(r, nil, "the command did not end in time")
		}
		for call := range r.ran {
			lines := []int{r.endLine}
			for _, a := range r.of(call, ahp.MethodObserve, ahp.ToolBefore) {
				lines = append(lines, a.line, a.reply)
			}
			v.shows(r, lines...)
			if !r.ran[call] {
				v.blame(r, lines, "call %d, which nobody decides about, was not run", call)
			}
		}
	}
}

// cutName splits the name of a play into the check and what it is about.
func cutName(name string) (check, about string) {
	check, about, _ = strings.Cut(name, ": ")
	return check, about
}
