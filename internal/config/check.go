package config

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// checker compares one source's values with the table of settings.
type checker struct {
	root   *spec
	faults *faults
}

// value checks n against s and reports every fault in it, until there are too
// many to report.
func (c *checker) value(n *node, s *spec) {
	if len(c.faults.list) >= maxFaults {
		return
	}
	if !fits(n.kind, s.shape) {
		c.wrong(n, s, expectedShape(s))
		return
	}
	switch s.shape {
	case shapeString:
		c.text(n, s)
	case shapeInt, shapeNumber:
		c.number(n, s)
	case shapeList:
		for _, e := range n.elems {
			c.value(e, s.elem)
		}
		c.unique(n, s)
	case shapeMap:
		for _, m := range n.members {
			if want := s.anyKey(m.name); want != "" {
				c.faults.add(&Error{Origin: m.origin, Found: "the name " + quote(m.name), Expected: want})
			}
			c.value(m.value, s.elem)
		}
	case shapeObject:
		c.object(n, s)
	}
}

// unique reports entries of a list that have the name of an earlier one.
func (c *checker) unique(n *node, s *spec) {
	if s.elem.field("name") == nil {
		return
	}
	first := map[string]Origin{}
	for _, e := range n.elems {
		name := e.get("name")
		if name == nil || name.kind != '"' {
			continue
		}
		if o, taken := first[name.text]; taken {
			c.faults.add(nameTaken(name, o))
			continue
		}
		first[name.text] = name.origin
	}
}

func nameTaken(name *node, first Origin) *Error {
	return &Error{Origin: name.origin, Found: "the name " + quote(name.text) + ", which " + first.Key + " in " + first.place() + " has", Expected: "a name of its own"}
}

func (c *checker) object(n *node, s *spec) {
	for _, m := range n.members {
		if len(c.faults.list) >= maxFaults {
			return
		}
		if f := s.field(m.name); f != nil {
			c.value(m.value, f)
			continue
		}
		c.faults.add(&Error{Origin: m.origin, Found: "unknown key " + quote(m.name), Expected: oneOf(s.names()), Hint: c.hint(m.name, s)})
	}
	for _, f := range s.fields {
		if f.required && n.get(f.name) == nil {
			c.faults.add(&Error{Origin: n.origin, Found: "no " + quote(f.name), Expected: quote(f.name) + ", which is required"})
		}
	}
}

// hint says what an unknown key was probably meant to be: a known key of the
// same object that looks like it, or a key of that very name elsewhere.
func (c *checker) hint(name string, s *spec) string {
	switch {
	case s == c.root && (name == "hooks" || name == "backends"):
		return "AHP backends are registered in the file that ahp.registration names, other hooks are extensions"
	case name == "api_key" || name == "apiKey" || name == "key":
		return "put the key in a variable and name it in api_key_env"
	}
	if n := nearest(name, s.names()); n != "" {
		return "did you mean " + quote(n) + "?"
	}
	if places := c.elsewhere(name); len(places) > 0 {
		return quote(name) + " belongs " + strings.Join(places, " or ")
	}
	return ""
}

// elsewhere returns where in the settings a key of that name is known.
func (c *checker) elsewhere(name string) []string {
	var places []string
	var visit func(s *spec, key string)
	visit = func(s *spec, key string) {
		if s.elem != nil {
			visit(s.elem, key)
		}
		if s.field(name) != nil {
			if key == "" {
				places = append(places, "at the top level")
			} else {
				places = append(places, "under "+key)
			}
		}
		for i := range s.fields {
			visit(&s.fields[i].spec, joinKey(key, s.fields[i].name))
		}
	}
	visit(c.root, "")
	return places
}

func (c *checker) text(n *node, s *spec) {
	if s.enum != nil && !slices.Contains(s.enum, n.text) {
		e := &Error{Origin: n.origin, Found: "found " + found(n, s), Expected: oneOf(s.enum)}
		if !s.quiet && !s.hidden {
			e.Hint = didYouMean(n.text, s.enum)
		}
		c.faults.add(e)
	}
	if s.check != nil {
		if want := s.check(n.text); want != "" {
			c.wrong(n, s, want)
		}
	}
}

func (c *checker) number(n *node, s *spec) {
	v, err := strconv.ParseFloat(n.text, 64)
	if s.shape == shapeInt {
		var i int64
		i, err = strconv.ParseInt(n.text, 10, 64)
		v = float64(i)
	}
	if err != nil || math.IsInf(v, 0) || v < s.min || s.max != 0 && v > s.max {
		c.wrong(n, s, expectedShape(s))
	}
}

func (c *checker) wrong(n *node, s *spec, want string) {
	c.faults.add(&Error{Origin: n.origin, Found: "found " + found(n, s), Expected: want})
}

// fits reports whether a JSON value of kind k may hold a setting of that shape.
func fits(k jsontext.Kind, s shape) bool {
	switch s {
	case shapeString:
		return k == '"'
	case shapeBool:
		return k == 't' || k == 'f'
	case shapeInt, shapeNumber:
		return k == '0'
	case shapeObject, shapeMap:
		return k == '{'
	default:
		return k == '['
	}
}

// expectedShape describes what s takes, for a message.
func expectedShape(s *spec) string {
	switch s.shape {
	case shapeString:
		if s.enum != nil {
			return oneOf(s.enum)
		}
		return "a string"
	case shapeBool:
		return "true or false"
	case shapeInt, shapeNumber:
		what := map[shape]string{shapeInt: "an integer", shapeNumber: "a number"}[s.shape]
		if s.max == 0 {
			return what
		}
		return fmt.Sprintf("%s from %s to %s", what, decimal(s.min), decimal(s.max))
	case shapeObject, shapeMap:
		return "an object"
	default:
		return "a list"
	}
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// found describes a value for a message, without repeating what may be secret.
func found(n *node, s *spec) string {
	switch n.kind {
	case '"':
		if s.quiet || s.hidden || s.elem != nil && (s.elem.quiet || s.elem.hidden) {
			return "a string"
		}
		return quote(n.text)
	case '0':
		if len(n.text) > maxQuoted {
			return n.text[:maxQuoted] + "…"
		}
		return n.text
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 't':
		return "true"
	case 'f':
		return "false"
	default:
		return "null"
	}
}
