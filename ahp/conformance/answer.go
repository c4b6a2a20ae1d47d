package conformance

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/proc"
	"github.com/abhed/abhed/internal/strictjson"
)

// answer is what came back for one message.
type answer struct {
	// raw is the answer; nil if none came, which only HTTP can tell.
	raw []byte
	// extra holds further answers and lines that are none.
	extra [][]byte
	// status and header are those of HTTP.
	status int
	header http.Header
	// exit is how the process of a per-event exchange ended; nil if it didn't.
	exit *proc.Exit
}

// shape is a JSON-RPC response as far as anything can be told of it.
type shape struct {
	JSONRPC *string `json:"jsonrpc"`
	ID      ahp.Raw `json:"id"`
	Result  ahp.Raw `json:"result"`
	Error   ahp.Raw `json:"error"`
	Method  *string `json:"method"`
}

// peek reads a line as a response, leniently; nil if it is no JSON object.
func peek(line []byte) *shape {
	s := new(shape)
	if err := strictjson.Unmarshal(line, s, strictjson.Options{MaxBytes: maxAnswer}); err != nil {
		return nil
	}
	return s
}

// answers reports whether a line of output is meant as a response.
func (s *shape) answers() bool {
	return s != nil && (s.JSONRPC != nil || s.Result != nil || s.Error != nil)
}

// idText is the id as canonical JSON, "" if there is none: an id may be spelt with
// other escapes than it was sent.
func (s *shape) idText() string {
	if s == nil || s.ID == nil {
		return ""
	}
	return canonical(s.ID)
}

func canonical(raw []byte) string {
	c, err := strictjson.Canonical(raw)
	if err != nil {
		return string(bytes.TrimSpace(raw))
	}
	return string(c)
}

// idText is the id of the message as canonical JSON.
func (m *message) idText() string { return canonical([]byte(m.id.String())) }

// refusal decodes an error response strictly and returns it with its id.
func (p *probe) refusal(a *answer) (*ahp.RPCError, ahp.Raw, error) {
	s := peek(a.raw)
	switch {
	case a.raw == nil:
		return nil, nil, p.failf("%s, expected a JSON-RPC error", a.nothing())
	case s == nil:
		return nil, nil, p.failf("the answer isn't one strict JSON object")
	case s.JSONRPC == nil || *s.JSONRPC != "2.0":
		return nil, nil, p.failf("the answer lacks \"jsonrpc\":\"2.0\"")
	case s.Result != nil:
		return nil, nil, p.failf("the answer is a result, expected an error")
	case s.Error == nil:
		return nil, nil, p.failf("the answer has neither result nor error, expected an error")
	case s.ID == nil:
		return nil, nil, p.failf("the error has no id, expected the request's, or null where it has none")
	}
	var rpc struct {
		Code    *int64  `json:"code"`
		Message *string `json:"message"`
		Data    ahp.Raw `json:"data"`
	}
	if err := strictjson.Unmarshal(s.Error, &rpc, strictjson.Options{}); err != nil || rpc.Code == nil || rpc.Message == nil {
		return nil, nil, p.failf("the error isn't an object with an integer code and a text message")
	}
	return &ahp.RPCError{Code: *rpc.Code, Message: *rpc.Message, Data: rpc.Data}, s.ID, nil
}

// nothing says that no message came back.
func (a *answer) nothing() string {
	if a.status != 0 {
		return fmt.Sprintf("status %d without a message", a.status)
	}
	return "no answer"
}

// wantError holds that the answer is an error with one of the codes and the id.
// The id may be null if null is true.
func (p *probe) wantError(a *answer, id ahp.ID, null bool, codes ...int64) error {
	rpc, got, err := p.refusal(a)
	if err != nil {
		return err
	}
	if text := string(bytes.TrimSpace(got)); !sameID(got, id) && !(null && text == "null") {
		return p.failf("the error's id is %s, expected %s", text, id)
	}
	if len(codes) > 0 && !slices.Contains(codes, rpc.Code) {
		return p.failf("the error's code is %d, expected %s", rpc.Code, oneOf(codes))
	}
	return nil
}

// wantRefused is wantError where HTTP may answer with status 400 instead of a
// message: what isn't a JSON-RPC request has none to reply to (§17).
func (p *probe) wantRefused(a *answer, id ahp.ID, codes ...int64) error {
	if a.raw == nil && a.status == http.StatusBadRequest {
		return nil
	}
	return p.wantError(a, id, true, codes...)
}

func oneOf(codes []int64) string {
	s := fmt.Sprint(codes[0])
	for _, c := range codes[1:] {
		s += fmt.Sprintf(" or %d", c)
	}
	return s
}

// sameID compares an id on the wire with id.
func sameID(raw ahp.Raw, id ahp.ID) bool { return raw.Equal(ahp.Raw(id.String())) }

// wantEffects holds that the answer is a valid response to the request m: its id,
// its shape, and nothing that m doesn't advertise.
func (p *probe) wantEffects(a *answer, m *message) ([]ahp.Effect, error) {
	q := m.intercept()
	if q == nil {
		return nil, fmt.Errorf("the suite asked for effects with a message that is no valid request")
	}
	if a.raw == nil {
		return nil, p.failf("%s, expected a response", a.nothing())
	}
	o, err := harness.Evaluate(q, a.raw)
	var rpc *ahp.RPCError
	switch {
	case p.observer && errors.As(err, &rpc):
		return nil, p.wantError(a, m.id, false, ahp.CodeUnsupportedEvent)
	case errors.As(err, &rpc):
		return nil, p.failf("the answer is error %d (%s), expected a result", rpc.Code, rpc.Message)
	case err != nil:
		return nil, p.failf("the answer breaks the protocol: %v", err)
	}
	effects := o.Trace[0].Effects
	if e := q.Event.Elicitation; e != nil {
		for _, effect := range effects {
			if effect.EffectType() != ahp.EffectMessage && !granted(q, e.Mode) {
				return nil, p.failf("effect %s, though the request grants no answer in mode %s", effect.EffectType(), e.Mode)
			}
		}
	}
	return effects, nil
}

// granted reports whether an elicitation of the mode may be answered (§10).
func granted(q *ahp.Intercept, mode string) bool {
	c := q.Capabilities.Elicitation
	return c != nil && (mode == "form" && c.Form != nil || mode == "url" && c.URL != nil)
}

// unsupported reports whether the answer is the error of an event type that the
// peer doesn't take.
func unsupported(a *answer) bool {
	s := peek(a.raw)
	if s == nil || s.Error == nil {
		return false
	}
	var rpc struct {
		Code int64 `json:"code"`
	}
	return strictjson.Unmarshal(s.Error, &rpc, strictjson.Options{}) == nil && rpc.Code == ahp.CodeUnsupportedEvent
}
