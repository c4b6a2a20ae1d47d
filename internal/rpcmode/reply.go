package rpcmode

import (
	"strings"

	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/strictjson"
)

// protocol is the version of what is spoken, sent with ready. It grows when a
// client of the version before would no longer understand what it gets.
const protocol = 1

// The codes that an error reply has beside those of control: what became of a
// prompt, sorted for programs. The reason tells them apart in full.
const (
	codeLimit       control.Code = "limit"       // a limit of the session was met
	codeRefused     control.Code = "refused"     // somebody refused to let the run go on
	codeInterrupted control.Code = "interrupted" // a person ended the run
)

// errorBody is an error reply.
type errorBody struct {
	Code  control.Code `json:"code"`
	Error string       `json:"error"`
}

// answerBody is the reply to a prompt that the model answered.
type answerBody struct {
	Answer  string      `json:"answer"`
	Reason  string      `json:"reason"`
	Usage   event.Usage `json:"usage"`
	CostUSD *float64    `json:"cost_usd"`
	Turns   int         `json:"turns"`
}

// failureBody is the reply to a prompt that ended otherwise. Answer is what the
// model had said when it ended, if anything; it is no answer to the prompt.
type failureBody struct {
	errorBody
	Answer  string      `json:"answer,omitempty"`
	Reason  string      `json:"reason"`
	Usage   event.Usage `json:"usage"`
	CostUSD *float64    `json:"cost_usd"`
	Turns   int         `json:"turns"`
}

// readyBody describes the session.
type readyBody struct {
	control.Info
	Protocol  int                `json:"protocol"`
	Compacted *control.Compacted `json:"compacted,omitzero"`
}

// encode returns a line with its line feed. body is nil or encodes as an object.
func encode(typ string, id event.Raw, body any) []byte {
	text := []byte("{}")
	if body != nil {
		var err error
		if text, err = strictjson.Marshal(body); err != nil {
			typ = "error"
			text, _ = strictjson.Marshal(errorBody{control.CodeFailed, strings.ToValidUTF8("the reply can't be written: "+err.Error(), "\uFFFD")})
		}
	}
	b := make([]byte, 0, len(typ)+len(id)+len(text)+32)
	b = append(b, `{"type":"`...)
	b = append(append(b, typ...), '"')
	if id != nil {
		b = append(append(b, `,"id":`...), id...)
	}
	if len(text) > len("{}") {
		b = append(b, ',')
	}
	return append(append(b, text[1:]...), '\n')
}

// encodeError returns an error line.
func encodeError(id event.Raw, err *control.Error) []byte {
	return encode("error", id, errorBody{err.Code, strings.ToValidUTF8(err.Msg, "\uFFFD")})
}

// encodeAnswer returns the reply to a prompt: an answer only if the model gave one.
func encodeAnswer(id event.Raw, a control.Answer) []byte {
	if a.Err != nil {
		return encodeError(id, a.Err)
	}
	text := strings.ToValidUTF8(a.Text, "\uFFFD")
	if a.Completed {
		return encode("answer", id, answerBody{Answer: text, Reason: a.Reason, Usage: a.Usage, CostUSD: a.CostUSD, Turns: a.Turns})
	}
	detail := strings.ToValidUTF8(a.Detail, "\uFFFD")
	if detail == "" {
		detail = "the prompt was not answered: " + a.Reason
	}
	return encode("error", id, failureBody{
		errorBody: errorBody{codeOf(a.Reason), detail},
		Answer:    text, Reason: a.Reason, Usage: a.Usage, CostUSD: a.CostUSD, Turns: a.Turns,
	})
}

// codeOf sorts the reasons with which a prompt can end unanswered.
func codeOf(reason string) control.Code {
	switch reason {
	case "max_turns", "max_tokens", "max_cost", "max_time":
		return codeLimit
	case "denied_loop", "prompt_refused", "stopped":
		return codeRefused
	case "user_interrupt":
		return codeInterrupted
	case "shutdown":
		return control.CodeClosed
	}
	return control.CodeFailed
}

// encodeEvent returns the line of an event: the record's own object, whole. Only
// where that is larger than a line of the record may be, long texts are left out, as
// the record itself keeps them apart.
func encodeEvent(e event.Event) []byte {
	const before, blobOver = `{"type":"event","event":`, 64 << 10
	text, err := event.Encode(e)
	if err != nil {
		apart := event.Encoder{BlobOver: blobOver}
		var l event.Line
		if l, err = apart.Append(nil, &e); err != nil {
			return encodeError(nil, &control.Error{Code: control.CodeFailed, Msg: "an event can't be written: " + err.Error()})
		}
		text = l.Bytes
	}
	b := make([]byte, 0, len(before)+len(text)+len("}\n"))
	return append(append(append(b, before...), text...), "}\n"...)
}

// deltaBody is a piece of text that arrived.
type deltaBody struct {
	Kind    string `json:"kind"`
	AgentID string `json:"agent_id,omitempty"`
	CallID  string `json:"call_id,omitempty"`
	Text    string `json:"text"`
}

func encodeDelta(d control.Delta) []byte {
	return encode("delta", nil, deltaBody{Kind: d.Kind, AgentID: d.AgentID, CallID: d.CallID, Text: strings.ToValidUTF8(d.Text, "\uFFFD")})
}

// clean returns i with every text that came from the machine fit to be written.
func clean(i control.Info) control.Info {
	fit := func(s *string) { *s = strings.ToValidUTF8(*s, "\uFFFD") }
	fitAll := func(list []string) []string {
		out := make([]string, len(list))
		for n, s := range list {
			out[n] = strings.ToValidUTF8(s, "\uFFFD")
		}
		return out
	}
	for _, s := range []*string{&i.Record, &i.Workspace, &i.Trust, &i.Sandbox} {
		fit(s)
	}
	i.Memory, i.NotProtected = fitAll(i.Memory), fitAll(i.NotProtected)
	i.Extensions = append([]control.Extension{}, i.Extensions...)
	for n := range i.Extensions {
		fit(&i.Extensions[n].LastError)
	}
	i.Servers = append([]control.Server{}, i.Servers...)
	for n := range i.Servers {
		fit(&i.Servers[n].Error)
	}
	return i
}
