package modeltest

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// chat is the chat completions API.
func chat() dialect {
	return dialect{
		serves:  func(path string) bool { return strings.HasSuffix(path, "/chat/completions") },
		key:     bearer,
		decode:  (*Server).decode,
		frames:  chatFrames,
		whole:   (*plan).whole,
		refusal: openAIError,
	}
}

func chatFrames(p *plan) []frame {
	var out []frame
	for _, o := range p.objects() {
		out = append(out, frame{data: encode(o)})
	}
	if !p.noDone && p.errorFrame == "" {
		out = append(out, frame{data: []byte("[DONE]")})
	}
	return out
}

// frame wraps a delta as the API does.
func (p *plan) frame(delta object, finish any) object {
	f := object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted-1",
		"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}}}
	if p.nulls {
		f["error"], f["usage"], f["system_fingerprint"] = nil, nil, nil
		for _, name := range []string{"content", "tool_calls", "function_call", "refusal", p.reasoningField} {
			if _, ok := delta[name]; !ok {
				delta[name] = nil
			}
		}
	}
	return f
}

// objects returns the whole reply as the objects of its frames.
func (p *plan) objects() []object {
	out := []object{p.frame(object{"role": "assistant", "content": ""}, nil)}
	if p.emptyChoices {
		out = append(out, object{"id": "chatcmpl-1", "choices": []any{}, "prompt_filter_results": []any{}})
	}
	if p.earlyUsage {
		out = append(out, object{"choices": []any{}, "usage": p.usage()})
	}
	for _, s := range split(p.turn.Reasoning, 4) {
		out = append(out, p.frame(object{p.reasoningField: s}, nil))
	}
	for _, s := range split(p.turn.Text, 3) {
		out = append(out, p.frame(object{"content": s}, nil))
	}
	calls := p.callDeltas()
	for _, d := range calls {
		out = append(out, p.frame(d, nil))
	}
	if !p.noFinish {
		out = append(out, p.frame(object{}, p.finish()))
		if p.repeatFinal {
			again := p.frame(object{"tool_calls": p.wholeDeltas()}, p.finish())
			again["usage"] = p.usage()
			out = append(out, again)
		}
	}
	if !p.noUsage && !p.earlyUsage {
		out = append(out, object{"id": "chatcmpl-1", "choices": []any{}, "usage": p.usage()})
	}
	return out
}

func (p *plan) finish() string {
	switch {
	case p.turn.Finish != "":
		return p.turn.Finish
	case p.truncateArgs:
		return "length"
	case len(p.turn.Calls) > 0:
		return "tool_calls"
	default:
		return "stop"
	}
}

func (p *plan) usage() object {
	u := p.counts()
	out := object{"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion,
		"prompt_tokens_details": object{"cached_tokens": u.Cached}}
	if u.Reasoning > 0 {
		out["completion_tokens_details"] = object{"reasoning_tokens": u.Reasoning}
	}
	return out
}

// callDeltas returns the deltas that stream the calls, one call after the other,
// or interleaved where every index is 0.
func (p *plan) callDeltas() []object {
	if p.wholeCalls || p.argsObject {
		var out []object
		for _, d := range p.wholeDeltas() {
			out = append(out, object{"tool_calls": []any{d}})
		}
		return out
	}
	perCall := make([][]object, len(p.turn.Calls))
	longest := 0
	for i, c := range p.turn.Calls {
		perCall[i] = append(perCall[i], p.fragment(i, c, object{"name": c.Name, "arguments": ""}, true))
		for _, s := range split(p.args(c), 5) {
			perCall[i] = append(perCall[i], p.fragment(i, c, object{"arguments": s}, p.idEveryPiece))
		}
		longest = max(longest, len(perCall[i]))
	}
	var out []object
	add := func(f object) { out = append(out, object{"tool_calls": []any{f}}) }
	if !p.idEveryPiece {
		for _, fs := range perCall {
			for _, f := range fs {
				add(f)
			}
		}
		return out
	}
	for n := range longest {
		for _, fs := range perCall {
			if n < len(fs) {
				add(fs[n])
			}
		}
	}
	return out
}

// wholeDeltas returns each call as one fragment.
func (p *plan) wholeDeltas() []any {
	out := []any{}
	for i, c := range p.turn.Calls {
		var args any = p.args(c)
		if p.argsObject {
			args = jsontext.Value(p.args(c))
		}
		out = append(out, p.fragment(i, c, object{"name": c.Name, "arguments": args}, true))
	}
	return out
}

func (p *plan) fragment(i int, c Call, fn object, withID bool) object {
	f := object{"function": fn}
	if withID {
		f["type"] = "function"
		if c.ID != "" {
			f["id"] = c.ID
		}
	}
	switch {
	case p.zeroIndex:
		f["index"] = 0
	case !p.missingIndex:
		f["index"] = i
	}
	return f
}

// whole returns the reply as one body.
func (p *plan) whole() object {
	m := object{"role": "assistant", "content": p.turn.Text}
	if p.turn.Reasoning != "" {
		m[p.reasoningField] = p.turn.Reasoning
	}
	if len(p.turn.Calls) > 0 {
		m["tool_calls"] = p.wholeDeltas()
	}
	return object{"id": "chatcmpl-1", "object": "chat.completion", "model": "scripted-1", "usage": p.usage(),
		"choices": []any{object{"index": 0, "message": m, "finish_reason": p.finish()}}}
}
