package agent_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
)

// TestCompactByHand makes a conversation smaller between two runs, by the model's
// summary, an extension's, or a backend's.
func TestCompactByHand(t *testing.T) {
	given := "given summary"
	tests := []struct {
		name    string
		ext     agent.Compaction
		backend *string
		by      string
		asked   int
		text    string
	}{
		{"by the model", agent.Compaction{}, nil, "", 1, "a short summary"},
		{"by an extension", agent.Compaction{Summary: &given, By: "x"}, nil, "extension x", 0, given},
		{"by a backend", agent.Compaction{}, &given, "y", 0, given},
		{"by both alike", agent.Compaction{Summary: &given, By: "x"}, &given, "y", 0, given},
		{"by two that differ", agent.Compaction{Summary: new(string), By: "x"}, &given, "y", 0, given},
	}
	other := "another summary"
	tests[4].ext.Summary, tests[4].asked, tests[4].by, tests[4].text = &other, 1, "", "a short summary"
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, nil, says("done"))
			m := b.inWindow(0, false)
			b.opts.History = past(20, 1000)
			b.opts.Keep = func() []string { return []string{"KEEP: the rules of AGENTS.md"} }
			b.opts.Extensions = &fakeExtensions{compact: func([]*model.Message) (agent.Compaction, *agent.Refusal) { return tt.ext, nil }}
			b.opts.Hooks = &fakeHooks{ask: func(_ agent.At, m agent.Moment) *agent.Say {
				if _, is := m.(*agent.CompactBefore); is && tt.backend != nil {
					return &agent.Say{Summary: tt.backend, By: []string{"y"}}
				}
				return nil
			}}
			l := agent.New(b.opts)
			before, after, detail := l.Compact(t.Context())
			if before <= after || detail != "" || len(m.summaries) != tt.asked {
				t.Errorf("from %d to %d tokens, %q, %d requests for a summary", before, after, detail, len(m.summaries))
			}
			r := of[*event.ContextReduced](b.log)
			if len(r) != 1 || r[0].Trigger != "manual" || r[0].By != tt.by || r[0].Before != before || r[0].After != after || l.ContextTokens() != after {
				t.Fatalf("recorded %+v", r)
			}
			want(t, l.Run(t.Context(), agent.Prompt{Text: "more"}), agent.ReasonCompleted)
			sent := b.model.last().Messages
			all := strings.Join(texts(sent), "\n")
			if sent[0].Text() != "the task" || !strings.Contains(sent[1].Text(), tt.text) || !strings.Contains(sent[1].Text(), "KEEP: the rules") || !strings.HasSuffix(all, "\nthe answer\nmore") {
				t.Errorf("the model was sent %.300q … %q", all, all[len(all)-30:])
			}
			if l.Budget() != nil {
				t.Error("there is a budget between runs")
			}
		})
	}
}

// TestCompactThatDoesNothing holds that a compaction that makes no room leaves the
// conversation alone, says why, and that the session goes on (I158: a summary that
// fails again and again).
func TestCompactThatDoesNothing(t *testing.T) {
	server, auth := &model.Error{Kind: model.ErrServer, Status: 500, Detail: "oops"}, &model.Error{Kind: model.ErrAuth, Status: 401, Detail: "bad key"}
	overflow := &model.Error{Kind: model.ErrOverflow, Status: 400, Detail: "too long"}
	half := says("half of it")
	half.Finish = model.FinishLength
	longer := says(strings.Repeat("long ", 10_000))
	tests := []struct {
		name   string
		reply  any
		tries  int
		detail string
	}{
		{"empty", says(""), 2, "the model answered nothing, 2 times"},
		{"blanks", says(" \n"), 2, "the model answered nothing"},
		{"a failing server", server, 2, "oops"},
		{"a refused key", auth, 1, "bad key"},
		{"too long even so", overflow, 2, "too long"},
		{"cut", half, 2, "output limit cut the summary"},
		{"no shorter", longer, 1, "no shorter than what it stands for"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := setup(t, nil, says("done"))
			m := b.inWindow(0, false)
			m.summary = func(int) any { return tt.reply }
			b.opts.History = past(20, 1000)
			l := agent.New(b.opts)
			for round := 1; round <= 5; round++ {
				before, after, detail := l.Compact(t.Context())
				if before != after || !strings.Contains(detail, tt.detail) || !strings.Contains(notices(b.log), tt.detail) {
					t.Errorf("from %d to %d tokens, %q, notices %q", before, after, detail, notices(b.log))
				}
				if len(m.summaries) != tt.tries*round {
					t.Errorf("%d requests in %d rounds, want %d each", len(m.summaries), round, tt.tries)
				}
			}
			for i, f := range of[*event.ModelFailed](b.log) {
				if f.Final != ((i+1)%tt.tries == 0) || f.Purpose != "summary" {
					t.Errorf("failure %d is recorded as %+v", i+1, f)
				}
			}
			if len(reductions(b.log)) != 0 {
				t.Error("something is recorded as made smaller")
			}
			want(t, l.Run(t.Context(), agent.Prompt{Text: "more"}), agent.ReasonCompleted)
			if sent := b.model.last().Messages; len(sent) != len(b.opts.History)+1 || sent[3] != b.opts.History[3] {
				t.Errorf("%d messages were sent", len(sent))
			}
		})
	}
}

