package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
)

// Context says how the conversation is kept within the model's window.
type Context struct {
	// Auto lets the loop make it smaller by itself.
	Auto bool
	// Threshold is the share of the window above which it does; 0 means 0.8.
	Threshold float64
	// KeepResults is how many of the newest results are never replaced by stubs, 0
	// means 20; StubBytes how long the older ones may be, 0 never replaces any.
	KeepResults int
	StubBytes   int
}

const (
	defaultThreshold   = 0.8
	defaultKeepResults = 20
	// defaultRatio is tokens for a byte until the endpoint has reported some.
	defaultRatio = 0.28
	// tailShare is the share of the window that the newest messages may take when what
	// is older is summarised, tailMessages how many they are if the window is unknown or
	// a person wants it done.
	tailShare    = 0.3
	tailMessages = 10
)

// reducing is what is known about the size of the conversation. It belongs to the
// loop's goroutine.
type reducing struct {
	bytes int // of the messages
	fixed int // of system text and tools
	tools []model.ToolSpec
	ratio float64 // tokens for a byte, 0 if nothing was reported yet
	// first and newest are the person's messages.
	first, newest *model.Message
	stuck         int64  // the estimate after an attempt that didn't make enough room
	why           string // the last attempt made no room, "" if nothing could be left out
	model         string // at the last look
}

// reset forgets what belongs to an earlier run.
func (r *reducing) reset() { r.stuck, r.why = 0, "" }

// begin finds the person's messages in what was said before.
func (r *reducing) begin(o Options) {
	for _, m := range o.History {
		if m.Role == event.RoleUser && !event.ByHarness(m) {
			r.said(m)
		}
	}
	if o.First != nil {
		r.first = o.First
	}
	if o.Newest != nil {
		r.newest = o.Newest
	}
}

// said takes note of a message of the person.
func (r *reducing) said(m *model.Message) {
	if r.first == nil {
		r.first = m
	}
	r.newest = m
}

func (r *reducing) tokens(bytes int) int64 {
	ratio := r.ratio
	if ratio == 0 {
		ratio = defaultRatio
	}
	return int64(float64(bytes) * ratio)
}

// learn takes what an endpoint reported of a request of the present size.
func (r *reducing) learn(u *model.Usage) {
	sum := int64(0)
	for _, n := range []*int64{u.Input, u.CacheRead, u.CacheWrite} {
		if n != nil {
			sum += *n
		}
	}
	if bytes := r.fixed + r.bytes; u.Input != nil && bytes > 0 {
		r.ratio = min(max(float64(sum)/float64(bytes), 0.02), 1.5)
	}
}

// estimate is how many tokens the next request has.
func (l *Loop) estimate() int64 { return l.reducing.tokens(l.reducing.fixed + l.reducing.bytes) }

// ContextTokens returns an estimate of the next request. Any goroutine may ask.
func (l *Loop) ContextTokens() int64 { return l.contextTokens.Load() }

// look takes note of what the next request holds besides messages.
func (l *Loop) look() {
	r := &l.reducing
	if l.o.Tools != nil {
		r.tools = l.o.Tools()
	}
	r.fixed = len(l.system)
	for _, t := range r.tools {
		r.fixed += len(t.Name) + len(t.Description) + len(t.Schema) + 32
	}
	l.contextTokens.Store(l.estimate())
}

// fit makes room for the next request if it is too large for the model's window.
func (l *Loop) fit(ctx context.Context) *end {
	l.look()
	m := l.Model()
	r := &l.reducing
	trigger := "auto"
	if name := m.Client.Name(); r.model != name {
		if r.model != "" {
			trigger, r.stuck = "model", 0
		}
		r.model = name
	}
	est, limit := l.estimate(), l.limit(m)
	if m.Window == 0 || !l.o.Context.Auto || est <= limit {
		return nil
	}
	if r.stuck > 0 && est < r.stuck+m.Window/10 {
		return l.tooBig(m)
	}
	if _, e := l.reduce(ctx, trigger); e != nil {
		return e
	}
	if est := l.estimate(); est > limit {
		r.stuck = est
	}
	return l.tooBig(m)
}

func (l *Loop) limit(m Model) int64 {
	share := l.o.Context.Threshold
	if share == 0 {
		share = defaultThreshold
	}
	return int64(float64(m.Window) * share)
}

// tooBig ends the run if the request can't fit. Until the endpoint has reported a
// size the estimate is too rough for that, unless it is far above.
func (l *Loop) tooBig(m Model) *end {
	est, most := l.estimate(), m.Window-m.Window/20
	if l.reducing.ratio == 0 {
		most = m.Window + m.Window/2
	}
	if est <= most {
		return nil
	}
	return &end{ReasonError, l.tooBigText(m)}
}

func (l *Loop) tooBigText(m Model) string {
	r := &l.reducing
	window := "unknown"
	if m.Window > 0 {
		window = fmt.Sprint(m.Window)
	}
	tried := ""
	if r.why != "" {
		tried = ". When it was to be made smaller last, " + r.why
	}
	return fmt.Sprintf("the conversation doesn't fit the context window of %s (%s tokens): system text and the descriptions of %d tools take about %d tokens, which nothing can make smaller, the %d messages about %d%s. Switch to a model with a larger window, disable tools, or begin a new session",
		m.Client.Name(), window, len(r.tools), r.tokens(r.fixed), len(l.messages), r.tokens(r.bytes), tried)
}

