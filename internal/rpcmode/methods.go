package rpcmode

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/strictjson"
)

const (
	// maxImages and maxImage bound the attachments of a prompt: how many, and the
	// bytes of each.
	maxImages = 20
	maxImage  = 5 << 20
)

// method is one row of the protocol.
type method struct {
	name string
	// take reads the fields and answers, or has a lane answer. It is called by the one
	// goroutine that reads requests, and waits for nothing.
	take func(*server, *request) *control.Error
}

// methods is the table of all.
func methods() []method {
	return []method{
		{"start", (*server).takeStart}, {"prompt", (*server).takePrompt}, {"steer", (*server).takeSteer},
		{"interrupt", (*server).takeInterrupt}, {"approve", (*server).takeApprove}, {"deny", (*server).takeDeny},
		{"answer", (*server).takeAnswer}, {"fork", (*server).takeFork}, {"compact", (*server).takeCompact},
		{"set_model", (*server).takeSetModel}, {"set_mode", (*server).takeSetMode}, {"usage", (*server).takeUsage},
		{"providers", (*server).takeProviders}, {"tools", (*server).takeTools}, {"export", (*server).takeExport},
		{"tasks", (*server).takeTasks}, {"cancel_task", (*server).takeCancelTask}, {"quit", (*server).takeQuit},
	}
}

func methodNames(ms []method) []string {
	names := make([]string, len(ms))
	for i, m := range ms {
		names[i] = m.name
	}
	return names
}

type noParams struct{}

type startParams struct {
	Workspace string   `json:"workspace"`
	Mode      string   `json:"mode"`
	Model     string   `json:"model"`
	Allow     []string `json:"allow"`
	Ask       []string `json:"ask"`
	Deny      []string `json:"deny"`
	Resume    string   `json:"resume"`
	ForkAt    *int64   `json:"fork_at"`
	Approve   string   `json:"approve"`
	Deltas    bool     `json:"deltas"`
}

func (s *server) takeStart(r *request) *control.Error {
	p, fault := params[startParams](r)
	switch {
	case fault != nil:
		return fault
	case p.Approve != "" && p.Approve != "none" && p.Approve != "client":
		return usagef(`start: found %s, expected "none" or "client" (at /approve)`, quote(p.Approve))
	case p.ForkAt != nil && *p.ForkAt < 1:
		return usagef("start: found %d, expected the number of an event, from 1 (at /fork_at)", *p.ForkAt)
	case p.ForkAt != nil && p.Resume == "":
		return usagef("start: fork_at needs resume, the id of the session to fork (at /fork_at)")
	}
	return s.side(r, func(ctx context.Context) { s.start(ctx, r.id, p) })
}

