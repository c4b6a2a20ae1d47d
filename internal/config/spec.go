package config

import (
	"math"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// shape is the JSON type that a setting takes.
type shape uint8

const (
	shapeString shape = iota
	shapeBool
	shapeInt
	shapeNumber
	shapeObject // a closed set of members
	shapeMap    // members of any name, all of one spec
	shapeList
)

// merge says how values of several sources become one.
type merge uint8

const (
	// mergeHighest takes the highest source's value whole.
	mergeHighest merge = iota
	// mergeUnion keeps every source's list entries, the highest source's first.
	mergeUnion
	// mergeNamed unites the members of a map, or the entries of a list by their
	// "name"; of two with one name the highest source's counts whole.
	mergeNamed
	// mergeBound takes the strictest of the managed value, the project's value,
	// and the highest of the others or else the default (gate.md §3).
	mergeBound
	// mergeStrictest takes the strictest of all.
	mergeStrictest
)

// spec describes one setting: it is what a settings file is checked against, how
// it is merged, and what the published JSON Schema is made of. One table
// (settingsSpec) describes them all.
type spec struct {
	shape  shape
	doc    string
	enum   []string                 // closed set of a string
	min    float64                  // of a number
	max    float64                  // of a number; 0 is no bound
	check  func(string) string      // of a string: what was expected, or "" if it fits
	quiet  bool                     // never repeat a refused value: it may be a secret in the wrong place
	hidden bool                     // never repeat or print the value: it may be secret
	path   bool                     // a file path, resolved against Source.Dir
	prog   bool                     // a program: a path only if it has a "/"
	def    string                   // default as a JSON literal; "" is none
	merge  merge                    // how sources combine
	strict func(*node) float64      // for bounds: greater is stricter
	anyKey func(name string) string // of a map's names, as check
	fields []field                  // of an object
	elem   *spec                    // of a list or a map
}

type field struct {
	name     string
	required bool
	spec     spec
}

// field returns the spec of an object's member, or nil.
func (s *spec) field(name string) *spec {
	for i := range s.fields {
		if s.fields[i].name == name {
			return &s.fields[i].spec
		}
	}
	return nil
}

// names returns the member names of an object.
func (s *spec) names() []string {
	out := make([]string, len(s.fields))
	for i, f := range s.fields {
		out[i] = f.name
	}
	return out
}

// byOrder ranks the values of an enum by their place in it.
func byOrder(enum []string, ascending bool) func(*node) float64 {
	return func(n *node) float64 {
		i := float64(slices.Index(enum, n.text))
		if ascending {
			return i
		}
		return -i
	}
}

// byLimit ranks limits: lower is stricter, 0 is no limit.
func byLimit(n *node) float64 {
	v, err := strconv.ParseFloat(n.text, 64)
	if err != nil || v == 0 {
		return math.Inf(-1)
	}
	return -v
}

// byFalse ranks false as stricter than true.
func byFalse(n *node) float64 {
	if n.kind == 'f' {
		return 1
	}
	return 0
}

// literal returns the node of a default.
func literal(def, key string) *node {
	n := &node{kind: jsontext.Value(def).Kind(), text: def, origin: Origin{Key: key}}
	if n.kind == '"' {
		n.text, _ = strconv.Unquote(def)
	}
	return n
}
