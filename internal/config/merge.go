package config

import (
	"math"

	"github.com/go-json-experiment/json/jsontext"
)

// layered is one source after reading: its layer and its values; root is nil if
// it sets nothing.
type layered struct {
	layer Layer
	root  *node
}

// candidate is one source's value for a setting.
type candidate struct {
	layer Layer
	node  *node
}

// mergeAll combines the sources, which stand in order of rank, the highest
// first, into one object in the order of the table. Nodes keep the Origin that
// they have in their source; key is the path in the merged settings.
func mergeAll(s *spec, sources []layered) *node {
	var all []candidate
	for _, src := range sources {
		if src.root != nil {
			all = append(all, candidate{src.layer, src.root})
		}
	}
	return mergeObject(s, all, "")
}

func mergeObject(s *spec, all []candidate, key string) *node {
	out := &node{kind: '{'}
	for i := range s.fields {
		f := &s.fields[i]
		var values []candidate
		for _, c := range all {
			if v := c.node.get(f.name); v != nil {
				values = append(values, candidate{c.layer, v})
			}
		}
		if v := mergeValue(&f.spec, values, joinKey(key, f.name)); v != nil {
			out.members = append(out.members, member{name: f.name, value: v, origin: v.origin})
		}
	}
	return out
}

// mergeValue returns the merged value, or nil if no source sets it and it has no
// default.
func mergeValue(s *spec, values []candidate, key string) *node {
	switch {
	case s.shape == shapeObject:
		if out := mergeObject(s, values, key); len(values) > 0 || len(out.members) > 0 {
			return out
		}
		return nil
	case s.merge == mergeBound || s.merge == mergeStrictest:
		return mergeStrict(s, values, key)
	case len(values) == 0:
		if s.def == "" {
			return nil
		}
		return literal(s.def, key)
	}
	switch s.merge {
	case mergeUnion:
		return withDefaults(s, unite(values), key)
	case mergeNamed:
		return withDefaults(s, uniteNamed(values), key)
	default:
		return withDefaults(s, values[0].node, key)
	}
}

// mergeStrict returns the strictest of the values that count. Of equally strict
// ones the highest source's is taken.
func mergeStrict(s *spec, values []candidate, key string) *node {
	var best *node
	strictness := math.Inf(-1)
	consider := func(n *node) {
		if v := s.strict(n); best == nil || v > strictness {
			best, strictness = n, v
		}
	}
	chosen := false // whether a source that isn't merely a bound has been considered
	for _, v := range values {
		bound := v.layer == Managed || v.layer == Project || s.merge == mergeStrictest
		if bound || !chosen {
			consider(v.node)
		}
		chosen = chosen || !bound
	}
	if !chosen {
		consider(literal(s.def, key))
	}
	return best
}

// unite returns the entries of every list.
func unite(values []candidate) *node {
	out := &node{kind: '[', origin: values[0].node.origin}
	for _, v := range values {
		out.elems = append(out.elems, v.node.elems...)
	}
	return out
}

// uniteNamed returns the members of every map, or the entries of every list by
// their name; of two with one name the first counts.
func uniteNamed(values []candidate) *node {
	out := &node{kind: values[0].node.kind, origin: values[0].node.origin}
	taken := map[string]bool{}
	take := func(name string) bool {
		first := !taken[name]
		taken[name] = true
		return first
	}
	for _, v := range values {
		for _, m := range v.node.members {
			if take(m.name) {
				out.members = append(out.members, m)
			}
		}
		for _, e := range v.node.elems {
			if take(e.get("name").text) {
				out.elems = append(out.elems, e)
			}
		}
	}
	return out
}

// withDefaults returns n with the defaults of the objects in it filled in.
func withDefaults(s *spec, n *node, key string) *node {
	if s.elem == nil || s.elem.shape != shapeObject {
		return n
	}
	out := &node{kind: n.kind, origin: n.origin}
	for i, e := range n.elems {
		out.elems = append(out.elems, fill(s.elem, e, indexKey(key, i)))
	}
	for _, m := range n.members {
		m.value = fill(s.elem, m.value, joinKey(key, m.name))
		out.members = append(out.members, m)
	}
	return out
}

func fill(s *spec, n *node, key string) *node {
	out := &node{kind: '{', origin: n.origin}
	for i := range s.fields {
		f := &s.fields[i]
		if v := mergeValue(&f.spec, asCandidates(n.get(f.name)), joinKey(key, f.name)); v != nil {
			out.members = append(out.members, member{name: f.name, value: v, origin: v.origin})
		}
	}
	return out
}

func asCandidates(n *node) []candidate {
	if n == nil {
		return nil
	}
	return []candidate{{node: n}}
}

// encode appends n as compact JSON.
func (n *node) encode(b []byte) []byte {
	switch n.kind {
	case '"':
		b, _ = jsontext.AppendQuote(b, n.text)
	case '0':
		b = append(b, n.text...)
	case 't':
		b = append(b, "true"...)
	case 'f':
		b = append(b, "false"...)
	case '{':
		b = append(b, '{')
		for i, m := range n.members {
			if i > 0 {
				b = append(b, ',')
			}
			b, _ = jsontext.AppendQuote(b, m.name)
			b = m.value.encode(append(b, ':'))
		}
		b = append(b, '}')
	case '[':
		b = append(b, '[')
		for i, e := range n.elems {
			if i > 0 {
				b = append(b, ',')
			}
			b = e.encode(b)
		}
		b = append(b, ']')
	default:
		b = append(b, "null"...)
	}
	return b
}
