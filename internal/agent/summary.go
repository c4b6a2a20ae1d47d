package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
)

const (
	// maxSummaryTries is how often a model is asked for one summary.
	maxSummaryTries = 2
	// maxQuoted bounds one result in what is summarised, maxTranscript all of it where
	// the window is unknown, in bytes.
	maxQuoted     = 2 << 10
	maxTranscript = 256 << 10
	// maxSummary bounds a summary in bytes.
	maxSummary = 64 << 10

	purposeSummary = "summary"
)

const summarySystem = "You condense the middle of a coding agent's conversation so that the agent can go on from your text alone."

const summaryInstructions = `Summarise the conversation above for the agent that goes on with it. Keep: what the person wants and every constraint they gave; decisions and why; files read and changed, with paths; commands run and what came of them; exact names, numbers and error texts that still matter; what was refused and by whom; what is done, what is open, and the next step. Leave out pleasantries and what turned out not to matter. Write plain text, no longer than needed.`

// summarise asks for a summary of what is older and puts it into p. Extensions and
// backends may prevent it, or give one; where nobody can p stays as it is, and a
// notice says why. injected is context that backends add.
func (l *Loop) summarise(ctx context.Context, p *event.ContextReduced, m Model) (injected []string, e *end) {
	from, to := l.cut(m, m.Window == 0 || p.Trigger == "manual")
	if to == 0 {
		return nil, nil
	}
	old := l.messages[from:to]
	s := &summary{l: l, p: p, first: from, old: old, instructions: summaryInstructions}
	defer func() {
		if p.To == 0 { // what backends gave isn't lost with the summary
			l.later = append(l.later, s.injected...)
		}
	}()
	if e := s.ask(ctx); e != nil {
		return nil, e
	}
	supplied := s.text != ""
	if !supplied && s.refusedBy == "" {
		if e := s.byModel(ctx, m); e != nil {
			return nil, e
		}
	}
	switch {
	case s.refusedBy != "":
		return nil, l.unreduced("the conversation was not summarised: " + s.refusedBy)
	case s.text == "":
		return nil, l.unreduced("the conversation could not be summarised: " + s.failure)
	}
	if e := s.review(ctx, supplied); e != nil {
		return nil, e
	}
	if s.refusedBy != "" {
		return nil, l.unreduced("the summary was not used: " + s.refusedBy)
	}
	p.From, p.To, p.By = from, to, s.by
	p.Summary = event.HarnessMark + "What came before was summarised to make room. The summary:\n\n" + s.text
	if n := l.reducing.newest; n != nil && n != l.messages[max(from-1, 0)] && !slices.Contains(l.messages[to:], n) {
		p.Summary += "\n\nThe newest message of the person was:\n\n" + n.Text()
	}
	if l.o.Keep != nil {
		for _, text := range l.o.Keep() {
			p.Summary += "\n\n" + text
		}
	}
	return s.injected, nil
}

// summary is one summary in the making.
type summary struct {
	l     *Loop
	p     *event.ContextReduced
	first int
	old   []*model.Message

	instructions string
	text         string
	by           string
	refusedBy    string // who prevents it, and why
	failure      string // why the model gave none
	most         int    // bytes of what it is shown
	hopeless     bool   // another attempt would fail, too
	injected     []string
}

// ask asks extensions, then backends, before anything is summarised.
func (s *summary) ask(ctx context.Context) *end {
	l := s.l
	if x := l.o.Extensions; x != nil {
		c, r := x.Compact(ctx, l.at(), s.old)
		switch {
		case r != nil:
			return l.refusal(ctx, ReasonStopped, "the compaction was refused", r)
		case c.Cancel:
			s.refusedBy = "extension " + c.By + " left the history alone"
			return nil
		case c.Summary != nil:
			s.text, s.by = *c.Summary, "extension "+c.By
		}
	}
	if !l.hookedCompact() {
		return nil
	}
	trigger := s.p.Trigger
	if trigger != "manual" {
		trigger = "auto"
	}
	say, e := l.consult(ctx, &CompactBefore{Trigger: trigger, First: s.first, Messages: s.old, Instructions: s.instructions, Before: s.p.Before})
	if e != nil {
		return e
	}
	if say.Refusal != nil {
		s.refusedBy = say.Refusal.By + ": " + say.Refusal.Reason
		return nil
	}
	if say.Text != "" {
		s.instructions = say.Text
	}
	s.injected = say.Injected
	if say.Summary != nil {
		if s.text != "" && s.text != *say.Summary {
			s.text, s.by = "", "" // two that differ: none is taken
			return nil
		}
		s.text, s.by = *say.Summary, strings.Join(say.By, ", ")
	}
	return nil
}

