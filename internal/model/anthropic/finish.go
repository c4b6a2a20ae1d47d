package anthropic

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
)

// pauseTurn is the stop reason of a reply that the endpoint wants to be asked to go on
// with.
const pauseTurn = "pause_turn"

// finishOf translates a stop reason; proxies send words of other APIs.
func finishOf(reason string) (f model.Finish, known bool) {
	switch reason {
	case "end_turn", "stop_sequence", "stop", pauseTurn:
		return model.FinishStop, true
	case "tool_use", "tool_calls":
		return model.FinishToolCalls, true
	case "max_tokens", "length", "model_context_window_exceeded":
		return model.FinishLength, true
	case "refusal", "content_filter", "content_filtered", "guardrail_intervened":
		return model.FinishFiltered, true
	default:
		return "", false
	}
}

// withholds reports whether a stop reason means that no call of the reply is complete.
func withholds(reason string) bool {
	f, _ := finishOf(reason)
	return f == model.FinishLength || f == model.FinishFiltered
}

// response makes the result of a complete reply.
func (r *reply) response() (*model.Response, error) {
	r.settle()
	r.assumed()
	finish, err := r.reason()
	if err != nil {
		return nil, err
	}
	m := &model.Message{Role: "assistant", Parts: []model.Part{}}
	var withheld []string
	seen := map[string]*part{}
	for _, b := range r.blocks {
		switch {
		case b.kind != kindCall:
			m.Parts = r.appendPart(m.Parts, b)
		case finish != model.FinishToolCalls:
			withheld = append(withheld, httpapi.QuoteBytes([]byte(b.name), 80))
		case b.name == "":
			return nil, r.fail(model.ErrMalformed, nil, "a tool call came without a name (id %s, input %s); the reply can't be used", r.api.Quoted([]byte(b.id)), r.api.Quoted([]byte(b.args())))
		default:
			if call := r.call(b, seen); call != nil {
				m.Parts = append(m.Parts, model.Part{ToolCall: call})
			}
		}
	}
	if len(withheld) > 0 {
		r.Note(fmt.Sprintf("%d tool calls were withheld because the reply was not complete: %s", len(withheld), strings.Join(withheld, ", ")))
	}
	return &model.Response{Message: m, Finish: finish, Usage: r.usage, Model: r.model, Note: strings.Join(r.notes, "; ")}, nil
}

// assumed notes what the stream left open.
func (r *reply) assumed() {
	replaced := 0
	for _, b := range r.blocks {
		if b.open && r.stop != "" {
			r.Note("a block was not ended before the message")
		}
		replaced += b.join.Replaced
	}
	if replaced > 0 {
		r.Note(fmt.Sprintf("%d half characters were replaced by U+FFFD", replaced))
	}
	if !r.done {
		r.Note("the end of the message was not marked")
	}
}

// appendPart adds a text or thinking.
func (r *reply) appendPart(parts []model.Part, b *part) []model.Part {
	s := b.body.String()
	var seal *model.Seal
	if b.signature.Len() > 0 && !r.altered && b.join.Replaced == 0 {
		seal = &model.Seal{Origin: r.origin, Kind: b.kind, Data: b.signature.String()}
	}
	switch {
	case b.kind == kindText && s != "":
		return append(parts, model.Part{Text: &s})
	case b.kind == kindThinking && (s != "" || seal != nil):
		return append(parts, model.Part{Reasoning: &s, Seal: seal})
	case b.kind == kindRedacted && seal != nil:
		return append(parts, model.Part{Seal: seal})
	}
	return parts
}

// call returns the call of a block, nil if it is the same again. Ids are made unique
// within the reply and against those of the history.
func (r *reply) call(b *part, seen map[string]*part) *model.ToolCall {
	id := b.id
	if first := seen[id]; id != "" && first != nil && first.name == b.name && first.args() == b.args() {
		r.Note("a tool call that was sent twice was taken once")
		return nil
	}
	if id == "" || seen[id] != nil || r.used(id) {
		if id != "" {
			r.Note(fmt.Sprintf("the call id %s was used before and got a new one", httpapi.QuoteBytes([]byte(id), 80)))
		}
		id = "toolu_" + rand.Text()
	}
	seen[b.id], seen[id] = b, b
	return &model.ToolCall{ID: id, Name: b.name, Args: b.args()}
}

// reason returns why a complete reply ended, or an error if it said something that
// can't be believed.
func (r *reply) reason() (model.Finish, error) {
	finish, known := finishOf(r.stop)
	switch {
	case r.stop == "" && r.calls > 0:
		return "", r.fail(model.ErrCut, nil, "the reply ended with %d tool calls and without a stop reason; none of them is delivered", r.calls)
	case r.stop == "" && len(r.blocks) == 0:
		return "", r.fail(model.ErrMalformed, nil, "the reply is marked as complete but holds neither content nor a stop reason")
	case r.stop == "":
		r.Note("no stop reason came; the reply was taken as complete because its end was marked")
		return model.FinishStop, nil
	case !known && r.calls > 0:
		return "", r.fail(model.ErrMalformed, nil, "the reply holds tool calls and ended for an unknown reason, %s; none of them is delivered", r.api.Quoted([]byte(r.stop)))
	case !known:
		r.Note(fmt.Sprintf("unknown stop reason %s, taken as end_turn", r.api.Quoted([]byte(r.stop))))
		return model.FinishStop, nil
	case r.stop == "stop_sequence" && !r.lastCallIsWhole():
		return model.FinishStop, nil // the sequence stood within the input
	case finish == model.FinishStop && r.calls > 0:
		return model.FinishToolCalls, nil // what proxies say after calls
	case finish == model.FinishToolCalls && r.calls == 0 && len(r.blocks) == 0:
		return "", r.fail(model.ErrMalformed, nil, "the stop reason is %q but neither a call nor text came", r.stop)
	case finish == model.FinishToolCalls && r.calls == 0:
		r.Note("the stop reason says tool calls but none came")
		return model.FinishStop, nil
	}
	return finish, nil
}

// lastCallIsWhole reports whether the input of the last call is all of a JSON value,
// or there is no call.
func (r *reply) lastCallIsWhole() bool {
	for _, b := range slices.Backward(r.blocks) {
		if b.kind == kindCall {
			return b.whole()
		}
	}
	return true
}

// paused reports whether the endpoint wants to be asked to go on.
func (r *reply) paused(resp *model.Response) bool {
	return r.stop == pauseTurn && resp.Finish == model.FinishStop
}
