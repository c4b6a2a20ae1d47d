package responses

import (
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/httpapi"
	"github.com/abhed/abhed/internal/strictjson"
)

const maxModelName = 256 // bytes; a longer name of the answering model is not kept

// reply assembles one reply from its events.
type reply struct {
	httpapi.Notes
	c       *Client
	ans     *httpapi.Answer
	onDelta func(model.Delta)

	items  itemSet
	text   strings.Builder // of all messages
	events int
	finish model.Finish // "" while the response goes on
	over   bool         // nothing is waited for after finish
	usage  *model.Usage
	model  string
}

var _ httpapi.Assembler = (*reply)(nil)

func newReply(c *Client, ans *httpapi.Answer, onDelta func(model.Delta)) *reply {
	if onDelta == nil {
		onDelta = func(model.Delta) {}
	}
	r := &reply{c: c, ans: ans, onDelta: onDelta}
	r.items.note = r.Note
	return r
}

// State says how far the reply has come.
func (r *reply) State() httpapi.State {
	switch {
	case r.finish == "":
		return httpapi.Open
	case r.over || r.usage != nil:
		return httpapi.Done
	default:
		return httpapi.Ended
	}
}

// Partial returns the text so far.
func (r *reply) Partial() string { return r.text.String() }

// Position says how far the reply got.
func (r *reply) Position() string {
	return fmt.Sprintf("after %d events (%d bytes of text, %d tool calls begun)", r.events, r.text.Len(), r.items.calls())
}

// Whole takes a response that is one JSON body.
func (r *reply) Whole(data []byte) error {
	data, lone, marked := httpapi.RepairHalves(data)
	if lone > 0 && !marked {
		r.Note("half characters were replaced by U+FFFD")
	}
	var ev wireEvent
	if err := strictjson.Unmarshal(data, &ev, strictjson.Options{}); err != nil {
		return err
	}
	if !httpapi.Absent(ev.Error) {
		return r.c.api.FrameError(data)
	}
	return r.end("", data, marked)
}

func (r *reply) setModel(v jsontext.Value, marked bool) {
	if s := httpapi.Scalar(v); s != "" && len(s) <= maxModelName {
		r.model = httpapi.Unmark(s, marked)
	}
}

// end takes the response as a whole, which says how it ended.
func (r *reply) end(kind string, data jsontext.Value, marked bool) error {
	var resp wireResponse
	if !httpapi.Absent(data) {
		if err := strictjson.Unmarshal(data, &resp, strictjson.Options{}); err != nil {
			return err
		}
	}
	status := httpapi.Scalar(resp.Status)
	if status == "" || kind == "failed" || kind == "incomplete" {
		status = kind
	}
	if status == "failed" || status == "cancelled" || !httpapi.Absent(resp.Error) {
		if httpapi.Absent(resp.Error) {
			return r.fail(model.ErrServer, "the endpoint gave up on the response (status %q)", status)
		}
		return r.c.api.FrameError(data)
	}
	if status != "completed" && status != "incomplete" {
		return fmt.Errorf("a response that ended has the status %q; expected completed, incomplete or failed", status)
	}
	if resp.Output != nil {
		if err := r.output(*resp.Output, marked); err != nil {
			return err
		}
	}
	r.setModel(resp.Model, marked)
	r.setUsage(resp.Usage)
	r.finish = model.FinishStop
	if status == "incomplete" {
		reason := ""
		if resp.IncompleteDetails != nil {
			reason = httpapi.Scalar(resp.IncompleteDetails.Reason)
		}
		r.finish = r.cutBy(reason)
	}
	return nil
}

func (r *reply) setUsage(v jsontext.Value) {
	if httpapi.Absent(v) {
		return
	}
	u, note := usage(v)
	if note != "" {
		r.Note(note)
	}
	r.usage = u
}

// tail takes what comes after a response that ended without a usage: imitators say it
// at a second end. Nothing else counts any more.
func (r *reply) tail(kind string, data jsontext.Value) {
	var resp wireResponse
	switch kind {
	case "response.completed", "response.incomplete", "response.done":
		r.over = true
		if strictjson.Unmarshal(data, &resp, strictjson.Options{}) == nil {
			r.setUsage(resp.Usage)
		}
	}
}

// cutBy says why a response is incomplete.
func (r *reply) cutBy(reason string) model.Finish {
	switch reason {
	case "content_filter":
		return model.FinishFiltered
	case "max_output_tokens", "max_tokens", "length":
	default:
		r.Note("the response is incomplete for an unknown reason, " + r.c.api.Quoted([]byte(reason)) + ", taken as the output limit")
	}
	return model.FinishLength
}

// output takes the items of the whole response: those that were streamed are known,
// others are new.
func (r *reply) output(items []wireItem, marked bool) error {
	for i := range items {
		w := &items[i]
		it, err := r.items.forItem(w, "")
		if err != nil {
			return err
		}
		if it != nil {
			r.settle(it, w, marked, true)
		}
	}
	return nil
}

