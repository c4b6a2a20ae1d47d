package modelserver

import (
	"encoding/base64"
	"fmt"
	"net/http"

	"github.com/abhed/abhed/internal/strictjson"
)

// answer is a turn that is about to be written.
type answer struct {
	query
	turn Turn
	// n is the turn's index; ids are made of it, so that a repeated request gets
	// a repeated answer.
	n int
}

// event is one event of a stream; name may be empty.
type event struct {
	name string
	data object
}

// write answers in the form of the API, as a stream or whole.
func (a API) write(w http.ResponseWriter, ans answer) {
	switch a {
	case Anthropic:
		ans.anthropic(w)
	case Responses:
		ans.responses(w)
	case Chat:
		ans.chat(w)
	case Gemini:
		ans.gemini(w)
	}
}

// id returns an identifier of the k-th part of this answer.
func (ans answer) id(prefix string, k int) string { return fmt.Sprintf("%s_%d_%d", prefix, ans.n, k) }

// args returns a call's arguments decoded; New has seen that they are an object.
func (c Call) args() object {
	var o object
	if err := strictjson.Unmarshal([]byte(c.Args), &o, strictjson.Options{}); err != nil {
		return nil
	}
	return o
}

// encode returns v as JSON. It is for values made of strings, numbers, lists and
// objects alone, which can't fail but for bytes that are no UTF-8.
func encode(v any) string {
	b, err := strictjson.Marshal(v)
	if err != nil {
		return `"what could not be encoded: ` + base64.StdEncoding.EncodeToString([]byte(err.Error())) + `"`
	}
	return string(b)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, encode(v))
}

// writeStream writes server-sent events, then the closing line if there is one.
func writeStream(w http.ResponseWriter, events []event, last string) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-cache")
	flush := http.NewResponseController(w)
	for _, e := range events {
		if e.name != "" {
			fmt.Fprintf(w, "event: %s\n", e.name)
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", encode(e.data)); err != nil {
			return // the client has gone
		}
		_ = flush.Flush() // what can't be flushed now is sent when the answer ends
	}
	if last != "" {
		fmt.Fprintf(w, "data: %s\n\n", last)
	}
}

// with returns a copy of o with more members; a nil value stays, as null.
func with(o, more object) object {
	out := object{}
	for k, v := range o {
		out[k] = v
	}
	for k, v := range more {
		out[k] = v
	}
	return out
}

