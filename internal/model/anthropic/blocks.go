package anthropic

import (
	"errors"
	"fmt"
	"strings"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
	"github.com/abhed/abhed/internal/strictjson"
)

const (
	kindText  = "text"
	kindCall  = "tool_use"
	kindOther = "other" // a type that is not known
)

// part is a content block as it grows.
type part struct {
	at   slot
	kind string
	open bool

	body      strings.Builder // text, thinking, or the pieces of a call's input
	join      httpapi.Joiner
	signature strings.Builder // of thinking; the data where it is redacted
	id, name  string
	input     string // as the block began with it
}

// slot is the index of a block, which proxies may leave out or use twice.
type slot struct {
	index int64
	known bool
}

func slotOf(e *event) slot {
	i, ok := httpapi.Integer(e.Index)
	return slot{i, ok}
}

// find returns the newest block at p, or the newest of all if p is not known.
func (r *reply) find(p slot) *part {
	for i := len(r.blocks) - 1; i >= 0; i-- {
		if b := r.blocks[i]; !p.known || b.at == p {
			return b
		}
	}
	return nil
}

func (r *reply) add(p slot, kind string) (*part, error) {
	if len(r.blocks) == maxBlocks {
		return nil, fmt.Errorf("more than %d content blocks in one reply", maxBlocks)
	}
	b := &part{at: p, kind: kind, open: true}
	r.blocks = append(r.blocks, b)
	if kind == kindCall {
		r.calls++
	}
	return b, nil
}

// start begins a block with what came of it.
func (r *reply) start(raw block, p slot, marked bool) error {
	kind := text(raw.Type)
	str := func(v []byte) string { return httpapi.Unmark(text(v), marked) }
	if b := r.find(p); b != nil && kind == kindCall && b.begunBy(str(raw.ID), str(raw.Name)) {
		r.Note("a tool call that was begun twice was taken once")
		if b.input == "" {
			b.input = httpapi.Unmark(arguments(raw.Input), marked)
		}
		return nil
	}
	b, err := r.add(p, kind)
	if err != nil {
		return err
	}
	switch kind {
	case kindText:
		r.say(b, text(raw.Text), marked)
	case kindThinking:
		r.say(b, text(raw.Thinking), marked)
		b.signature.WriteString(str(raw.Signature))
	case kindRedacted:
		b.signature.WriteString(str(raw.Data))
	case kindCall:
		b.id, b.name, b.input = str(raw.ID), str(raw.Name), httpapi.Unmark(arguments(raw.Input), marked)
	default:
		b.kind = kindOther
		r.Note("content of an unknown type was left out: " + r.api.Quoted([]byte(kind)))
	}
	return nil
}

// begunBy reports whether b is a call of which only the start has come, and the same.
func (b *part) begunBy(id, name string) bool {
	return b.kind == kindCall && b.open && b.body.Len() == 0 && id != "" && b.id == id && b.name == name
}

// say adds s to a text or to thinking, and hands on what is settled.
func (r *reply) say(b *part, s string, marked bool) {
	r.emit(b, b.join.Add(s, marked))
}

func (r *reply) emit(b *part, s string) {
	if s == "" {
		return
	}
	b.body.WriteString(s)
	switch b.kind {
	case kindText:
		r.said.WriteString(s)
		r.onDelta(model.Delta{Text: s})
	case kindThinking:
		r.onDelta(model.Delta{Reasoning: s})
	}
}

// piece handles one delta.
func (r *reply) piece(d *delta, p slot, marked bool) error {
	b := r.find(p)
	kind := text(d.Type)
	switch {
	case b != nil && b.kind == kindOther:
		return nil
	case kind == "text_delta":
		return r.words(b, p, kindText, text(d.Text), marked)
	case kind == "thinking_delta":
		return r.words(b, p, kindThinking, text(d.Thinking), marked)
	case kind == "signature_delta":
		if b == nil || b.kind != kindThinking {
			r.Note("a signature came without the thinking that it signs")
			return nil
		}
		b.signature.WriteString(httpapi.Unmark(text(d.Signature), marked))
	case kind == "input_json_delta":
		if b == nil || b.kind != kindCall {
			return errors.New("a piece of a tool call's input came, but no tool call began at its index")
		}
		r.emit(b, b.join.Add(arguments(d.PartialJSON), marked))
	case kind == "":
		return errors.New("a delta has no type")
	default:
		r.Note("pieces of an unknown type were left out: " + r.api.Quoted([]byte(kind)))
	}
	return nil
}

// words adds to the block b, or to a new one where the stream has none of the kind.
func (r *reply) words(b *part, p slot, kind, s string, marked bool) error {
	if b == nil || b.kind != kind {
		if s == "" {
			return nil
		}
		var err error
		if b, err = r.add(p, kind); err != nil {
			return err
		}
		r.Note("content came without the start of its block")
	}
	r.say(b, s, marked)
	return nil
}

// close ends the block at p.
func (r *reply) close(p slot) {
	if b := r.find(p); b != nil {
		b.open = false
	}
}

// settle gives up on half characters at the ends of the blocks.
func (r *reply) settle() {
	for _, b := range r.blocks {
		r.emit(b, b.join.Flush())
	}
}

// args returns the input of a call as the model wrote it; a call for which none came
// has an empty object's, so that it is judged by what the tool wants.
func (b *part) args() string {
	if s := b.body.String(); strings.TrimSpace(s) != "" {
		return s
	}
	if strings.TrimSpace(b.input) != "" {
		return b.input
	}
	return "{}"
}

// whole reports whether the input is all of a JSON value.
func (b *part) whole() bool {
	s := b.args()
	return strictjson.Check([]byte(s), strictjson.Options{MaxBytes: len(s)}) == nil
}
