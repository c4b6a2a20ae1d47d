package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/schema"
)

// arbiter compares the two verdicts on a message.
type arbiter struct {
	schemas  map[string]*jsonschema.Schema
	excluded map[string]int
	accepted int
	refused  int
}

func newArbiter(t testing.TB) *arbiter {
	return &arbiter{schemas: compiled(t), excluded: map[string]int{}}
}

// judge returns how the verdicts differ, or nil.
func (a *arbiter) judge(kind string, message any) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	byDecoder, bySchema := decode(kind, data), a.schemas[kind].Validate(message)
	if byDecoder == nil {
		a.accepted++
	} else {
		a.refused++
	}
	if (byDecoder == nil) == (bySchema == nil) {
		return nil
	}
	if why := inexpressible(kind, message, byDecoder); bySchema == nil && why != "" {
		a.excluded[why]++
		return nil
	}
	return fmt.Errorf("%.400s\n decoder: %v\n schema: %v", data, byDecoder, bySchema)
}

// The rules that a schema can't express, of those that a changed message may break.
const (
	ruleID      = "the id of an intercept is its event's"
	ruleUnique  = "each backend is there once"
	ruleSecrets = "a registration holds no literal secret"
)

// inexpressible says which of those rules the message breaks, or "".
func inexpressible(kind string, message any, byDecoder error) string {
	e, _ := byDecoder.(*ahp.Error)
	switch {
	case e == nil:
	case kind == schema.InterceptRequest:
		id, other := at(message, "id"), at(message, "params", "event", "id")
		if id != other {
			return ruleID
		}
	case kind == schema.Registration:
		seen := map[any]bool{}
		for _, b := range at(message, "hooks").([]any) {
			if id := at(b, "id"); seen[id] {
				return ruleUnique
			} else {
				seen[id] = true
			}
		}
		if e.Requirement == "AHP-SEC-001" {
			return ruleSecrets
		}
	}
	return ""
}

// TestExclusionsAreDocumented holds that the page for readers names them.
func TestExclusionsAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/protocol/schemas.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []string{ruleID, ruleUnique, ruleSecrets} {
		if !bytes.Contains(page, []byte(rule)) {
			t.Errorf("docs/protocol/schemas.md doesn't say that %s", rule)
		}
	}
}

func at(v any, path ...string) any {
	for _, name := range path {
		v = v.(map[string]any)[name]
	}
	return v
}

// place is one value inside a message, and how to put another there.
type place struct {
	pointer string
	value   any
	set     func(any)
	drop    func() // nil where the place is no member of an object
}

// places returns every value inside *root.
func places(root *any) []place {
	var out []place
	var walk func(p place)
	walk = func(p place) {
		out = append(out, p)
		switch v := p.value.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				old := v[name]
				walk(place{pointer: p.pointer + "/" + name, value: old, set: func(n any) { v[name] = n }, drop: func() { delete(v, name) }})
			}
		case []any:
			for i := range v {
				walk(place{pointer: fmt.Sprintf("%s/%d", p.pointer, i), value: v[i], set: func(n any) { v[i] = n }})
			}
		}
	}
	walk(place{value: *root, set: func(n any) { *root = n }})
	return out
}

// vocabulary is what mutations put into messages.
type vocabulary struct {
	// words holds, for a word of an enumeration, the words of all enumerations that
	// it is in.
	words map[string][]string
	// members holds a few values of each member that is met in the corpus.
	members map[string][]any
	// shapes holds the names of the members of each shape.
	shapes [][]string
}

func newVocabulary(t testing.TB) *vocabulary {
	v := &vocabulary{words: map[string][]string{}, members: map[string][]any{
		"x-unknown": {true}, "identity": {map[string]any{}}, "contentReceiver": {nil}, "token": {"hunter2"}}}
	var sets [][]string
	d := ahp.Describe()
	for _, s := range d.Shapes {
		var names []string
		for _, m := range s.Members {
			sets = append(sets, m.Enum)
			names = append(names, m.Name)
		}
		v.shapes = append(v.shapes, names)
	}
	var types, effects []string
	for _, e := range d.Events {
		types = append(types, string(e.Type))
		for _, list := range e.Enums {
			sets = append(sets, list)
		}
	}
	for _, e := range d.Effects {
		effects = append(effects, string(e.Type))
	}
	for _, set := range append(sets, types, effects, []string{"replace", "merge", "append"}, []string{"http", "sse", "stdio", "_x"}) {
		for _, word := range set {
			v.words[word] = append(v.words[word], set...)
		}
	}
	for _, s := range corpus(t) {
		for _, p := range places(&s.message) {
			name := p.pointer[strings.LastIndexByte(p.pointer, '/')+1:]
			known := slices.ContainsFunc(v.members[name], func(old any) bool { return reflect.DeepEqual(old, p.value) })
			if p.drop != nil && !known && len(v.members[name]) < 2 {
				v.members[name] = append(v.members[name], p.value)
			}
		}
	}
	return v
}

// replacements returns what a value is replaced with.
func (v *vocabulary) replacements(p place) []any {
	out := []any{nil, true, false, json.Number("0"), json.Number("1"), json.Number("-1"), json.Number("1.5"), json.Number("2.0"),
		"", "zz", map[string]any{}, []any{}, []any{nil}, []any{"zz"}}
	switch value := p.value.(type) {
	case string:
		for _, w := range v.words[value] {
			out = append(out, w)
		}
		out = append(out, value+" ", strings.ToUpper(value))
	case []any:
		if len(value) > 0 {
			out = append(out, append(slices.Clone(value), value[0]), value[1:])
		}
	}
	return out
}

