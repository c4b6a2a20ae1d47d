package mcp

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

// legalKey is what every model API accepts as the name of a property.
var legalKey = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// repairer makes a server's schema one that every model API and our own check of
// arguments take. It repairs what has one meaning and refuses the rest.
type repairer struct {
	// notes says what was repaired, each once.
	notes []string
}

func (r *repairer) note(format string, a ...any) {
	if text := fmt.Sprintf(format, a...); !slices.Contains(r.notes, text) && len(r.notes) < 8 {
		r.notes = append(r.notes, text)
	}
}

// repairSchema returns the schema of a tool's arguments as it goes to the model,
// with what had to be repaired, or why the tool can't be used.
func repairSchema(raw jsontext.Value) (schema []byte, notes []string, err error) {
	r := &repairer{}
	if raw == nil || raw.Kind() == 'n' {
		r.note("it has no schema, so any arguments are let through")
		return []byte(`{"type":"object"}`), r.notes, nil
	}
	if len(raw) > maxSchema {
		return nil, nil, fmt.Errorf("its schema has %d bytes, the limit is %d", len(raw), maxSchema)
	}
	var v any
	if err := strictjson.Unmarshal(raw, &v, strictjson.Options{MaxDepth: maxSchemaDepth}); err != nil {
		return nil, nil, fmt.Errorf("its schema: %w", err)
	}
	top, ok := v.(map[string]any)
	if !ok {
		return nil, nil, fmt.Errorf("its schema is %s, expected an object", strictjson.KindName(raw.Kind()))
	}
	if err := r.top(top); err != nil {
		return nil, nil, err
	}
	if err := r.node("", top); err != nil {
		return nil, nil, err
	}
	schema, err = strictjson.Marshal(top)
	return schema, r.notes, err
}

// top repairs what concerns the outermost schema alone.
func (r *repairer) top(m map[string]any) error {
	delete(m, "$schema")
	delete(m, "$id")
	switch t := m["type"].(type) {
	case string:
		if t != "object" {
			return fmt.Errorf("its schema is of type %s, expected \"object\"", quoted(t))
		}
	case nil:
		r.note("its schema has no type; taken for an object")
	case []any:
		if !slices.Contains(t, any("object")) {
			return errors.New("its schema's types don't include \"object\"")
		}
		r.note("its schema has several types; taken for an object")
	default:
		return errors.New("its schema's type is neither a string nor a list")
	}
	m["type"] = "object"
	for _, name := range []string{"anyOf", "oneOf", "allOf"} {
		if list, ok := m[name].([]any); ok {
			r.flatten(m, name, list)
		}
	}
	for _, name := range []string{"not", "if", "then", "else", "enum"} {
		if _, ok := m[name]; ok {
			delete(m, name)
			r.note("%q at the top of its schema is left to the server: model APIs refuse it there", name)
		}
	}
	return nil
}

// flatten takes a combination of schemas away from the top, where model APIs
// refuse it, and keeps the members that its parts name.
func (r *repairer) flatten(m map[string]any, name string, list []any) {
	delete(m, name)
	r.note("%q at the top of its schema is left to the server: model APIs refuse it there", name)
	props, _ := m["properties"].(map[string]any)
	if props == nil {
		props = map[string]any{}
	}
	for _, e := range list {
		part, _ := e.(map[string]any)
		own, _ := part["properties"].(map[string]any)
		for k, v := range own {
			if _, there := props[k]; !there {
				props[k] = v
			}
		}
		if required, ok := part["required"].([]any); ok && name == "allOf" {
			have, _ := m["required"].([]any)
			m["required"] = append(have, required...)
		}
		if len(own) > 0 {
			delete(m, "additionalProperties") // it was about the other members
		}
	}
	if len(props) > 0 {
		m["properties"] = props
	}
}