// attachment is an image that comes with a prompt.
type attachment struct {
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

type promptParams struct {
	Prompt      *string     `json:"prompt"`
	Attachments []event.Raw `json:"attachments"`
}

func (s *server) takePrompt(r *request) *control.Error {
	p, fault := params[promptParams](r)
	if fault != nil {
		return fault
	}
	if p.Prompt == nil || strings.TrimSpace(*p.Prompt) == "" {
		return usagef("prompt: there is no text (at /prompt)")
	}
	images, fault := imagesOf(p.Attachments)
	if fault != nil {
		return fault
	}
	return s.run(r, func(ctx context.Context) { s.prompt(ctx, r.id, control.Prompt{Text: *p.Prompt, Images: images}) })
}

func imagesOf(list []event.Raw) ([]event.Image, *control.Error) {
	if len(list) > maxImages {
		return nil, usagef("prompt: %d attachments, the limit is %d (at /attachments)", len(list), maxImages)
	}
	types := []string{"image/png", "image/jpeg", "image/gif", "image/webp"}
	var images []event.Image
	for i, raw := range list {
		var a attachment
		err := strictjson.Unmarshal(raw, &a, strictjson.Options{RejectUnknown: true})
		if e := (*strictjson.Error)(nil); errors.As(err, &e) {
			return nil, usagef("prompt: %s, expected an object with media_type and data, an image as base64 (at /attachments/%d%s)", e.Msg, i, e.Pointer)
		}
		if !slices.Contains(types, a.MediaType) {
			return nil, usagef("prompt: found %s, expected one of %s (at /attachments/%d/media_type)", quote(a.MediaType), strings.Join(types, ", "), i)
		}
		b, err := base64.StdEncoding.Strict().DecodeString(a.Data)
		switch {
		case err != nil || strings.ContainsAny(a.Data, "\r\n"):
			return nil, usagef("prompt: this is no base64 (RFC 4648 §4, padded, without line breaks) (at /attachments/%d/data)", i)
		case len(b) == 0:
			return nil, usagef("prompt: the image is empty (at /attachments/%d/data)", i)
		case len(b) > maxImage:
			return nil, usagef("prompt: the image has %d bytes, the limit is %d (at /attachments/%d/data)", len(b), maxImage, i)
		}
		images = append(images, event.Image{MediaType: a.MediaType, Data: a.Data})
	}
	return images, nil
}

func (s *server) takeSteer(r *request) *control.Error {
	p, fault := params[struct {
		Prompt string `json:"prompt"`
	}](r)
	if fault != nil {
		return fault
	}
	if strings.TrimSpace(p.Prompt) == "" {
		return usagef("steer: there is no text (at /prompt)")
	}
	return s.onSession(r, func(_ context.Context, session control.Session) []byte {
		running, err := session.Steer(p.Prompt)
		if err != nil {
			return encodeError(r.id, asError(err))
		}
		if running {
			return encode("steered", r.id, nil)
		}
		return encode("queued", r.id, nil)
	})
}

// interruptedBody says whether there was something to interrupt.
type interruptedBody struct {
	Running bool `json:"running"`
}

func (s *server) takeInterrupt(r *request) *control.Error {
	if _, fault := params[noParams](r); fault != nil {
		return fault
	}
	running := s.runs.interrupt(&control.Interrupted{Reason: "user_interrupt"})
	s.out.atOnce(encode("interrupted", r.id, interruptedBody{running}))
	return nil
}

type decisionParams struct {
	Request string `json:"request"`
	Hash    string `json:"hash"`
	Scope   string `json:"scope"`
	Comment string `json:"comment"`
}

func (s *server) takeApprove(r *request) *control.Error { return s.decide(r, true) }

func (s *server) takeDeny(r *request) *control.Error { return s.decide(r, false) }

func (s *server) decide(r *request, allow bool) *control.Error {
	p, fault := params[decisionParams](r)
	switch {
	case fault != nil:
		return fault
	case p.Request == "":
		return usagef("%s: there is no request, expected the one of an approval.requested event (at /request)", r.method)
	case p.Hash == "":
		return usagef("%s: there is no hash, expected the one of the approval.requested event (at /hash)", r.method)
	case p.Scope != "" && p.Scope != event.ScopeOnce && p.Scope != event.ScopeSession:
		return usagef("%s: found %s, expected %q or %q (at /scope)", r.method, quote(p.Scope), event.ScopeOnce, event.ScopeSession)
	}
	if p.Scope == "" {
		p.Scope = event.ScopeOnce
	}
	fault = s.desk.decide(p.Request, control.Decision{Hash: p.Hash, Allow: allow, Scope: p.Scope, By: clientName, Reason: p.Comment})
	return s.settle(r, fault)
}

type answerParams struct {
	Request string    `json:"request"`
	Text    *string   `json:"text"`
	Content event.Raw `json:"content"`
	Decline bool      `json:"decline"`
}

func (s *server) takeAnswer(r *request) *control.Error {
	p, fault := params[answerParams](r)
	if fault != nil {
		return fault
	}
	given := 0
	for _, is := range []bool{p.Text != nil, p.Content != nil, p.Decline} {
		if is {
			given++
		}
	}
	switch {
	case p.Request == "":
		return usagef("answer: there is no request, expected the one of a question.requested event (at /request)")
	case given != 1:
		return usagef("answer: expected exactly one of text, content and decline: true")
	case p.Content != nil && p.Content.Kind() != '{':
		return usagef("answer: expected an object (at /content)")
	}
	reply := control.Reply{Declined: p.Decline}
	if p.Text != nil {
		reply.Text = *p.Text
	}
	if p.Content != nil {
		reply.Text = string(bytes.Clone(p.Content))
	}
	return s.settle(r, s.desk.reply(p.Request, reply, p.Content != nil))
}

// settle answers a request that answers a question.
func (s *server) settle(r *request, fault *control.Error) *control.Error {
	if fault == nil {
		s.out.atOnce(encode("settled", r.id, nil))
	}
	return fault
}

func (s *server) takeQuit(r *request) *control.Error {
	if _, fault := params[noParams](r); fault != nil {
		return fault
	}
	s.end(ending{quit: true, id: r.id})
	return nil
}
