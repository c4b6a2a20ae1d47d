// Package script is a model that plays a fixed script: each call of the model
// gets the next step. It serves the demo, and tests of everything above a model.
//
// It judges a request like a strict endpoint before it answers: every tool call
// has exactly one result right after it, two assistant messages never follow one
// another, no text is empty. A request that breaks a rule, a result that isn't
// what the step expects, and a request beyond the last step are errors that say
// so (kind request, not retryable), and don't advance the script.
//
// Do not assume that it reads what it is told: the reply depends on the number of
// the call alone.
package script

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"unicode"

	"github.com/abhed/abhed/internal/model"
)

// Call is a tool call of a step.
type Call struct {
	// ID is the call's id; "" means one made from the numbers of step and call.
	ID   string
	Name string
	// Args is the arguments' text, passed on as it is; "" means {}.
	Args string
}

// Step is one reply of the model.
type Step struct {
	// Expect must appear in the result of the last tool call that the request
	// holds; "" expects nothing.
	Expect    string
	Reasoning string
	Text      string
	Calls     []Call
	// Finish is why the reply ends; "" means tool_calls or stop, by Calls. Any other
	// than these withholds the calls, as the contract of model.Client demands.
	Finish model.Finish
	// Usage is what is reported; nil is unknown.
	Usage *model.Usage
	// Fail, if set, makes the step an error of this kind after the text.
	Fail model.ErrorKind
	// Hang makes the step wait, after the text, until the call's context ends.
	Hang bool
}

// Client plays steps. It may be used by several goroutines, each of which gets
// whole steps.
type Client struct {
	steps  []Step
	name   string
	agents map[string]*Client // by a part of the task's title

	mu   sync.Mutex
	next int
}

var _ model.Client = (*Client)(nil)

// New returns a client that plays steps, which must not change afterwards.
func New(steps []Step) *Client { return &Client{steps: steps} }

// Options are what a loaded script may be given.
type Options struct {
	// Name is what Name returns; "" means "script/script".
	Name string
}

// Load returns a client that plays the script in data: its steps (see Parse), and
// those of its object "agents" for sub-agents.
func Load(data []byte, o Options) (*Client, error) {
	steps, agents, err := parse(data)
	if err != nil {
		return nil, err
	}
	c := &Client{steps: steps, name: o.Name, agents: map[string]*Client{}}
	for title, own := range agents {
		c.agents[title] = &Client{steps: own, name: o.Name}
	}
	return c, nil
}

// For returns the client of a sub-agent with the task title: the one whose name in
// "agents" is part of the title, the longest counting, or c itself.
func (c *Client) For(title string) *Client {
	best, found := c, ""
	for name, a := range c.agents {
		if strings.Contains(title, name) && (best == c || len(name) > len(found) || len(name) == len(found) && name < found) {
			best, found = a, name
		}
	}
	return best
}

// Name returns the provider's and the model's name.
func (c *Client) Name() string {
	if c.name == "" {
		return "script/script"
	}
	return c.name
}

// Left returns the number of steps that were not played yet.
func (c *Client) Left() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.steps) - c.next
}

// Stream plays the next step, in deltas of a word each (see model.Client).
func (c *Client) Stream(ctx context.Context, req *model.Request, onDelta func(model.Delta)) (*model.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n, step, err := c.take(req)
	if err != nil {
		return nil, err
	}
	if onDelta == nil {
		onDelta = func(model.Delta) {}
	}
	for _, w := range words(step.Reasoning) {
		onDelta(model.Delta{Reasoning: w})
	}
	said := ""
	for _, w := range words(step.Text) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		onDelta(model.Delta{Text: w})
		said += w
	}
	if step.Hang {
		<-ctx.Done()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if step.Fail != "" {
		return nil, &model.Error{Kind: step.Fail, Endpoint: "script", Partial: said, Detail: fmt.Sprintf("step %d of the script fails as written", n+1)}
	}
	return response(n, step), nil
}

// take judges req and advances the script.
func (c *Client) take(req *model.Request) (int, *Step, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.next
	if problem := c.problem(req); problem != "" {
		return n, nil, &model.Error{Kind: model.ErrRequest, Endpoint: "script", Detail: fmt.Sprintf("request for step %d: %s", n+1, problem)}
	}
	c.next++
	return n, &c.steps[n], nil
}

// problem returns why the next step can't be played, "" if it can.
func (c *Client) problem(req *model.Request) string {
	if problem := checkHistory(req.Messages); problem != "" {
		return problem
	}
	if c.next >= len(c.steps) {
		return fmt.Sprintf("the script has only %d steps", len(c.steps))
	}
	expect := c.steps[c.next].Expect
	if expect == "" {
		return ""
	}
	last := lastResult(req.Messages)
	switch {
	case last == nil:
		return fmt.Sprintf("expected a tool result with %q, found no tool result", expect)
	case !strings.Contains(last.Content, expect):
		return fmt.Sprintf("expected %q in the result of %s (call %s), found %q", expect, last.Name, last.CallID, bound(last.Content))
	}
	return ""
}

func lastResult(ms []*model.Message) *model.ToolResult {
	for i := len(ms) - 1; i >= 0; i-- {
		for j := len(ms[i].Parts) - 1; j >= 0; j-- {
			if r := ms[i].Parts[j].ToolResult; r != nil {
				return r
			}
		}
	}
	return nil
}

// bound keeps an error readable.
func bound(s string) string {
	const limit = 400
	if len(s) <= limit {
		return s
	}
	return s[:limit] + fmt.Sprintf("… (%d bytes)", len(s))
}

func response(n int, s *Step) *model.Response {
	m := &model.Message{Role: "assistant", Parts: []model.Part{}}
	if s.Reasoning != "" {
		m.Parts = append(m.Parts, model.Part{Reasoning: &s.Reasoning})
	}
	if s.Text != "" {
		m.Parts = append(m.Parts, model.Part{Text: &s.Text})
	}
	r := &model.Response{Message: m, Finish: s.Finish, Usage: s.Usage, Model: "script"}
	if r.Finish == "" {
		r.Finish = model.FinishStop
		if len(s.Calls) > 0 {
			r.Finish = model.FinishToolCalls
		}
	}
	if r.Finish != model.FinishStop && r.Finish != model.FinishToolCalls {
		if len(s.Calls) > 0 {
			r.Note = fmt.Sprintf("%d tool calls were withheld because the reply was not complete", len(s.Calls))
		}
		return r
	}
	for i, c := range s.Calls {
		call := &model.ToolCall{ID: c.ID, Name: c.Name, Args: c.Args}
		if call.ID == "" {
			call.ID = fmt.Sprintf("call_%d_%d", n+1, i+1)
		}
		if call.Args == "" {
			call.Args = "{}"
		}
		m.Parts = append(m.Parts, model.Part{ToolCall: call})
	}
	return r
}

// words cuts s before each word; joined they are s again.
func words(s string) []string {
	var out []string
	start, afterSpace := 0, false
	for i, r := range s {
		space := unicode.IsSpace(r)
		if afterSpace && !space {
			out = append(out, s[start:i])
			start = i
		}
		afterSpace = space
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}
