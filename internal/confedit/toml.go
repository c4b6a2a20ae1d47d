package confedit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// TOML is a TOML document under edit. It is not safe for concurrent use.
type TOML struct {
	text
	blocks []Block
	values map[string]any
	traces []Trace
}

// Block is one table with a header of its own, [NAME] or [[NAME]].
type Block struct {
	Name  []string
	Array bool
	// Line is the header's, from 1.
	Line int
	// Values holds the table's own members: strings as they read, others as written.
	Values map[string]string

	// start is where the header's line starts, head where it ends, end where the
	// line of the last member does.
	start, head, end int
	keys             map[string]span
}

// span is where a member stands.
type span struct{ start, value, end int }

// Pair is a member of a table; Value is its TOML text.
type Pair struct{ Key, Value string }

// ParseTOML reads a document.
func ParseTOML(data []byte, name string) (*TOML, error) {
	t, err := newText(name, data)
	if err != nil {
		return nil, err
	}
	d := &TOML{text: t}
	if err := d.parse(); err != nil {
		return nil, err
	}
	return d, nil
}

// Bytes returns the document as it is now.
func (d *TOML) Bytes() []byte { return append([]byte(d.mark), d.data...) }

// Traces returns what the edits made beside entries.
func (d *TOML) Traces() []Trace { return slices.Clone(d.traces) }

// TOMLString writes a string as TOML.
func TOMLString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func (d *TOML) parse() error {
	// The decoder recurses; the count is coarse, which is enough.
	depth := 0
	for i, c := range d.data {
		switch c {
		case '[', '{':
			if depth++; depth > maxDepth {
				return d.fault(i, fmt.Sprintf("nested deeper than %d levels", maxDepth))
			}
		case ']', '}', '\n':
			if c != '\n' && depth > 0 {
				depth--
			}
		}
	}
	d.values = map[string]any{}
	if err := toml.Unmarshal(d.data, &d.values); err != nil {
		return d.syntax(err)
	}
	p := unstable.Parser{}
	p.Reset(d.data)
	d.blocks = nil
	for p.NextExpression() {
		d.expression(&p, p.Expression())
	}
	if err := p.Error(); err != nil {
		return d.syntax(err)
	}
	return nil
}

func (d *TOML) syntax(err error) error {
	e := &Error{Name: d.name, Msg: strings.TrimPrefix(err.Error(), "toml: ")}
	var at *toml.DecodeError
	if errors.As(err, &at) {
		e.Line, e.Column = at.Position()
	}
	e.Msg += "; expected TOML: repair the file first, it was left as it is"
	return e
}

// expression notes one header or member.
func (d *TOML) expression(p *unstable.Parser, e *unstable.Node) {
	var name []string
	first := -1
	for it := e.Key(); it.Next(); {
		n := it.Node()
		if first < 0 {
			first = int(n.Raw.Offset)
		}
		name = append(name, string(n.Data))
	}
	switch e.Kind {
	case unstable.Table, unstable.ArrayTable:
		b := Block{Name: name, Array: e.Kind == unstable.ArrayTable, Values: map[string]string{}, keys: map[string]span{}}
		b.start = bytes.LastIndexByte(d.data[:first], '\n') + 1
		b.head = d.lineEnd(first)
		b.end, b.Line = b.head, d.fault(b.start, "").Line
		d.blocks = append(d.blocks, b)
	case unstable.KeyValue:
		if len(d.blocks) == 0 {
			return
		}
		b := &d.blocks[len(d.blocks)-1]
		end := int(e.Raw.Offset + e.Raw.Length)
		b.end = d.lineEnd(end)
		v := e.Value()
		at := span{start: int(e.Raw.Offset), value: -1, end: end}
		text := string(p.Raw(v.Raw))
		if v.Raw.Length > 0 {
			at.value = int(v.Raw.Offset)
		}
		if v.Kind == unstable.String {
			text = string(v.Data)
		}
		key := strings.Join(name, ".")
		b.keys[key], b.Values[key] = at, text
	}
}

