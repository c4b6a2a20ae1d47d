package adapter

import (
	"fmt"
	"maps"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// Object is one native JSON object, read by the strict door: a member that isn't there
// and a null are the same. Its methods take names in the order of preference, because
// dialects spell one thing in several ways, and the first that is there counts.
//
// A member of another kind than asked for is a fault, which Err returns: a payload that
// isn't what a host is known to send is an unknown shape, not an absent value.
//
// An object inside another has its faults in common with it.
type Object struct {
	members map[string]ahp.Raw
	outer   *Object
	fault   error
}

// ParseObject reads data as one JSON object.
func ParseObject(data []byte) (*Object, error) {
	o := &Object{}
	if err := strictjson.Unmarshal(data, &o.members, strictjson.Options{}); err != nil {
		return nil, fmt.Errorf("the native event can't be read: %w", err)
	}
	if o.members == nil {
		return nil, fmt.Errorf("the native event is null, expected a JSON object")
	}
	return o, nil
}

// Err returns the first fault that a method met, of this object, of what is inside it or
// of what it is inside of.
func (o *Object) Err() error { return o.outermost().fault }

// Fail makes err a fault, unless there is one already.
func (o *Object) Fail(err error) {
	if top := o.outermost(); top.fault == nil {
		top.fault = err
	}
}

func (o *Object) outermost() *Object {
	for o.outer != nil {
		o = o.outer
	}
	return o
}

// Raw returns the member as it was written; nil for none.
func (o *Object) Raw(names ...string) ahp.Raw {
	_, v := o.find(names)
	return v
}

// Has reports whether one of the members is there and isn't null.
func (o *Object) Has(names ...string) bool { return o.Raw(names...) != nil }

func (o *Object) find(names []string) (string, ahp.Raw) {
	for _, n := range names {
		if v := o.members[n]; v != nil && string(v) != "null" {
			return n, v
		}
	}
	return "", nil
}

func read[T any](o *Object, names []string, kind string) (v T) {
	name, raw := o.find(names)
	if raw == nil {
		return v
	}
	if err := strictjson.Unmarshal(raw, &v, strictjson.Options{}); err != nil {
		o.Fail(fmt.Errorf("the native event isn't what this host is known to send: member %q is no %s", name, kind))
	}
	return v
}

// Text returns a string member, "" for none.
func (o *Object) Text(names ...string) string { return read[string](o, names, "string") }

// Need is Text for a member that must be there and not be empty.
func (o *Object) Need(names ...string) string {
	s := o.Text(names...)
	if s == "" {
		o.Fail(fmt.Errorf("the native event isn't what this host is known to send: it has no member %q", names[0]))
	}
	return s
}

// Bool returns a boolean member, false for none.
func (o *Object) Bool(names ...string) bool { return read[bool](o, names, "boolean") }

// Texts returns a list of strings, nil for none.
func (o *Object) Texts(names ...string) []string { return read[[]string](o, names, "list of strings") }

// List returns the items of a list as they were written, nil for none.
func (o *Object) List(names ...string) []ahp.Raw { return read[[]ahp.Raw](o, names, "list") }

// Milliseconds returns a duration of 0 or more, rounded down; nil for none.
func (o *Object) Milliseconds(names ...string) *int64 {
	f := read[*float64](o, names, "number")
	if f == nil || *f < 0 || *f > 1e15 {
		return nil
	}
	n := int64(*f)
	return &n
}

// Count returns a whole number of 0 or more, rounded down; 0 for none.
func (o *Object) Count(names ...string) int64 {
	if n := o.Milliseconds(names...); n != nil {
		return *n
	}
	return 0
}

// Object returns a member that is an object; an empty one for none.
func (o *Object) Object(names ...string) *Object {
	name, raw := o.find(names)
	return o.inner(name, raw)
}

func (o *Object) inner(name string, raw ahp.Raw) *Object {
	inner := &Object{members: map[string]ahp.Raw{}, outer: o}
	if raw == nil {
		return inner
	}
	if err := strictjson.Unmarshal(raw, &inner.members, strictjson.Options{}); err != nil {
		o.Fail(fmt.Errorf("the native event isn't what this host is known to send: member %q is no object", name))
	}
	return inner
}

// Objects returns the items of a list of objects, nil for none.
func (o *Object) Objects(names ...string) []*Object {
	name, _ := o.find(names)
	var out []*Object
	for i, raw := range o.List(names...) {
		out = append(out, o.inner(fmt.Sprintf("%s[%d]", name, i), raw))
	}
	return out
}

// Input returns a tool's input as an object. Some hosts send the object as a string of
// JSON; what isn't an object is a fault, because nothing could judge it, but for an
// absent one, which is empty.
func (o *Object) Input(names ...string) ahp.Raw {
	name, raw := o.find(names)
	if raw == nil {
		return ahp.Raw("{}")
	}
	if raw.IsObject() {
		return raw
	}
	var text string
	if raw[0] == '"' && strictjson.Unmarshal(raw, &text, strictjson.Options{}) == nil {
		inner := ahp.Raw(text)
		if text == "" {
			return ahp.Raw("{}")
		}
		if inner.IsObject() && strictjson.Check(inner, strictjson.Options{}) == nil {
			return inner
		}
	}
	o.Fail(fmt.Errorf("the native event isn't what this host is known to send: the tool's input, member %q, is no JSON object", name))
	return ahp.Raw("{}")
}

// Without returns the object without the named members.
func (o *Object) Without(names ...string) ahp.Raw {
	rest := maps.Clone(o.members)
	for _, n := range names {
		delete(rest, n)
	}
	b, err := Encode(rest)
	if err != nil {
		o.Fail(err)
		return ahp.Raw("{}")
	}
	return b
}

// Show returns a result as text: a string as it is, anything else as JSON, and an
// absent one as "".
func Show(raw ahp.Raw) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var text string
	if raw[0] == '"' && strictjson.Unmarshal(raw, &text, strictjson.Options{}) == nil {
		return text
	}
	return string(raw)
}

// Encode returns v as one JSON document for a host. What can't be encoded is a bug, and
// the caller then answers by policy.
func Encode(v any) ([]byte, error) {
	b, err := strictjson.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encoding the answer: %w", err)
	}
	return b, nil
}

// InferMCP returns the descriptor of an MCP tool whose server is known by name alone,
// and connection by nothing.
func InferMCP(server, tool string) *ahp.MCP {
	if server == "" || tool == "" {
		return nil
	}
	const why = "the host's hooks don't say how the server is reached"
	return &ahp.MCP{
		Server: ahp.MCPServer{ID: server, Name: server}, ToolName: tool, Provenance: "inferred",
		Connection: ahp.Connection{Transport: "_unknown", Gaps: []ahp.Gap{{Path: "addressForm", Reason: why}, {Path: "address", Reason: why}}},
	}
}
