package gemini

import (
	"crypto/rand"
	"fmt"
	"strconv"
	"strings"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
)

// sealKind is what the seals with a signature are called.
const sealKind = "thought_signature"

// idMaker makes ids for calls that came without one. They are counted, behind a word
// that keeps the ids of one process apart from those of another, which a resumed
// session may hold.
type idMaker struct {
	word string
	made int
}

func newIDMaker() idMaker { return idMaker{word: strings.ToLower(rand.Text()[:8])} }

func (m *idMaker) next() string {
	m.made++
	return "call_" + m.word + "_" + strconv.Itoa(m.made)
}

// response makes the result of a complete reply.
func (r *reply) response() (*model.Response, error) {
	r.settle()
	finish, err := r.ending()
	if err != nil {
		return nil, err
	}
	m := &model.Message{Role: "assistant", Parts: []model.Part{}}
	withheld := 0
	seen := map[string]bool{}
	for _, p := range r.pieces {
		if p.call != nil && finish != model.FinishToolCalls {
			withheld++
			continue
		}
		m.Parts = append(m.Parts, r.finished(p, seen))
	}
	if withheld > 0 {
		r.Note(fmt.Sprintf("%d tool calls were withheld because the reply was not complete", withheld))
	}
	if r.join.Replaced > 0 {
		r.Note(fmt.Sprintf("%d half characters were replaced by U+FFFD", r.join.Replaced))
	}
	return &model.Response{Message: m, Finish: finish, Usage: r.usage, Model: r.model, Note: r.Notes.String()}, nil
}

// finished returns a piece as a part. The ids of calls are made unique within the
// reply and the conversation; the seal keeps the one that the endpoint gave.
func (r *reply) finished(p *piece, seen map[string]bool) model.Part {
	var out model.Part
	if p.seal != "" || p.id != "" {
		out.Seal = &model.Seal{Origin: r.c.enc.seals.Origin, ID: p.id, Data: p.seal}
		if p.seal != "" {
			out.Seal.Kind = sealKind
		}
	}
	text := p.text.String()
	switch {
	case p.call != nil:
		out.ToolCall = p.call
		p.call.ID = p.id
		if p.id != "" && (seen[p.id] || r.c.enc.history.Used(p.id)) {
			r.Note(fmt.Sprintf("the call id %s was used before and got a new one", httpapi.QuoteBytes([]byte(p.id), 80)))
			p.call.ID = ""
		}
		if p.call.ID == "" {
			p.call.ID = r.c.ids.next()
		}
		seen[p.call.ID] = true
	case p.thought:
		out.Reasoning = &text
	default:
		out.Text = &text
	}
	return out
}

// filtered lists the finish reasons that mean that the provider withheld the rest.
func filtered() []string {
	return []string{
		"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION",
	}
}

// ending returns why a complete reply ended, or an error if it is no reply to use.
func (r *reply) ending() (model.Finish, error) {
	why := r.because()
	if r.blocked != "" && r.finish == "" {
		r.Note("the endpoint refused the prompt: " + why)
		return model.FinishFiltered, nil
	}
	for _, reason := range filtered() {
		if r.finish == reason {
			r.Note("the endpoint withheld the rest: " + why)
			return model.FinishFiltered, nil
		}
	}
	switch r.finish {
	case "":
		return "", r.fail(model.ErrCut, nil, "the reply ended %s without a finish reason. No call of the reply is delivered", r.Position())
	case "STOP":
		if r.calls > 0 {
			return model.FinishToolCalls, nil
		}
		return model.FinishStop, nil
	case "MAX_TOKENS":
		return model.FinishLength, nil
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE":
		return "", r.fail(model.ErrMalformed, nil, "the model wrote something that the endpoint could not read as a call: %s", why)
	case "MISSING_THOUGHT_SIGNATURE":
		return "", r.fail(model.ErrReplay, nil, "the endpoint missed a signature in what was sent back: %s", why)
	case "OTHER", "TOO_MANY_TOOL_CALLS":
		return "", r.fail(model.ErrServer, nil, "the endpoint gave up on the reply: %s", why)
	}
	if r.calls > 0 {
		return "", r.fail(model.ErrMalformed, nil, "the reply holds tool calls and ended for an unknown reason, %s; none of them is delivered", why)
	}
	r.Note("unknown finish reason " + why + ", taken as STOP")
	return model.FinishStop, nil
}

// because returns the reason as sent, and what came with it.
func (r *reply) because() string {
	word := r.finish
	if word == "" {
		word = r.blocked
	}
	out := r.c.api.Quoted([]byte(word))
	if r.reason != "" {
		out += " (" + r.c.api.Quoted([]byte(r.reason)) + ")"
	}
	return out
}
