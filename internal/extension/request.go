package extension

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/tool"
)

// request is one event to ask about. It is encoded once for all extensions; only
// the sequence number differs. Members are added in the order of the table in
// spec/extensions.md.
type request struct {
	event string
	head  []byte // up to the value of seq
	tail  []byte // after it
}

func newRequest(event, sessionID string) *request {
	r := &request{event: event}
	r.head = append(r.head, `{"event":`...)
	r.head = appendString(r.head, event)
	r.head = append(r.head, `,"session_id":`...)
	r.head = appendString(r.head, sessionID)
	r.head = append(r.head, `,"seq":`...)
	return r
}

// line returns the request as it goes over the wire, LF included.
func (r *request) line(seq int64) []byte {
	out := make([]byte, 0, len(r.head)+len(r.tail)+24)
	out = append(out, r.head...)
	out = strconv.AppendInt(out, seq, 10)
	out = append(out, r.tail...)
	return append(out, '}', '\n')
}

func (r *request) name(name string) {
	r.tail = append(r.tail, ',', '"')
	r.tail = append(r.tail, name...)
	r.tail = append(r.tail, '"', ':')
}

func (r *request) str(name, value string) {
	r.name(name)
	r.tail = appendString(r.tail, value)
}

func (r *request) num(name string, value int) {
	r.name(name)
	r.tail = strconv.AppendInt(r.tail, int64(value), 10)
}

func (r *request) flag(name string, value bool) {
	r.name(name)
	r.tail = strconv.AppendBool(r.tail, value)
}

// object adds a foreign JSON value, made canonical, so that it holds no line end,
// and with the names hidden that a script could take for the event's.
func (r *request) object(name string, value []byte) error {
	canon, err := strictjson.Canonical(value)
	if err != nil {
		return fmt.Errorf("%s of a %s request: %w", name, r.event, err)
	}
	r.name(name)
	r.tail = append(r.tail, hideEvents(canon)...)
	return nil
}

// call adds the members that say whose call it is.
func (r *request) call(c policy.Call) {
	if c.ID != "" {
		r.str("call_id", c.ID)
	}
	r.at(At{Turn: c.Turn, Agent: c.Agent})
}

// at adds the members that say where in the session it happens.
func (r *request) at(at At) {
	if at.Turn > 0 {
		r.num("turn", at.Turn)
	}
	if at.Agent.ID != "" {
		r.name("agent")
		r.tail = append(r.tail, `{"id":`...)
		r.tail = appendString(r.tail, at.Agent.ID)
		r.tail = append(r.tail, `,"depth":`...)
		r.tail = strconv.AppendInt(r.tail, int64(at.Agent.Depth), 10)
		r.tail = append(r.tail, '}')
	}
}

// subject adds the tool and its arguments.
func (r *request) subject(c policy.Call) error {
	r.str("tool", c.Tool)
	return r.object("args", c.Args)
}

func appendString(dst []byte, s string) []byte {
	// Clean makes s valid UTF-8, so quoting can't fail.
	dst, _ = jsontext.AppendQuote(dst, tool.Clean(s))
	return dst
}

var (
	nameEnd   = []byte(`event":`)
	hiddenEnd = []byte(`\u0065vent"`)
)

// hideEvents returns compact JSON in which the last "event" of every member name
// that ends so is written \u0065vent.
func hideEvents(p []byte) []byte {
	if !bytes.Contains(p, nameEnd) {
		return p
	}
	out := make([]byte, 0, len(p)+64)
	for i := 0; i < len(p); {
		if p[i] != '"' {
			out = append(out, p[i])
			i++
			continue
		}
		end, plain := stringEnd(p, i)
		start := end - len(`event"`)
		// The last five characters must be written as themselves: in "\u000event" the
		// first of them belongs to an escape, and the name doesn't end in "event".
		if bytes.HasPrefix(p[max(start, 0):], nameEnd) && start >= plain {
			out = append(append(out, p[i:start]...), hiddenEnd...)
		} else {
			out = append(out, p[i:end]...)
		}
		i = end
	}
	return out
}

// stringEnd returns the index after the string that starts at p[i], and the index
// after its last escape.
func stringEnd(p []byte, i int) (end, plain int) {
	plain = i + 1
	for i++; i < len(p) && p[i] != '"'; i++ {
		if p[i] != '\\' {
			continue
		}
		i++
		if i < len(p) && p[i] == 'u' {
			i += 4
		}
		plain = i + 1
	}
	return min(i+1, len(p)), plain
}
