package openai

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
	"github.com/abhed/abhed/internal/strictjson"
)

// Whole takes a reply that is one JSON body, which has the form of a frame.
func (r *reply) Whole(data []byte) error {
	err := r.Frame("", data)
	r.done = err == nil
	return err
}

// Frame handles the data of one event, or a whole body.
func (r *reply) Frame(_ string, data []byte) error {
	if bytes.Equal(data, []byte("[DONE]")) {
		r.done = true
		return nil
	}
	data, lone, marked := httpapi.RepairHalves(data)
	if lone > 0 && !marked {
		r.Note("half characters were replaced by U+FFFD")
	}
	var c chunk
	if err := strictjson.Unmarshal(data, &c, strictjson.Options{}); err != nil {
		return err
	}
	if hasError(&c) {
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
			r.usage = u // the last one counts
		}
	}
	if c.Choices == nil {
		return nil
	}
	r.frames++
	for _, ch := range *c.Choices {
		if i, ok := httpapi.Integer(ch.Index); ok && i != 0 {
			r.Note("a second choice, which was not asked for, was left out")
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
	if httpapi.Scalar(c.Object) == "error" {
		return true
	}
	if httpapi.Absent(c.Error) {
		return false
	}
	empty := slices.Contains([]string{`""`, "false", "{}", "[]", "0"}, string(c.Error))
	return !empty || c.Choices == nil && httpapi.Absent(c.Usage)
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
	if reason := httpapi.Scalar(ch.FinishReason); reason != "" {
		r.finish = httpapi.Unmark(reason, marked)
		r.ans.Finishing()
	} else {
		r.ans.Progress()
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
		r.Note("the model refused")
		said += refusal
	}
	if out := r.reasoningJoin.Add(thought, marked); out != "" {
		r.reasoning.WriteString(out)
		r.onDelta(model.Delta{Reasoning: out})
	}
	if out := r.textJoin.Add(said, marked); out != "" {
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
	p := piece{id: httpapi.Unmark(httpapi.Scalar(f.ID), marked), marked: marked, later: position > 0}
	p.index, p.hasIndex = httpapi.Integer(f.Index)
	if fn := f.Function; fn != nil {
		p.name = httpapi.Unmark(httpapi.Scalar(fn.Name), marked)
		p.args = arguments(fn.Arguments)
	}
	return p
}

// arguments returns the arguments' text, which some servers send as an object.
func arguments(v jsontext.Value) string {
	if httpapi.Absent(v) {
		return ""
	}
	if v.Kind() == '"' {
		return httpapi.Scalar(v)
	}
	return string(v)
}
