package openai

import (
	"fmt"
	"strings"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
)

const (
	maxModelName = 256 // bytes; a longer name of the answering model is not kept
	tailWait     = httpapi.TailWait
)

// reply assembles one reply from its frames.
type reply struct {
	httpapi.Notes
	c       *Client
	ans     *httpapi.Answer
	onDelta func(model.Delta)

	text, reasoning         strings.Builder
	textJoin, reasoningJoin httpapi.Joiner
	calls                   callSet
	finish                  string // the finish reason as sent, "" if none came
	done                    bool   // [DONE] came, or the reply was one JSON body
	frames                  int    // frames with choices
	usage                   *model.Usage
	model                   string
	field                   string // the member in which reasoning came
}

var _ httpapi.Assembler = (*reply)(nil)

func newReply(c *Client, ans *httpapi.Answer, onDelta func(model.Delta)) *reply {
	if onDelta == nil {
		onDelta = func(model.Delta) {}
	}
	r := &reply{c: c, ans: ans, onDelta: onDelta}
	r.calls.note = r.Note
	return r
}

// fail returns an error that carries the text so far.
func (r *reply) fail(kind model.ErrorKind, cause error, format string, args ...any) *model.Error {
	e := r.c.api.Fail(kind, cause, format, args...)
	e.Partial = r.Partial()
	return e
}

// Partial returns the text so far.
func (r *reply) Partial() string { return r.text.String() + r.textJoin.Flush() }

// State says how far the reply has come.
func (r *reply) State() httpapi.State {
	switch {
	case r.done:
		return httpapi.Done
	case r.finish != "":
		return httpapi.Ended
	default:
		return httpapi.Open
	}
}

// Position says how far the reply got.
func (r *reply) Position() string {
	return fmt.Sprintf("after %d frames (%d bytes of text, %d tool calls begun)", r.frames, r.text.Len(), len(r.calls.list))
}
