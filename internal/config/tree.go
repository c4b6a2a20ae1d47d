package config

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/strictjson"
)

const (
	byteOrderMark = "\xef\xbb\xbf"
	// maxFile and maxNesting bound one settings file.
	maxFile    = 1 << 20
	maxNesting = 32
)

// node is one value of a settings source, or of the merged settings. Nodes are
// immutable once their source is read.
type node struct {
	kind    jsontext.Kind // '{', '[', '"', '0', 't', 'f' or 'n'
	text    string        // a string's value, a number as written
	members []member
	elems   []*node
	origin  Origin
}

type member struct {
	name   string
	value  *node
	origin Origin // of the name
}

// get returns the member's value, or nil; n may be nil.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for _, m := range n.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// parser turns one settings file into nodes.
type parser struct {
	file  Origin // layer and file of everything in it
	orig  []byte // as it came
	text  []byte // cleaned: pure JSON, offsets as in orig
	lines []int  // offset of each line's first byte
	dec   *jsontext.Decoder
	// mark is the last place that at was asked for, at column markColumn: places
	// are asked for in order, and a whole file may be one line.
	mark, markColumn int
}

// parse reads a settings file. The error is an *Errors.
func parse(src *Source) (*node, error) {
	p := &parser{file: Origin{Layer: src.Layer, File: src.File}, orig: src.Data, text: src.Data, lines: []int{0}, markColumn: 1}
	for i, c := range src.Data {
		if c == '\n' {
			p.lines = append(p.lines, i+1)
		}
	}
	if err := p.encoding(); err != nil {
		return nil, &Errors{List: []*Error{err}}
	}
	text, open := clean(src.Data)
	if open >= 0 {
		return nil, &Errors{List: []*Error{{Origin: p.at(open, ""), Found: "a comment that never ends", Expected: "*/"}}}
	}
	p.text = text
	err := strictjson.Check(text, strictjson.Options{MaxBytes: maxFile, MaxDepth: maxNesting})
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return nil, p.repeated()
	}
	if err != nil {
		return nil, &Errors{List: []*Error{p.syntax(err)}}
	}
	return p.build(false)
}

// encoding refuses what isn't UTF-8, whether in a string or in a comment.
func (p *parser) encoding() *Error {
	if len(p.text) > maxFile {
		return &Error{Origin: p.file, Found: fmt.Sprintf("%d bytes", len(p.text)), Expected: fmt.Sprintf("at most %d", maxFile)}
	}
	if bytes.HasPrefix(p.text, []byte("\xff\xfe")) || bytes.HasPrefix(p.text, []byte("\xfe\xff")) {
		return &Error{Origin: p.file, Found: "UTF-16", Expected: "UTF-8", Hint: "save the file as UTF-8"}
	}
	for i := 0; i < len(p.text); {
		r, size := utf8.DecodeRune(p.text[i:])
		if r == utf8.RuneError && size <= 1 {
			return &Error{Origin: p.at(i, ""), Found: fmt.Sprintf("the byte 0x%02x", p.text[i]), Expected: "UTF-8", Hint: "save the file as UTF-8"}
		}
		i += size
	}
	return nil
}

// syntax turns an error of the JSON door into one with line and column.
func (p *parser) syntax(err error) *Error {
	var door *strictjson.Error
	if !errors.As(err, &door) {
		return &Error{Origin: p.file, Found: err.Error()}
	}
	out := &Error{Origin: p.at(int(door.Offset), keyOfPointer(door.Pointer)), Found: door.Msg}
	// The door doesn't say where a second value starts.
	p.dec = jsontext.NewDecoder(bytes.NewReader(p.text))
	if door.Offset == 0 && p.dec.SkipValue() == nil {
		out.Origin = p.at(p.next(), "")
	}
	if len(bytes.TrimSpace(p.text)) == 0 {
		out.Found, out.Expected, out.Hint = "an empty file", "a JSON object", "write {} for no settings"
	}
	return out
}

