package rpcmode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
)

// fakeEngine is an engine whose sessions do what a prompt's first word says.
type fakeEngine struct {
	mu       sync.Mutex
	starts   []control.Start
	sessions []*fakeSession
	// refuse fails the next start.
	refuse error
	// hold, if not nil, is waited for by each start.
	hold chan struct{}
}

func (f *fakeEngine) Start(ctx context.Context, o control.Start) (control.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hold != nil {
		select {
		case <-f.hold:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if err := f.refuse; err != nil {
		f.refuse = nil
		return nil, err
	}
	f.starts = append(f.starts, o)
	s := &fakeSession{id: "s-" + strconv.Itoa(len(f.starts)), start: o, mode: "default", model: "fake/one", steers: make(chan string, 16)}
	if o.Mode != "" {
		s.mode = o.Mode
	}
	if o.Model != "" {
		s.model = o.Model
	}
	f.sessions = append(f.sessions, s)
	s.emit(&event.SessionStarted{Workspace: "/w", Mode: s.mode})
	return s, nil
}

func (f *fakeEngine) Providers(workspace string) ([]control.Provider, error) {
	return []control.Provider{{Name: "fake", API: "script", BaseURL: workspace}}, nil
}

func (f *fakeEngine) session(n int) *fakeSession {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sessions[n]
}

type fakeSession struct {
	id          string
	start       control.Start
	mode, model string
	steers      chan string

	ended atomic.Bool // the context of the last prompt has ended

	mu      sync.Mutex
	seq     int64
	record  []event.Event
	closed  bool
	running bool
	prompts []control.Prompt
	waiting string // steered while nothing ran
}

// emit records an event and tells the sink, one at a time, as the seam says.
func (s *fakeSession) emit(p event.Payload) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	e := event.Event{
		ID: fmt.Sprintf("%s-%d", s.id, s.seq), SessionID: s.id, Seq: s.seq, Time: time.Unix(1_700_000_000, 0), Actor: event.ActorSystem, Trust: event.TrustHarness,
		Payload: p, Hash: strings.Repeat("a", 64),
	}
	s.record = append(s.record, e)
	s.start.Sink.Event(e)
}

func (s *fakeSession) events() []event.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record
}

func (s *fakeSession) Info() control.Info {
	return control.Info{
		SessionID: s.id, Record: "/state/" + s.id + "\xff.jsonl", Workspace: "/w", Model: s.model, Mode: s.mode, Tools: []string{"bash", "read"}, Trust: "untrusted", Sandbox: "process",
	}
}

func (s *fakeSession) Prompt(ctx context.Context, p control.Prompt) control.Answer {
	s.mu.Lock()
	if s.running {
		s.mu.Unlock()
		return control.Answer{Err: &control.Error{Code: control.CodeBusy, Msg: "another prompt runs"}}
	}
	s.running = true
	s.prompts = append(s.prompts, p)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.running = false
		s.mu.Unlock()
	}()
	stop := context.AfterFunc(ctx, func() { s.ended.Store(true) })
	defer stop()
	s.emit(&event.UserMessage{Text: p.Text})
	a := s.play(ctx, p.Text)
	s.emit(&event.SessionEnded{Reason: a.Reason, Detail: a.Detail})
	return a
}

// play does what the prompt's first word says.
func (s *fakeSession) play(ctx context.Context, text string) control.Answer {
	verb, rest, _ := strings.Cut(text, " ")
	switch verb {
	case "say":
		s.start.Sink.Delta(control.Delta{Kind: "text", Text: rest})
		return said(rest)
	case "events":
		return s.playEvents(rest)
	case "hang":
		s.emit(&event.Notice{Level: "info", Text: "hanging"})
		<-ctx.Done()
		return ended(ctx)
	case "steer":
		s.emit(&event.Notice{Level: "info", Text: "steerable"})
		select {
		case t := <-s.steers:
			return said(t)
		case <-ctx.Done():
			return ended(ctx)
		}
	case "approve":
		return s.playApproval(ctx, rest)
	case "ask":
		return s.playQuestion(ctx, rest)
	case "fail":
		return control.Answer{Text: rest, Reason: "error", Detail: "the provider answered 401 Unauthorized", Turns: 1}
	case "limit":
		return control.Answer{Reason: "max_turns", Turns: 7}
	case "refused":
		return control.Answer{Err: &control.Error{Code: control.CodeFailed, Msg: "the record can't be written"}}
	case "panic":
		panic("a bug of the fake")
	}
	return control.Answer{Reason: "error", Detail: "the fake doesn't know " + verb}
}

func said(text string) control.Answer {
	one := int64(1)
	return control.Answer{Text: text, Reason: "completed", Completed: true, Turns: 1, Usage: event.Usage{Input: &one}}
}

func ended(ctx context.Context) control.Answer {
	reason := "error"
	if i := (*control.Interrupted)(nil); errors.As(context.Cause(ctx), &i) {
		reason = i.Reason
	}
	return control.Answer{Reason: reason}
}

