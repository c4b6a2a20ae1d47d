// Package agent is the loop: model call, tool calls, results, and again.
//
// It guarantees that a tool runs only when the gate ruled Run, on the permit that
// came with the ruling; that every call of the model gets exactly one outcome in
// the record and one answer in the history; that the record accepted an event
// before the loop acts on it; and that a run ends with one of the closed set of
// reasons, within a second of its context's end.
//
// Do not assume that a run that ended in any way but ReasonCompleted answered
// the prompt.
package agent

import (
	"context"
	"time"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
)

// Reason says why a run ended (abhed.md "Loop").
type Reason string

// The reasons that this loop can end with.
const (
	ReasonCompleted      Reason = "completed"
	ReasonMaxTurns       Reason = "max_turns"
	ReasonMaxTokens      Reason = "max_tokens"
	ReasonMaxCost        Reason = "max_cost"
	ReasonMaxTime        Reason = "max_time"
	ReasonDeniedLoop     Reason = "denied_loop"
	ReasonRetryExhausted Reason = "retry_exhausted"
	ReasonStalled        Reason = "stalled"
	ReasonUserInterrupt  Reason = "user_interrupt"
	ReasonPromptRefused  Reason = "prompt_refused"
	ReasonStopped        Reason = "stopped"
	ReasonShutdown       Reason = "shutdown"
	ReasonError          Reason = "error"
)

// Proposal is a tool call as the model made it.
type Proposal struct {
	Turn    int
	Call    *model.ToolCall
	WorkDir string
	// TurnID and Batch are set where there are Hooks.
	TurnID string
	Batch  *Batch
}

// Ruling is the gate's answer to a Proposal: one of *Run, *Refused, *Supplied,
// *Stopped, *Cancelled and *Broken. The decision is in the record when the
// ruling is returned.
type Ruling interface{ ruling() }

// Run lets the call run on Permit.
type Run struct {
	Permit tool.Permit
	Call   policy.Call
	Decl   policy.Declaration
}

// Refused refuses the call; Text is what the model reads.
type Refused struct {
	Text string
	// Same identifies the call for the count of repeated refusals.
	Same string
	Call policy.Call
}

// Supplied gives a result instead of running the call.
type Supplied struct {
	Call    policy.Call
	Decl    policy.Declaration
	Content string
	By      string
}

// Stopped ends the run.
type Stopped struct {
	Call   policy.Call
	By     string
	Reason string
}

// Cancelled says that the context ended while the call was judged.
type Cancelled struct{ Call policy.Call }

// Broken says that the decision could not be recorded or the gate is at fault:
// nothing runs, the run ends with ReasonError.
type Broken struct{ Err error }

func (*Run) ruling()       {}
func (*Refused) ruling()   {}
func (*Supplied) ruling()  {}
func (*Stopped) ruling()   {}
func (*Cancelled) ruling() {}
func (*Broken) ruling()    {}

// Outcome is what became of a call, before extensions and backends see it.
type Outcome struct {
	Turn int
	Call policy.Call
	Decl policy.Declaration
	// Kind is the outcome of event.ToolEnded.
	Kind     string
	Content  string
	IsError  bool
	WorkDir  string
	Duration time.Duration
	// Ran says that the tool was executed; a supplied result has Ran false and
	// passes the extensions all the same.
	Ran bool
	// Images came with the content.
	Images []event.Image
	// Changes lists the files that the call changed.
	Changes []tool.FileChange
	// TurnID and Batch are set where there are Hooks.
	TurnID string
	Batch  *Batch
}

// Final is an Outcome after extensions and backends had their say, recorded.
type Final struct {
	Content  string
	IsError  bool
	Images   []event.Image
	Injected []string
	// Later is context that waits for the next prompt.
	Later []string
	// Stop, when not empty, ends the run: a backend's reason.
	Stop string
}

// Gate judges calls and passes on their results. Judge and Finish may be called
// concurrently for different calls.
type Gate interface {
	Judge(ctx context.Context, p Proposal) Ruling
	// Finish shows the outcome to extensions and backends and records it. If ctx has
	// ended nobody is asked, and what somebody would have reviewed is withheld. Its
	// error means that the record failed.
	Finish(ctx context.Context, o Outcome) (Final, error)
}

// Log is the record as the loop needs it.
type Log interface {
	// Append records an event; a later durable one makes it durable too.
	Append(d event.Draft) (event.Event, error)
	// AppendDurable returns when the event is on disk.
	AppendDurable(d event.Draft) (event.Event, error)
	// Sign signs the head.
	Sign() error
}

// Limits bounds a run with its sub-agents; a zero is no limit.
type Limits struct {
	// Turns counts model replies.
	Turns int
	// Tokens counts input and output tokens of this run; replies without usage are
	// counted as one token per four bytes.
	Tokens int64
	// CostUSD is in US dollars, by Model.Price; replies without usage count as with
	// Tokens, at the price of input.
	CostUSD float64
	// Time is the wall time of this run.
	Time time.Duration
}

// Price is what tokens cost, in US dollars for a million.
type Price struct{ Input, Output, CacheRead, CacheWrite float64 }

// Of returns the cost of a reply in US dollars; a count that is unknown costs nothing.
func (p Price) Of(u *model.Usage) float64 {
	n := func(v *int64) float64 {
		if v == nil {
			return 0
		}
		return float64(*v)
	}
	return (n(u.Input)*p.Input + n(u.Output)*p.Output + n(u.CacheRead)*p.CacheRead + n(u.CacheWrite)*p.CacheWrite) / 1e6
}

// Retry bounds the repetition of failed model calls.
type Retry struct {
	// Attempts is the number of tries in all; zero means 5.
	Attempts int
	// Base is the first wait, doubled each time; zero means 1 s.
	Base time.Duration
	// Cap is the longest wait, retry-after included; zero means 60 s.
	Cap time.Duration
}

// Interrupted is the cause to cancel a run's context with; Reason becomes the
// run's reason, Detail its detail.
type Interrupted struct {
	Reason Reason
	Detail string
}

// Error returns the reason.
func (e *Interrupted) Error() string { return "interrupted: " + string(e.Reason) }