// node repairs one schema and those in it. at is its place, for messages.
func (r *repairer) node(at string, m map[string]any) error {
	r.texts(m)
	if err := r.properties(at, m); err != nil {
		return err
	}
	r.limits(at, m)
	if p, ok := m["pattern"].(string); ok {
		if _, err := regexp.Compile(p); err != nil {
			delete(m, "pattern")
			r.note("the pattern at %q isn't one that this program can check; left to the server", at)
		}
	}
	if pp, ok := m["patternProperties"].(map[string]any); ok {
		for p := range pp {
			if _, err := regexp.Compile(p); err != nil {
				delete(pp, p)
				r.note("a pattern of names at %q isn't one that this program can check; left to the server", at)
			}
		}
	}
	return r.inner(at, m)
}

// inner goes down to the schemas in m.
func (r *repairer) inner(at string, m map[string]any) error {
	down := func(name string, v any) error {
		if sub, ok := v.(map[string]any); ok {
			return r.node(at+"/"+name, sub)
		}
		return nil
	}
	for _, name := range []string{"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties", "additionalItems"} {
		if err := down(name, m[name]); err != nil {
			return err
		}
	}
	for _, name := range []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"} {
		subs, _ := m[name].(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(subs)) {
			if err := down(name+"/"+k, subs[k]); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{"anyOf", "oneOf", "allOf", "prefixItems", "items"} {
		list, _ := m[name].([]any)
		for i, e := range list {
			if err := down(fmt.Sprintf("%s/%d", name, i), e); err != nil {
				return err
			}
		}
	}
	return nil
}

// texts cleans what the model reads as prose.
func (r *repairer) texts(m map[string]any) {
	delete(m, "$comment")
	for _, name := range []string{"description", "title"} {
		if s, ok := m[name].(string); ok {
			m[name] = cut(visible(s), maxDescription)
		} else {
			delete(m, name)
		}
	}
}

// properties repairs the members that a schema declares.
func (r *repairer) properties(at string, m map[string]any) error {
	props, ok := m["properties"].(map[string]any)
	if !ok {
		if _, there := m["properties"]; there {
			delete(m, "properties")
			r.note("the properties at %q are no object; left out", at)
		}
		return r.required(at, m)
	}
	// A list named required among the properties was meant for the schema itself: a
	// property's schema is never a list.
	if list, ok := props["required"].([]any); ok {
		delete(props, "required")
		if _, there := m["required"]; !there {
			m["required"] = list
		}
		r.note("\"required\" stands among the properties at %q; moved to where it belongs", at)
	}
	for _, k := range slices.Sorted(maps.Keys(props)) {
		if !legalKey.MatchString(k) {
			return fmt.Errorf("its property %s has a name that model APIs refuse; it takes 1 to 64 of the characters A-Z a-z 0-9 _ . -", quoted(k))
		}
		switch props[k].(type) {
		case map[string]any, bool:
		case nil:
			props[k] = map[string]any{}
			r.note("the schema of property %s is null; taken for any value", quoted(k))
		default:
			return fmt.Errorf("the schema of its property %s is neither an object nor a boolean", quoted(k))
		}
	}
	return r.required(at, m)
}

// required keeps of the list of required members what can be required.
func (r *repairer) required(at string, m map[string]any) error {
	v, there := m["required"]
	if !there {
		return nil
	}
	list, ok := v.([]any)
	if !ok { // "required": true in a property is draft 3
		delete(m, "required")
		r.note("\"required\" at %q is no list; left out", at)
		return nil
	}
	var names []any
	for _, e := range list {
		if name, ok := e.(string); ok && !slices.Contains(names, any(name)) {
			names = append(names, name)
		}
	}
	if len(names) != len(list) {
		r.note("\"required\" at %q holds what is no name; left out", at)
	}
	if m["required"] = names; len(names) == 0 {
		delete(m, "required")
	}
	return nil
}

// limits turns draft-4 bounds, which were booleans beside the number, into those
// of today.
func (r *repairer) limits(at string, m map[string]any) {
	for _, name := range []string{"Minimum", "Maximum"} {
		exclusive, ok := m["exclusive"+name].(bool)
		if !ok {
			continue
		}
		plain := strings.ToLower(name)
		delete(m, "exclusive"+name)
		if bound, there := m[plain]; there && exclusive {
			m["exclusive"+name] = bound
			delete(m, plain)
		}
		r.note("an old form of bound at %q was rewritten", at)
	}
}