// lineEnd returns the offset after the line end that follows an offset.
func (d *TOML) lineEnd(at int) int {
	if i := bytes.IndexByte(d.data[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(d.data)
}

// Blocks returns the tables of a name, in which "*" stands for any part.
func (d *TOML) Blocks(name ...string) []Block {
	var out []Block
	for _, b := range d.blocks {
		if len(b.Name) != len(name) {
			continue
		}
		match := true
		for i := range name {
			match = match && (name[i] == "*" || name[i] == b.Name[i])
		}
		if match {
			out = append(out, b)
		}
	}
	return out
}

// Append adds a table at the end of the document.
func (d *TOML) Append(name []string, array bool, pairs ...Pair) error {
	var b strings.Builder
	last := d.data[bytes.LastIndexByte(d.data, '\n')+1:]
	if len(last) > 0 {
		b.WriteString(d.eol)
	}
	if len(d.data) > 0 {
		b.WriteString(d.eol)
	}
	header := "[" + tomlName(name) + "]"
	if array {
		header = "[" + header + "]"
	}
	b.WriteString(header + d.eol)
	for _, p := range pairs {
		b.WriteString(tomlName([]string{p.Key}) + " = " + p.Value + d.eol)
	}
	if err := d.edit(cut{len(d.data), len(d.data), b.String()}); err != nil {
		return err
	}
	if len(last) > 0 {
		d.traces = append(d.traces, Trace{Kind: madeEnd, Text: string(last)})
	}
	return nil
}

// Remove takes a table out, with the empty line above it.
func (d *TOML) Remove(b Block) error {
	start := b.start
	if above := bytes.TrimSuffix(d.data[:start], []byte(d.eol)); len(above) < start && (len(above) == 0 || bytes.HasSuffix(above, []byte("\n"))) {
		start = len(above)
	}
	return d.edit(cut{start, b.end, ""})
}

// SetValue puts TOML text in the place of a member's value in a table, or adds the
// member at the table's top.
func (d *TOML) SetValue(b Block, key, value string) error {
	if at, is := b.keys[key]; is {
		if at.value < 0 {
			return d.fault(at.start, "found a list or a table, expected a plain value at "+key)
		}
		return d.edit(cut{at.value, at.end, value})
	}
	line := tomlName([]string{key}) + " = " + value + d.eol
	if b.head == len(d.data) && !bytes.HasSuffix(d.data, []byte("\n")) {
		line = d.eol + strings.TrimSuffix(line, d.eol)
	}
	return d.edit(cut{b.head, b.head, line})
}

// Ensure gives a member of a table the value, given as TOML text, unless it has it.
// Another value is refused: whoever wrote it has to change it.
func (d *TOML) Ensure(table, key, value string) error {
	if t, is := d.values[table]; is {
		members, is := t.(map[string]any)
		if !is {
			return &Error{Name: d.name, Msg: "found no table at " + table + ", expected one"}
		}
		if was, is := members[key]; is {
			if fmt.Sprint(was) == value {
				return nil
			}
			return &Error{Name: d.name, Msg: fmt.Sprintf("%s.%s is %v, expected %s; change it, it was left as it is", table, key, was, value)}
		}
		for _, b := range d.Blocks(table) {
			if !b.Array {
				d.traces = append(d.traces, Trace{Kind: madeMember, Path: []string{table, key}, Text: value})
				return d.SetValue(b, key, value)
			}
		}
		return &Error{Name: d.name, Msg: fmt.Sprintf("%s has no header of its own; add %s.%s = %s yourself", table, table, key, value)}
	}
	if err := d.Append([]string{table}, false, Pair{key, value}); err != nil {
		return err
	}
	d.traces = append(d.traces, Trace{Kind: madeContainer, Path: []string{table}, Text: key + " = " + value})
	return nil
}

// Undo takes back what traces tell, once the caller has removed its own tables.
func (d *TOML) Undo(traces []Trace) error {
	for i := len(traces) - 1; i >= 0; i-- {
		t := traces[i]
		var err error
		switch t.Kind {
		case madeEnd:
			last, is := bytes.CutSuffix(d.data, []byte(d.eol))
			if is && string(last[bytes.LastIndexByte(last, '\n')+1:]) == t.Text {
				err = d.edit(cut{len(last), len(d.data), ""})
			}
		case madeMember:
			err = d.undoMember(t)
		case madeContainer:
			for _, b := range d.Blocks(t.Path...) {
				if len(b.keys) == 1 && strings.TrimSpace(string(d.data[b.head:b.end])) == t.Text {
					err = d.Remove(b)
				}
			}
		}
		if err != nil {
			return err
		}
	}
	d.traces = nil
	return nil
}

func (d *TOML) undoMember(t Trace) error {
	for _, b := range d.Blocks(t.Path[0]) {
		at, is := b.keys[t.Path[1]]
		if !is || b.Values[t.Path[1]] != t.Text {
			continue
		}
		start, end := bytes.LastIndexByte(d.data[:at.start], '\n')+1, d.lineEnd(at.end)
		if end == at.end && start > 0 { // the document's last line has no end
			start -= len(d.eol)
		}
		return d.edit(cut{start, end, ""})
	}
	return nil
}

// edit makes a cut if the outcome parses.
func (d *TOML) edit(c cut) error {
	before := d.data
	d.data = apply(d.data, c)
	if err := d.parse(); err != nil {
		d.data = before
		if again := d.parse(); again != nil {
			return again
		}
		return err
	}
	return nil
}

// tomlName writes a dotted key.
func tomlName(parts []string) string {
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = p
		if p == "" || strings.ContainsFunc(p, func(r rune) bool {
			return r != '-' && r != '_' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
		}) {
			out[i] = TOMLString(p)
		}
	}
	return strings.Join(out, ".")
}
