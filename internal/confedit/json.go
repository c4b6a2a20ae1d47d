package confedit

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/abhed/abhed/internal/strictjson"
)

// JSON is a JSON document under edit. It is not safe for concurrent use.
type JSON struct {
	text
	comments bool
	root     hujson.Value
	traces   []Trace
	// unit is what one level is indented by; "" writes on one line.
	unit string
}

// JSONOptions say how a document is read.
type JSONOptions struct {
	// Name is the file's name for errors.
	Name string
	// Comments lets comments and trailing commas through, for hosts that do.
	Comments bool
}

// ParseJSON reads a document, whose top is an object. A document of nothing but
// white space counts as an empty object.
func ParseJSON(data []byte, o JSONOptions) (*JSON, error) {
	t, err := newText(o.Name, data)
	if err != nil {
		return nil, err
	}
	d := &JSON{text: t, comments: o.Comments, unit: "  "}
	if blank(d.data) {
		d.traces = append(d.traces, Trace{Kind: madeBlank, Text: string(d.data)})
		d.data = []byte("{}" + d.eol)
	} else {
		d.unit = indentOf(d.data)
	}
	if err := d.parse(); err != nil {
		return nil, err
	}
	return d, nil
}

// Bytes returns the document as it is now.
func (d *JSON) Bytes() []byte { return append([]byte(d.mark), d.data...) }

// Traces returns what the edits made beside entries.
func (d *JSON) Traces() []Trace { return slices.Clone(d.traces) }

func (d *JSON) parse() error {
	if at := tooDeep(d.data); at >= 0 {
		return d.fault(at, fmt.Sprintf("nested deeper than %d levels", maxDepth))
	}
	root, err := hujson.Parse(d.data)
	if err != nil {
		return d.syntax(err)
	}
	if _, is := root.Value.(*hujson.Object); !is {
		return d.fault(root.StartOffset, "found "+kind(root)+", expected an object at the top")
	}
	if !d.comments && !root.IsStandard() {
		return d.fault(d.firstExtra(root), "found a comment or a trailing comma, expected strict JSON, which is all that the host reads here")
	}
	d.root = root
	return nil
}

func (d *JSON) syntax(err error) error {
	msg := err.Error()
	e := &Error{Name: d.name, Msg: msg}
	// The parser says in its text alone where it stopped.
	place := regexp.MustCompile(`^hujson: line (\d+), column (\d+): `)
	if m := place.FindStringSubmatch(msg); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.Column, _ = strconv.Atoi(m[2])
		e.Msg = msg[len(m[0]):]
	}
	e.Msg += "; expected JSON: repair the file first, it was left as it is"
	return e
}

// firstExtra finds the first thing that is not strict JSON.
func (d *JSON) firstExtra(root hujson.Value) int {
	at := len(d.data)
	note := func(extra hujson.Extra, offset int) {
		if i := strings.IndexByte(string(extra), '/'); i >= 0 {
			at = min(at, offset+i)
		}
	}
	for v := range root.All() {
		note(v.BeforeExtra, v.StartOffset-len(v.BeforeExtra))
		note(v.AfterExtra, v.EndOffset)
		if end := trailing(*v); end != nil {
			note(end, v.EndOffset-1-len(end))
		}
		if hasTrailingComma(*v) {
			at = min(at, v.EndOffset-2-len(trailing(*v)))
		}
	}
	return at
}

// tooDeep returns the offset of the bracket that nests too deep, or -1. It skips
// strings and comments, which the parser's recursion skips too.
func tooDeep(data []byte) int {
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			for i++; i < len(data) && data[i] != '"'; i++ {
				if data[i] == '\\' {
					i++
				}
			}
		case '/':
			i = skipComment(data, i)
		case '{', '[':
			if depth++; depth > maxDepth {
				return i
			}
		case '}', ']':
			depth--
		}
	}
	return -1
}

// skipComment returns the last offset of a comment that starts at i, or i.
func skipComment(data []byte, i int) int {
	rest := string(data[i:])
	end := -1
	switch {
	case strings.HasPrefix(rest, "//"):
		end = strings.IndexByte(rest, '\n')
	case strings.HasPrefix(rest, "/*"):
		if end = strings.Index(rest[2:], "*/"); end >= 0 {
			end += 3
		}
	default:
		return i
	}
	if end < 0 {
		return len(data)
	}
	return i + end
}

