package hooklog

import (
	"strconv"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// line writes an entry as encoding by its tags would, in a fraction of the time and
// without what a process of one call would have to learn of its types first.
type line struct {
	buf []byte
	// odd tells that there is a text or a value that can't be written as it is: then the
	// general way has the error, or makes it canonical.
	odd bool
}

// canonicalText returns e as canonical JSON, or nil where that takes the general way.
func (e *Entry) canonicalText() []byte {
	l := &line{buf: make([]byte, 0, 1024+len(e.Event)+len(e.Reason)+len(e.Problem))}
	l.buf = append(l.buf, '{')
	if len(e.Answers) > 0 {
		l.name("answers")
		l.answers(e.Answers)
	}
	l.optional("applied", e.Applied)
	l.optional("call", e.Call)
	l.flag("callSynthesized", e.CallSynthesized)
	l.optional("code", e.Code)
	if c := e.Continues; c != nil {
		l.name("continues")
		l.buf = append(l.buf, '{')
		l.text("hash", c.Hash)
		l.number("seq", c.Seq)
		l.end('}')
	}
	l.count("cut", e.Cut)
	l.optional("decision", string(e.Decision))
	l.flag("duplicate", e.Duplicate)
	l.event(e.Event)
	l.text("hash", e.Hash)
	l.rest(e)
	l.buf[len(l.buf)-1] = '}' // in the place of the last comma
	if l.odd {
		return nil
	}
	return l.buf
}

// rest writes the members behind the hash.
func (l *line) rest(e *Entry) {
	l.optional("host", e.Host)
	l.optional("hostVersion", e.HostVersion)
	l.optional("id", e.ID)
	l.count("milliseconds", e.Milliseconds)
	l.optional("mode", e.Mode)
	l.optional("native", e.Native)
	l.optional("omitted", e.Omitted)
	l.text("prev", e.Prev)
	l.optional("problem", e.Problem)
	l.optional("reason", e.Reason)
	if len(e.Registration) > 0 {
		l.name("registration")
		l.buf = append(l.buf, '[')
		for _, s := range e.Registration {
			l.buf = append(l.buf, '{')
			l.text("path", s.Path)
			l.text("sha256", s.SHA256)
			l.end('}')
		}
		l.end(']')
	}
	l.count("repeat", int64(e.Repeat))
	l.number("seq", e.Seq)
	l.optional("session", e.Session)
	l.text("time", e.Time)
	l.optional("tool", e.Tool)
	l.optional("turn", e.Turn)
	l.optional("type", string(e.Type))
	if len(e.Untrusted) > 0 {
		l.name("untrusted")
		l.buf = append(l.buf, '[')
		for _, s := range e.Untrusted {
			l.value(s)
			l.buf = append(l.buf, ',')
		}
		l.end(']')
	}
}

func (l *line) answers(list []Answer) {
	l.buf = append(l.buf, '[')
	for i := range list {
		a := &list[i]
		l.buf = append(l.buf, '{')
		l.text("backend", a.Backend)
		if len(a.Effects) > 0 {
			l.name("effects")
			l.buf = append(l.buf, '[')
			for _, raw := range a.Effects {
				l.raw(raw)
			}
			l.end(']')
		}
		if f := a.Failure; f != nil {
			l.name("failure")
			l.buf = append(l.buf, '{')
			l.text("class", f.Class)
			l.optional("detail", f.Detail)
			l.end('}')
		}
		l.text("kind", string(a.Kind))
		l.number("milliseconds", a.Milliseconds)
		l.optional("policy", a.Policy)
		l.number("subscription", int64(a.Subscription))
		l.end('}')
	}
	l.end(']')
}

// end puts a bracket in the place of the comma behind the last member, and a comma
// behind it.
func (l *line) end(bracket byte) {
	l.buf[len(l.buf)-1] = bracket
	l.buf = append(l.buf, ',')
}

func (l *line) name(name string) {
	l.buf = append(l.buf, '"')
	l.buf = append(l.buf, name...)
	l.buf = append(l.buf, `":`...)
}

func (l *line) value(s string) {
	var whole bool
	l.buf, whole = strictjson.AppendString(l.buf, s)
	l.odd = l.odd || !whole
}

func (l *line) text(name, value string) {
	l.name(name)
	l.value(value)
	l.buf = append(l.buf, ',')
}

func (l *line) optional(name, value string) {
	if value != "" {
		l.text(name, value)
	}
}

func (l *line) number(name string, n int64) {
	l.name(name)
	l.buf = append(strconv.AppendInt(l.buf, n, 10), ',')
}

func (l *line) count(name string, n int64) {
	if n != 0 {
		l.number(name, n)
	}
}

func (l *line) flag(name string, is bool) {
	if is {
		l.name(name)
		l.buf = append(l.buf, "true,"...)
	}
}

// raw writes a value: one alone, whatever its text is, or nothing but a mark that it is
// none.
func (l *line) raw(raw ahp.Raw) {
	from := len(l.buf)
	if strictjson.IsCanonical(raw) {
		l.buf = append(l.buf, raw...)
	} else {
		text, err := strictjson.Canonical(raw)
		l.buf = append(l.buf, text...)
		l.odd = l.odd || err != nil || len(l.buf) == from
	}
	l.buf = append(l.buf, ',')
}

// event writes the event, unless that says nothing.
func (l *line) event(raw ahp.Raw) {
	if len(raw) == 0 {
		return
	}
	before := len(l.buf)
	l.name("event")
	from := len(l.buf)
	l.raw(raw)
	switch string(l.buf[from:]) {
	case `{},`, `[],`, `"",`, `null,`:
		l.buf = l.buf[:before]
	}
}
