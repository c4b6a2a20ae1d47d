package policy

// level is how much an Objection objects. It has no value that grants.
type level uint8

const (
	levelNone level = iota
	levelAsk
	levelDeny
)

// Objection is the judgement of an extension or a backend on one call: none,
// ask or deny. There is no Objection that allows: the zero value is "no
// opinion", and a Verdict joined with an Objection is never less strict than
// before (gate.md §1).
//
// Objections are immutable values and may be shared.
type Objection struct {
	level  level
	source Source
	reason string
	code   string
}

// Source names who objected.
type Source struct {
	// Kind is "extension", "backend" or "gate".
	Kind string `json:"kind"`
	// Name is the configured name of the extension or the id of the backend; for
	// the gate the step that objected.
	Name string `json:"name"`
}

// String returns "kind name".
func (s Source) String() string { return s.Kind + " " + s.Name }

// NoObjection returns the objection of someone who was asked and has none.
func NoObjection(by Source) Objection { return Objection{source: by} }

// ObjectAsk returns an objection that forces an approval. code may be "".
func ObjectAsk(by Source, reason, code string) Objection {
	return Objection{level: levelAsk, source: by, reason: reason, code: code}
}

// ObjectDeny returns an objection that refuses the call. code may be "".
func ObjectDeny(by Source, reason, code string) Objection {
	return Objection{level: levelDeny, source: by, reason: reason, code: code}
}

// Asks reports whether the objection forces an approval.
func (o Objection) Asks() bool { return o.level == levelAsk }

// Denies reports whether the objection refuses the call.
func (o Objection) Denies() bool { return o.level == levelDeny }

// Source returns who objected.
func (o Objection) Source() Source { return o.source }

// Reason returns the text that goes to the model and into the record; it may
// be empty.
func (o Objection) Reason() string { return o.reason }

// Code returns a machine-readable cause, or "".
func (o Objection) Code() string { return o.code }

// String returns "none", "ask" or "deny".
func (o Objection) String() string { return [...]string{"none", "ask", "deny"}[o.level] }

// Verdict is the strictness of a decision: Allow < Ask < Deny. The zero value
// is none of them and joins as Deny, so that a forgotten verdict never runs a
// tool.
type Verdict uint8

const (
	// Allow means that the rules let the call run.
	Allow Verdict = iota + 1
	// Ask means that a person must approve the call.
	Ask
	// Deny means that the call is refused.
	Deny
)

// String returns "allow", "ask", "deny", or "none" for the zero value.
func (v Verdict) String() string {
	if v > Deny {
		return "none"
	}
	return [...]string{"none", "allow", "ask", "deny"}[v]
}

// ParseVerdict returns the verdict named s, or the zero Verdict.
func ParseVerdict(s string) Verdict {
	for v := Allow; v <= Deny; v++ {
		if v.String() == s {
			return v
		}
	}
	return 0
}

// Join returns the strictest of v, every other verdict and every objection
// (gate.md §2 step 5). A zero verdict counts as Deny.
func Join(v Verdict, objections []Objection, others ...Verdict) Verdict {
	out := strict(v)
	for _, w := range others {
		out = max(out, strict(w))
	}
	for _, o := range objections {
		switch o.level {
		case levelNone:
		case levelAsk:
			out = max(out, Ask)
		default:
			out = Deny
		}
	}
	return out
}

func strict(v Verdict) Verdict {
	if v < Allow || v > Deny {
		return Deny
	}
	return v
}
