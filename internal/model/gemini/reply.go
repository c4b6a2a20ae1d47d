package gemini

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
	"github.com/abhed/abhed/internal/strictjson"
)

const (
	maxCalls     = 512
	maxModelName = 256 // bytes; a longer name of the answering model is not kept
)

// piece is a part of the reply as it grows: text, a thought or a call.
type piece struct {
	thought bool
	text    strings.Builder
	call    *model.ToolCall
	id      string // of the call, as the endpoint gave it
	seal    string
}

// reply assembles one reply from its frames.
type reply struct {
	c       *Client
	ans     *httpapi.Answer
	onDelta func(model.Delta)

	pieces  []*piece
	join    httpapi.Joiner // of the text at hand
	thought bool           // whether that is a thought
	marked  bool           // whether the frame at hand may hold marks of half characters
	said    strings.Builder
	calls   int
	finish  string // the finish reason as sent, "" if none came
	reason  string // what came with it, for people
	blocked string // why the prompt was refused, "" if it wasn't
	done    bool   // [DONE] came, as gateways send it
	frames  int    // frames with candidates
	usage   *model.Usage
	model   string
	httpapi.Notes
}

var _ httpapi.Assembler = (*reply)(nil)

func newReply(c *Client, ans *httpapi.Answer, onDelta func(model.Delta)) *reply {
	if onDelta == nil {
		onDelta = func(model.Delta) {}
	}
	return &reply{c: c, ans: ans, onDelta: onDelta}
}

// fail returns an error that carries the text so far.
func (r *reply) fail(kind model.ErrorKind, cause error, format string, args ...any) *model.Error {
	e := r.c.api.Fail(kind, cause, format, args...)
	e.Partial = r.Partial()
	return e
}

// Partial returns the text so far.
func (r *reply) Partial() string { return r.said.String() }

// State says how far the reply has come. After the finish reason the usage may come.
func (r *reply) State() httpapi.State {
	switch {
	case r.done:
		return httpapi.Done
	case r.finish != "" || r.blocked != "":
		return httpapi.Ended
	default:
		return httpapi.Open
	}
}

// Position says how far the reply got.
func (r *reply) Position() string {
	return fmt.Sprintf("after %d frames (%d bytes of text, %d tool calls)", r.frames, r.said.Len(), r.calls)
}

// Whole takes a reply that is one JSON body: a frame, or a list of all of them, which
// is how the API streams to those who don't ask for events.
func (r *reply) Whole(data []byte) error {
	if !bytes.HasPrefix(data, []byte("[")) {
		return r.Frame("", data)
	}
	data, marked := r.repair(data)
	var list []jsontext.Value
	if err := strictjson.Unmarshal(data, &list, strictjson.Options{MaxBytes: len(data)}); err != nil {
		return err
	}
	for _, frame := range list {
		if err := r.frame(frame, marked); err != nil {
			return err
		}
	}
	return nil
}

// repair makes data readable where it holds half characters.
func (r *reply) repair(data []byte) (repaired []byte, marked bool) {
	repaired, lone, marked := httpapi.RepairHalves(data)
	if lone > 0 && !marked {
		r.Note("half characters were replaced by U+FFFD")
	}
	return repaired, marked
}

// Frame handles the data of one event.
func (r *reply) Frame(_ string, data []byte) error {
	if bytes.Equal(data, []byte("[DONE]")) {
		r.done = true
		return nil
	}
	return r.frame(r.repair(data))
}

// frame handles a frame that has been repaired.
func (r *reply) frame(data []byte, marked bool) error {
	r.marked = marked
	var c chunk
	if err := strictjson.Unmarshal(data, &c, strictjson.Options{MaxBytes: len(data)}); err != nil {
		return err
	}
	if !httpapi.Absent(c.Error) {
		return r.c.api.FrameError(data)
	}
	if s := httpapi.Scalar(c.Model); s != "" && len(s) <= maxModelName {
		r.model = httpapi.Unmark(s, marked)
	}
	if !httpapi.Absent(c.Usage) {
		u, note := usage(c.Usage)
		if note != "" {
			r.Note(note)
		}
		if u != nil {
			r.usage = u // each one counts all so far
		}
	}
	if f := c.PromptFeedback; f != nil && r.blocked == "" {
		if r.blocked = enum(f.BlockReason); r.blocked != "" {
			r.reason = httpapi.Unmark(httpapi.Scalar(f.Message), marked)
		}
	}
	if c.Candidates == nil {
		return nil
	}
	r.frames++
	return r.candidates(*c.Candidates)
}

