package hooklog

import (
	"github.com/abhed/abhed/ahp"
)

// Decision is what a host was to be told.
type Decision string

// The decisions.
const (
	Pass    Decision = "pass"
	Ask     Decision = "ask"
	Deny    Decision = "deny"
	Rewrite Decision = "rewrite"
	// Tell is anything else that has to be delivered: context, a message, a flow.
	Tell Decision = "answer"
)

// Where a decision was made.
const (
	ModeService   = "service"
	ModeInProcess = "in-process"
)

// How a host was told.
const (
	// AppliedNative: by what the host has for it.
	AppliedNative = "native"
	// AppliedStoodIn: the host has nothing for it, so that a deny stood in.
	AppliedStoodIn = "stood in"
)

// Entry is one decision. The zero value of a member is "none" or "unknown", and such
// a member isn't written. Fields stand in the order of their names on disk, which
// is what makes a line canonical.
type Entry struct {
	// Answers holds what each subscription that was asked said, in order.
	Answers []Answer `json:"answers,omitempty"`
	// Applied is how the host was told: AppliedNative, AppliedStoodIn, or a sentence.
	Applied string `json:"applied,omitempty"`
	// Call is the id of the tool call; CallSynthesized tells that the host gave none.
	Call            string `json:"call,omitempty"`
	CallSynthesized bool   `json:"callSynthesized,omitzero"`
	// Code is that of the denial, for programs.
	Code string `json:"code,omitempty"`
	// Continues is set in a line that begins a log: the end of the one before.
	Continues *Continued `json:"continues,omitzero"`
	// Cut is how many bytes of a line half written were removed before this one.
	Cut      int64    `json:"cut,omitzero"`
	Decision Decision `json:"decision,omitempty"`
	// Duplicate tells that the same event was seen before, or judged twice.
	Duplicate bool `json:"duplicate,omitzero"`
	// Event is the canonical event as text; what looks like a secret is removed.
	Event ahp.Raw `json:"event,omitempty"`
	// Hash, Prev and Seq place the line in its file: see package chain. Append sets them.
	Hash        string `json:"hash"`
	Host        string `json:"host,omitempty"`
	HostVersion string `json:"hostVersion,omitempty"`
	// ID is the event's.
	ID           string `json:"id,omitempty"`
	Milliseconds int64  `json:"milliseconds,omitzero"`
	// Mode is ModeService or ModeInProcess.
	Mode string `json:"mode,omitempty"`
	// Native is the host's own name of the event.
	Native string `json:"native,omitempty"`
	// Omitted says why Event isn't there whole.
	Omitted string `json:"omitted,omitempty"`
	Prev    string `json:"prev"`
	// Problem is what went wrong in the adapter, and the policy that answered then.
	Problem string `json:"problem,omitempty"`
	Reason  string `json:"reason,omitempty"`
	// Registration names the files that were in force.
	Registration []Source `json:"registration,omitempty"`
	// Repeat is how often this very call was denied before.
	Repeat  int    `json:"repeat,omitzero"`
	Seq     int64  `json:"seq"`
	Session string `json:"session,omitempty"`
	// Time is RFC 3339. Append sets it if it is empty.
	Time string        `json:"time"`
	Tool string        `json:"tool,omitempty"`
	Turn string        `json:"turn,omitempty"`
	Type ahp.EventType `json:"type,omitempty"`
	// Untrusted names registrations of projects that were there and not in force.
	Untrusted []string `json:"untrusted,omitempty"`
}

// Source is one registration file, and which content of it.
type Source struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
}

// Answer is what one subscription said.
type Answer struct {
	Backend string         `json:"backend"`
	Effects []ahp.Raw      `json:"effects,omitempty"`
	Failure *Failure       `json:"failure,omitzero"`
	Kind    ahp.AnswerKind `json:"kind"`
	// Milliseconds is how long it took.
	Milliseconds int64 `json:"milliseconds"`
	// Policy is what was applied to the failure: see ahp.FailurePolicy.
	Policy       string `json:"policy,omitempty"`
	Subscription int    `json:"subscription"`
}

// Failure says why a subscription didn't answer.
type Failure struct {
	Class  string `json:"class"`
	Detail string `json:"detail,omitempty"`
}

// Continued is the end of another log.
type Continued struct {
	Hash string `json:"hash"`
	Seq  int64  `json:"seq"`
}

// AnswersOf returns the trace of an outcome as it is logged.
func AnswersOf(trace []ahp.Answer) ([]Answer, error) {
	var out []Answer
	for i := range trace {
		t := &trace[i]
		a := Answer{Backend: t.By.Backend, Subscription: t.By.Index, Kind: t.Kind, Milliseconds: t.Milliseconds, Policy: string(t.Policy)}
		if t.Failure != nil {
			a.Failure = &Failure{Class: string(t.Failure.Class), Detail: t.Failure.Detail}
		}
		for _, effect := range t.Effects {
			raw, err := ahp.EncodeEffect(effect)
			if err != nil {
				return nil, err
			}
			a.Effects = append(a.Effects, raw)
		}
		out = append(out, a)
	}
	return out, nil
}
