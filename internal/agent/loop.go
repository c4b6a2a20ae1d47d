package agent

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/tool"
)

// maxCutReplies is how many replies in a row may be cut by the output limit.
const maxCutReplies = 3

// maxSameRefusals is how often in a row the same call may be refused (gate.md
// §2).
const maxSameRefusals = 3

// Options is what a loop works with. Model, Gate, Exec and Log are required.
type Options struct {
	Model Model
	Gate  Gate
	// Hooks and Extensions may be nil: nobody has a say beyond the tool calls.
	Hooks      Hooks
	Extensions Extensions
	Exec       *tool.Executor
	Log        Log
	System     string
	// Tools returns what the model is offered, before every model call: the same
	// slice as long as nothing has changed. Nil is no tools.
	Tools  func() []model.ToolSpec
	Limits Limits
	// Budget, if not nil, is the budget of the run that this one belongs to; Limits
	// is then that one's.
	Budget  *Budget
	Retry   Retry
	Context Context
	// OnDelta, if not nil, hears each piece of the model's text as it arrives, where
	// hooks may change or withhold what the model says only what they let through;
	// and the output of running tools unless HoldOutput.
	OnDelta    func(control.Delta)
	HoldOutput bool
	// Memory, if not nil, returns instructions that belong to the places that calls
	// were about, each once.
	Memory func(paths []string) []string
	// Keep, if not nil, returns texts that a summary must not lose.
	Keep func() []string
	// Notes, if not nil, returns what has happened beside the run since it was asked
	// last, to tell the model.
	Notes func() []string
	// Output is a JSON Schema that the answer must fit, nil for none; CheckOutput says
	// what is wrong with one.
	Output      []byte
	CheckOutput func(answer string) error
	// IDs holds the ids of calls in the session, nil for those of this loop alone.
	IDs *IDs
	// Serial, if not nil, has room for one, and is full while a mutating call runs, so
	// that those of several agents run one by one.
	Serial chan struct{}
	// WorkDir is the working directory of the first call.
	WorkDir string
	// History is what was said before; the loop appends to its own copy.
	History []*model.Message
	// First and Newest are the person's first and newest message, of History or of what
	// a summary in it stands for. Where they are nil it is taken for granted that the
	// messages of the user role are the person's, but for the harness's own.
	First, Newest *model.Message
	// Later is context of backends that waited for the next prompt.
	Later []string
	// Stubbed holds the results that stand as stubs in History, by call id.
	Stubbed map[string]string
	// Turn is the number of turns before this run.
	Turn int
	// Sleep waits; nil means by the clock.
	Sleep func(ctx context.Context, d time.Duration) error
	// Now tells the time; nil means the clock.
	Now func() time.Time
}

// Result is the end of a run.
type Result struct {
	Reason Reason
	// Detail says more for a person; it is empty for ReasonCompleted.
	Detail string
	// Text is the model's answer, as hooks let it through; "" if there is none.
	Text  string
	Turns int
	// Usage is the sum over the run, without sub-agents; members that were never
	// reported are nil.
	Usage model.Usage
	// CostUSD is what the run and its sub-agents cost, nil if a price is
	// unknown or a reply came without usage.
	CostUSD *float64
}

// Prompt is what a person says.
type Prompt struct {
	Text   string
	Images []event.Image
	// Given is context of backends that enters the conversation before it.
	Given []string
}

// Loop runs prompts in one session, one at a time.
type Loop struct {
	o        Options
	messages []*model.Message
	workDir  string
	turn     int
	usage    model.Usage
	lastText string
	runTurns int
	refusals refusals
	system   string          // with what extensions added for this run
	told     map[string]bool // the limits of which the agent knows that little is left
	images   bool            // there are or were some
	misfits  int             // answers of this run that didn't fit the schema
	reducing reducing

	mu       sync.Mutex // guards what follows, up to the blank line
	model    Model
	budget   *Budget // of the current run, nil between runs
	running  bool
	steering []string
	stubbed  map[string]string

	contextTokens atomic.Int64 // estimate of the next request

	later []string // context that waits for the next prompt

	// hold says that nothing of a reply is shown before the hooks had their say.
	hold bool
	// turnID is the id of the turn that Hooks know, from a prompt to its answer.
	turnID        string
	finished      bool // it was asked about the turn's end
	continuations int
	replies       int            // of models in this run
	reported      int            // of those, with usage
	answer        *model.Message // the answer of the turn, nil if there is none
	answerItem    string
}

// New returns a loop; it panics if a required option is missing.
func New(o Options) *Loop {
	if o.Model.Client == nil || o.Gate == nil || o.Exec == nil || o.Log == nil {
		panic("agent: Model, Gate, Exec and Log are required")
	}
	if o.Retry.Attempts == 0 {
		o.Retry.Attempts = 5
	}
	if o.Retry.Base == 0 {
		o.Retry.Base = time.Second
	}
	if o.Retry.Cap == 0 {
		o.Retry.Cap = time.Minute
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.IDs == nil {
		o.IDs = &IDs{}
	}
	l := &Loop{o: o, model: o.Model, system: o.System, workDir: o.WorkDir, turn: o.Turn, later: slices.Clone(o.Later), stubbed: maps.Clone(o.Stubbed)}
	l.hold = l.asks(ahp.ModelResponseAfter) || l.asks(ahp.TurnFinishBefore) || l.asks(ahp.UserMessageOutbound)
	for _, m := range o.History {
		l.push(m)
		for _, c := range m.ToolCalls() {
			o.IDs.take(c.ID)
		}
	}
	l.reducing.begin(o)
	return l
}

// push adds a message to the conversation.
func (l *Loop) push(m *model.Message) {
	l.messages = append(l.messages, m)
	l.reducing.bytes += size(m)
	l.images = l.images || hasImages(m)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
