package gate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/gate"
)

// asker answers what isn't about a call.
type asker struct {
	asked  []control.Inquiry
	answer func(ctx context.Context, n int, q control.Inquiry) (control.Reply, error)
}

func (a *asker) Ask(ctx context.Context, q control.Inquiry) (control.Reply, error) {
	a.asked = append(a.asked, q)
	return a.answer(ctx, len(a.asked), q)
}

func replies(texts ...string) *asker {
	return &asker{answer: func(_ context.Context, n int, _ control.Inquiry) (control.Reply, error) {
		return control.Reply{Text: texts[n-1]}, nil
	}}
}

func TestQuestionsAreRecorded(t *testing.T) {
	r := newRig(t)
	log := &diskLog{memLog: r.log, t: t}
	r.opts.Log = log
	g := gate.New(r.opts)
	a := replies(`b\u202e`)
	a.answer = func(_ context.Context, _ int, q control.Inquiry) (control.Reply, error) {
		if p, durable := newest[*event.QuestionRequested](log); p == nil || !durable || p.Request != q.Request {
			t.Errorf("asked before it was on disk: %+v", p)
		}
		return control.Reply{Text: `b\u202e`}, nil
	}
	reply, err := g.Inquire(t.Context(), here, control.Inquiry{From: "agent", Text: "which\x1b[2K?", Choices: []string{"a", "b\u202e"}}, a, 0)
	if err != nil || reply != (control.Reply{Text: "b\u202e"}) {
		t.Errorf("%+v %v", reply, err)
	}
	q := last[*event.QuestionRequested](r.log)
	if q.From != "agent" || q.Text != `which\u001b[2K?` || !slices.Equal(q.Choices, []string{"a", `b\u202e`}) || q.Request == "" || a.asked[0].Text != q.Text {
		t.Errorf("%+v", q)
	}
	if p, durable := newest[*event.QuestionAnswered](log); !durable || p.Request != q.Request || p.Action != "accept" || p.Text != "b\u202e" || p.By != "user" {
		t.Errorf("%+v", p)
	}
}

func TestUnansweredQuestionsAreDeclined(t *testing.T) {
	waits := func(ctx context.Context, _ int, _ control.Inquiry) (control.Reply, error) {
		<-ctx.Done()
		return control.Reply{Text: "late"}, ctx.Err()
	}
	tests := []struct {
		name, action, by string
		asker            control.Asker
	}{
		{"nobody there", "decline", "headless", nil},
		{"declined", "decline", "user", &asker{answer: func(context.Context, int, control.Inquiry) (control.Reply, error) {
			return control.Reply{Declined: true, Text: "x"}, nil
		}}},
		{"silent", "cancel", "expired", &asker{answer: waits}},
		{"broken", "cancel", "nobody: gone", &asker{answer: func(context.Context, int, control.Inquiry) (control.Reply, error) {
			return control.Reply{Text: "x"}, errors.New("gone")
		}}},
		{"endless", "cancel", "the gate: an answer of 2097152 bytes, the limit is 1048576", replies(strings.Repeat("x", 2<<20))},
	}
	for _, tt := range tests {
		r := newRig(t)
		timeout := time.Duration(0)
		if tt.name == "silent" {
			timeout = time.Millisecond
		}
		reply, err := gate.New(r.opts).Inquire(t.Context(), here, control.Inquiry{From: "agent", Text: "?"}, tt.asker, timeout)
		if err != nil || reply != (control.Reply{Declined: true}) {
			t.Errorf("%s: %+v %v", tt.name, reply, err)
		}
		if p := last[*event.QuestionAnswered](r.log); p.Action != tt.action || p.By != tt.by || p.Text != "" {
			t.Errorf("%s: recorded %+v", tt.name, p)
		}
	}
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	reply, err := gate.New(r.opts).Inquire(ctx, here, control.Inquiry{Text: "?"}, &asker{answer: func(ctx context.Context, n int, q control.Inquiry) (control.Reply, error) {
		cancel()
		return waits(ctx, n, q)
	}}, 0)
	if !errors.Is(err, context.Canceled) || reply.Text != "" || last[*event.QuestionAnswered](r.log).By != "interrupted" {
		t.Errorf("interrupted: %+v %v", reply, err)
	}
	if _, err := gate.New(r.opts).Inquire(t.Context(), here, control.Inquiry{Schema: []byte("{")}, nil, 0); err == nil {
		t.Error("a schema that isn't JSON is taken")
	}
}

// TestUnrecordedQuestionsAreNotAsked lets the record fail at either event.
func TestUnrecordedQuestionsAreNotAsked(t *testing.T) {
	for i, typ := range []event.Type{event.TypeQuestionRequested, event.TypeQuestionAnswered, event.TypeApprovalRequested} {
		r := newRig(t)
		r.log.fail = func(p event.Payload) error {
			if p.Type() == typ {
				return errors.New("disk full")
			}
			return nil
		}
		p := &person{answer: yes}
		r.opts.Approver = p
		a := replies("x")
		reply, err := gate.New(r.opts).Inquire(t.Context(), here, control.Inquiry{Text: "?"}, a, 0)
		if (err != nil) != (i < 2) || i < 2 && reply.Text != "" || len(a.asked) != min(i, 1) {
			t.Errorf("%s: %+v %v, asked %d times", typ, reply, err, len(a.asked))
		}
		if ruling, ok := r.judge("bash", `{"command":"make"}`).(*agent.Broken); ok != (i == 2) || ok && (ruling.Err == nil || len(p.asked) > 0) {
			t.Errorf("%s: broken %t, asked %d times", typ, ok, len(p.asked))
		}
	}
}

// TestApprovalsAreAnnounced holds that the question and its answer have one id in the
// record and for the person, and that it is on disk before it is put.
func TestApprovalsAreAnnounced(t *testing.T) {
	r := newRig(t)
	log := &diskLog{memLog: r.log, t: t}
	r.opts.Log = log
	fake := r.watched("fail-open", nil)
	var q control.Question
	r.opts.Approver = &person{answer: func(asked control.Question) (control.Decision, error) {
		q = asked
		if p, durable := newest[*event.ApprovalRequested](log); p == nil || !durable || p.Request != q.Request {
			t.Errorf("asked before it was on disk: %+v", p)
		}
		return yes(asked)
	}}
	r.gate = gate.New(r.opts)
	r.runs("bash", `{"command":"make \u202e"}`)
	p := last[*event.ApprovalRequested](r.log)
	if p.Request == "" || p.CallID != "c1" || p.Tool != "bash" || p.Args != `{"command":"make \u202e"}` || p.Hash != q.Hash || !slices.Equal(p.Why, q.Why) || len(p.Why) == 0 || !p.SessionOffered || p.WorkDir != r.dir {
		t.Errorf("%+v", p)
	}
	if a := last[*event.Approval](r.log); a.Request != p.Request || !a.Allowed {
		t.Errorf("%+v", a)
	}
	requested := ""
	for _, q := range fake.Requests() {
		if q.Event.Type == ahp.ToolPermissionRequest {
			requested = q.Event.ID
		}
	}
	if e := seen(t, fake, ahp.UserAttention); e.Attention.Kind != "approval" || !strings.Contains(*e.Attention.Title[0].Text, "bash") || !strings.Contains(*e.Attention.Message[0].Text, p.Why[0]) || e.ParentEventID != requested {
		t.Errorf("%+v %+v", e, e.Attention)
	}
	r.runs("bash", `{"command":"make \u202e"}`)
	if again := last[*event.ApprovalRequested](r.log); again.Request == p.Request {
		t.Error("two questions have one id")
	}
}
