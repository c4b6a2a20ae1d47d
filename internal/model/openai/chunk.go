package openai

import (
	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/httpapi"
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

// content returns the text and the reasoning in a content member, and whether it
// was understood.
func content(v jsontext.Value) (said, thought string, ok bool) {
	if httpapi.Absent(v) {
		return "", "", true
	}
	switch v.Kind() {
	case '"':
		return httpapi.Scalar(v), "", true
	case '[':
		var parts []contentPart
		if err := strictjson.Unmarshal(v, &parts, strictjson.Options{}); err != nil {
			return "", "", false
		}
		for _, p := range parts {
			switch httpapi.Scalar(p.Type) {
			case "text", "output_text", "":
				said += httpapi.Scalar(p.Text)
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
	if httpapi.Absent(v) || v.Kind() != '"' {
		return ""
	}
	return httpapi.Scalar(v)
}

type wireUsage struct {
	Prompt     jsontext.Value `json:"prompt_tokens"`
	Completion jsontext.Value `json:"completion_tokens"`
	Details    *struct {
		Cached  jsontext.Value `json:"cached_tokens"`
		Written jsontext.Value `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	OutputDetails *struct {
		Reasoning jsontext.Value `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
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
	u := &event.Usage{Input: httpapi.Count(w.Prompt), Output: httpapi.Count(w.Completion)}
	if w.Details != nil {
		u.CacheRead, u.CacheWrite = httpapi.Count(w.Details.Cached, w.CacheHit, w.Cached), httpapi.Count(w.Details.Written)
	} else {
		u.CacheRead = httpapi.Count(w.CacheHit, w.Cached)
	}
	if w.OutputDetails != nil {
		u.Reasoning = httpapi.Count(w.OutputDetails.Reasoning)
	}
	if *u == (event.Usage{}) {
		return nil, ""
	}
	return u, httpapi.WithoutCached(u)
}
