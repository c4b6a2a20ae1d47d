package conformance

import (
	"maps"
	"slices"
)

// misfit is a registration that no harness may take.
type misfit struct {
	name string
	// bindings is where it makes sense; nil is everywhere.
	bindings []Binding
	doc      edit
}

// misfits returns what is wrong with registrations, by the check that looks at it.
func misfits() map[string][]misfit {
	hook := func(f func(hook object)) edit {
		return func(doc object) { f(doc["hooks"].([]any)[0].(object)) }
	}
	sub := func(name string, value any) edit {
		return hook(func(h object) {
			s := h["subscriptions"].([]any)[0].(object)
			if value == nil {
				delete(s, name)
			} else {
				s[name] = value
			}
		})
	}
	auth := func(value object) edit { return hook(func(h object) { h["authentication"] = value }) }
	web, pipes := []Binding{HTTP}, []Binding{StdioPersistent, StdioPerEvent}
	return map[string][]misfit{
		"registration.version": {
			{name: "another revision", doc: func(doc object) { doc["protocolVersion"] = "2031-01-01" }},
			{name: "no revision", doc: func(doc object) { delete(doc, "protocolVersion") }},
		},
		"registration.hooks": {
			{name: "no hooks", doc: func(doc object) { doc["hooks"] = []any{} }},
			{name: "no subscriptions", doc: hook(func(h object) { h["subscriptions"] = []any{} })},
		},
		"registration.ids": {
			{name: "two backends with one id", doc: func(doc object) {
				hooks := doc["hooks"].([]any)
				doc["hooks"] = append(hooks, maps.Clone(hooks[0].(object)))
			}},
		},
		"registration.values": {
			{name: "an unknown transport", doc: hook(func(h object) { h["transport"].(object)["type"] = "carrier-pigeon" })},
			{name: "an unknown mode", doc: sub("mode", "advise")},
			{name: "an unknown event", doc: sub("events", []any{"tool.before", "tool.sideways"})},
			{name: "an unknown selection", doc: sub("content", object{"default": "everything"})},
			{name: "no content selection", doc: sub("content", nil)},
			{name: "a family that isn't one", doc: sub("events", []any{"tool.before", "tool.permission.*"})},
			{name: "a decision about what can only be observed", doc: sub("events", []any{"tool.before", "session.end"})},
			{name: "a managed scope that can be disabled", doc: func(doc object) { sub("scope", "managed")(doc); sub("disableable", true)(doc) }},
		},
		"registration.policy": {
			{name: "no failure policy", doc: sub("failurePolicy", nil)},
			{name: "an unknown failure policy", doc: sub("failurePolicy", "fail-quietly")},
			{name: "no deadline", doc: sub("timeoutMs", nil)},
			{name: "a deadline of zero", doc: sub("timeoutMs", 0)},
			{name: "an observer with a deadline and a policy", doc: sub("mode", "observe")},
		},
		"registration.auth": {
			{name: "an unknown kind of authentication", bindings: web, doc: auth(object{"type": "mtls"})},
			{name: "two sources of one token", bindings: web, doc: auth(object{"type": "bearer", "tokenEnv": varToken, "tokenRef": "vault:conform"})},
			{name: "authentication over stdio", bindings: pipes, doc: auth(object{"type": "bearer", "tokenEnv": varToken})},
		},
		"registration.secret": {
			{name: "a literal token", bindings: web, doc: auth(object{"type": "bearer", "tokenEnv": varToken, "token": "conform-literal-token-4f1d9a7b3c"})},
		},
	}
}

// misfitNames are the checks of misfits, in order.
func misfitNames() []string { return slices.Sorted(maps.Keys(misfits())) }

// refusedPlays are the runs with a registration that must be refused.
func refusedPlays(b Binding) []*play {
	var out []*play
	for _, check := range misfitNames() {
		for _, m := range misfits()[check] {
			if m.bindings == nil || slices.Contains(m.bindings, b) {
				out = append(out, &play{name: check + ": " + m.name, calls: repeated(1, touch()), backends: []actor{agrees(nil)}, doc: m.doc})
			}
		}
	}
	return out
}

// registrationRows are the checks of what a harness makes of its registration.
func registrationRows() []harnessRow {
	rows := []harnessRow{{
		id: "registration.unknown", requirements: "AHP-CORE-003", about: "Unknown members of a registration change nothing",
		profile: ProfileBase, plays: []string{playUnknown}, judge: func(v *view, plays ...*played) {
			for _, r := range plays {
				v.ran(r, 0, true, "a registration with unknown members")
			}
		},
	}}
	about := map[string][2]string{
		"registration.version": {"AHP-REG-001 AHP-VER-001", "A registration of another revision, or of none, is refused"},
		"registration.hooks":   {"AHP-REG-001", "A registration without hooks, or a hook without subscriptions, is refused"},
		"registration.ids":     {"AHP-REG-001", "A registration in which two backends have one id is refused"},
		"registration.values":  {"AHP-CORE-003", "A registration with an unknown value, or without a required one, is refused"},
		"registration.policy":  {"AHP-FAIL-001", "A decision without an explicit deadline and failure policy is refused, and an observer that has them"},
		"registration.auth":    {"AHP-AUTH-001", "Authentication other than one bearer or oauth binding over HTTP is refused"},
		"registration.secret":  {"AHP-SEC-001.c", "A registration that holds a secret itself is refused"},
	}
	for _, id := range misfitNames() {
		row := harnessRow{id: id, requirements: about[id][0], about: about[id][1], profile: ProfileBase, judge: judgeMisfits}
		var bindings []Binding
		for _, m := range misfits()[id] {
			row.plays = append(row.plays, id+": "+m.name)
			for _, b := range everywhere() {
				if (m.bindings == nil || slices.Contains(m.bindings, b)) && !slices.Contains(bindings, b) {
					bindings = append(bindings, b)
				}
			}
		}
		row.bindings = bindings
		switch id {
		case "registration.policy":
			row.profile = ProfileToolInterception
		case "registration.secret":
			row.level = Should
		}
		rows = append(rows, row)
	}
	return rows
}

// judgeMisfits holds that the command ends with a code of its own, asks nobody and
// runs nothing.
func judgeMisfits(v *view, plays ...*played) {
	for _, r := range plays {
		_, what := cutName(r.play.name)
		switch {
		case len(r.files) > 0:
			v.blame(r, nil, "%s: the call was run", what)
		case len(r.arrivals) > 0:
			v.blame(r, []int{r.arrivals[0].line}, "%s: a message was sent", what)
		case !r.refused():
			v.blame(r, nil, "%s: the command ended as if all were well, with exit code 0, or not at all", what)
		default:
			v.fine(r, 1, r.endLine, r.filesLine)
		}
	}
}
