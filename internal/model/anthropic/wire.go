package anthropic

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
)

// event is the data of one event of a stream. Members whose type servers disagree on
// are raw.
type event struct {
	Type    jsontext.Value `json:"type"`
	Index   jsontext.Value `json:"index"`
	Message jsontext.Value `json:"message"`
	Block   *block         `json:"content_block"`
	Delta   *delta         `json:"delta"`
	Usage   jsontext.Value `json:"usage"`
	Error   jsontext.Value `json:"error"`
}

// message is a whole reply, or what a stream begins with.
type message struct {
	Type       jsontext.Value `json:"type"`
	Model      jsontext.Value `json:"model"`
	Content    *[]block       `json:"content"`
	StopReason jsontext.Value `json:"stop_reason"`
	Usage      jsontext.Value `json:"usage"`
	Error      jsontext.Value `json:"error"`
}

// block is a content block as it begins, or whole.
type block struct {
	Type      jsontext.Value `json:"type"`
	Text      jsontext.Value `json:"text"`
	Thinking  jsontext.Value `json:"thinking"`
	Signature jsontext.Value `json:"signature"`
	Data      jsontext.Value `json:"data"`
	ID        jsontext.Value `json:"id"`
	Name      jsontext.Value `json:"name"`
	Input     jsontext.Value `json:"input"`
}

// delta is a piece of a block, or what is new of the whole message.
type delta struct {
	Type        jsontext.Value `json:"type"`
	Text        jsontext.Value `json:"text"`
	Thinking    jsontext.Value `json:"thinking"`
	Signature   jsontext.Value `json:"signature"`
	PartialJSON jsontext.Value `json:"partial_json"`
	StopReason  jsontext.Value `json:"stop_reason"`
}

// wireUsage counts each token once, as event.Usage does.
type wireUsage struct {
	Input      jsontext.Value `json:"input_tokens"`
	Output     jsontext.Value `json:"output_tokens"`
	CacheRead  jsontext.Value `json:"cache_read_input_tokens"`
	CacheWrite jsontext.Value `json:"cache_creation_input_tokens"`
}

// update takes what a later report says. The counts are totals, so that the last one
// counts; a zero after a real count is a proxy that doesn't know.
func (w *wireUsage) update(u *model.Usage) {
	for _, c := range []struct {
		dst **int64
		v   jsontext.Value
	}{{&u.Input, w.Input}, {&u.Output, w.Output}, {&u.CacheRead, w.CacheRead}, {&u.CacheWrite, w.CacheWrite}} {
		if n := httpapi.Count(c.v); n != nil && (*n > 0 || *c.dst == nil) {
			*c.dst = n
		}
	}
}

// sum adds up what two requests took; nil is unknown.
func sum(a, b *model.Usage) *model.Usage {
	if a == nil || b == nil {
		return nil
	}
	add := func(x, y *int64) *int64 {
		switch {
		case x == nil:
			return y
		case y == nil:
			return x
		}
		n := *x + *y
		return &n
	}
	return &model.Usage{Input: add(a.Input, b.Input), Output: add(a.Output, b.Output), CacheRead: add(a.CacheRead, b.CacheRead), CacheWrite: add(a.CacheWrite, b.CacheWrite)}
}

// text returns v if it is a string, else "".
func text(v jsontext.Value) string {
	if httpapi.Absent(v) || v.Kind() != '"' {
		return ""
	}
	return httpapi.Scalar(v)
}

// arguments returns a call's input as text, which some proxies send as a string.
func arguments(v jsontext.Value) string {
	switch {
	case httpapi.Absent(v):
		return ""
	case v.Kind() == '"':
		return httpapi.Scalar(v)
	default:
		return string(v)
	}
}
