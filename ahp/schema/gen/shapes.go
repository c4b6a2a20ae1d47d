package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/abhed/abhed/ahp"
)

// definitions is the file that every other refers to.
const definitions = "definitions.json"

// defName returns the name in $defs of a Go type: its initial letters, up to the
// last capital of a run, in lower case.
func defName(goName string) string {
	r := []rune(goName)
	for i := range r {
		if !unicode.IsUpper(r[i]) || i > 0 && i+1 < len(r) && unicode.IsLower(r[i+1]) {
			break
		}
		r[i] = unicode.ToLower(r[i])
	}
	return string(r)
}

// ref refers to a definition from within the file of definitions.
func ref(name string) object { return object{"$ref", "#/$defs/" + name} }

// generator turns the description into definitions.
type generator struct {
	desc   ahp.Description
	shapes map[string]*ahp.Shape
	defs   object
	errs   []error
}

func newGenerator(desc ahp.Description) *generator {
	g := &generator{desc: desc, shapes: map[string]*ahp.Shape{}}
	for i := range desc.Shapes {
		g.shapes[desc.Shapes[i].Name] = &desc.Shapes[i]
	}
	return g
}

func (g *generator) failf(format string, args ...any) {
	g.errs = append(g.errs, fmt.Errorf(format, args...))
}

func (g *generator) def(name string, value object) { g.defs = append(g.defs, name, value) }

// member returns the description of a member of a shape.
func (g *generator) member(shape, name string) *ahp.Member {
	if s := g.shapes[shape]; s != nil {
		for i := range s.Members {
			if s.Members[i].Name == name {
				return &s.Members[i]
			}
		}
	}
	g.failf("no member %s of %s", name, shape)
	return &ahp.Member{Name: name, Type: "any"}
}

// shape defines an object from its members and the conditions of its type.
func (g *generator) shape(s *ahp.Shape) {
	out := object{"type", "object"}
	var (
		required   []string
		properties object
	)
	for i := range s.Members {
		m := &s.Members[i]
		if m.Required {
			required = append(required, m.Name)
		}
		properties = append(properties, m.Name, g.value(m))
	}
	if required != nil {
		out = out.with("required", required)
	}
	if properties != nil {
		out = out.with("properties", properties)
	}
	if !s.Open {
		out = out.with("additionalProperties", false)
	}
	g.def(defName(s.Name), conditioned(out, conditions()[s.Name]))
}

// conditioned adds conditions to a schema.
func conditioned(o, more object) object {
	switch {
	case more == nil:
		return o
	case len(more) == 2 && more[0] == "allOf":
		return o.with(more...)
	}
	return o.with("allOf", list{more})
}

// value returns the schema of a member's value.
func (g *generator) value(m *ahp.Member) object {
	one := g.single(m)
	switch {
	case m.List:
		return bounded(object{"type", "array", "items", one}, m, "minItems")
	case m.Map && m.Of != "":
		return g.knownNames(m, one)
	case m.Map:
		return bounded(object{"type", "object", "additionalProperties", one}, m, "minProperties")
	case m.Nullable:
		return object{"anyOf", list{object{"type", "null"}, one}}
	}
	return one
}

func bounded(o object, m *ahp.Member, min string) object {
	if m.NotEmpty {
		o = o.with(min, 1)
	}
	if m.Unique {
		o = o.with("uniqueItems", true)
	}
	return o
}

// knownNames is a map of which only the known names count.
func (g *generator) knownNames(m *ahp.Member, one object) object {
	var properties object
	var any1 list
	for _, name := range m.Enum {
		properties = append(properties, name, one)
		any1 = append(any1, object{"required", []string{name}})
	}
	out := object{"type", "object", "properties", properties}
	if m.NotEmpty {
		out = out.with("anyOf", any1)
	}
	return out
}

// single returns the schema of a value, or of an item of a list or map.
func (g *generator) single(m *ahp.Member) object {
	switch m.Type {
	case "string":
		switch {
		case m.Enum != nil:
			return object{"enum", m.Enum}
		case m.NotEmpty && !m.List && !m.Map || m.EachNotEmpty:
			return object{"type", "string", "minLength", 1}
		case m.Format != "":
			return ref(m.Format)
		}
		return object{"type", "string"}
	case "boolean":
		return object{"type", "boolean"}
	case "integer":
		out := object{"type", "integer"}
		if m.Positive {
			out = out.with("minimum", 1)
		} else if m.NonNegative {
			out = out.with("minimum", 0)
		}
		return out
	case "extensions":
		return ref("extensions")
	case "any":
		return opaque(m.Format)
	case "object":
		switch {
		case m.Of == "":
			return object{"type", "object"}
		case m.Format == "text":
			return ref("textPart")
		case m.Closed:
			return ref("closed" + m.Of)
		}
		return ref(defName(m.Of))
	}
	g.failf("no schema for the type %s of %s", m.Type, m.Name)
	return nil
}

func opaque(format string) object {
	switch format {
	case "num":
		return object{"type", "number", "minimum", 0}
	case "strint":
		return object{"type", []string{"string", "integer"}}
	}
	return object{}
}

// all defines everything in the order in which it is described.
func (g *generator) all() {
	for i := range g.desc.Shapes {
		switch s := &g.desc.Shapes[i]; s.Name {
		case "Event":
			g.event()
		case "Effect":
			g.effect()
		case "Part":
			g.part()
		case "Capabilities":
			g.shape(s)
			g.bounds()
		case "Gap":
			g.shape(s)
			shut := *s
			shut.Name, shut.Open = "closedGap", false
			g.shape(&shut)
		default:
			g.shape(s)
		}
	}
	g.defs = append(g.defs, grammars()...)
	g.def("messages", object{"type", "array", "items", ref("message")})
	g.def("textParts", object{"type", "array", "items", ref("textPart")})
	g.def("extensions", object{"type", "object", "propertyNames", ref("rdns")})
	g.def("protocolVersion", object{"const", ahp.Version})
	g.def("requestId", object{"anyOf", list{object{"type", "string", "minLength", 1}, object{"type", "integer"}}})
	for name := range conditions() {
		if g.shapes[name] == nil {
			g.failf("conditions for %s, which isn't described", name)
		}
	}
}

// pick returns properties for the named members of a shape, in the shape's order.
func (g *generator) pick(shape string, names []string, set map[string]object) object {
	var out object
	for i := range g.shapes[shape].Members {
		m := &g.shapes[shape].Members[i]
		if !slices.Contains(names, m.Name) {
			continue
		}
		if v, ok := set[m.Name]; ok {
			out = out.with(m.Name, v)
		} else {
			out = out.with(m.Name, g.value(m))
		}
	}
	if len(out) != 2*len(names) {
		g.failf("%s hasn't all of %s", shape, strings.Join(names, ", "))
	}
	return out
}
