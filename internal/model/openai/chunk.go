package openai

import (
	"math"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/strictjson"
)

// chunk is one frame of a stream, or a whole reply. Members whose type servers
// disagree on are raw; a null and a missing member are the same everywhere.
type chunk struct {
	Model   jsontext.Value `json:"model"`
	Choices *[]choice      `json:"choices"`
	Usage   jsontext.Value `json:"usage"`
	Error   jsontext.Value `json:"error"`
	Object  jsontext.Value `json:"object"`
}

type choice struct {
	Index        jsontext.Value `json:"index"`
	Delta        *delta         `json:"delta"`
	Message      *delta         `json:"message"`
	FinishReason jsontext.Value `json:"finish_reason"`
}

type delta struct {
	Content          jsontext.Value `json:"content"`
	Refusal          jsontext.Value `json:"refusal"`
	ReasoningContent jsontext.Value `json:"reasoning_content"`
	Reasoning        jsontext.Value `json:"reasoning"`
	ToolCalls        *[]fragment    `json:"tool_calls"`
	FunctionCall     *function      `json:"function_call"`
}

// fragment is a piece of a tool call.
type fragment struct {
	Index    jsontext.Value `json:"index"`
	ID       jsontext.Value `json:"id"`
	Function *function      `json:"function"`
}

type function struct {
	Name      jsontext.Value `json:"name"`
	Arguments jsontext.Value `json:"arguments"`
}

// contentPart is an element of a content list, as some servers stream it.
type contentPart struct {
	Type     jsontext.Value `json:"type"`
	Text     jsontext.Value `json:"text"`
	Thinking jsontext.Value `json:"thinking"`
}

// none reports whether v is absent or null.
func none(v jsontext.Value) bool { return len(v) == 0 || v.Kind() == 'n' }

// text returns a string's value; of a number or boolean it returns the literal,
// and "" of anything else.
func text(v jsontext.Value) string {
	if none(v) {
		return ""
	}
	switch v.Kind() {
	case '"':
		b, err := jsontext.AppendUnquote(nil, v)
		if err != nil {
			return ""
		}
		return string(b)
	case '0', 't', 'f':
		return strings.TrimSpace(string(v))
	default:
		return ""
	}
}

// integer returns the whole number that v holds, as a number or as a string.
func integer(v jsontext.Value) (int64, bool) {
	s := text(v)
	if s == "" || strings.TrimLeft(s, "-0123456789.eE+") != "" {
		return 0, false
	}
	var f float64
	if err := strictjson.Unmarshal([]byte(s), &f, strictjson.Options{}); err != nil {
		return 0, false
	}
	if f != math.Trunc(f) || math.Abs(f) > 1<<53 {
		return 0, false
	}
	return int64(f), true
}

// content returns the text and the reasoning in a content member, and whether it
// was understood.
func content(v jsontext.Value) (said, thought string, ok bool) {
	if none(v) {
		return "", "", true
	}
	switch v.Kind() {
	case '"':
		return text(v), "", true
	case '[':
		var parts []contentPart
		if err := strictjson.Unmarshal(v, &parts, strictjson.Options{}); err != nil {
			return "", "", false
		}
		for _, p := range parts {
			switch text(p.Type) {
			case "text", "output_text", "":
				said += text(p.Text)
			case "thinking":
				inner, _, understood := content(p.Thinking)
				if !understood {
					return "", "", false
				}
				thought += inner
			default:
				return "", "", false
			}
		}
		return said, thought, true
	default:
		return "", "", false
	}
}

// thoughts returns the reasoning in d and the member that held it.
func (d *delta) thoughts() (reasoning, field string) {
	// Some servers send both members with the same text: one is taken.
	if s := stringOnly(d.ReasoningContent); s != "" {
		return s, fieldReasoningContent
	}
	if s := stringOnly(d.Reasoning); s != "" {
		return s, fieldReasoning
	}
	return "", ""
}

func stringOnly(v jsontext.Value) string {
	if none(v) || v.Kind() != '"' {
		return ""
	}
	return text(v)
}

type wireUsage struct {
	Prompt     jsontext.Value `json:"prompt_tokens"`
	Completion jsontext.Value `json:"completion_tokens"`
	Details    *struct {
		Cached  jsontext.Value `json:"cached_tokens"`
		Written jsontext.Value `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CacheHit jsontext.Value `json:"prompt_cache_hit_tokens"`
	Cached   jsontext.Value `json:"cached_tokens"`
}

// usage translates a usage member. prompt_tokens includes what came from and went
// to the cache, while event.Usage counts each token once. It returns nil and a
// note if the member can't be understood.
func usage(v jsontext.Value) (*event.Usage, string) {
	var w wireUsage
	if err := strictjson.Unmarshal(v, &w, strictjson.Options{}); err != nil {
		return nil, "the usage member could not be understood (" + err.Error() + ")"
	}
	count := func(vs ...jsontext.Value) *int64 {
		for _, v := range vs {
			if n, ok := integer(v); ok && n >= 0 {
				return &n
			}
		}
		return nil
	}
	u := &event.Usage{Input: count(w.Prompt), Output: count(w.Completion)}
	if w.Details != nil {
		u.CacheRead, u.CacheWrite = count(w.Details.Cached, w.CacheHit, w.Cached), count(w.Details.Written)
	} else {
		u.CacheRead = count(w.CacheHit, w.Cached)
	}
	if *u == (event.Usage{}) {
		return nil, ""
	}
	if u.Input == nil {
		return u, ""
	}
	cached := value(u.CacheRead) + value(u.CacheWrite)
	if cached > *u.Input {
		return u, "usage counts more cached tokens than prompt tokens; the cached ones were taken as not included"
	}
	*u.Input -= cached
	return u, ""
}

func value(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}
