package config

// Ignored is a setting that was read and not used.
type Ignored struct {
	Origin Origin `json:"origin"`
	Reason string `json:"reason"`
}

const reasonUntrusted = "the project isn't trusted, and only stricter settings of it apply; abhed trust shows and trusts it, --trust-workspace does for one run"

// untrusted returns what of an untrusted project file applies: deny and ask
// rules, mode plan, limits (which can only lower), network false (gate.md §4) and
// the tools that it disables.
// The rest is listed as ignored.
func (l *loader) untrusted(root *node) *node {
	out := &node{kind: '{', origin: root.origin}
	for _, m := range root.members {
		switch m.name {
		case "permissions":
			m.value = l.keep(m.value, func(name string, v *node) bool {
				return name == "deny" || name == "ask" || name == "mode" && v.text == "plan"
			})
		case "limits":
		case "tools":
			m.value = l.keep(m.value, func(name string, _ *node) bool { return name == "disabled" })
		case "sandbox":
			m.value = l.keep(m.value, func(name string, v *node) bool { return name == "network" && v.kind == 'f' })
		case "$schema":
			continue
		default:
			l.ignore(m.value)
			continue
		}
		out.members = append(out.members, m)
	}
	return out
}

// keep returns n with the members that ok accepts.
func (l *loader) keep(n *node, ok func(name string, v *node) bool) *node {
	out := &node{kind: '{', origin: n.origin}
	for _, m := range n.members {
		if ok(m.name, m.value) {
			out.members = append(out.members, m)
		} else {
			l.ignore(m.value)
		}
	}
	return out
}

// ignore lists n, or each entry or member of it.
func (l *loader) ignore(n *node) {
	for _, m := range n.members {
		l.ignored = append(l.ignored, Ignored{Origin: m.value.origin, Reason: reasonUntrusted})
	}
	for _, e := range n.elems {
		l.ignored = append(l.ignored, Ignored{Origin: e.origin, Reason: reasonUntrusted})
	}
	if len(n.members) == 0 && len(n.elems) == 0 {
		l.ignored = append(l.ignored, Ignored{Origin: n.origin, Reason: reasonUntrusted})
	}
}

// ignoreIdleLimits lists limits of an untrusted project that lower nothing.
func (l *loader) ignoreIdleLimits(project, merged *node) {
	limits := project.get("limits")
	if limits == nil {
		return
	}
	for _, m := range limits.members {
		in := merged.get("limits").get(m.name)
		if in.origin.Layer != Project && byLimit(m.value) < byLimit(in) {
			l.ignored = append(l.ignored, Ignored{Origin: m.value.origin, Reason: "the project isn't trusted and may only lower limits; in force is " + in.text + " (" + in.origin.String() + ")"})
		}
	}
}