func (r *reply) candidates(list []candidate) error {
	for _, ca := range list {
		if i, ok := httpapi.Integer(ca.Index); ok && i != 0 {
			r.Note("a second candidate, which was not asked for, was left out")
			continue
		}
		if ca.Content != nil && ca.Content.Parts != nil {
			for _, p := range *ca.Content.Parts {
				if err := r.part(p); err != nil {
					return err
				}
			}
		}
		// Of several reasons one that isn't STOP counts: some models say STOP with
		// every frame.
		if reason := enum(ca.FinishReason); reason != "" && (r.finish == "" || r.finish == "STOP") {
			r.finish = reason
			r.reason = httpapi.Unmark(httpapi.Scalar(ca.FinishMessage), r.marked)
		}
	}
	if r.finish != "" {
		r.ans.Finishing()
	} else {
		r.ans.Progress()
	}
	return nil
}

// enum returns a word of a closed set, "" where it is missing or says nothing.
func enum(v jsontext.Value) string {
	s := strings.ToUpper(httpapi.Scalar(v))
	if strings.HasSuffix(s, "_UNSPECIFIED") {
		return ""
	}
	return s
}

func (r *reply) part(p part) error {
	signature := httpapi.Scalar(p.Signature)
	switch {
	case p.Call != nil:
		return r.call(p.Call, signature)
	case !httpapi.Absent(p.Text) && p.Text.Kind() != '"':
		return fmt.Errorf("the text of a part is not text")
	case !httpapi.Absent(p.Text) || signature != "":
		r.text(httpapi.Scalar(p.Thought) == "true", httpapi.Scalar(p.Text), signature)
	default:
		r.Note("a part that is neither text nor a function call was left out")
	}
	return nil
}

// text adds a piece of text. One that is signed stays apart, because its signature is
// for it alone.
func (r *reply) text(thought bool, s, signature string) {
	last := r.last()
	if last == nil || last.call != nil || last.thought != thought {
		r.settle()
		last = nil
	}
	r.thought = thought
	out := r.join.Add(s, r.marked)
	if out == "" && signature == "" {
		return
	}
	if last == nil || last.seal != "" || signature != "" {
		last = &piece{thought: thought, seal: signature}
		r.pieces = append(r.pieces, last)
	}
	r.say(last, out)
}

func (r *reply) last() *piece {
	if len(r.pieces) == 0 {
		return nil
	}
	return r.pieces[len(r.pieces)-1]
}

// say adds text to a piece and hands it on.
func (r *reply) say(p *piece, s string) {
	if s == "" {
		return
	}
	p.text.WriteString(s)
	if p.thought {
		r.onDelta(model.Delta{Reasoning: s})
		return
	}
	r.said.WriteString(s)
	r.onDelta(model.Delta{Text: s})
}

// settle gives up on half a character at the end of the last text.
func (r *reply) settle() {
	if s, last := r.join.Flush(), r.last(); s != "" {
		if last == nil || last.call != nil || last.thought != r.thought {
			last = &piece{thought: r.thought}
			r.pieces = append(r.pieces, last)
		}
		r.say(last, s)
	}
}

func (r *reply) call(f *functionCall, signature string) error {
	r.settle()
	if r.calls == maxCalls {
		return fmt.Errorf("more than %d tool calls in one reply", maxCalls)
	}
	args, err := f.arguments()
	if err != nil {
		return err
	}
	name := httpapi.Unmark(httpapi.Scalar(f.Name), r.marked)
	if name == "" {
		return fmt.Errorf("a tool call came without a name")
	}
	r.calls++
	r.pieces = append(r.pieces, &piece{
		call: &model.ToolCall{Name: name, Args: httpapi.Unmark(args, r.marked)},
		id:   httpapi.Unmark(httpapi.Scalar(f.ID), r.marked), seal: signature,
	})
	return nil
}
