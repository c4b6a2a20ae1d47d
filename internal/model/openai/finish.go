package openai

import (
	"fmt"

	"github.com/abhed/abhed/internal/model"
)

// finishes maps the finish reasons that servers are known to send.
var finishes = map[string]model.Finish{
	"stop": model.FinishStop, "eos": model.FinishStop, "eos_token": model.FinishStop,
	"stop_sequence": model.FinishStop, "end_turn": model.FinishStop,
	"tool_calls": model.FinishToolCalls, "tool_use": model.FinishToolCalls, "function_call": model.FinishToolCalls,
	"length": model.FinishLength, "max_tokens": model.FinishLength, "model_length": model.FinishLength,
	"content_filter": model.FinishFiltered, "safety": model.FinishFiltered,
}

// response makes the result of a complete reply.
func (r *reply) response() (*model.Response, error) {
	r.settle()
	finish, err := r.reason()
	if err != nil {
		return nil, err
	}
	m := &model.Message{Role: "assistant", Parts: []model.Part{}}
	if s := r.reasoning.String(); s != "" {
		m.Parts = append(m.Parts, model.Part{Reasoning: &s, Seal: &model.Seal{Origin: r.c.enc.origin}})
	}
	if s := r.text.String(); s != "" {
		m.Parts = append(m.Parts, model.Part{Text: &s})
	}
	if finish == model.FinishToolCalls {
		calls, err := r.calls.finish(r.c.enc.history.Used)
		if err != nil {
			return nil, r.fail(model.ErrMalformed, err, "%v; the reply can't be used", err)
		}
		for _, c := range calls {
			m.Parts = append(m.Parts, model.Part{ToolCall: c})
		}
	} else if n := len(r.calls.list); n > 0 {
		r.Note(fmt.Sprintf("%d tool calls were withheld because the reply was not complete: %s", n, r.calls.names()))
	}
	r.countReplaced()
	if r.field != "" && !r.c.noReasoning {
		r.c.enc.setField(r.field)
	}
	return &model.Response{Message: m, Finish: finish, Usage: r.usage, Model: r.model, Note: r.Notes.String()}, nil
}

// settle gives up on half characters at the end of the texts.
func (r *reply) settle() {
	if s := r.reasoningJoin.Flush(); s != "" {
		r.reasoning.WriteString(s)
		r.onDelta(model.Delta{Reasoning: s})
	}
	if s := r.textJoin.Flush(); s != "" {
		r.text.WriteString(s)
		r.onDelta(model.Delta{Text: s})
	}
}

// reason returns why a complete reply ended, or an error if it said something
// that can't be believed.
func (r *reply) reason() (model.Finish, error) {
	calls := len(r.calls.list) > 0
	finish, known := finishes[r.finish]
	switch {
	case r.finish == "" && !calls && r.text.Len() == 0 && r.reasoning.Len() == 0:
		return "", r.fail(model.ErrMalformed, nil, "the reply is marked as complete but holds neither text nor a call nor a finish reason")
	case r.finish == "":
		r.Note("no finish reason came; the reply was taken as complete because its end was marked")
		finish = model.FinishStop
	case r.finish == "error" || r.finish == "insufficient_system_resource" || r.finish == "abort":
		return "", r.fail(model.ErrServer, nil, "the endpoint gave up on the reply (finish reason %q)", r.finish)
	case !known && calls:
		return "", r.fail(model.ErrMalformed, nil, "the reply holds tool calls and ended for an unknown reason, %s; none of them is delivered", r.c.api.Quoted([]byte(r.finish)))
	case !known:
		r.Note(fmt.Sprintf("unknown finish reason %s, taken as stop", r.c.api.Quoted([]byte(r.finish))))
		finish = model.FinishStop
	}
	switch {
	case finish == model.FinishStop && calls:
		return model.FinishToolCalls, nil // what many servers say after calls
	case finish == model.FinishToolCalls && !calls && r.text.Len() == 0:
		return "", r.fail(model.ErrMalformed, nil, "the finish reason is %q but neither a call nor text came", r.finish)
	case finish == model.FinishToolCalls && !calls:
		r.Note("the finish reason says tool calls but none came")
		return model.FinishStop, nil
	}
	return finish, nil
}

func (r *reply) countReplaced() {
	n := r.textJoin.Replaced + r.reasoningJoin.Replaced
	for _, c := range r.calls.list {
		n += c.join.Replaced
	}
	if n > 0 {
		r.Note(fmt.Sprintf("%d half characters were replaced by U+FFFD", n))
	}
}