// overflowed records an endpoint's word that a request is too large and acts on it;
// nil means that it was made smaller. That is tried once in a turn, and not if it has
// just been tried to no avail.
func (l *Loop) overflowed(ctx context.Context, err *model.Error, a Attempt, took time.Duration, reduced bool) *end {
	m, r := l.Model(), &l.reducing
	reduced = reduced || r.stuck > 0 && l.estimate() < r.stuck+m.Window/10
	if e := l.failedAttempt(ctx, err, a, took, reduced || !l.o.Context.Auto); e != nil {
		return e
	}
	if !l.o.Context.Auto {
		return &end{ReasonError, "the request doesn't fit the model's context window, and compaction is off. Switch to a model with a larger window, or set context.compaction to auto: " + err.Error()}
	}
	if reduced {
		return &end{ReasonError, l.tooBigText(m) + ": " + err.Error()}
	}
	smaller, e := l.reduce(ctx, "overflow")
	switch {
	case e != nil:
		return e
	case !smaller:
		return &end{ReasonError, l.tooBigText(m) + ": " + err.Error()}
	}
	return nil
}

// Compact makes the conversation smaller now. detail says why it isn't, "" if it is.
// No run may be going on.
func (l *Loop) Compact(ctx context.Context) (before, after int64, detail string) {
	l.mu.Lock()
	if l.budget = l.o.Budget; l.budget == nil {
		l.budget = NewBudget(Limits{}, l.o.Now())
	}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.budget = nil
		l.mu.Unlock()
	}()
	l.look()
	before = l.estimate()
	smaller, e := l.reduce(ctx, "manual")
	l.look()
	after = l.estimate()
	switch {
	case e != nil:
		detail = cmp.Or(e.detail, "it ended with "+string(e.reason))
	case !smaller:
		detail = cmp.Or(l.reducing.why, "there is nothing that could be left out")
	}
	return before, after, detail
}

// reduce makes the conversation smaller: old large results become stubs, and if that
// isn't enough what is older is summarised. It reports whether it made room.
func (l *Loop) reduce(ctx context.Context, trigger string) (smaller bool, e *end) {
	m := l.Model()
	p := &event.ContextReduced{Turn: l.turn, Trigger: trigger, Before: l.estimate()}
	p.Stubs, l.reducing.why = l.stubs(), ""
	enough := func(bytes int) bool {
		est := l.reducing.tokens(l.reducing.fixed + bytes)
		return len(p.Stubs) > 0 && trigger != "manual" && (m.Window == 0 || est <= l.limit(m)*3/4)
	}
	var injected []string
	if !enough(sizeOf(event.Reduce(l.messages, p))) {
		if injected, e = l.summarise(ctx, p, m); e != nil {
			return false, e
		}
	}
	if p.To > 0 && len(p.Summary) >= sizeOf(l.messages[p.From:p.To]) {
		l.later = append(l.later, injected...)
		p.From, p.To, p.Summary, p.By, injected = 0, 0, "", "", nil
		if e := l.unreduced("the conversation was not summarised: the summary is no shorter than what it stands for"); e != nil {
			return false, e
		}
	}
	if len(p.Stubs) == 0 && p.To == 0 {
		return false, nil
	}
	messages := event.Reduce(l.messages, p)
	bytes := sizeOf(messages)
	p.After = l.reducing.tokens(l.reducing.fixed + bytes)
	if _, err := l.o.Log.AppendDurable(system(p)); err != nil {
		return false, recordFailed(err)
	}
	l.keepStubbed(p.Stubs)
	l.messages, l.reducing.bytes = messages, bytes
	l.contextTokens.Store(p.After)
	return true, l.sayAll(injected)
}

// unreduced records why an attempt made no room, or less of it.
func (l *Loop) unreduced(why string) *end {
	l.reducing.why = why
	return l.notice(why)
}

func (l *Loop) notice(text string) *end {
	if _, err := l.o.Log.Append(system(&event.Notice{Level: "warning", Text: text})); err != nil {
		return recordFailed(err)
	}
	return nil
}

func sizeOf(messages []*model.Message) int {
	n := 0
	for _, m := range messages {
		n += size(m)
	}
	return n
}

// cut returns the range of messages that a summary can stand for: what lies between
// the person's first message and the newest messages. A call and its results are
// both in it or both not. With few the newest are tailMessages at most, though more
// would fit the window.
func (l *Loop) cut(m Model, few bool) (from, to int) {
	if from = slices.Index(l.messages, l.reducing.first); from < 0 {
		from = slices.IndexFunc(l.messages, func(o *model.Message) bool { return o.Role == event.RoleUser })
	}
	from++
	room := float64(m.Window) * tailShare / max(float64(l.reducing.tokens(1000))/1000, 0.01)
	sum := 0
	for i := len(l.messages) - 1; i >= from; i-- {
		sum += size(l.messages[i])
		if l.messages[i].Role == event.RoleTool {
			continue // its calls come before it
		}
		fits := m.Window == 0 || float64(sum) <= room
		if few {
			fits = fits && len(l.messages)-i <= tailMessages
		}
		if to != 0 && !fits {
			break
		}
		to = i
	}
	if to < from+1 {
		return 0, 0
	}
	return from, to
}

// hookedCompact reports whether backends take part in a compaction.
func (l *Loop) hookedCompact() bool {
	return l.hooked(ahp.ContextCompactBefore)
}