func (r *reply) fail(kind model.ErrorKind, format string, args ...any) *model.Error {
	e := r.c.api.Fail(kind, nil, format, args...)
	e.Partial = r.Partial()
	return e
}

// response makes the result of a complete reply.
func (r *reply) response() (*model.Response, error) {
	m := &model.Message{Role: "assistant", Parts: []model.Part{}}
	withheld, replaced := []string{}, 0
	seen := map[string]bool{}
	for _, it := range r.items.list {
		r.emit(it, it.join.Flush())
		replaced += it.join.Replaced
		switch it.kind {
		case kindReasoning:
			m.Parts = r.appendReasoning(m.Parts, it)
		case kindMessage:
			if s := it.text.String(); s != "" {
				m.Parts = append(m.Parts, model.Part{Text: &s})
			}
		case kindCall:
			if r.finish != model.FinishStop {
				withheld = append(withheld, httpapi.QuoteBytes([]byte(it.name), 80))
				continue
			}
			call, err := r.call(it, seen)
			if err != nil {
				return nil, err
			}
			m.Parts = append(m.Parts, model.Part{ToolCall: call})
		}
	}
	if len(withheld) > 0 {
		r.Note(fmt.Sprintf("%d tool calls were withheld because the reply was not complete: %s", len(withheld), strings.Join(withheld, ", ")))
	}
	if replaced > 0 {
		r.Note(fmt.Sprintf("%d half characters were replaced by U+FFFD", replaced))
	}
	if len(r.items.list) == 0 && r.finish == model.FinishStop {
		return nil, r.fail(model.ErrMalformed, "the response is completed but holds neither text nor a call")
	}
	finish := r.finish
	if len(m.ToolCalls()) > 0 {
		finish = model.FinishToolCalls
	}
	return &model.Response{Message: m, Finish: finish, Usage: r.usage, Model: r.model, Note: r.Notes.String()}, nil
}

func (r *reply) appendReasoning(parts []model.Part, it *item) []model.Part {
	var p model.Part
	if s := it.text.String(); s != "" {
		p.Reasoning = &s
	}
	if it.encrypted != "" {
		p.Seal = &model.Seal{Origin: r.c.enc.seals.Origin, Kind: "reasoning", ID: it.id, Data: it.encrypted}
	}
	if p == (model.Part{}) {
		return parts
	}
	return append(parts, p)
}

// call returns a call as it is to be judged, with an id that is unique in the reply
// and the history.
func (r *reply) call(it *item, seen map[string]bool) (*model.ToolCall, error) {
	args := it.text.String()
	switch {
	case it.name == "":
		return nil, r.fail(model.ErrMalformed, "a tool call came without a name (id %s, arguments %s); the reply can't be used", r.c.api.Quoted([]byte(it.callID)), r.c.api.Quoted([]byte(args)))
	case it.incomplete:
		return nil, r.fail(model.ErrMalformed, "the response is completed but its call of %s is not; none of its calls is delivered", r.c.api.Quoted([]byte(it.name)))
	case strings.TrimSpace(args) == "":
		args = "{}" // how many servers write a call without arguments
	}
	id := it.callID
	if id == "" || seen[id] || r.c.enc.history.Used(id) {
		if id != "" {
			r.Note(fmt.Sprintf("the call id %s was used before and got a new one", httpapi.QuoteBytes([]byte(id), 80)))
		}
		id = "call_" + rand.Text()
	}
	seen[id] = true
	return &model.ToolCall{ID: id, Name: it.name, Args: args}, nil
}

// usage translates a usage member. input_tokens includes what came from the cache,
// while model.Usage counts each token once. It returns nil and a note if the member
// can't be understood.
func usage(v jsontext.Value) (*model.Usage, string) {
	var w struct {
		Input        jsontext.Value `json:"input_tokens"`
		Output       jsontext.Value `json:"output_tokens"`
		InputDetails *struct {
			Cached jsontext.Value `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		OutputDetails *struct {
			Reasoning jsontext.Value `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	}
	if err := strictjson.Unmarshal(v, &w, strictjson.Options{}); err != nil {
		return nil, "the usage member could not be understood (" + err.Error() + ")"
	}
	u := &model.Usage{Input: httpapi.Count(w.Input), Output: httpapi.Count(w.Output)}
	if w.InputDetails != nil {
		u.CacheRead = httpapi.Count(w.InputDetails.Cached)
	}
	if w.OutputDetails != nil {
		u.Reasoning = httpapi.Count(w.OutputDetails.Reasoning)
	}
	if *u == (model.Usage{}) {
		return nil, ""
	}
	return u, httpapi.WithoutCached(u)
}
