package adapter

import "github.com/abhed/abhed/ahp"

// ModelCall is one request to a model.
type ModelCall struct {
	// Model and Provider are names; "" is one that the host doesn't tell.
	Model, Provider string
	// Attempt is the host's id of the request, "" if it gives none; Number counts from 1.
	Attempt string
	Number  int64
	// Params is a JSON object; nil is empty.
	Params ahp.Raw
	// Messages is what is sent or received; nil is what the host doesn't tell.
	Messages []ahp.Message
}

func (b *Base) model(t ahp.EventType, m ModelCall, seed []byte) *ahp.Event {
	e := b.Event(t)
	known := func(s string) string {
		if s == "" {
			return "unknown"
		}
		return s
	}
	e.Model = &ahp.Model{ID: known(m.Model), Provider: known(m.Provider)}
	e.Attempt = &ahp.Attempt{ID: m.Attempt, Number: max(m.Number, 1)}
	if m.Attempt == "" {
		e.Attempt.ID, e.Attempt.Synthesized = "attempt-"+Digest(seed), true
	}
	e.Items = ahp.MessageItems(m.Messages...)
	if m.Messages == nil {
		e.Gaps = append(e.Gaps, ahp.Gap{Path: "items", Reason: "the host's hooks don't tell the messages"})
	}
	return e
}

// ModelRequest returns a model.request.before.
func (b *Base) ModelRequest(m ModelCall, seed []byte) *ahp.Event {
	e := b.model(ahp.ModelRequestBefore, m, seed)
	if e.Params = m.Params; e.Params == nil {
		e.Params = ahp.Raw("{}")
	}
	return e
}

// ModelResponse returns a model.response.after. finish is why the model ended, "" for
// what the host doesn't tell.
func (b *Base) ModelResponse(m ModelCall, finish string, seed []byte) *ahp.Event {
	e := b.model(ahp.ModelResponseAfter, m, seed)
	if finish == "" {
		finish = "unknown"
	}
	e.Execution, e.FinishReason = ahp.Executed(), finish
	return e
}
