package elicitation

import (
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
)

// Form is the schema of the object that a person is asked for.
type Form struct {
	// Fields are the form's properties, in the order of the text.
	Fields []Field
	// Required names the members that an answer must have.
	Required []string
	// Dialect is the value of $schema, or "".
	Dialect string
}

// FieldType says what a field takes.
type FieldType string

// The types of fields.
const (
	// Text takes a string.
	Text FieldType = "string"
	// Number and Integer take a number.
	Number  FieldType = "number"
	Integer FieldType = "integer"
	// Boolean takes true or false.
	Boolean FieldType = "boolean"
	// Choice takes one of Options: the values of enum, with enumNames or not, or of
	// oneOf.
	Choice FieldType = "choice"
	// Choices takes a list of Options: items.enum or items.anyOf.
	Choices FieldType = "choices"
)

// Field is one property of a form. A bound that is nil isn't there.
type Field struct {
	Name, Title, Description string
	Type                     FieldType
	// MinLength and MaxLength count characters; they and Format are of Text.
	MinLength, MaxLength *int64
	Format               Format
	// Minimum and Maximum are JSON numbers, of Number and Integer.
	Minimum, Maximum ahp.Raw
	// Options are of Choice and Choices.
	Options []Option
	// MinItems and MaxItems are of Choices.
	MinItems, MaxItems *int64
	// Default is a suggestion to show, of the field's type; it is never filled in.
	Default ahp.Raw

	low, high *decimal // Minimum and Maximum
}

// Option is one value to choose. Title is what to show, and "" where the form
// gives none.
type Option struct{ Value, Title string }

// form reads requestedSchema.
func (p *parser) form(v value) *Form {
	o := p.object(v, "$schema", "type", "properties", "required")
	p.oneOf(p.need(o, "type"), "object")
	properties := p.object(p.need(o, "properties"))
	f := &Form{Dialect: p.text(o.members["$schema"]), Required: p.texts(o.members["required"])}
	for _, name := range properties.names {
		f.Fields = append(f.Fields, p.field(name, properties.members[name]))
	}
	return f
}

// field reads one property: exactly one of the published shapes.
func (p *parser) field(name string, v value) Field {
	f := Field{Name: name}
	o := p.object(v)
	kind := p.oneOf(p.need(o, "type"), "string", "number", "integer", "boolean", "array")
	known := []string{"type", "title", "description", "default"}
	switch kind {
	case "string":
		known = p.stringField(&f, o, known)
	case "number", "integer":
		f.Type = FieldType(kind)
		known = append(known, "minimum", "maximum")
		f.low, f.Minimum = p.number(o.members["minimum"]), o.members["minimum"].copy()
		f.high, f.Maximum = p.number(o.members["maximum"]), o.members["maximum"].copy()
	case "boolean":
		f.Type = Boolean
	case "array":
		f.Type = Choices
		known = append(known, "items", "minItems", "maxItems")
		f.MinItems, f.MaxItems = p.count(o.members["minItems"]), p.count(o.members["maxItems"])
		f.Options = p.items(p.need(o, "items"))
	}
	p.object(v, known...)
	f.Title, f.Description = p.text(o.members["title"]), p.text(o.members["description"])
	if d := o.members["default"]; d.there() && p.err == nil {
		f.Default = d.copy()
		p.typed(&f, d)
	}
	return f
}

// stringField reads a string, or one of the three spellings of a single choice, and
// returns the members that its shape has.
func (p *parser) stringField(f *Field, o object, known []string) []string {
	switch {
	case o.members["oneOf"].there():
		f.Type, f.Options = Choice, p.titled(o.members["oneOf"])
		return append(known, "oneOf")
	case o.members["enum"].there():
		f.Type = Choice
		names := p.texts(o.members["enumNames"])
		for i, s := range p.texts(o.members["enum"]) {
			option := Option{Value: s}
			if i < len(names) {
				option.Title = names[i]
			}
			f.Options = append(f.Options, option)
		}
		return append(known, "enum", "enumNames")
	}
	f.Type = Text
	f.MinLength, f.MaxLength = p.count(o.members["minLength"]), p.count(o.members["maxLength"])
	f.Format = Format(p.oneOf(o.members["format"], string(FormatEmail), string(FormatURI), string(FormatDate), string(FormatDateTime)))
	return append(known, "minLength", "maxLength", "format")
}

// titled reads a list of {const, title}.
func (p *parser) titled(v value) []Option {
	var out []Option
	for _, item := range p.list(v) {
		o := p.object(item, "const", "title")
		out = append(out, Option{Value: p.text(p.need(o, "const")), Title: p.text(p.need(o, "title"))})
	}
	return out
}

// items reads what a multiple choice is from: {type, enum} or {anyOf}.
func (p *parser) items(v value) []Option {
	o := p.object(v)
	if any := o.members["anyOf"]; any.there() {
		p.object(v, "anyOf")
		return p.titled(any)
	}
	p.object(v, "type", "enum")
	p.oneOf(p.need(o, "type"), "string")
	var out []Option
	for _, s := range p.texts(p.need(o, "enum")) {
		out = append(out, Option{Value: s})
	}
	return out
}

// typed checks that v is of the type of f, and no more: that is what MCP asks of a
// default.
func (p *parser) typed(f *Field, v value) {
	switch f.Type {
	case Text, Choice:
		p.text(v)
	case Number, Integer:
		if d := p.number(v); d != nil && f.Type == Integer && !d.integer() {
			p.refuse(v, quote(string(v.raw)), "an integer")
		}
	case Boolean:
		if k := v.kind(); k != 't' && k != 'f' {
			p.refuse(v, v.kindName(), "a boolean")
		}
	case Choices:
		p.texts(v)
	}
}

// check holds an answer against f.
func (p *parser) check(f *Field, v value) {
	p.typed(f, v)
	if p.err != nil {
		return
	}
	switch f.Type {
	case Text:
		s := p.text(v)
		n := length(s)
		p.bounds(v, n, f.MinLength, f.MaxLength, "characters")
		if p.err == nil && !f.Format.Matches(s) {
			p.refuse(v, quote(s), "the format "+quote(string(f.Format)))
		}
	case Number, Integer:
		d := p.number(v)
		if f.low != nil && d.compare(*f.low) < 0 {
			p.refuse(v, quote(string(v.raw)), "at least "+string(f.Minimum))
		}
		if f.high != nil && d.compare(*f.high) > 0 {
			p.refuse(v, quote(string(v.raw)), "at most "+string(f.Maximum))
		}
	case Choice:
		p.option(f, v)
	case Choices:
		list := p.list(v)
		for _, item := range list {
			p.option(f, item)
		}
		p.bounds(v, int64(len(list)), f.MinItems, f.MaxItems, "items")
	}
}

func (p *parser) option(f *Field, v value) {
	s := p.text(v)
	if slices.ContainsFunc(f.Options, func(o Option) bool { return o.Value == s }) {
		return
	}
	names := make([]string, 0, 4)
	for _, o := range f.Options[:min(len(f.Options), 4)] {
		names = append(names, quote(o.Value))
	}
	p.refuse(v, quote(s), "one of the form's options, such as "+strings.Join(names, ", "))
}

func (p *parser) bounds(v value, n int64, low, high *int64, unit string) {
	if low != nil && n < *low {
		p.refuse(v, itoa(n)+" "+unit, "at least "+itoa(*low))
	}
	if high != nil && n > *high {
		p.refuse(v, itoa(n)+" "+unit, "at most "+itoa(*high))
	}
}