// signature tells shapes of objects apart: by the name of the member that they
// are, by their own members, and by the words among these that decide about others.
func signature(p place) string {
	var out strings.Builder
	out.WriteString(lastName(p.pointer))
	object, _ := p.value.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		out.WriteString(" " + name)
		switch name {
		case "type", "kind", "status", "reason", "mode", "operation", "outcome", "change", "origin", "selection", "transport", "target", "method", "scope":
			if word, ok := object[name].(string); ok {
				out.WriteString("=" + word)
			}
		}
	}
	return out.String()
}

// lastName returns the last segment of a pointer that is no index.
func lastName(pointer string) string {
	names := strings.Split(pointer, "/")
	for len(names) > 1 && strings.Trim(names[len(names)-1], "0123456789") == "" {
		names = names[:len(names)-1]
	}
	return names[len(names)-1]
}

// TestMutations changes every value of every shape in the corpus in every way that
// is known here, and requires one verdict of the schema and of the decoder.
func TestMutations(t *testing.T) {
	a, words := newArbiter(t), newVocabulary(t)
	seen := map[string]bool{}
	first := func(key string) bool {
		fresh := !seen[key]
		seen[key] = true
		return fresh
	}
	failures, n := 0, 0
	check := func(s specimen, what string, p place) {
		if n++; raceEnabled && n%25 != 0 {
			return // nothing here runs beside anything else; without the detector all of them are judged
		}
		if err := a.judge(s.kind, s.message); err != nil && failures < 20 {
			failures++
			t.Errorf("line %d, %s at %q: %v", s.line, what, p.pointer, err)
		}
		if strings.Count(p.pointer, "/") > 2 || s.kind == schema.UploadReceipt || s.kind == schema.Registration {
			return
		}
		if err := a.judge(schema.JSONRPCMessage, s.message); err != nil && failures < 20 {
			failures++
			t.Errorf("line %d as an envelope, %s at %q: %v", s.line, what, p.pointer, err)
		}
	}
	for _, s := range corpus(t) {
		all := places(&s.message)
		signatures := map[string]string{}
		for _, p := range all {
			signatures[p.pointer] = signature(p)
		}
		for _, p := range all {
			around := signatures[p.pointer[:max(0, strings.LastIndexByte(p.pointer, '/'))]]
			if first(around + " > " + signatures[p.pointer]) {
				for _, r := range words.replacements(p) {
					p.set(r)
					check(s, fmt.Sprintf("%#v", r), p)
				}
				if p.drop != nil {
					p.drop()
					check(s, "dropped", p)
				}
				p.set(p.value)
			}
			if object, ok := p.value.(map[string]any); ok && first("added to "+signatures[p.pointer]) {
				words.add(object, func(name string) { check(s, "added "+name, p) })
			}
		}
	}
	t.Logf("%d accepted, %d refused, excluded: %v", a.accepted, a.refused, a.excluded)
	for _, rule := range []string{ruleID, ruleUnique, ruleSecrets} {
		if a.excluded[rule] == 0 && !raceEnabled {
			t.Errorf("nothing needs the exclusion %q", rule)
		}
	}
}

// add puts members that the object hasn't into it, each for the time of a check:
// all that a shape of this kind may have, and some of every other name.
func (v *vocabulary) add(object map[string]any, check func(name string)) {
	plausible := map[string]bool{"x-unknown": true, "token": true}
	for _, names := range v.shapes {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(object)), func(n string) bool { return !slices.Contains(names, n) }) {
			for _, n := range names {
				plausible[n] = true
			}
		}
	}
	if _, ok := object["jsonrpc"]; ok {
		for _, n := range []string{"id", "method", "params", "result", "error"} {
			plausible[n] = true
		}
	}
	for i, name := range slices.Sorted(maps.Keys(v.members)) {
		if _, there := object[name]; there {
			continue
		}
		values := append(slices.Clone(v.members[name]), nil, "")
		if !plausible[name] {
			if (i+len(object))%8 != 0 {
				continue
			}
			values = v.members[name][:1]
		}
		for _, value := range values {
			object[name] = value
			check(name)
		}
		delete(object, name)
	}
}

// TestManyMutations changes several values at once.
func TestManyMutations(t *testing.T) {
	a, words, all := newArbiter(t), newVocabulary(t), corpus(t)
	lines, err := os.ReadFile("testdata/messages.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	text := bytes.Split(bytes.TrimSpace(lines), []byte("\n"))
	rapid.Check(t, func(rt *rapid.T) {
		i := rapid.IntRange(0, len(all)-1).Draw(rt, "line")
		s := all[i]
		s.message = parse(t, text[i]).(map[string]any)["message"]
		for range rapid.IntRange(2, 4).Draw(rt, "changes") {
			p := rapid.SampledFrom(places(&s.message)).Draw(rt, "place")
			if p.drop != nil && rapid.IntRange(0, 2).Draw(rt, "how") == 0 {
				p.drop()
			} else {
				p.set(rapid.SampledFrom(words.replacements(p)).Draw(rt, "value"))
			}
		}
		if err := a.judge(s.kind, s.message); err != nil {
			rt.Fatal(err)
		}
	})
}
