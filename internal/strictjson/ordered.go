package strictjson

import (
	"bytes"
	"slices"
)

// ordered returns the canonical form of data that is canonical but for the order of
// members, as what a program of fixed types writes; nil for any other.
func ordered(data []byte) []byte {
	o := orderer{from: data, to: make([]byte, 0, len(data))}
	if len(data) == 0 || o.value(0, 0) != len(data) {
		return nil
	}
	return o.to
}

type orderer struct {
	from, to []byte
	// aside has the members of one object while they are put in order.
	aside []byte
}

// member is one of an object: its name, and where it stands in what was written.
type member struct {
	name       []byte
	start, end int
}

// value writes the value at from[i], and returns the offset behind it, or -1.
func (o *orderer) value(i, depth int) int {
	if i >= len(o.from) || depth > maxQuick {
		return -1
	}
	switch o.from[i] {
	case '{':
		return o.object(i, depth)
	case '[':
		return o.list(i, depth)
	}
	end := canonicalValue(o.from, i, depth)
	if end >= 0 {
		o.to = append(o.to, o.from[i:end]...)
	}
	return end
}

func (o *orderer) list(i, depth int) int {
	o.to = append(o.to, '[')
	if i++; i < len(o.from) && o.from[i] == ']' {
		o.to = append(o.to, ']')
		return i + 1
	}
	for {
		i = o.value(i, depth+1)
		if i < 0 || i >= len(o.from) || o.from[i] != ',' && o.from[i] != ']' {
			return -1
		}
		o.to = append(o.to, o.from[i])
		if i++; o.from[i-1] == ']' {
			return i
		}
	}
}

func (o *orderer) object(i, depth int) int {
	o.to = append(o.to, '{')
	if i++; i < len(o.from) && o.from[i] == '}' {
		o.to = append(o.to, '}')
		return i + 1
	}
	var room [16]member
	list, start := room[:0], len(o.to)
	for more := true; more; i++ {
		m := member{name: plainName(o.from, i), start: len(o.to)}
		behind := i + len(m.name) + len(`""`)
		if m.name == nil || behind >= len(o.from) || o.from[behind] != ':' {
			return -1
		}
		o.to = append(o.to, o.from[i:behind+1]...)
		i = o.value(behind+1, depth+1)
		if i < 0 || i >= len(o.from) || o.from[i] != ',' && o.from[i] != '}' {
			return -1
		}
		more = o.from[i] == ','
		o.to = append(o.to, ',')
		m.end = len(o.to)
		list = append(list, m)
	}
	if !o.sort(list, start) {
		return -1
	}
	o.to[len(o.to)-1] = '}' // in the place of the last comma
	return i
}

// sort puts the members that were written from start on in order. It reports whether
// each name is there once.
func (o *orderer) sort(list []member, start int) bool {
	byName := func(a, b member) int { return bytes.Compare(a.name, b.name) }
	if !slices.IsSortedFunc(list, byName) {
		slices.SortFunc(list, byName)
		o.aside = append(o.aside[:0], o.to[start:]...)
		o.to = o.to[:start]
		for _, m := range list {
			o.to = append(o.to, o.aside[m.start-start:m.end-start]...)
		}
	}
	for i := 1; i < len(list); i++ {
		if bytes.Equal(list[i-1].name, list[i].name) {
			return false
		}
	}
	return true
}
