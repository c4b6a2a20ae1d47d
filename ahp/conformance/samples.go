package conformance

import (
	_ "embed"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// The sample events: one JSON object a line, at least one of every type. Their ids
// are placeholders.
//
//go:embed samples/events.jsonl
var sampleEvents string

// object is a JSON object of the suite's own making.
type object = map[string]any

// samples returns fresh copies of the sample events of a type, or of all types if
// t is "".
func samples(t ahp.EventType) []object {
	var out []object
	for line := range strings.Lines(sampleEvents) {
		if t != "" && !strings.Contains(line, `"type":"`+string(t)+`"`) {
			continue
		}
		var e object
		if err := strictjson.Unmarshal([]byte(line), &e, strictjson.Options{}); err != nil {
			continue // a test holds that every line is an event
		}
		if t == "" || e["type"] == string(t) {
			out = append(out, e)
		}
	}
	return out
}

// encode returns v as one line of JSON with sorted members: equal values give
// equal bytes.
func encode(v any) ([]byte, error) {
	b, err := strictjson.Marshal(v)
	if err != nil {
		return nil, err
	}
	return strictjson.Canonical(b)
}

// everything returns what may be advertised at most for an event: all effects of
// its type with all options, but for edits that replace a list which holds text
// that is hidden from the backend (§8).
func everything(event object) object {
	t := ahp.EventType(event["type"].(string))
	effects := []any{}
	c := object{}
	for _, e := range t.Effects() {
		effects = append(effects, string(e))
		switch e {
		case ahp.EffectModify:
			c["modify"] = object{string(t.Target()): object{"replace": !hidesText(event), "merge": true}}
		case ahp.EffectFlow:
			flow := object{"operations": []any{"stop"}}
			if len(t.FlowOperations()) > 1 {
				flow = object{"operations": []any{"stop", "continue"}, "remainingContinuations": 2, "continuationCount": 0}
			}
			c["flow"] = flow
		case ahp.EffectInject:
			c["inject"] = object{"context": object{"append": true, "deliverAt": []any{"now", "next_turn"}}}
		}
	}
	if _, is := event["elicitation"]; is {
		c["elicitation"] = object{"form": object{}, "url": object{}}
	}
	c["effects"] = effects
	return c
}

// hidesText reports whether some content of the event isn't sent along.
func hidesText(v any) bool {
	switch v := v.(type) {
	case object:
		if s, is := v["selection"]; is && s != "body" {
			return true
		}
		if _, is := v["gap"]; is {
			return true
		}
		for _, member := range v {
			if hidesText(member) {
				return true
			}
		}
	case []any:
		for _, member := range v {
			if hidesText(member) {
				return true
			}
		}
	}
	return false
}

// only returns c with the given effects alone, of those that it has.
func only(c object, effects ...ahp.EffectType) object {
	keep := map[any]bool{}
	for _, e := range effects {
		keep[string(e)] = true
	}
	out := object{}
	list := []any{}
	for _, e := range c["effects"].([]any) {
		if keep[e] {
			list = append(list, e)
		}
	}
	out["effects"] = list
	for _, option := range []string{"modify", "flow", "inject"} {
		if v, is := c[option]; is && keep[option] {
			out[option] = v
		}
	}
	return out
}
