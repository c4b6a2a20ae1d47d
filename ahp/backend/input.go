package backend

import (
	"context"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// DenyFunc is a Handler made of a function that returns why an event is refused, for
// the model to read, or "" if there is no objection to it.
type DenyFunc func(e *ahp.Event) (reason string)

// Intercept calls f.
func (f DenyFunc) Intercept(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
	if reason := f(q.Event); reason != "" {
		return Reply(q).Deny(reason).Effects()
	}
	return nil, nil
}

// InputText returns a member of the tool call's input that is a text, decoded, or a
// list of texts, which some hosts have for a command: its words joined by spaces. ok
// is false if the event has no tool, or the member is missing or something else: what
// a policy can't read, it should not take for harmless. The input as it is on the
// wire may spell a character as an escape, so a policy that matches on that can be
// fooled.
func InputText(e *ahp.Event, member string) (text string, ok bool) {
	if e.Tool == nil {
		return "", false
	}
	var input map[string]jsontext.Value
	if strictjson.Unmarshal(e.Tool.Input, &input, strictjson.Options{}) != nil {
		return "", false
	}
	switch v := input[member]; v.Kind() {
	case '"':
		ok = strictjson.Unmarshal(v, &text, strictjson.Options{}) == nil
	case '[':
		var words []string
		ok = strictjson.Unmarshal(v, &words, strictjson.Options{}) == nil
		text = strings.Join(words, " ")
	}
	return text, ok
}
