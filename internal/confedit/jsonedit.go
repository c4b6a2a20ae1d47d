package confedit

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"
)

// Append adds an entry, given as JSON, to the end of the list at a path. Objects and
// the list itself are made where they are missing.
func (d *JSON) Append(entry []byte, path ...string) error {
	if err := d.container(path, "[]"); err != nil {
		return err
	}
	list, err := d.find(path)
	if err != nil {
		return err
	}
	if _, is := list.Value.(*hujson.Array); !is {
		return d.fault(list.StartOffset, fmt.Sprintf("found %s at %s, expected a list", kind(*list), dotted(path)))
	}
	return d.insert(list, path, "", entry)
}

// Set adds the member at a path if there is none; a member that is there stays.
func (d *JSON) Set(value []byte, path ...string) error {
	parent, name := path[:len(path)-1], path[len(path)-1]
	if err := d.container(parent, "{}"); err != nil {
		return err
	}
	if v, err := d.find(path); err != nil || v != nil {
		return err
	}
	object, err := d.find(parent)
	if err != nil {
		return err
	}
	if err := d.insert(object, parent, name, value); err != nil {
		return err
	}
	d.traces = append(d.traces, Trace{Kind: madeMember, Path: slices.Clone(path), Text: string(value)})
	return nil
}

// Replace puts an entry in the place of the value at a path.
func (d *JSON) Replace(entry []byte, path ...string) error {
	v, err := d.find(path)
	if err != nil || v == nil {
		return err
	}
	return d.edit(cut{v.StartOffset, v.EndOffset, d.pretty(entry, len(path))})
}

// Remove takes out the value at a path, with its name and the comma that goes with
// it. What isn't there is no error.
func (d *JSON) Remove(path ...string) error {
	parent, err := d.find(path[:len(path)-1])
	if err != nil || parent == nil {
		return err
	}
	i := slices.Index(names(parent), path[len(path)-1])
	if i < 0 {
		return nil
	}
	start, end := itemStart(parent, i), child(parent, i).EndOffset
	space := start
	for space > 0 && isSpace(d.data[space-1]) {
		space--
	}
	after := end + len(child(parent, i).AfterExtra)
	cuts := []cut{{space, end, ""}}
	switch {
	case d.data[after] == ',':
		cuts = append(cuts, cut{after, after + 1, ""})
	case i > 0:
		comma := child(parent, i-1).EndOffset + len(child(parent, i-1).AfterExtra)
		cuts = []cut{{comma, comma + 1, ""}, cuts[0]}
	}
	if d.edit(cuts...) == nil {
		return nil
	}
	// The white space ended a comment on the line above.
	for k := range cuts {
		if cuts[k].end == end {
			cuts[k].start = start
		}
	}
	return d.edit(cuts...)
}

// Undo takes back what traces tell, in the opposite order: containers and members
// that nothing else has come to live in.
func (d *JSON) Undo(traces []Trace) error {
	for i := len(traces) - 1; i >= 0; i-- {
		t := traces[i]
		if err := d.undo(t, slices.ContainsFunc(traces, func(t Trace) bool { return t.Kind == madeBlank })); err != nil {
			return err
		}
	}
	d.traces = nil
	return nil
}

func (d *JSON) undo(t Trace, ours bool) error {
	if t.Kind == madeBlank {
		if count(d.root) == 0 && !bytes.ContainsRune(d.data, '/') {
			d.data = []byte(t.Text)
		}
		return nil
	}
	v, err := d.find(t.Path)
	if err != nil || v == nil {
		return err
	}
	switch t.Kind {
	case madeContainer:
		if count(*v) == 0 && blank(trailing(*v)) {
			return d.Remove(t.Path...)
		}
	case madeFilled:
		if count(*v) == 0 && blank(trailing(*v)) {
			return d.edit(cut{v.StartOffset + 1, v.EndOffset - 1, t.Text})
		}
	case madeMember:
		parent, err := d.find(t.Path[:len(t.Path)-1])
		if err != nil {
			return err
		}
		// A file that we made stays good for those who added to it.
		if string(d.data[v.StartOffset:v.EndOffset]) == t.Text && (!ours || count(*parent) == 1) {
			return d.Remove(t.Path...)
		}
	}
	return nil
}