// TestSummaryThatDoesNotFitIsAskedForWithLess holds that an overflow of the request
// for a summary makes the second one smaller.
func TestSummaryThatDoesNotFitIsAskedForWithLess(t *testing.T) {
	b := setup(t, nil)
	m := b.inWindow(40_000, false) // which nobody knows
	b.opts.History = past(200, 1500)
	if before, after, detail := agent.New(b.opts).Compact(t.Context()); after >= before || len(m.summaries) != 2 || m.overflows != 1 {
		t.Errorf("from %d to %d tokens, %q, %d requests, %d didn't fit", before, after, detail, len(m.summaries), m.overflows)
	}
}

// TestCompactIsRefused holds who can prevent a compaction, and that it is said.
func TestCompactIsRefused(t *testing.T) {
	no := &agent.Refusal{By: "x", Reason: "not this"}
	deny := func(at string) *fakeHooks {
		return &fakeHooks{ask: func(_ agent.At, m agent.Moment) *agent.Say {
			if string(m.EventType()) == at {
				return &agent.Say{Refusal: no}
			}
			return nil
		}}
	}
	tests := []struct {
		name   string
		set    func(o *agent.Options)
		asked  int
		detail string
	}{
		{"an extension leaves it alone", func(o *agent.Options) {
			o.Extensions = &fakeExtensions{compact: func([]*model.Message) (agent.Compaction, *agent.Refusal) {
				return agent.Compaction{Cancel: true, By: "x"}, nil
			}}
		}, 0, "extension x"},
		{"an extension refuses", func(o *agent.Options) {
			o.Extensions = &fakeExtensions{compact: func([]*model.Message) (agent.Compaction, *agent.Refusal) { return agent.Compaction{}, no }}
		}, 0, "x: not this"},
		{"a backend refuses", func(o *agent.Options) { o.Hooks = deny("context.compact.before") }, 0, "x: not this"},
		{"a backend refuses the request", func(o *agent.Options) { o.Hooks = deny("model.request.before") }, 0, "x: not this"},
		{"a backend refuses the summary", func(o *agent.Options) { o.Hooks = deny("context.compact.after") }, 1, "x: not this"},
	}
	for _, tt := range tests {
		b := setup(t, nil)
		m := b.inWindow(0, false)
		b.opts.History = past(20, 1000)
		tt.set(&b.opts)
		before, after, detail := agent.New(b.opts).Compact(t.Context())
		if before != after || !strings.Contains(detail, tt.detail) || len(m.summaries) != tt.asked || len(reductions(b.log)) != 0 {
			t.Errorf("%s: from %d to %d tokens, %q, %d requests", tt.name, before, after, detail, len(m.summaries))
		}
	}
}

// TestCompactIsInterrupted holds that an interrupted compaction changes nothing, asks
// no model afterwards, and says what happened.
func TestCompactIsInterrupted(t *testing.T) {
	for _, at := range []string{"before", "extension", "backend", "request"} {
		ctx, cancel := context.WithCancel(t.Context())
		b := setup(t, nil)
		m := b.inWindow(0, false)
		b.opts.History = past(20, 1000)
		asked := 0
		switch at {
		case "before":
			cancel()
		case "extension":
			b.opts.Extensions = &fakeExtensions{choose: func(_ context.Context, m []*model.Message) []*model.Message { cancel(); return m }}
		case "backend":
			b.opts.Hooks = &fakeHooks{ask: func(_ agent.At, m agent.Moment) *agent.Say {
				if _, is := m.(*agent.RequestBefore); is {
					cancel()
				}
				return nil
			}}
		case "request":
			asked = 1
			m.summary = func(int) any { cancel(); return context.Canceled }
		}
		before, after, detail := agent.New(b.opts).Compact(ctx)
		cancel()
		if before != after || !strings.Contains(detail, "user_interrupt") || len(m.summaries) != asked || len(reductions(b.log)) != 0 {
			t.Errorf("%s: from %d to %d tokens, %q, %d requests", at, before, after, detail, len(m.summaries))
		}
	}
}

// TestCompactNothing holds that of a short conversation nothing can be left out.
func TestCompactNothing(t *testing.T) {
	for _, history := range [][]*model.Message{nil, past(0, 0), {user("the task")}, {user("[abhed] a summary")}} {
		b := setup(t, nil)
		m := b.inWindow(0, false)
		b.opts.History = history
		if before, after, detail := agent.New(b.opts).Compact(t.Context()); before != after || !strings.Contains(detail, "nothing that could be left out") || len(m.summaries) != 0 {
			t.Errorf("%d messages: from %d to %d tokens, %q", len(history), before, after, detail)
		}
	}
}

