package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/tool/todo"
)

// todoChange is what became of one entry of a task list.
type todoChange struct {
	id, operation string
	change, prior []byte
}

// todoChanges compares two lists. An entry is known by what it says; those that say
// the same are counted.
func todoChanges(old, items []todo.Item) []todoChange {
	id := func(seen map[string]int, i todo.Item) string {
		seen[i.Content]++
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", seen[i.Content], i.Content))
		return "todo-" + hex.EncodeToString(sum[:6])
	}
	before, was := map[string]todo.Item{}, map[string]int{}
	var order []string
	for _, i := range old {
		key := id(was, i)
		before[key] = i
		order = append(order, key)
	}
	var out []todoChange
	is := map[string]int{}
	for _, i := range items {
		key := id(is, i)
		prior, known := before[key]
		delete(before, key)
		switch {
		case !known:
			out = append(out, todoChange{key, "create", encodeItem(i), nil})
		case prior != i:
			out = append(out, todoChange{key, "update", encodeItem(i), encodeItem(prior)})
		}
	}
	for _, key := range order {
		if prior, gone := before[key]; gone {
			out = append(out, todoChange{key, "remove", nil, encodeItem(prior)})
		}
	}
	return out
}

func encodeItem(i todo.Item) []byte {
	b, err := strictjson.Marshal(i)
	if err != nil {
		return []byte("{}") // strings can always be encoded
	}
	return b
}

// mayChangeTodos asks the backends about each change of a task list.
func (e *engine) mayChangeTodos(ctx context.Context, agentID string, old, items []todo.Item) error {
	w := e.worker(agentID)
	if e.backends == nil || w == nil || !w.gate.Wants(ahp.TaskChangeBefore, ahp.ModeIntercept) && !w.gate.Wants(ahp.TaskChangeBefore, ahp.ModeObserve) {
		return nil
	}
	for _, c := range todoChanges(old, items) {
		say := w.gate.Ask(ctx, agent.At{}, &agent.TaskBefore{ID: c.id, Operation: c.operation, Change: c.change, Prior: c.prior})
		if r := say.Refusal; r != nil {
			if r.Err != nil {
				return fmt.Errorf("the record can't be written: %w", r.Err)
			}
			return fmt.Errorf("refused by %s: %s", r.By, r.Reason)
		}
	}
	return nil
}

// todosChanged tells the backends.
func (e *engine) todosChanged(ctx context.Context, agentID string, old, items []todo.Item) {
	w := e.worker(agentID)
	if e.backends == nil || w == nil || !w.gate.Wants(ahp.TaskChangeAfter, ahp.ModeObserve) {
		return
	}
	for _, c := range todoChanges(old, items) {
		w.gate.Tell(ctx, agent.At{}, &agent.TaskChange{ID: c.id, Operation: c.operation, Change: c.change, Prior: c.prior})
	}
}

// restoreTodos puts back the task list of the main agent as its last call left it.
func (e *engine) restoreTodos() {
	answered := map[string]bool{}
	for i := len(e.state.Messages) - 1; i >= 0; i-- {
		for _, p := range e.state.Messages[i].Parts {
			switch {
			case p.ToolResult != nil && !p.ToolResult.IsError:
				answered[p.ToolResult.CallID] = true
			case p.ToolCall != nil && p.ToolCall.Name == "todo" && answered[p.ToolCall.ID]:
				var list struct {
					Items []todo.Item `json:"items"`
				}
				if strictjson.Unmarshal([]byte(p.ToolCall.Args), &list, strictjson.Options{}) == nil {
					e.todos.Restore(map[string][]todo.Item{mainAgent: list.Items})
				}
				return
			}
		}
	}
}
