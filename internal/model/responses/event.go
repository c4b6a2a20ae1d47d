package responses

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
	"github.com/abhed/abhed/internal/strictjson"
)

// wireEvent is one event. Members whose type servers disagree on are raw; a null
// and a missing member are the same everywhere.
type wireEvent struct {
	Type        jsontext.Value `json:"type"`
	OutputIndex jsontext.Value `json:"output_index"`
	ItemID      jsontext.Value `json:"item_id"`
	Delta       jsontext.Value `json:"delta"`
	Arguments   jsontext.Value `json:"arguments"`
	Error       jsontext.Value `json:"error"`
	Item        *wireItem      `json:"item"`
	Response    jsontext.Value `json:"response"`
}

// wireItem is an item of the output.
type wireItem struct {
	Type             jsontext.Value `json:"type"`
	ID               jsontext.Value `json:"id"`
	Status           jsontext.Value `json:"status"`
	CallID           jsontext.Value `json:"call_id"`
	Name             jsontext.Value `json:"name"`
	Arguments        jsontext.Value `json:"arguments"`
	Content          *[]wirePart    `json:"content"`
	Summary          *[]wirePart    `json:"summary"`
	EncryptedContent jsontext.Value `json:"encrypted_content"`
}

type wirePart struct {
	Text    jsontext.Value `json:"text"`
	Refusal jsontext.Value `json:"refusal"`
}

// wireResponse is the response as a whole.
type wireResponse struct {
	Model             jsontext.Value `json:"model"`
	Status            jsontext.Value `json:"status"`
	Output            *[]wireItem    `json:"output"`
	Error             jsontext.Value `json:"error"`
	Usage             jsontext.Value `json:"usage"`
	IncompleteDetails *struct {
		Reason jsontext.Value `json:"reason"`
	} `json:"incomplete_details"`
}

// Frame handles the data of one event.
func (r *reply) Frame(name string, data []byte) error {
	if bytes.Equal(data, []byte("[DONE]")) {
		r.over = r.finish != ""
		return nil // some imitators end with it; it says nothing of the response
	}
	data, lone, marked := httpapi.RepairHalves(data)
	if lone > 0 && !marked {
		r.Note("half characters were replaced by U+FFFD")
	}
	var ev wireEvent
	if err := strictjson.Unmarshal(data, &ev, strictjson.Options{}); err != nil {
		if r.finish != "" {
			r.over = true
			return nil
		}
		return err
	}
	r.events++
	kind := httpapi.Scalar(ev.Type)
	if kind == "" {
		kind = name
	}
	if r.finish != "" {
		r.tail(kind, ev.Response)
		return nil
	}
	if kind == "error" || kind == "" && !httpapi.Absent(ev.Error) {
		return r.c.api.FrameError(data)
	}
	return r.event(kind, &ev, marked)
}

func (r *reply) event(kind string, ev *wireEvent, marked bool) error {
	delta := httpapi.Scalar(ev.Delta)
	switch kind {
	case "response.output_item.added", "response.output_item.done":
		if ev.Item == nil {
			return fmt.Errorf("%s has no item", kind)
		}
		it, err := r.items.forItem(ev.Item, httpapi.Scalar(ev.OutputIndex))
		if err != nil || it == nil {
			return err
		}
		r.settle(it, ev.Item, marked, strings.HasSuffix(kind, ".done"))
	case "response.output_text.delta", "response.refusal.delta":
		if kind == "response.refusal.delta" {
			r.Note("the model refused")
		}
		return r.add(kindMessage, ev, delta, marked)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return r.add(kindReasoning, ev, delta, marked)
	case "response.reasoning_summary_part.added":
		it, err := r.items.forDelta(kindReasoning, httpapi.Scalar(ev.ItemID), httpapi.Scalar(ev.OutputIndex))
		if err != nil {
			return err
		}
		it.part = it.text.Len() > 0
	case "response.function_call_arguments.delta":
		return r.add(kindCall, ev, delta, marked)
	case "response.function_call_arguments.done":
		it, err := r.items.forDelta(kindCall, httpapi.Scalar(ev.ItemID), httpapi.Scalar(ev.OutputIndex))
		if err != nil {
			return err
		}
		r.setArgs(it, arguments(ev.Arguments), marked)
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done":
		if err := r.end(strings.TrimPrefix(kind, "response."), ev.Response, marked); err != nil {
			return err
		}
		r.ans.Finishing()
		return nil
	case "response.created":
		var resp wireResponse
		if strictjson.Unmarshal(ev.Response, &resp, strictjson.Options{}) == nil {
			r.setModel(resp.Model, marked)
		}
		return nil
	default:
		return nil // an event of another kind of tool, or one that is new
	}
	r.ans.Progress()
	return nil
}