// TestFirstMessageIsThePersons holds that what backends gave before the person's
// first message isn't taken for it, in the run and after a resume; and that a second
// summary takes the first one in.
func TestFirstMessageIsThePersons(t *testing.T) {
	for _, resumed := range []bool{false, true} {
		b := setup(t, nil, says("one"), says("two"), says("three"))
		m := b.inWindow(0, false)
		var l *agent.Loop
		if resumed {
			first := user("the task")
			b.opts.History = append([]*model.Message{user("given")}, past(20, 100)...)
			b.opts.History[1], b.opts.First, b.opts.Newest = first, first, first
			l = agent.New(b.opts)
		} else {
			l = agent.New(b.opts)
			want(t, l.Run(t.Context(), agent.Prompt{Text: "the task", Given: []string{"given"}}), agent.ReasonCompleted)
			for range 20 {
				b.model.replies = append([]any{calls("read", `{"x":"`+strings.Repeat("x", 100)+`"}`)}, b.model.replies...)
			}
			want(t, l.Run(t.Context(), agent.Prompt{Text: "work"}), agent.ReasonCompleted)
		}
		for round := 1; round <= 2; round++ {
			if _, _, detail := l.Compact(t.Context()); detail != "" {
				t.Fatalf("round %d: %s", round, detail)
			}
			for range 20 {
				b.model.replies = append([]any{calls("read", `{"x":"`+strings.Repeat("x", 100)+`"}`)}, b.model.replies...)
			}
			b.model.replies = append(b.model.replies, says("done"))
			want(t, l.Run(t.Context(), agent.Prompt{Text: fmt.Sprint("more ", round)}), agent.ReasonCompleted)
			sent := texts(b.model.last().Messages)
			if sent[0] != "given" || sent[1] != "the task" || strings.Contains(sent[3], "a short summary") || !strings.Contains(sent[2], "a short summary") {
				t.Errorf("resumed %v, round %d: the model was sent %.80q", resumed, round, sent[:4])
			}
			newest := map[bool]string{true: "the task", false: "work"}[resumed]
			if round == 2 {
				newest = "more 1"
			}
			if newest != "the task" && !strings.Contains(sent[2], "The newest message of the person was:\n\n"+newest) {
				t.Errorf("resumed %v, round %d: the newest message is lost: %q", resumed, round, sent[2])
			}
		}
		if last := m.summaries[1].Messages[0].Text(); !strings.Contains(last, "a short summary") {
			t.Error("the second summary doesn't stand for the first one")
		}
	}
}

// TestReducedConversationsAreValid compacts many random conversations: the first
// message stays, calls and results stay together, and the record's event turns the
// old conversation into the new one.
func TestReducedConversationsAreValid(t *testing.T) {
	reduced := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		b := setup(t, nil, says("done"))
		m := b.inWindow(0, false)
		if r.IntN(2) == 0 {
			m.summary = func(int) any { return says(strings.Repeat("s", r.IntN(3000))) }
		}
		b.opts.Model.Window = int64(r.IntN(3)) * 2000
		b.opts.Context.StubBytes, b.opts.Context.KeepResults = r.IntN(600), 1+r.IntN(4)
		b.opts.History = randomPast(r)
		l := agent.New(b.opts)
		l.Compact(t.Context())
		want(t, l.Run(t.Context(), agent.Prompt{Text: "more"}), agent.ReasonCompleted)
		sent := b.model.last().Messages
		expected := b.opts.History
		for _, d := range b.log.events {
			switch p := d.Payload.(type) {
			case *event.UserMessage:
				expected = append(slices.Clip(expected), event.UserSaid(p))
			case *event.ContextReduced:
				reduced++
				expected = event.Reduce(expected, p)
				if p.After >= p.Before {
					t.Errorf("seed %d: from %d to %d tokens", seed, p.Before, p.After)
				}
			}
		}
		if d := cmp.Diff(texts(expected), texts(sent)); d != "" {
			t.Fatalf("seed %d: by the record the conversation differs: %s", seed, d)
		}
		if sent[0].Text() != "the task" {
			t.Errorf("seed %d: the first message is %q", seed, sent[0].Text())
		}
	}
	if reduced < 100 {
		t.Errorf("%d conversations were reduced: the test tested too little", reduced)
	}
}

// randomPast is a valid conversation.
func randomPast(r *rand.Rand) []*model.Message {
	out := []*model.Message{user("the task")}
	id := 0
	for range r.IntN(20) {
		reply := &model.Message{Role: event.RoleAssistant, Parts: []model.Part{event.TextPart(strings.Repeat("t", 1+r.IntN(300)))}}
		out = append(out, reply)
		for range r.IntN(4) {
			id++
			c := &model.ToolCall{ID: fmt.Sprintf("h%d", id), Name: "read", Args: "{}"}
			reply.Parts = append(reply.Parts, model.Part{ToolCall: c})
			res := &model.ToolResult{CallID: c.ID, Name: c.Name, Content: strings.Repeat("é", r.IntN(1500))}
			out = append(out, &model.Message{Role: event.RoleTool, Parts: []model.Part{{ToolResult: res}}})
		}
		if r.IntN(3) == 0 {
			out = append(out, user("and more"))
		}
	}
	return out
}
