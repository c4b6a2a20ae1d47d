package inspect

import (
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
)

// Entry is one message from a harness and what became of it, as the page reads it.
type Entry struct {
	// Seq numbers the entries from 1.
	Seq int64 `json:"seq"`
	// At is when it came, in milliseconds since 1970.
	At     int64         `json:"at"`
	Method string        `json:"method"`
	Type   ahp.EventType `json:"type"`
	ID     string        `json:"id"`
	Source string        `json:"source"`
	// Session is "" where the event has none.
	Session string `json:"session"`
	Turn    string `json:"turn,omitempty"`
	Call    string `json:"call,omitempty"`
	// Subject says in one line what the event is about.
	Subject string `json:"subject"`
	// Decision is one of the decision words.
	Decision     string   `json:"decision"`
	Effects      []string `json:"effects"`
	Milliseconds float64  `json:"milliseconds"`
	// Problem says why the message was refused, or not answered with a decision.
	Problem string `json:"problem,omitempty"`
	Asked   []*Ask `json:"asked"`
	// Recorded tells that the entry was read from a file.
	Recorded bool `json:"recorded,omitempty"`
	// Request and Reply are left out of what the page gets unasked.
	Request Capture `json:"request,omitzero"`
	Reply   Capture `json:"reply,omitzero"`

	waiting []pendingNote // observations that were sent, and not reported yet
}

// Ask is one backend that was asked, or told, about an entry's event.
type Ask struct {
	Backend      string   `json:"backend"`
	Subscription int      `json:"subscription"`
	Method       string   `json:"method"`
	Decision     string   `json:"decision"`
	Effects      []string `json:"effects,omitempty"`
	Milliseconds float64  `json:"milliseconds"`
	Failure      *Failure `json:"failure,omitempty"`
	// Policy is what was applied to the failure.
	Policy string `json:"policy,omitempty"`
	// Sent is how often the message was sent.
	Sent    int     `json:"sent"`
	Request Capture `json:"request,omitzero"`
	Reply   Capture `json:"reply,omitzero"`

	by ahp.SubscriptionID
}

// pendingNote is an observation that was sent to a backend.
type pendingNote struct {
	backend string
	message Capture
}

// sent takes the oldest observation that was sent to a backend and not reported; a
// backend is sent one after the other. It may never have been sent.
func (e *Entry) sent(backend string) (Capture, int) {
	for i, n := range e.waiting {
		if n.backend == backend {
			e.waiting = slices.Delete(e.waiting, i, i+1)
			return n.message, 1
		}
	}
	return Capture{}, 0
}

// Failure is an operational failure.
type Failure struct {
	Class  string `json:"class"`
	Detail string `json:"detail"`
}

// failureOf returns what is shown of a failure. Its detail may quote a peer.
func failureOf(f *ahp.Failure) *Failure {
	return &Failure{string(f.Class), plain(f.Detail)}
}

// maxProblem bounds what is kept of an error's text.
const maxProblem = 4 << 10

// plain returns valid text of bounded length.
func plain(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxProblem)], "�")
}

// Capture is what is kept of a message.
type Capture struct {
	// Text is the message, perhaps cut; what isn't UTF-8 is replaced.
	Text string `json:"text"`
	// Bytes is how long it was.
	Bytes int `json:"bytes"`
}

// maxCapture bounds what is kept of one message.
const maxCapture = 256 << 10

func capture(msg []byte) Capture {
	text := msg
	if len(text) > maxCapture {
		text = text[:maxCapture]
		for range utf8.UTFMax { // not in the middle of a character
			if r, _ := utf8.DecodeLastRune(text); r != utf8.RuneError {
				break
			}
			text = text[:len(text)-1]
		}
	}
	return Capture{Text: strings.ToValidUTF8(string(text), "�"), Bytes: len(msg)}
}

// What the page calls a decision.
const (
	decisionPending     = "pending"
	decisionPass        = "pass" // no effect that changes anything
	decisionAllow       = "allow"
	decisionEdit        = "edit" // modify, return or inject
	decisionContinue    = "continue"
	decisionAsk         = "ask"
	decisionStop        = "stop"
	decisionDeny        = "deny"
	decisionObserved    = "observed"
	decisionFailed      = "failed"
	decisionInterrupted = "interrupted"
	decisionInvalid     = "invalid" // the message was refused
	decisionAnswered    = "answered"
)

// decisionOf returns the strictest of the effects.
func decisionOf(effects []ahp.Effect) string {
	order := []string{decisionPass, decisionAllow, decisionContinue, decisionEdit, decisionAsk, decisionStop, decisionDeny}
	strictest := 0
	for _, e := range effects {
		word := decisionPass
		switch e := e.(type) {
		case *ahp.Deny:
			word = decisionDeny
		case *ahp.Ask:
			word = decisionAsk
		case *ahp.Allow:
			word = decisionAllow
		case *ahp.Modify, *ahp.Return, *ahp.Inject:
			word = decisionEdit
		case *ahp.Flow:
			if word = decisionContinue; e.Operation == ahp.FlowStop {
				word = decisionStop
			}
		}
		strictest = max(strictest, slices.Index(order, word))
	}
	return order[strictest]
}

