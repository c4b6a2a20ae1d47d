package modeltest

import (
	"errors"
	"net/http"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

var (
	errCut      = errors.New("cut here")
	errCutClean = errors.New("end here")
	errStall    = errors.New("stall here")
)

// plan is a reply with its faults.
type plan struct {
	turn        Turn
	promptGuess int

	status       int
	header       map[string]string
	raw          []byte // sent instead of frames
	rawType      string
	stallHeaders bool
	gzip         bool
	cutAt        int // -1: nowhere
	cutClean     bool
	stallAt      int // -1: nowhere
	splitEvery   int // 0: as the frames are
	splitAt      int // 0: nowhere

	missingIndex, zeroIndex, idEveryPiece, argsObject, wholeCalls bool
	truncateArgs, repeatFinal, noFinish, noDone, noUsage          bool
	earlyUsage, jsonBody, noSpace, comments, emptyChoices, nulls  bool
	reasoningField, lineEnd                                       string
	errorFrame                                                    string
	errorAfter                                                    int
}

type object = map[string]any

// Stream returns the bytes of the event stream for turn, as the server writes
// them, for tests that feed a decoder directly.
func Stream(turn Turn) []byte {
	p := plan{turn: turn, cutAt: -1, stallAt: -1, lineEnd: "\n", reasoningField: "reasoning_content"}
	for _, f := range turn.Faults {
		f(&p)
	}
	var out []byte
	pieces, _ := p.body()
	for _, piece := range pieces {
		out = append(out, piece...)
	}
	return out
}

// body returns the reply's pieces, one a frame, and their content type.
func (p *plan) body() (pieces [][]byte, contentType string) {
	if p.raw != nil {
		return [][]byte{p.raw}, p.rawType
	}
	if p.jsonBody {
		return [][]byte{encode(p.whole())}, "application/json"
	}
	for i, f := range p.frames() {
		if p.errorFrame != "" && i == p.errorAfter {
			return append(pieces, p.event([]byte(p.errorFrame))), "text/event-stream"
		}
		pieces = append(pieces, p.event(encode(f)))
	}
	if p.errorFrame != "" {
		return append(pieces, p.event([]byte(p.errorFrame))), "text/event-stream"
	}
	if !p.noDone {
		pieces = append(pieces, p.event([]byte("[DONE]")))
	}
	return pieces, "text/event-stream"
}

func encode(v any) []byte {
	b, err := strictjson.Marshal(v)
	if err != nil {
		panic("modeltest: a turn that is not UTF-8: " + err.Error()) // a fault of the test that wrote it
	}
	return b
}

func (p *plan) event(data []byte) []byte {
	lead := "data: "
	if p.noSpace {
		lead = "data:"
	}
	if p.comments {
		lead = ": keep-alive" + p.lineEnd + p.lineEnd + "data:" + p.lineEnd + p.lineEnd + lead
	}
	return []byte(lead + string(data) + p.lineEnd + p.lineEnd)
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

// frames returns the whole reply as the objects of its frames.
func (p *plan) frames() []object {
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
	u := p.turn.Usage
	if u == nil {
		n := len(p.turn.Text) + len(p.turn.Reasoning)
		for _, c := range p.turn.Calls {
			n += len(c.Args)
		}
		u = &Usage{Prompt: p.promptGuess, Completion: n / 4}
	}
	return object{"prompt_tokens": u.Prompt, "completion_tokens": u.Completion, "total_tokens": u.Prompt + u.Completion,
		"prompt_tokens_details": object{"cached_tokens": u.Cached}}
}

func (p *plan) args(c Call) string {
	if !p.truncateArgs {
		return c.Args
	}
	half := len(c.Args) / 2
	for half > 0 && !utf8.RuneStart(c.Args[half]) {
		half--
	}
	return c.Args[:half]
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

// split cuts s into pieces of n characters.
func split(s string, n int) []string {
	var out []string
	for s != "" {
		end := 0
		for i := 0; i < n && end < len(s); i++ {
			_, size := utf8.DecodeRuneInString(s[end:])
			end += size
		}
		out = append(out, s[:end])
		s = s[end:]
	}
	return out
}

// output writes the body as the plan's splits, cut and stall say.
type output struct {
	w    http.ResponseWriter
	p    *plan
	gone chan struct{}
	sent int
}

func (o *output) Write(b []byte) (int, error) {
	total := len(b)
	for len(b) > 0 {
		n := len(b)
		if e := o.p.splitEvery; e > 0 {
			n = min(n, e)
		}
		for _, at := range []int{o.p.splitAt, o.p.cutAt, o.p.stallAt} {
			if at > o.sent {
				n = min(n, at-o.sent)
			}
		}
		if err := o.due(); err != nil {
			return 0, err
		}
		if _, err := o.w.Write(b[:n]); err != nil {
			return 0, err
		}
		o.w.(http.Flusher).Flush()
		o.sent += n
		b = b[n:]
	}
	return total, o.due()
}

// due returns the cut or stall that is planned for this place.
func (o *output) due() error {
	switch {
	case o.sent == o.p.cutAt && o.p.cutClean:
		return errCutClean
	case o.sent == o.p.cutAt:
		// The header must be out, or the client sees no answer at all.
		o.w.(http.Flusher).Flush()
		return errCut
	case o.sent == o.p.stallAt:
		o.w.(http.Flusher).Flush()
		return errStall
	}
	return nil
}