// indentOf returns what the document indents by: the white space in front of its
// first member, if that begins a line; "" for a document on one line.
func indentOf(data []byte) string {
	_, rest, found := strings.Cut(string(data), "\n")
	if !found {
		return ""
	}
	for line := range strings.SplitSeq(rest, "\n") {
		if trimmed := strings.TrimLeft(line, " \t"); len(trimmed) < len(line) && strings.Trim(trimmed, "\r") != "" && !strings.HasPrefix(trimmed, "/") && !strings.HasPrefix(trimmed, "*") {
			return line[:len(line)-len(trimmed)]
		}
	}
	return "  "
}

// Found is one element of a list.
type Found struct {
	Path []string
	// JSON is the element without comments.
	JSON []byte
	// Line and Column are where it starts, from 1.
	Line, Column int
}

// List returns the elements at a path, in which "*" stands for every member of an
// object or element of a list. What isn't there gives nothing.
func (d *JSON) List(path ...string) []Found {
	var out []Found
	var walk func(v *hujson.Value, at []string, rest []string)
	walk = func(v *hujson.Value, at, rest []string) {
		if len(rest) == 0 {
			c := v.Clone()
			c.BeforeExtra, c.AfterExtra = nil, nil
			c.Standardize()
			e := d.fault(v.StartOffset, "")
			out = append(out, Found{Path: slices.Clone(at), JSON: c.Pack(), Line: e.Line, Column: e.Column})
			return
		}
		for i, name := range names(v) {
			if rest[0] == "*" || rest[0] == name {
				walk(child(v, i), append(at, name), rest[1:])
			}
		}
	}
	walk(&d.root, nil, path)
	return out
}

// names returns the names of an object's members, or a list's indexes.
func names(v *hujson.Value) []string {
	var out []string
	switch c := v.Value.(type) {
	case *hujson.Object:
		for _, m := range c.Members {
			out = append(out, m.Name.Value.(hujson.Literal).String())
		}
	case *hujson.Array:
		for i := range c.Elements {
			out = append(out, strconv.Itoa(i))
		}
	}
	return out
}

// child returns a container's i-th value.
func child(v *hujson.Value, i int) *hujson.Value {
	if o, is := v.Value.(*hujson.Object); is {
		return &o.Members[i].Value
	}
	return &v.Value.(*hujson.Array).Elements[i]
}

// itemStart is where the i-th item's text starts: at the name of a member.
func itemStart(v *hujson.Value, i int) int {
	if o, is := v.Value.(*hujson.Object); is {
		return o.Members[i].Name.StartOffset
	}
	return child(v, i).StartOffset
}

func count(v hujson.Value) int { return len(names(&v)) }

// hasTrailingComma reports whether a comma follows a container's last item.
func hasTrailingComma(v hujson.Value) bool {
	n := count(v)
	return n > 0 && child(&v, n-1).AfterExtra != nil
}

// trailing is what stands before a container's closing bracket.
func trailing(v hujson.Value) hujson.Extra {
	switch c := v.Value.(type) {
	case *hujson.Object:
		return c.AfterExtra
	case *hujson.Array:
		return c.AfterExtra
	}
	return nil
}

// find returns the value at a path, nil if there is none. A name that an object
// has twice is an error: hosts differ in which they take.
func (d *JSON) find(path []string) (*hujson.Value, error) {
	v := &d.root
	for _, name := range path {
		at := -1
		for i, n := range names(v) {
			if n != name {
				continue
			}
			if at >= 0 {
				return nil, d.fault(itemStart(v, i), fmt.Sprintf("%q is there twice, expected one; hosts differ in which of them counts", name))
			}
			at = i
		}
		if at < 0 {
			return nil, nil
		}
		v = child(v, at)
	}
	return v, nil
}

func kind(v hujson.Value) string {
	switch c := v.Value.(type) {
	case *hujson.Object:
		return "an object"
	case *hujson.Array:
		return "a list"
	case hujson.Literal:
		switch c.Kind() {
		case '"':
			return "a string"
		case '0':
			return "a number"
		}
		return string(c)
	}
	return "nothing"
}

// quote writes a name as JSON.
func quote(s string) string {
	b, ok := strictjson.AppendString(nil, s)
	if !ok {
		return string(hujson.String(s))
	}
	return string(b)
}