// repeated reports every member name that stands twice in one object.
func (p *parser) repeated() error {
	root, err := p.build(true)
	if err != nil {
		return err
	}
	var f faults
	var visit func(n *node)
	visit = func(n *node) {
		first := map[string]Origin{}
		for _, m := range n.members {
			if o, twice := first[m.name]; twice {
				f.add(&Error{Origin: m.origin, Found: fmt.Sprintf("the key %s a second time (first in line %d)", quote(m.name), o.Line), Expected: "each key once"})
			} else {
				first[m.name] = m.origin
			}
			visit(m.value)
		}
		for _, e := range n.elems {
			visit(e)
		}
	}
	visit(root)
	return f.err()
}

// build reads the nodes of a text that the door has let through.
func (p *parser) build(repeats bool) (*node, error) {
	p.dec = jsontext.NewDecoder(bytes.NewReader(p.text), jsontext.AllowDuplicateNames(repeats))
	n, err := p.value("")
	if err != nil {
		return nil, &Errors{List: []*Error{p.syntax(err)}}
	}
	return n, nil
}

func (p *parser) value(key string) (*node, error) {
	n := &node{origin: p.at(p.next(), key)}
	tok, err := p.dec.ReadToken()
	if err != nil {
		return nil, err
	}
	switch n.kind = tok.Kind(); n.kind {
	case '"', '0':
		n.text = tok.String()
	case '{':
		for p.dec.PeekKind() != '}' {
			m := member{origin: p.at(p.next(), key)}
			name, err := p.dec.ReadToken()
			if err != nil {
				return nil, err
			}
			m.name = name.String()
			m.origin.Key = joinKey(key, m.name)
			if m.value, err = p.value(m.origin.Key); err != nil {
				return nil, err
			}
			n.members = append(n.members, m)
		}
		_, err = p.dec.ReadToken()
	case '[':
		for p.dec.PeekKind() != ']' {
			e, err := p.value(indexKey(key, len(n.elems)))
			if err != nil {
				return nil, err
			}
			n.elems = append(n.elems, e)
		}
		_, err = p.dec.ReadToken()
	}
	return n, err
}

// next returns the offset of the token that the decoder reads next.
func (p *parser) next() int {
	i := int(p.dec.InputOffset())
	for i < len(p.text) && strings.IndexByte(" \t\r\n,:", p.text[i]) >= 0 {
		i++
	}
	return i
}

// at returns the Origin of a byte offset. The column counts characters, and a
// byte order mark isn't one.
func (p *parser) at(offset int, key string) Origin {
	offset = min(max(offset, 0), len(p.orig))
	line := sort.SearchInts(p.lines, offset+1)
	from, column := p.lines[line-1], 1
	if p.mark >= from && p.mark <= offset {
		from, column = p.mark, p.markColumn
	}
	head := p.orig[from:offset]
	if from == 0 {
		head = bytes.TrimPrefix(head, []byte(byteOrderMark))
	}
	p.mark, p.markColumn = offset, column+utf8.RuneCount(head)
	o := p.file
	o.Line, o.Column, o.Key = line, p.markColumn, key
	return o
}

// joinKey returns the path of a member: "a.b", or a["x y"] for an odd name.
func joinKey(key, name string) string {
	for _, c := range []byte(name) {
		if c != '_' && c != '-' && c != '$' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return key + "[" + quote(name) + "]"
		}
	}
	if name == "" {
		return key + `[""]`
	}
	if key == "" {
		return name
	}
	return key + "." + name
}

func indexKey(key string, i int) string { return key + "[" + strconv.Itoa(i) + "]" }

// keyOfPointer turns a JSON pointer into a key path. A token of digits is taken
// for an index.
func keyOfPointer(pointer string) string {
	key := ""
	for _, tok := range strings.Split(pointer, "/")[1:] {
		tok = strings.ReplaceAll(strings.ReplaceAll(tok, "~1", "/"), "~0", "~")
		if i, err := strconv.Atoi(tok); err == nil && key != "" && i >= 0 {
			key = indexKey(key, i)
		} else {
			key = joinKey(key, tok)
		}
	}
	return key
}

// maxQuoted is how many bytes of a text a message repeats.
const maxQuoted = 80

// quote returns s in quotation marks, on one line, with everything escaped that
// a terminal doesn't show as it is, and cut if it is long.
func quote(s string) string {
	if len(s) <= maxQuoted {
		return strconv.Quote(s)
	}
	cut := maxQuoted
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strconv.Quote(s[:cut]) + "…"
}
