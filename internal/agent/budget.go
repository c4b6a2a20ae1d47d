package agent

import (
	"fmt"
	"sync"
	"time"

	"github.com/abhed/abhed/internal/model"
)

// Model is a model with what is known of it.
type Model struct {
	Client model.Client
	// Price is nil if it is unknown, which is not free.
	Price *Price
	// Window is the tokens of request and reply together, Output those of a reply; 0
	// is unknown.
	Window, Output int64
	// Images says that the model takes images. Else those of the conversation aren't
	// sent.
	Images bool
}

// Budget counts what a run and its sub-agents use, against the run's limits. It is
// safe for concurrent use.
type Budget struct {
	limits Limits
	began  time.Time

	mu      sync.Mutex
	turns   int
	tokens  int64
	cost    float64
	unknown bool // what was really spent
}

// NewBudget returns the budget of a run that begins at began.
func NewBudget(limits Limits, began time.Time) *Budget {
	return &Budget{limits: limits, began: began}
}

// turn counts a turn that begins, unless a limit forbids it, which it then reports:
// agents that run side by side can't have the last one twice.
func (b *Budget) turn() *end {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.over(); e != nil {
		return e
	}
	b.turns++
	return nil
}

// spend counts a reply. Where known is false cost is an estimate, for the limit alone.
func (b *Budget) spend(tokens int64, cost float64, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens += tokens
	b.cost += cost
	b.unknown = b.unknown || !known
}

// Cost returns what was spent in US dollars, nil if a price is unknown or a
// reply came without usage.
func (b *Budget) Cost() *float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.unknown {
		return nil
	}
	cost := b.cost
	return &cost
}

// turnsLeft is how many turns are left, and whether there is a limit.
func (b *Budget) turnsLeft() (int, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limits.Turns - b.turns, b.limits.Turns > 0
}

// spent reports the limit that forbids another turn, nil if none does. The time
// limit is the context's.
func (b *Budget) spent() *end {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over()
}

// over is spent for who holds mu.
func (b *Budget) over() *end {
	switch lim := b.limits; {
	case lim.Turns > 0 && b.turns >= lim.Turns:
		return &end{ReasonMaxTurns, fmt.Sprintf("the limit of %d turns is used up", lim.Turns)}
	case lim.Tokens > 0 && b.tokens >= lim.Tokens:
		return &end{ReasonMaxTokens, fmt.Sprintf("%d tokens used, the limit is %d", b.tokens, lim.Tokens)}
	case lim.CostUSD > 0 && b.cost >= lim.CostUSD:
		return &end{ReasonMaxCost, fmt.Sprintf("%.4f USD spent, the limit is %.4f", b.cost, lim.CostUSD)}
	}
	return nil
}

// low returns what an agent should be told because little is left, each limit once:
// told holds those that it knows of. "" is nothing.
func (b *Budget) low(now time.Time, told map[string]bool) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	lim, out := b.limits, ""
	tell := func(what string, is bool, text string) {
		if is && !told[what] {
			told[what] = true
			out += text
		}
	}
	left := lim.Turns - b.turns
	tell("turns", lim.Turns > 2 && left <= max(lim.Turns/10, 2), fmt.Sprintf(" %d of %d model calls are left.", left, lim.Turns))
	tell("tokens", lim.Tokens > 0 && float64(b.tokens) >= 0.9*float64(lim.Tokens), fmt.Sprintf(" %d of %d tokens are left.", max(lim.Tokens-b.tokens, 0), lim.Tokens))
	tell("cost", lim.CostUSD > 0 && b.cost >= 0.9*lim.CostUSD, fmt.Sprintf(" %.4f of %.4f USD are left.", max(lim.CostUSD-b.cost, 0), lim.CostUSD))
	rest := lim.Time - now.Sub(b.began)
	tell("time", lim.Time > 0 && rest <= lim.Time/10, fmt.Sprintf(" %s of %s are left.", max(rest, 0).Round(time.Second), lim.Time))
	if out == "" {
		return ""
	}
	return "[abhed] Little of this run is left:" + out + " Bring the work to a state that can be left, and say what is open."
}