// add adds a piece of text, reasoning or arguments to its item, and hands it on.
func (r *reply) add(kind itemKind, ev *wireEvent, delta string, marked bool) error {
	it, err := r.items.forDelta(kind, httpapi.Scalar(ev.ItemID), httpapi.Scalar(ev.OutputIndex))
	if err != nil {
		return err
	}
	if it.part && delta != "" {
		it.part = false
		r.emit(it, partBreak)
	}
	r.emit(it, it.join.Add(delta, marked))
	r.ans.Progress()
	return nil
}

// partBreak stands between the parts of a summary.
const partBreak = "\n\n"

// emit takes text into it and hands on what a person may read.
func (r *reply) emit(it *item, s string) {
	if s == "" {
		return
	}
	it.text.WriteString(s)
	switch it.kind {
	case kindMessage:
		r.text.WriteString(s)
		r.onDelta(model.Delta{Text: s})
	case kindReasoning:
		r.onDelta(model.Delta{Reasoning: s})
	}
}

// settle takes what an item says of itself. With its end, the text in it counts if
// it goes on where the pieces stopped.
func (r *reply) settle(it *item, w *wireItem, marked, done bool) {
	str := func(v jsontext.Value) string { return httpapi.Unmark(httpapi.Scalar(v), marked) }
	if it.callID == "" {
		it.callID = str(w.CallID)
	}
	if s := str(w.Name); s != "" {
		it.name = s
	}
	if s := httpapi.Scalar(w.EncryptedContent); s != "" {
		it.encrypted = s
	}
	if it.kind == kindCall {
		if done || !httpapi.Absent(w.Arguments) {
			r.setArgs(it, arguments(w.Arguments), marked)
		}
	} else if done {
		r.complete(it, w, marked)
	}
	it.incomplete = httpapi.Scalar(w.Status) == "incomplete"
	it.done = it.done || done
}

// complete hands on what of an item's text has not come in pieces.
func (r *reply) complete(it *item, w *wireItem, marked bool) {
	var texts []string
	sep := ""
	parts := w.Content
	if it.kind == kindReasoning && w.Summary != nil && len(*w.Summary) > 0 {
		parts, sep = w.Summary, partBreak
	}
	if parts != nil {
		for _, p := range *parts {
			texts = append(texts, httpapi.Scalar(p.Text)+httpapi.Scalar(p.Refusal))
		}
	}
	var join httpapi.Joiner
	full := join.Add(strings.Join(texts, sep), marked)
	full += join.Flush()
	streamed := it.text.String()
	switch {
	case full == "":
	case strings.HasPrefix(full, streamed):
		it.join = httpapi.Joiner{Replaced: join.Replaced}
		it.part = false
		r.emit(it, full[len(streamed):])
	default:
		r.Note("a text at its end differs from what was streamed; what was streamed was taken")
	}
}

// setArgs takes the arguments as a whole, which count more than their pieces.
func (r *reply) setArgs(it *item, args string, marked bool) {
	if args == "" {
		return
	}
	var join httpapi.Joiner
	full := join.Add(args, marked)
	full += join.Flush()
	if streamed := it.text.String(); streamed != "" && streamed != full && it.join.Replaced == 0 {
		r.Note("the arguments of a call differ from their pieces; the whole was taken")
	}
	it.join = httpapi.Joiner{Replaced: join.Replaced}
	it.text.Reset()
	it.text.WriteString(full)
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
