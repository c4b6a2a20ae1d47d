package config

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

// hiddenText stands in explanations for values that may be secret, such as the
// variables that an extension is given.
const hiddenText = "[hidden]"

// Explained is one value in force.
type Explained struct {
	// Key is the value's path in the merged settings; the same value may have
	// another index in its source, which Origin.Key has.
	Key string `json:"key"`
	// Value is the value as JSON.
	Value  jsontext.Value `json:"value"`
	Origin Origin         `json:"origin"`
}

// Explanation is the merged settings with the origin of every value.
type Explanation struct {
	// Values stand in the order of the table of settings.
	Values   []Explained `json:"values"`
	Ignored  []Ignored   `json:"ignored"`
	Warnings []Warning   `json:"warnings"`
}

// Explain returns every value in force, list entries one by one, defaults too.
// No secret is in it.
func (s *Settings) Explain() Explanation {
	out := Explanation{Ignored: s.Ignored, Warnings: s.Warnings}
	visit(s.merged, settingsSpec(), "", func(key string, n *node, sp *spec) {
		out.Values = append(out.Values, Explained{Key: key, Value: shown(n, sp), Origin: n.origin})
	})
	if s.QuickStart.BaseURL != "" {
		of := func(name string) Origin { return Origin{Layer: Environment, File: name, Key: name} }
		base, _ := jsontext.AppendQuote(nil, s.QuickStart.BaseURL)
		out.Values = append(out.Values, Explained{Key: EnvBaseURL, Value: base, Origin: of(EnvBaseURL)})
		if !s.QuickStart.APIKey.IsZero() {
			out.Values = append(out.Values, Explained{Key: EnvAPIKey, Value: jsontext.Value(`"` + secretText + `"`), Origin: of(EnvAPIKey)})
		}
	}
	return out
}

// Text returns one line per value, "key = value  # origin", then what was
// ignored and the warnings. The same settings give the same bytes; characters
// that a terminal doesn't show as they are stand as escapes.
func (e Explanation) Text() string {
	var b strings.Builder
	for _, v := range e.Values {
		b.WriteString(printableText(v.Key) + " = " + printable(v.Value) + "  # " + printableText(v.Origin.String()) + "\n")
	}
	for _, i := range e.Ignored {
		b.WriteString("ignored: " + printableText(i.Origin.Key) + "  # " + printableText(i.Origin.String()) + ": " + printableText(i.Reason) + "\n")
	}
	for _, w := range e.Warnings {
		b.WriteString("warning: " + printableText(w.Origin.String()) + ": " + printableText(w.Text) + "\n")
	}
	return b.String()
}

// JSON returns the explanation as one line of JSON.
func (e Explanation) JSON() ([]byte, error) { return strictjson.Marshal(e) }

// Origin returns where the value at key came from; key is a path in the merged
// settings, such as permissions.deny[0]. It reports false if there is none.
func (s *Settings) Origin(key string) (Origin, bool) {
	var out Origin
	found := false
	visit(s.merged, settingsSpec(), "", func(k string, n *node, _ *spec) {
		if k == key {
			out, found = n.origin, true
		}
	})
	return out, found
}

// visit calls f for every scalar and every empty list or map below n.
func visit(n *node, s *spec, key string, f func(key string, n *node, s *spec)) {
	switch s.shape {
	case shapeObject:
		for _, m := range n.members {
			if m.name != "$schema" {
				visit(m.value, s.field(m.name), joinKey(key, m.name), f)
			}
		}
		return
	case shapeMap:
		for _, m := range n.members {
			visit(m.value, s.elem, joinKey(key, m.name), f)
		}
	case shapeList:
		for i, e := range n.elems {
			visit(e, s.elem, indexKey(key, i), f)
		}
	}
	if len(n.members) == 0 && len(n.elems) == 0 {
		f(key, n, s)
	}
}

func shown(n *node, s *spec) jsontext.Value {
	if s.hidden {
		return jsontext.Value(`"` + hiddenText + `"`)
	}
	return n.encode(nil)
}

// printable returns a JSON value for a terminal.
func printable(v jsontext.Value) string {
	if v.Kind() != '"' {
		return string(v)
	}
	text, err := jsontext.AppendUnquote(nil, v)
	if err != nil {
		return strconv.QuoteToASCII(string(v))
	}
	return strconv.Quote(string(text))
}

// printableText returns s with everything escaped that a terminal doesn't show
// as it is.
func printableText(s string) string {
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}
