// Package confedit changes configuration files that belong to someone else: it adds
// entries to lists in JSON, JSON with comments and TOML, finds them again and takes
// them out, and writes files so that a reader sees the old or the new bytes.
//
// It guarantees that an edit inserts and deletes ranges of text and nothing else:
// order, comments, white space, byte order mark, line ends and a missing end of the
// last line stay. What does not parse is refused with line and column and is never
// changed. [JSON.Undo] and [TOML.Undo] with the traces of an edit give back the bytes
// before it.
//
// Do not assume that a document is free of what a host would reject: only its syntax
// is judged, and the types of the containers on an edit's own path.
package confedit

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// maxBytes and maxDepth bound the documents that are edited.
const (
	maxBytes = 8 << 20
	maxDepth = 200
)

// Error is a document that can't be edited.
type Error struct {
	// Name is the file's name as the caller gave it.
	Name string
	// Line and Column start from 1; zero if no place is known.
	Line, Column int
	// Msg says what was found and what was expected.
	Msg string
}

// Error returns the message with name and place.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Name + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d:%d: %s", e.Name, e.Line, e.Column, e.Msg)
}

// Trace is one thing that an edit made beside the entries themselves, kept by the
// caller so that Undo can take it back.
type Trace struct {
	Kind string   `json:"kind"`
	Path []string `json:"path,omitempty"`
	Text string   `json:"text,omitempty"`
}

// The kinds of traces.
const (
	madeBlank     = "blank"     // the document had no value; Text is what it held
	madeContainer = "container" // the object or list at Path
	madeFilled    = "filled"    // the container at Path was empty; Text is what stood in it
	madeMember    = "member"    // the member at Path, whose value is Text
	madeEnd       = "end"       // the last line's end (TOML)
)

const bom = "\xef\xbb\xbf"

// text is a document's bytes with what its edits keep to.
type text struct {
	name string
	// mark is the byte order mark, or "".
	mark string
	data []byte
	// eol is the line end of the document.
	eol string
}

func newText(name string, data []byte) (text, error) {
	if len(data) > maxBytes {
		return text{}, &Error{Name: name, Msg: fmt.Sprintf("%d bytes, more than the %d that are edited", len(data), maxBytes)}
	}
	t := text{name: name, data: bytes.Clone(data), eol: "\n"}
	if rest, is := bytes.CutPrefix(t.data, []byte(bom)); is {
		t.mark, t.data = bom, rest
	}
	if at := bytes.IndexByte(t.data, '\n'); at > 0 && t.data[at-1] == '\r' {
		t.eol = "\r\n"
	}
	for i := 0; i < len(t.data); {
		r, n := utf8.DecodeRune(t.data[i:])
		if r == utf8.RuneError && n <= 1 {
			return text{}, t.fault(i, "a byte that is not UTF-8; save the file as UTF-8")
		}
		i += n
	}
	return t, nil
}

// fault is an error at an offset.
func (t *text) fault(offset int, msg string) *Error {
	before := t.data[:min(offset, len(t.data))]
	line := 1 + bytes.Count(before, []byte("\n"))
	column := 1 + len(before) - (bytes.LastIndexByte(before, '\n') + 1)
	return &Error{Name: t.name, Line: line, Column: column, Msg: msg}
}

// cut is one range of text and what takes its place.
type cut struct {
	start, end int
	by         string
}

// apply makes cuts, which are in order and don't overlap.
func apply(data []byte, cuts ...cut) []byte {
	var out []byte
	at := 0
	for _, c := range cuts {
		out = append(out, data[at:c.start]...)
		out = append(out, c.by...)
		at = c.end
	}
	return append(out, data[at:]...)
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// blank reports whether data is white space alone.
func blank(data []byte) bool {
	for _, c := range data {
		if !isSpace(c) {
			return false
		}
	}
	return true
}