// container makes the objects on a path and, at its end, what last says, where they
// are missing, and refuses what is there and is something else.
func (d *JSON) container(path []string, last string) error {
	for n := 1; n <= len(path); n++ {
		value := "{}"
		if n == len(path) {
			value = last
		}
		parent, err := d.find(path[:n-1])
		if err != nil {
			return err
		}
		if _, is := parent.Value.(*hujson.Object); !is {
			return d.fault(parent.StartOffset, fmt.Sprintf("found %s at %s, expected an object", kind(*parent), dotted(path[:n-1])))
		}
		if v, err := d.find(path[:n]); err != nil {
			return err
		} else if v != nil {
			continue
		}
		if err := d.insert(parent, path[:n-1], path[n-1], []byte(value)); err != nil {
			return err
		}
		d.traces = append(d.traces, Trace{Kind: madeContainer, Path: slices.Clone(path[:n])})
	}
	return nil
}

// insert adds an item to the end of a container at a path.
func (d *JSON) insert(c *hujson.Value, path []string, name string, value []byte) error {
	depth := len(path) + 1
	item := d.pretty(value, depth)
	if _, is := c.Value.(*hujson.Object); is {
		item = quote(name) + ":" + d.gap() + item
	}
	n, end := count(*c), c.EndOffset-1
	inner := string(trailing(*c))
	at := end
	for at > c.StartOffset+1 && isSpace(d.data[at-1]) {
		at--
	}
	switch {
	case n == 0 && blank([]byte(inner)):
		d.traces = append(d.traces, Trace{Kind: madeFilled, Path: slices.Clone(path), Text: inner})
		return d.edit(cut{c.StartOffset + 1, end, d.newline(depth) + item + d.newline(depth-1)})
	case n == 0:
		return d.edit(cut{at, at, d.between(depth) + item})
	case hasTrailingComma(*c):
		return d.edit(cut{at, at, d.between(depth) + item + ","})
	}
	last := child(c, n-1)
	return d.edit(cut{last.EndOffset, last.EndOffset, ","}, cut{at, at, d.between(depth) + item})
}

// edit makes cuts if the outcome parses.
func (d *JSON) edit(cuts ...cut) error {
	before := d.data
	d.data = apply(d.data, cuts...)
	if err := d.parse(); err != nil {
		d.data = before
		if again := d.parse(); again != nil {
			return again
		}
		return err
	}
	return nil
}

func (d *JSON) gap() string {
	if d.unit == "" && !strings.Contains(string(d.data), `": `) {
		return ""
	}
	return " "
}

func (d *JSON) newline(depth int) string {
	if d.unit == "" {
		return ""
	}
	return d.eol + strings.Repeat(d.unit, depth)
}

// between is what stands in front of an item that is added to others. A document
// without a line end has no comment that would need one.
func (d *JSON) between(depth int) string {
	if d.unit == "" {
		return d.gap()
	}
	return d.newline(depth)
}

// pretty writes JSON with the document's indentation.
func (d *JSON) pretty(value []byte, depth int) string {
	v, err := hujson.Parse(value)
	if err != nil || d.unit == "" {
		return string(value)
	}
	var b strings.Builder
	d.write(&b, &v, depth)
	return b.String()
}

func (d *JSON) write(b *strings.Builder, v *hujson.Value, depth int) {
	open, shut := "{", "}"
	if _, is := v.Value.(*hujson.Array); is {
		open, shut = "[", "]"
	}
	list := names(v)
	if l, is := v.Value.(hujson.Literal); is {
		b.Write(l)
		return
	}
	b.WriteString(open)
	for i, name := range list {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(d.newline(depth + 1))
		if open == "{" {
			b.WriteString(quote(name) + ": ")
		}
		d.write(b, child(v, i), depth+1)
	}
	if len(list) > 0 {
		b.WriteString(d.newline(depth))
	}
	b.WriteString(shut)
}

// dotted writes a path for people.
func dotted(path []string) string {
	if len(path) == 0 {
		return "the top"
	}
	parts := slices.Clone(path)
	for i, p := range parts {
		if _, err := strconv.Atoi(p); err != nil && strings.ContainsAny(p, ". ") {
			parts[i] = strconv.Quote(p)
		}
	}
	return strings.Join(parts, ".")
}