func (s *fakeSession) playEvents(rest string) control.Answer {
	count, size, _ := strings.Cut(rest, " ")
	n, _ := strconv.Atoi(count)
	bytes, _ := strconv.Atoi(size)
	for i := range n {
		s.emit(&event.Notice{Level: "info", Text: strconv.Itoa(i) + strings.Repeat(".", bytes)})
	}
	return said("done")
}

// playApproval asks about a call, of which the first event is told before anybody
// asks if the text says early.
func (s *fakeSession) playApproval(ctx context.Context, rest string) control.Answer {
	if s.start.Approver == nil {
		return said("nobody to ask")
	}
	q := control.Question{Request: "r-" + rest, CallID: "c1", Tool: "bash", Args: `{"command":"ls"}`, Hash: strings.Repeat("b", 64), SessionOffered: rest == "session"}
	s.emit(&event.ApprovalRequested{Request: q.Request, CallID: q.CallID, Tool: q.Tool, Args: q.Args, Hash: q.Hash, Why: []string{"rules"}, SessionOffered: q.SessionOffered})
	switch rest {
	case "early":
		<-s.steers
	case "never":
		return said("it was settled without anybody")
	}
	d, err := s.start.Approver.Approve(ctx, q)
	if err != nil {
		return ended(ctx)
	}
	s.emit(&event.Approval{Request: q.Request, CallID: q.CallID, Hash: d.Hash, Allowed: d.Allow, Scope: d.Scope, By: d.By, Reason: d.Reason})
	return said(fmt.Sprintf("%v %s %s", d.Allow, d.Scope, d.Reason))
}

func (s *fakeSession) playQuestion(ctx context.Context, rest string) control.Answer {
	q := control.Inquiry{Request: "q-1", From: "agent", Text: "which?"}
	switch rest {
	case "choice":
		q.Choices = []string{"red", "blue"}
	case "schema":
		q.Schema = []byte(`{"type":"object"}`)
	}
	s.emit(&event.QuestionRequested{Request: q.Request, From: q.From, Text: q.Text, Choices: q.Choices, Schema: event.Raw(q.Schema)})
	r, err := s.start.Asker.Ask(ctx, q)
	if err != nil {
		return ended(ctx)
	}
	return said(fmt.Sprintf("%v %s", r.Declined, r.Text))
}

func (s *fakeSession) Steer(text string) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.running {
		s.waiting = text
		return false, nil
	}
	s.steers <- text
	return true, nil
}

func (s *fakeSession) Interrupt() bool      { return false }
func (s *fakeSession) Tune() control.Tuner  { return (*fakeTuner)(s) }
func (s *fakeSession) Look() control.Looker { return (*fakeLooker)(s) }
func (s *fakeSession) isClosed() (closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

func (s *fakeSession) Close() error {
	s.emit(&event.HeadSigned{Seq: s.seq})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

type fakeTuner fakeSession

func (t *fakeTuner) Compact(ctx context.Context) (control.Compacted, error) {
	if ctx.Err() != nil {
		return control.Compacted{}, context.Cause(ctx)
	}
	return control.Compacted{Done: true, Before: 100, After: 10}, nil
}

func (t *fakeTuner) SetModel(_ context.Context, name string) error {
	t.model = name
	return nil
}

func (t *fakeTuner) SetMode(_ context.Context, mode string) error {
	if mode == "bypass" {
		return &control.Error{Code: control.CodeUsage, Msg: "bypass is wider than default, with which the session was started"}
	}
	t.mode = mode
	return nil
}

func (t *fakeTuner) CancelTask(id string) error {
	if id != "t1" {
		return &control.Error{Code: control.CodeNotFound, Msg: "there is no task " + id}
	}
	return nil
}

func (t *fakeTuner) Note(level, text string) error {
	(*fakeSession)(t).emit(&event.Notice{Level: level, Text: text})
	return nil
}

type fakeLooker fakeSession

func (l *fakeLooker) Usage() control.Usage {
	return control.Usage{ContextTokens: 12, Turns: 3}
}

func (l *fakeLooker) Tools() []control.Tool {
	return []control.Tool{{Name: "bash", Description: "runs a command", Schema: event.Raw(`{"type":"object"}`)}}
}

func (l *fakeLooker) Tasks() []control.Task {
	return []control.Task{{ID: "t1", Kind: "command", Title: "make", State: "running"}}
}

func (l *fakeLooker) Extensions() []control.Extension { return nil }
func (l *fakeLooker) Servers() []control.Server       { return nil }

func (l *fakeLooker) Export(_ context.Context, w io.Writer, format string) error {
	if l.mode == "plan" { // an export too large for a line
		_, err := w.Write(bytes.Repeat([]byte("x"), maxWaiting+1))
		return err
	}
	_, err := io.WriteString(w, format+"\nthe record")
	return err
}