// byModel asks the model. A reply is no part of the conversation.
func (s *summary) byModel(ctx context.Context, m Model) *end {
	l := s.l
	old := s.old
	if x := l.o.Extensions; x != nil { // what isn't to be sent isn't to be summarised
		selected, r := x.Select(ctx, l.at(), l.messages)
		if r != nil {
			return l.refusal(ctx, ReasonStopped, "the messages were refused", r)
		}
		old = slices.DeleteFunc(slices.Clone(old), func(o *model.Message) bool { return !slices.Contains(selected, o) })
	}
	s.most = maxTranscript
	if m.Window > 0 {
		s.most = int(float64(m.Window) / 2 / max(float64(l.reducing.tokens(1000))/1000, 0.01))
	}
	for n := 1; n <= maxSummaryTries && !s.hopeless; n++ {
		if e := l.limited(ctx); e != nil {
			return e
		}
		text := s.transcript(old) + "\n\n" + s.instructions
		req := &model.Request{System: summarySystem, Messages: []*model.Message{{Role: event.RoleUser, Parts: []model.Part{event.TextPart(text)}}}}
		if e := s.try(ctx, m, req, n); e != nil || s.text != "" || s.refusedBy != "" {
			return e
		}
	}
	return nil
}

// try makes one attempt.
func (s *summary) try(ctx context.Context, m Model, req *model.Request, n int) *end {
	l, a := s.l, s.l.attempt(n)
	if l.hooked(ahp.ModelRequestBefore) {
		say, e := l.consult(ctx, &RequestBefore{Attempt: a, System: req.System, Messages: req.Messages})
		switch {
		case e != nil:
			return e
		case say.Refusal != nil:
			s.refusedBy = say.Refusal.By + ": " + say.Refusal.Reason
			return nil
		case say.Stop != "":
			return &end{ReasonStopped, say.Stop}
		case say.Reply != nil:
			s.text = cutSummary(say.Reply.Text())
			return nil
		case say.Request != nil:
			req = say.Request
		}
	}
	if ctx.Err() != nil { // while somebody was asked
		return interrupted(ctx)
	}
	sent := &event.ModelRequested{Turn: l.turn, Attempt: n, Model: m.Client.Name(), Messages: len(req.Messages), Purpose: purposeSummary}
	if _, err := l.o.Log.Append(system(sent)); err != nil {
		return recordFailed(err)
	}
	began := l.o.Now()
	resp, err := m.Client.Stream(ctx, req, func(model.Delta) {})
	if err != nil {
		return s.failed(ctx, err, n)
	}
	l.countFor(resp, m, sizeOf(req.Messages))
	got := &event.ModelResponded{Turn: l.turn, Attempt: n, Message: *resp.Message, Finish: string(resp.Finish), Model: resp.Model, Usage: resp.Usage, Note: resp.Note, LatencyMS: l.o.Now().Sub(began).Milliseconds(), Purpose: purposeSummary}
	if _, err := l.o.Log.Append(event.Draft{Actor: event.ActorAgent, Trust: event.TrustUntrusted, Payload: got}); err != nil {
		return recordFailed(err)
	}
	switch {
	case strings.TrimSpace(resp.Message.Text()) == "":
		s.failure = fmt.Sprintf("the model answered nothing, %d times", n)
	case resp.Finish == model.FinishLength:
		s.failure = "the model's output limit cut the summary"
	default:
		s.text = cutSummary(resp.Message.Text())
	}
	return nil
}

