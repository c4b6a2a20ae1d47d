package openai

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/sse"
	"github.com/abhed/abhed/internal/strictjson"
)

// event handles one event of the stream.
func (r *reply) event(ev sse.Event) error {
	data := bytes.TrimSpace(ev.Data)
	switch {
	case len(data) == 0, ev.Name == "ping", ev.Name == "heartbeat", ev.Name == "keepalive":
		return nil
	case ev.Name == "error":
		return r.c.frameError(data)
	case bytes.IndexByte(data, '\n') < 0:
		return r.located(r.frame(data), ev, data)
	}
	if strictjson.Check(data, strictjson.Options{}) == nil {
		return r.located(r.frame(data), ev, data)
	}
	// Servers that leave out the blank line between events.
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := r.located(r.frame(line), ev, line); err != nil {
			return err
		}
	}
	return nil
}

// located adds place and bytes to a frame that could not be understood.
func (r *reply) located(err error, ev sse.Event, data []byte) error {
	var me *model.Error
	if err == nil || errors.As(err, &me) {
		return err
	}
	return r.fail(model.ErrMalformed, err, "the event at byte %d of the stream could not be understood: %v: %s", ev.Offset, err, r.c.quoted(data))
}

// frame handles the data of one event, or a whole body.
func (r *reply) frame(data []byte) error {
	if bytes.Equal(data, []byte("[DONE]")) {
		r.done = true
		return nil
	}
	data, lone, marked := markSurrogates(data)
	if lone > 0 && !marked {
		r.note("half characters were replaced by U+FFFD")
	}
	var c chunk
	if err := strictjson.Unmarshal(data, &c, strictjson.Options{}); err != nil {
		return err
	}
	if hasError(&c) {
		return r.c.frameError(data)
	}
	if s := text(c.Model); s != "" && len(s) <= maxModelName {
		r.model = unmark(s, marked)
	}
	if !none(c.Usage) {
		u, note := usage(c.Usage)
		if note != "" {
			r.note(note)
		}
		if u != nil {
			r.usage = u // the last one counts
		}
	}
	if c.Choices == nil {
		return nil
	}
	r.frames++
	for _, ch := range *c.Choices {
		if i, ok := integer(ch.Index); ok && i != 0 {
			r.note("a second choice, which was not asked for, was left out")
			continue
		}
		if err := r.choice(ch, marked); err != nil {
			return err
		}
	}
	return nil
}

// hasError reports whether a frame is an error. Some servers put an empty error
// member into good frames.
func hasError(c *chunk) bool {
	if text(c.Object) == "error" {
		return true
	}
	if none(c.Error) {
		return false
	}
	empty := slices.Contains([]string{`""`, "false", "{}", "[]", "0"}, string(c.Error))
	return !empty || c.Choices == nil && none(c.Usage)
}

func (r *reply) choice(ch choice, marked bool) error {
	d := ch.Delta
	if d == nil && r.text.Len() == 0 && len(r.calls.list) == 0 {
		d = ch.Message
	}
	if d != nil {
		if err := r.delta(d, marked); err != nil {
			return err
		}
	}
	if reason := text(ch.FinishReason); reason != "" {
		r.finish = unmark(reason, marked)
		r.w.tighten(tailWait)
	} else {
		r.w.progress()
	}
	return nil
}

func (r *reply) delta(d *delta, marked bool) error {
	said, thought, ok := content(d.Content)
	if !ok {
		return fmt.Errorf("the content member is neither text nor a list of text parts")
	}
	if reasoning, field := d.thoughts(); reasoning != "" {
		r.field = field
		thought += reasoning
	}
	if refusal := stringOnly(d.Refusal); refusal != "" {
		r.note("the model refused")
		said += refusal
	}
	if out := r.reasoningJoin.add(thought, marked); out != "" {
		r.reasoning.WriteString(out)
		r.onDelta(model.Delta{Reasoning: out})
	}
	if out := r.textJoin.add(said, marked); out != "" {
		r.text.WriteString(out)
		r.onDelta(model.Delta{Text: out})
	}
	if d.FunctionCall != nil {
		if err := r.calls.add(newPiece(fragment{Function: d.FunctionCall}, marked, 0)); err != nil {
			return err
		}
	}
	if d.ToolCalls != nil {
		for i, f := range *d.ToolCalls {
			if err := r.calls.add(newPiece(f, marked, i)); err != nil {
				return err
			}
		}
	}
	return nil
}

func newPiece(f fragment, marked bool, position int) piece {
	p := piece{id: unmark(text(f.ID), marked), marked: marked, later: position > 0}
	p.index, p.hasIndex = integer(f.Index)
	if fn := f.Function; fn != nil {
		p.name = unmark(text(fn.Name), marked)
		p.args = arguments(fn.Arguments)
	}
	return p
}

// arguments returns the arguments' text, which some servers send as an object.
func arguments(v jsontext.Value) string {
	if none(v) {
		return ""
	}
	if v.Kind() == '"' {
		return text(v)
	}
	return string(v)
}
