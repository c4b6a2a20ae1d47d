package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is one fault in the settings.
type Error struct {
	// Origin is the place and the key at fault; its Layer is Default and the rest
	// empty where no source is to blame.
	Origin Origin
	// Found says what stands there. It never repeats a value that may be secret.
	Found string
	// Expected says what may stand there; empty where Found says it all.
	Expected string
	// Hint says what to do, such as the nearest known key; may be empty.
	Hint string
}

// Error returns "file:line:column: key: found …, expected … (hint)".
func (e *Error) Error() string {
	var b strings.Builder
	if place := e.Origin.place(); place != "" {
		b.WriteString(place + ": ")
	}
	if e.Origin.Key != "" {
		b.WriteString(e.Origin.Key + ": ")
	}
	b.WriteString(e.Found)
	if e.Expected != "" {
		b.WriteString(", expected " + e.Expected)
	}
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

const (
	// maxShown bounds how many faults one message lists.
	maxShown = 20
	// maxFaults bounds how many are kept: a megabyte of nonsense has no more to say.
	maxFaults = 1000
)

// Errors holds every fault that Load found, at least one and at most 1000, the
// highest layer first and in the order of the file. errors.As finds the first
// *Error in it.
type Errors struct {
	List []*Error
}

// Error returns one line per fault, and after 20 how many more there are.
func (e *Errors) Error() string {
	lines := make([]string, 0, min(len(e.List), maxShown)+1)
	for i, one := range e.List {
		if i == maxShown {
			lines = append(lines, fmt.Sprintf("and %d more", len(e.List)-i))
			break
		}
		lines = append(lines, one.Error())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the faults.
func (e *Errors) Unwrap() []error {
	out := make([]error, len(e.List))
	for i, one := range e.List {
		out[i] = one
	}
	return out
}

// faults collects errors while the settings are read.
type faults struct{ list []*Error }

func (f *faults) add(e *Error) {
	if len(f.list) < maxFaults {
		f.list = append(f.list, e)
	}
}

// err returns what was collected as an *Errors, or nil.
func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	slices.SortStableFunc(f.list, func(a, b *Error) int {
		return cmp.Or(
			-cmp.Compare(a.Origin.Layer, b.Origin.Layer),
			cmp.Compare(a.Origin.File, b.Origin.File),
			cmp.Compare(a.Origin.Line, b.Origin.Line),
			cmp.Compare(a.Origin.Column, b.Origin.Column))
	})
	return &Errors{List: f.list}
}