// names returns the effects' names, a deny with its reason.
func names(effects []ahp.Effect) []string {
	out := []string{}
	for _, e := range effects {
		name := string(e.EffectType())
		switch e := e.(type) {
		case *ahp.Deny:
			name += ": " + short(e.Reason)
		case *ahp.Modify:
			name += " " + string(e.Target)
		case *ahp.Flow:
			name += " " + string(e.Operation)
		}
		out = append(out, name)
	}
	return out
}

// newEntry describes a message that just came.
func newEntry(at time.Time, msg []byte) *Entry {
	e := &Entry{At: at.UnixMilli(), Request: capture(msg), Decision: decisionPending, Effects: []string{}, Asked: []*Ask{}}
	r, err := ahp.DecodeRequest(msg)
	switch q := r.(type) {
	case nil:
		if p, peekErr := ahp.Peek(msg); peekErr == nil {
			e.Method = p.Method
		}
		e.Decision, e.Problem = decisionInvalid, reasonOf(err)
	case *ahp.Intercept:
		e.describe(q.Event)
	case *ahp.Observe:
		e.describe(q.Event)
	}
	if r != nil {
		e.Method = r.Method()
	}
	return e
}

// describe takes from an event what the page lists and searches.
func (e *Entry) describe(v *ahp.Event) {
	e.Type, e.ID, e.Source, e.Subject = v.Type, short(v.ID), short(v.Source), subjectOf(v)
	if v.Session != nil {
		e.Session = short(v.Session.ID)
	}
	if v.Turn != nil {
		e.Turn = short(v.Turn.ID)
	}
	if v.Call != nil {
		e.Call = short(v.Call.ID)
	}
}

// subjectOf returns in one line what an event is about.
func subjectOf(v *ahp.Event) string {
	var words []string
	if v.Tool != nil {
		words = append(words, v.Tool.Name)
		for _, member := range []string{"command", "path", "file_path", "url", "pattern", "query"} {
			if text, ok := backend.InputText(v, member); ok {
				words = append(words, text)
				break
			}
		}
	}
	if v.Model != nil {
		words = append(words, v.Model.ID)
	}
	if v.Outcome != "" {
		words = append(words, "→ "+string(v.Outcome))
	}
	if v.Trigger != "" {
		words = append(words, string(v.Trigger))
	}
	if v.Failure != nil {
		words = append(words, v.Failure.BackendID, v.Failure.Reason)
	}
	if len(words) == 0 || v.Type == ahp.TurnStart {
		words = append(words, textOf(v))
	}
	return short(strings.Join(words, " "))
}

// textOf returns the latest text that a person or a model wrote in an event, on one
// line, or "".
func textOf(v *ahp.Event) string {
	list := v.Items.Messages
	if v.Message != nil {
		list = v.Message.Messages
	}
	if v.Delta != nil {
		list = []ahp.Message{*v.Delta}
	}
	for _, m := range slices.Backward(list) {
		for _, p := range slices.Backward(m.Parts) {
			if p.Text != nil {
				return strings.Join(strings.Fields(short(*p.Text)), " ")
			}
		}
	}
	return ""
}

// maxShort bounds what a list shows of one text, in bytes.
const maxShort = 300

func short(s string) string {
	if len(s) <= maxShort {
		return s
	}
	s = s[:maxShort]
	for s != "" && !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "…"
}

// end notes the answer.
func (e *Entry) end(reply []byte, err error, took time.Duration) {
	e.Milliseconds, e.Reply = milliseconds(took), capture(reply)
	if err != nil && e.Problem == "" {
		e.Problem = reasonOf(err)
	}
	if e.Decision != decisionPending {
		return
	}
	e.answer(reply)
}

// answer notes what a reply means.
func (e *Entry) answer(reply []byte) {
	switch e.Method {
	case ahp.MethodObserve:
		e.Decision = decisionObserved
		return
	case ahp.MethodCapabilities:
		e.Decision = decisionAnswered
		return
	}
	id, _ := ahp.MessageID(reply)
	effects, err := ahp.DecodeEffectsReply(reply, id)
	if err != nil {
		e.Decision = decisionFailed
		var rpc *ahp.RPCError
		if !errors.As(err, &rpc) || e.Problem == "" {
			e.Problem = reasonOf(err)
		}
		return
	}
	e.Decision, e.Effects = decisionOf(effects), names(effects)
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// size is what an entry counts for in the bound of bytes.
func (e *Entry) size() int {
	n := 1024 + len(e.Request.Text) + len(e.Reply.Text) + len(e.Problem)
	for _, a := range e.Asked {
		n += 512 + len(a.Request.Text) + len(a.Reply.Text)
	}
	return n
}

// listed returns a copy without the messages.
func (e *Entry) listed() Entry {
	c := *e
	c.Request, c.Reply = Capture{}, Capture{}
	c.Asked = make([]*Ask, len(e.Asked))
	for i, a := range e.Asked {
		b := *a
		b.Request, b.Reply = Capture{}, Capture{}
		c.Asked[i] = &b
	}
	return c
}