// failed records an attempt that brought nothing.
func (s *summary) failed(ctx context.Context, err error, n int) *end {
	l := s.l
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	s.failure = err.Error()
	p := &event.ModelFailed{Turn: l.turn, Attempt: n, Kind: "internal", Detail: err.Error(), Final: n == maxSummaryTries, Purpose: purposeSummary}
	var me *model.Error
	if errors.As(err, &me) {
		p.Kind, p.Status = string(me.Kind), me.Status
		switch {
		case me.Kind == model.ErrOverflow:
			s.most /= 4
		case !me.Retryable():
			p.Final = true
		case !p.Final:
			wait := min(l.wait(me, n), l.o.Retry.Cap)
			p.RetryMS = wait.Milliseconds()
			defer func() { _ = l.o.Sleep(ctx, wait) }() // an interruption is seen at the next attempt
		}
	}
	s.hopeless = p.Final
	if _, err := l.o.Log.Append(system(p)); err != nil {
		return recordFailed(err)
	}
	return nil
}

// review lets backends see and change the summary.
func (s *summary) review(ctx context.Context, supplied bool) *end {
	l := s.l
	s.text = cutSummary(s.text)
	if !l.hooked(ahp.ContextCompactAfter) {
		return nil
	}
	m := &CompactAfter{Summary: s.text, Supplied: supplied, Before: s.p.Before}
	for i, old := range s.old {
		m.Removed = append(m.Removed, ItemID(s.first+i, old))
	}
	m.After = s.p.Before - l.reducing.tokens(sizeOf(s.old)-len(s.text))
	say, e := l.consult(ctx, m)
	if e != nil {
		return e
	}
	if say.Refusal != nil {
		s.refusedBy = say.Refusal.By + ": " + say.Refusal.Reason
		return nil
	}
	if say.Text != "" {
		s.text = cutSummary(say.Text)
	}
	s.injected = append(s.injected, say.Injected...)
	return nil
}

func cutSummary(text string) string {
	text = strings.TrimSpace(text)
	if len(text) <= maxSummary {
		return text
	}
	return strings.ToValidUTF8(text[:maxSummary], "") + fmt.Sprintf("\n[%d bytes are left out here]", len(text)-maxSummary)
}

// transcript writes messages as text, long results shortened. If all is longer than
// s.most the oldest part is left out.
func (s *summary) transcript(messages []*model.Message) string {
	var parts []string
	sum := 0
	for i := len(messages) - 1; i >= 0; i-- {
		text := quoteMessage(messages[i])
		if sum += len(text); sum > s.most {
			if len(parts) == 0 { // not even the newest fits
				parts = append(parts, strings.ToValidUTF8(text[len(text)-s.most:], ""))
			}
			parts = append(parts, fmt.Sprintf("[what is older, %d messages, is left out]\n", i+1))
			break
		}
		parts = append(parts, text)
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}

func quoteMessage(m *model.Message) string {
	var b strings.Builder
	short := func(s string) string {
		if len(s) <= maxQuoted {
			return s
		}
		return strings.ToValidUTF8(s[:maxQuoted/2], "") + fmt.Sprintf("\n[%d bytes]\n", len(s)-maxQuoted) + strings.ToValidUTF8(s[len(s)-maxQuoted/2:], "")
	}
	for _, p := range m.Parts {
		switch {
		case p.Text != nil:
			fmt.Fprintf(&b, "<%s>\n%s\n", m.Role, *p.Text)
		case p.ToolCall != nil:
			fmt.Fprintf(&b, "<call %s> %s\n", p.ToolCall.Name, short(p.ToolCall.Args))
		case p.ToolResult != nil:
			what := "result"
			if p.ToolResult.IsError {
				what = "error"
			}
			fmt.Fprintf(&b, "<%s of %s>\n%s\n", what, p.ToolResult.Name, short(p.ToolResult.Content))
		}
	}
	return b.String()
}