func (ans answer) anthropic(w http.ResponseWriter) {
	blocks := []object{}
	if ans.turn.Text != "" {
		blocks = append(blocks, object{"type": "text", "text": ans.turn.Text})
	}
	for k, c := range ans.turn.Calls {
		blocks = append(blocks, object{"type": "tool_use", "id": ans.id("toolu", k), "name": c.Name, "input": c.args()})
	}
	reason := "end_turn"
	if len(ans.turn.Calls) > 0 {
		reason = "tool_use"
	}
	usage := object{"input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
	whole := object{"id": ans.id("msg", 0), "type": "message", "role": "assistant", "model": ans.model, "content": blocks,
		"stop_reason": reason, "stop_sequence": nil, "usage": usage}
	if !ans.stream {
		writeJSON(w, whole)
		return
	}
	events := []event{{"message_start", object{"message": with(whole, object{"content": []any{}, "stop_reason": nil})}}}
	for k, b := range blocks {
		empty, delta := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": b["text"]}
		if b["type"] == "tool_use" {
			empty, delta = with(b, object{"input": object{}}), object{"type": "input_json_delta", "partial_json": encode(b["input"])}
		}
		events = append(events, event{"content_block_start", object{"index": k, "content_block": empty}},
			event{"content_block_delta", object{"index": k, "delta": delta}},
			event{"content_block_stop", object{"index": k}})
	}
	events = append(events, event{"message_delta", object{"delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": usage}},
		event{"message_stop", object{}})
	for _, e := range events {
		e.data["type"] = e.name
	}
	writeStream(w, events, "")
}

func (ans answer) chat(w http.ResponseWriter) {
	var calls []object
	for k, c := range ans.turn.Calls {
		calls = append(calls, object{"index": k, "id": ans.id("call", k), "type": "function", "function": object{"name": c.Name, "arguments": c.Args}})
	}
	reason := "stop"
	if len(calls) > 0 {
		reason = "tool_calls"
	}
	base := object{"id": ans.id("chatcmpl", 0), "created": 1, "model": ans.model}
	usage := object{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
	if !ans.stream {
		message := object{"role": "assistant", "content": ans.turn.Text}
		if len(calls) > 0 {
			message["tool_calls"] = calls
		}
		choice := object{"index": 0, "message": message, "finish_reason": reason}
		writeJSON(w, with(base, object{"object": "chat.completion", "usage": usage, "choices": []any{choice}}))
		return
	}
	base["object"] = "chat.completion.chunk"
	chunk := func(delta object, finish any) event {
		return event{data: with(base, object{"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}}})}
	}
	events := []event{chunk(object{"role": "assistant", "content": ans.turn.Text}, nil)}
	for _, c := range calls {
		events = append(events, chunk(object{"tool_calls": []any{c}}, nil))
	}
	events = append(events, chunk(object{}, reason), event{data: with(base, object{"choices": []any{}, "usage": usage})})
	writeStream(w, events, "[DONE]")
}

func (ans answer) gemini(w http.ResponseWriter) {
	parts := []object{}
	if ans.turn.Text != "" {
		parts = append(parts, object{"text": ans.turn.Text})
	}
	for _, c := range ans.turn.Calls {
		parts = append(parts, object{"functionCall": object{"name": c.Name, "args": c.args()}})
	}
	whole := object{
		"candidates":    []any{object{"index": 0, "content": object{"role": "model", "parts": parts}, "finishReason": "STOP"}},
		"usageMetadata": object{"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
		"modelVersion":  "mock-model", "responseId": ans.id("r", 0),
	}
	if !ans.stream {
		writeJSON(w, whole)
		return
	}
	writeStream(w, []event{{data: whole}}, "")
}

func (ans answer) responses(w http.ResponseWriter) {
	items := ans.items()
	base := object{"id": ans.id("resp", 0), "object": "response", "created_at": 1, "model": ans.model, "error": nil,
		"incomplete_details": nil, "parallel_tool_calls": true, "tools": []any{}, "tool_choice": "auto"}
	usage := object{"input_tokens": 10, "input_tokens_details": object{"cached_tokens": 0},
		"output_tokens": 5, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 15}
	whole := with(base, object{"status": "completed", "output": items, "usage": usage})
	if !ans.stream {
		writeJSON(w, whole)
		return
	}
	begun := with(base, object{"status": "in_progress", "output": []any{}, "usage": nil})
	events := []event{{"response.created", object{"response": begun}}, {"response.in_progress", object{"response": begun}}}
	for k, item := range items {
		for _, e := range itemEvents(item) {
			e.data["output_index"] = k
			events = append(events, e)
		}
	}
	events = append(events, event{"response.completed", object{"response": whole}})
	for k, e := range events {
		e.data["type"], e.data["sequence_number"] = e.name, k
	}
	writeStream(w, events, "")
}

// items returns the output items of an answer in OpenAI's Responses form.
func (ans answer) items() []object {
	items := []object{}
	if ans.turn.Text != "" {
		part := object{"type": "output_text", "text": ans.turn.Text, "annotations": []any{}}
		items = append(items, object{"type": "message", "id": ans.id("msg", 0), "status": "completed", "role": "assistant", "content": []any{part}})
	}
	for k, c := range ans.turn.Calls {
		items = append(items, object{"type": "function_call", "id": ans.id("fc", k), "status": "completed", "call_id": ans.id("call", k), "name": c.Name, "arguments": c.Args})
	}
	return items
}

// itemEvents returns the events that stream one output item.
func itemEvents(item object) []event {
	id := item["id"]
	done := event{"response.output_item.done", object{"item": item}}
	if item["type"] == "function_call" {
		return []event{
			{"response.output_item.added", object{"item": with(item, object{"status": "in_progress", "arguments": ""})}},
			{"response.function_call_arguments.delta", object{"item_id": id, "delta": item["arguments"]}},
			{"response.function_call_arguments.done", object{"item_id": id, "arguments": item["arguments"], "name": item["name"]}},
			done,
		}
	}
	part := objects(item["content"])[0]
	return []event{
		{"response.output_item.added", object{"item": with(item, object{"status": "in_progress", "content": []any{}})}},
		{"response.content_part.added", object{"item_id": id, "content_index": 0, "part": with(part, object{"text": ""})}},
		{"response.output_text.delta", object{"item_id": id, "content_index": 0, "delta": part["text"]}},
		{"response.output_text.done", object{"item_id": id, "content_index": 0, "text": part["text"]}},
		{"response.content_part.done", object{"item_id": id, "content_index": 0, "part": part}},
		done,
	}
}
