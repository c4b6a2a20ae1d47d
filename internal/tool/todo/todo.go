// Package todo is the tool by which the model keeps a list of what it has to do.
//
// It guarantees that a call replaces the whole list of its agent or, if the list isn't
// in order, changes nothing and says what is wrong; that every agent has a list of its
// own; and that a list is bounded.
//
// Do not assume that the list says what was really done: the model wrote it.
package todo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
)

const (
	maxItems   = 100
	maxContent = 1000 // characters of one item
	maxAgents  = 1000 // lists that are kept
)

// Status is how far an item is.
type Status string

// The statuses, as the model writes them.
const (
	Pending    Status = "pending"
	InProgress Status = "in_progress"
	Completed  Status = "completed"
)

// Item is one thing to do.
type Item struct {
	Content string `json:"content"`
	Status  Status `json:"status"`
}

// Options are what the tool may be given. The zero value is the usual.
type Options struct {
	// Before, if set, is asked about each new list, whose place was taken by old so far.
	// Its error says why there must be no such list. OnChange, if set, is called with it
	// before the call's result is returned. Both are called one at a time, and must
	// neither change the lists nor call the tool.
	Before   func(ctx context.Context, agentID string, old, items []Item) error
	OnChange func(ctx context.Context, agentID string, old, items []Item)
}

// Tool is the todo tool. Make it with New.
type Tool struct {
	o Options

	mu    sync.Mutex // guards what follows, and orders the calls of OnChange
	lists map[string][]Item
}

var _ tool.Tool = (*Tool)(nil)

// New returns the tool, with no list yet.
func New(o Options) *Tool { return &Tool{o: o, lists: map[string][]Item{}} }

type args struct {
	Items []Item `json:"items"`
}

const schema = `{
  "type": "object",
  "properties": {
    "items": {
      "type": "array", "maxItems": %d,
      "description": "The whole list in its order; it replaces the one before. An empty list takes it away.",
      "items": {
        "type": "object",
        "properties": {
          "content": {"type": "string", "minLength": 1, "maxLength": %d, "description": "What is to be done, in a few words."},
          "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]}
        },
        "required": ["content", "status"],
        "additionalProperties": false
      }
    }
  },
  "required": ["items"],
  "additionalProperties": false
}`

// Spec returns the tool's description for the model.
func (t *Tool) Spec() tool.Spec {
	return tool.Spec{
		Name: "todo", Version: "1", Fixed: true, Schema: fmt.Appendf(nil, schema, maxItems, maxContent),
		Description: "Keep a list of what there is to do, for work of several steps. Give the whole list each time; at most one item is in_progress. " +
			"Mark an item completed as soon as it is.",
	}
}

// Declare says that the call has no subject and changes nothing outside the agent.
func (t *Tool) Declare([]byte) policy.Declaration { return policy.Declaration{} }

// Run replaces the list of the agent that called.
func (t *Tool) Run(ctx context.Context, g tool.Grant) (tool.Result, error) {
	a, err := tool.Decode[args](g.Args())
	if err != nil {
		return tool.Result{}, err
	}
	var busy []string
	for i, item := range a.Items {
		if strings.TrimSpace(item.Content) == "" {
			return tool.Fail(fmt.Sprintf("The list was not changed: item %d says nothing.", i+1)), nil
		}
		if item.Status == InProgress {
			busy = append(busy, fmt.Sprint(i+1))
		}
	}
	if len(busy) > 1 {
		return tool.Fail(fmt.Sprintf("The list was not changed: items %s are in_progress, and at most one may be. Set the others to pending or completed and send the whole list again.",
			strings.Join(busy, ", "))), nil
	}
	if err := t.set(ctx, g.Call().Agent.ID, a.Items); err != nil {
		return tool.Fail("The list was not changed: " + err.Error()), nil
	}
	return tool.OK(show(a.Items)), nil
}

// set keeps the list unless there is no room for it, or somebody is against it.
func (t *Tool) set(ctx context.Context, agent string, items []Item) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, known := t.lists[agent]
	if !known && len(t.lists) >= maxAgents {
		return fmt.Errorf("%d agents of this session have a list already", maxAgents)
	}
	if t.o.Before != nil {
		if err := t.o.Before(ctx, agent, old, items); err != nil {
			return err
		}
	}
	t.lists[agent] = slices.Clone(items)
	if t.o.OnChange != nil {
		t.o.OnChange(ctx, agent, old, items)
	}
	return nil
}

// Items returns an agent's list as it is.
func (t *Tool) Items(agentID string) []Item {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.lists[agentID])
}

// Restore puts back lists, by the agents' ids, as a session that is resumed had them.
// OnChange isn't called.
func (t *Tool) Restore(lists map[string][]Item) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for agent, items := range lists {
		t.lists[agent] = slices.Clone(items)
	}
}

// show returns the list for the model.
func show(items []Item) string {
	if len(items) == 0 {
		return "(the list is empty)"
	}
	var b strings.Builder
	open := 0
	for i, item := range items {
		mark := "[ ]"
		switch item.Status {
		case InProgress:
			mark = "[>]"
		case Completed:
			mark = "[x]"
		}
		if item.Status != Completed {
			open++
		}
		fmt.Fprintf(&b, "%d. %s %s\n", i+1, mark, tool.Clean(strings.Join(strings.Fields(item.Content), " ")))
	}
	fmt.Fprintf(&b, "(%d of %d open)\n", open, len(items))
	return b.String()
}
