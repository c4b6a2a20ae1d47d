package anthropic

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
	"github.com/abhed/abhed/internal/strictjson"
)

const (
	maxNotes     = 12
	maxModelName = 256 // bytes; a longer name of the answering model is not kept
	maxBlocks    = 4096
)

// progress is what a reply tells of its state while it is read: *httpapi.Answer.
type progress interface {
	Progress()
	Finishing()
}

// reply assembles one reply from its events.
type reply struct {
	api     *httpapi.API
	ans     progress
	onDelta func(model.Delta)
	// origin goes into the seals; used reports the ids of earlier calls.
	origin string
	used   func(id string) bool

	blocks []*part
	calls  int             // how many of them are calls
	said   strings.Builder // all text so far
	stop   string          // the stop reason as sent, "" if none came
	done   bool
	// altered says that characters were replaced somewhere, so that no signature fits.
	altered bool
	events  int
	usage   *model.Usage
	model   string
	notes   []string
}

var _ httpapi.Assembler = (*reply)(nil)

func newReply(api *httpapi.API, ans progress, onDelta func(model.Delta)) *reply {
	return &reply{api: api, ans: ans, onDelta: onDelta, used: func(string) bool { return false }}
}

// Note adds something that had to be repaired or assumed, once.
func (r *reply) Note(s string) {
	if len(r.notes) < maxNotes && !slices.Contains(r.notes, s) {
		r.notes = append(r.notes, s)
	}
}

// Partial returns the text so far.
func (r *reply) Partial() string {
	r.settle()
	return r.said.String()
}

// Position says how far the reply got.
func (r *reply) Position() string {
	return fmt.Sprintf("after %d events (%d bytes of text, %d tool calls begun)", r.events, r.said.Len(), r.calls)
}

// State says how far the reply has come. A reply that asks for tools isn't complete
// before its end is marked.
func (r *reply) State() httpapi.State {
	switch {
	case r.done:
		return httpapi.Done
	case r.stop != "" && (r.calls == 0 || withholds(r.stop)):
		return httpapi.Ended
	default:
		return httpapi.Open
	}
}

// fail returns an error that carries the text so far.
func (r *reply) fail(kind model.ErrorKind, cause error, format string, args ...any) *model.Error {
	e := r.api.Fail(kind, cause, format, args...)
	e.Partial = r.Partial()
	return e
}

// repair makes data fit for the strict door.
func (r *reply) repair(data []byte) (out []byte, marked bool) {
	out, lone, marked := httpapi.RepairHalves(data)
	if lone > 0 && !marked {
		r.Note("half characters were replaced by U+FFFD")
		r.altered = true // in which block is not known here
	}
	return out, marked
}

// Whole takes a reply that came as one JSON body.
func (r *reply) Whole(raw []byte) error {
	data, marked := r.repair(raw)
	var m message
	if err := strictjson.Unmarshal(data, &m, strictjson.Options{}); err != nil {
		return err
	}
	if !emptyError(m.Error) || text(m.Type) == "error" {
		return r.api.FrameError(data)
	}
	if m.Content == nil {
		return errors.New("it has no content, as a message has, and no error")
	}
	r.head(&m, marked)
	for _, b := range *m.Content {
		if err := r.start(b, slot{}, marked); err != nil {
			return err
		}
		r.blocks[len(r.blocks)-1].open = false
	}
	r.stop = httpapi.Unmark(text(m.StopReason), marked)
	r.done = true
	return nil
}

// Frame handles the data of one event.
func (r *reply) Frame(name string, data []byte) error {
	if bytes.Equal(data, []byte("[DONE]")) {
		if !r.done {
			r.Note("the end was marked by [DONE], as proxies do, instead of message_stop")
			r.done = true
		}
		return nil
	}
	data, marked := r.repair(data)
	var e event
	if err := strictjson.Unmarshal(data, &e, strictjson.Options{}); err != nil {
		return err
	}
	kind := text(e.Type)
	if kind == "" {
		kind = name
	}
	if kind == "error" || !emptyError(e.Error) {
		return r.api.FrameError(data)
	}
	r.events++
	if kind == "ping" {
		return nil
	}
	r.ans.Progress()
	return r.take(kind, &e, marked)
}

func emptyError(v []byte) bool {
	return len(v) == 0 || slices.Contains([]string{"null", `""`, "false", "{}", "[]"}, string(v))
}

// take handles an event of a type.
func (r *reply) take(kind string, e *event, marked bool) error {
	switch kind {
	case "message_start":
		return r.begin(e, marked)
	case "content_block_start":
		if e.Block == nil {
			return errors.New("a content_block_start has no content_block")
		}
		return r.start(*e.Block, slotOf(e), marked)
	case "content_block_delta":
		if e.Delta == nil {
			return errors.New("a content_block_delta has no delta")
		}
		return r.piece(e.Delta, slotOf(e), marked)
	case "content_block_stop":
		r.close(slotOf(e))
	case "message_delta":
		r.count(e.Usage)
		if e.Delta != nil {
			if reason := text(e.Delta.StopReason); reason != "" {
				r.stop = httpapi.Unmark(reason, marked)
				r.ans.Finishing()
			}
		}
	case "message_stop":
		r.count(e.Usage)
		r.done = true
	case "":
		return errors.New("an event has no type")
	default:
		r.Note("events of an unknown type were left out: " + r.api.Quoted([]byte(kind)))
	}
	return nil
}

// begin handles message_start.
func (r *reply) begin(e *event, marked bool) error {
	if len(r.blocks) > 0 {
		return errors.New("a second message begins within the reply")
	}
	var m message
	if !httpapi.Absent(e.Message) {
		if err := strictjson.Unmarshal(e.Message, &m, strictjson.Options{}); err != nil {
			return err
		}
	}
	r.head(&m, marked)
	return nil
}

// head takes what a message says of itself.
func (r *reply) head(m *message, marked bool) {
	if s := text(m.Model); s != "" && len(s) <= maxModelName {
		r.model = httpapi.Unmark(s, marked)
	}
	r.count(m.Usage)
}

func (r *reply) count(raw []byte) {
	if httpapi.Absent(raw) {
		return
	}
	var w wireUsage
	if err := strictjson.Unmarshal(raw, &w, strictjson.Options{}); err != nil {
		r.Note("the usage member could not be understood (" + err.Error() + ")")
		return
	}
	u := r.usage
	if u == nil {
		u = &model.Usage{}
	}
	w.update(u)
	if *u != (model.Usage{}) {
		r.usage = u
	}
}
