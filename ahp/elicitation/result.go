package elicitation

import (
	"slices"
	"strconv"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// Result is an ElicitResult.
type Result struct {
	Action Action
	// Content is the answer object of an accepted form, or nil. Each member is a
	// string, a number, a boolean or a list of strings.
	Content ahp.Raw
	// Meta is the object _meta, or nil.
	Meta ahp.Raw
}

// ParseResult reads the text of a user.elicitation.result: a complete ElicitResult.
// q is the request that it answers: content is there for an accepted form only, and
// satisfies the form where q has one. A nil q is a request of which nothing is
// known, its mode included: then only the shape is checked. Members of an answer
// that the form doesn't have are accepted, as JSON Schema has it, and so are
// members that MCP doesn't name beside action, content and _meta. The error is an
// *ahp.Error of KindSyntax or KindShape that points into text.
func ParseResult(text []byte, q *Request) (*Result, error) {
	p := &parser{}
	o := p.object(p.open(text))
	r := &Result{
		Action: Action(p.oneOf(p.need(o, "action"), string(Accept), string(Decline), string(Cancel))),
		Meta:   p.meta(o.members["_meta"]),
	}
	content := o.members["content"]
	if content.there() {
		r.Content = content.copy()
		if r.Action != Accept || q != nil && q.Mode == ModeURL {
			p.refuse(content, "content", "none: only an accepted form has an answer")
		}
		p.answers(content)
	}
	if r.Action == Accept && q != nil && q.Form != nil {
		p.satisfies(q.Form, o.value, content)
	}
	if p.err != nil {
		return nil, p.err
	}
	return r, nil
}

// answers checks that an answer object holds what MCP lets it hold.
func (p *parser) answers(v value) object {
	o := p.object(v)
	for _, name := range o.names {
		switch m := o.members[name]; m.kind() {
		case '"', 't', 'f':
		case '0':
			p.number(m)
		case '[':
			p.texts(m)
		default:
			p.refuse(m, m.kindName(), "a string, a number, a boolean or a list of strings")
		}
	}
	return o
}

// satisfies holds an answer object against a form; absent content is an answer
// without members.
func (p *parser) satisfies(f *Form, result, content value) {
	o := object{value: result}
	if content.there() {
		o = p.object(content)
	}
	if p.err != nil {
		return
	}
	for _, name := range f.Required {
		if !o.members[name].there() {
			p.refuse(o.value, "no answer to "+quote(name), "one: the form requires it")
		}
	}
	for i := range f.Fields {
		if v := o.members[f.Fields[i].Name]; v.there() {
			p.check(&f.Fields[i], v)
		}
	}
}

// OfResult reads the result of a user.elicitation.result event and holds it against
// the envelope and the request q, as ParseResult does: mode and action are equal. A
// result without a body is nil. The error is an *ahp.Error; one in the text points
// into the text.
func OfResult(e *ahp.Event, q *Request) (*Result, error) {
	if e == nil || e.Type != ahp.UserElicitationResult || e.Elicitation == nil {
		return nil, envelope("/type", "another event", string(ahp.UserElicitationResult))
	}
	if q == nil {
		q = &Request{Mode: Mode(e.Elicitation.Mode)}
	} else if string(q.Mode) != e.Elicitation.Mode {
		return nil, envelope("/elicitation/mode", quote(e.Elicitation.Mode), quote(string(q.Mode))+", which is the request's")
	}
	text, err := textOf(e.Elicitation.Result, "/elicitation/result")
	if err != nil || text == nil {
		return nil, err
	}
	r, err := ParseResult([]byte(*text), q)
	if err != nil {
		return nil, err
	}
	if string(r.Action) != e.Elicitation.Action {
		return nil, envelope("/elicitation/action", quote(e.Elicitation.Action), quote(string(r.Action))+", which is the result's")
	}
	return r, nil
}

// Edit applies a modify of the answer object to the text of a result and returns
// the whole result, serialised again: replace takes value as the new answer, merge
// overwrites its members. Only an accepted form that has an answer can be edited
// (§8, §21), and the edited result must satisfy q as in ParseResult. The error is an
// *ahp.Error: of KindCapability where there is nothing to edit or value is no
// answer object, with a pointer into value; of KindApplication where the form
// doesn't allow the edited answer, with a pointer into the edited text.
func Edit(text []byte, op ahp.Operation, edit ahp.Raw, q *Request) ([]byte, error) {
	r, err := ParseResult(text, q)
	switch {
	case err != nil:
		return nil, err
	case r.Action != Accept, r.Content == nil:
		return nil, &ahp.Error{Kind: ahp.KindCapability, Offset: -1, Found: "an edit of " + quote(string(r.Action)) + " without an answer object",
			Expected: "an accepted form with one", Requirement: "AHP-EDIT-001"}
	}
	p := &parser{}
	p.answers(p.open(edit))
	if e, ok := p.err.(*ahp.Error); ok {
		e.Kind, e.Requirement = ahp.KindCapability, "AHP-EDIT-001"
		return nil, e
	}
	var whole, answer, patch map[string]ahp.Raw
	for _, in := range []struct {
		from []byte
		to   *map[string]ahp.Raw
	}{{text, &whole}, {r.Content, &answer}, {edit, &patch}} {
		if err := strictjson.Unmarshal(in.from, in.to, strictjson.Options{}); err != nil {
			return nil, err // a bug: all three have been read before
		}
	}
	if op == ahp.OpReplace {
		answer = patch
	} else {
		for name, v := range patch {
			answer[name] = v
		}
	}
	if whole["content"], err = strictjson.Marshal(answer); err != nil {
		return nil, err
	}
	out, err := strictjson.Marshal(whole)
	if err != nil {
		return nil, err
	}
	if _, err := ParseResult(out, q); err != nil {
		if e, ok := err.(*ahp.Error); ok {
			e.Kind, e.Requirement = ahp.KindApplication, "AHP-EDIT-001"
		}
		return nil, err
	}
	return slices.Clip(out), nil
}
