package extension

import (
	"slices"
	"strconv"

	"github.com/abhed/abhed/internal/event"
)

// together returns for each message the number of its group: a message with tool
// calls and those with their results have the same, any other its own. A result
// belongs to the nearest message before it that has a call of its id, since models
// use ids again.
func together(messages []*event.Message) []int {
	groups := make([]int, len(messages))
	caller := map[string]int{}
	for i, m := range messages {
		groups[i] = i
		for _, p := range m.Parts {
			switch {
			case p.ToolCall != nil:
				caller[p.ToolCall.ID] = i
			case p.ToolResult != nil:
				if from, ok := caller[p.ToolResult.CallID]; ok {
					join(groups[:i+1], i, from)
				}
			}
		}
	}
	return groups
}

// join gives the group of message a and that of message b the same number.
func join(groups []int, a, b int) {
	from, to := groups[a], groups[b]
	switch {
	case from == to:
		return
	case from == a: // it is the only one of its group: numbers are those of earlier messages
		groups[a] = to
		return
	}
	for i, g := range groups {
		if g == from {
			groups[i] = to
		}
	}
}

// newest returns the index of the message that is always sent: the prompt if it is
// among them, else the newest of RoleUser; -1 if there is none.
func newest(messages []*event.Message, prompt *event.Message) int {
	last := -1
	for i := len(messages) - 1; i >= 0; i-- {
		if prompt != nil && messages[i] == prompt {
			return i
		}
		if last < 0 && messages[i].Role == event.RoleUser {
			last = i
		}
	}
	return last
}

// kept returns what one extension's list leaves, how many messages that drops, and
// the indices in it that no message has.
func kept(list []int64, groups []int, always int) (keep []bool, dropped int, beyond []string) {
	named := make([]bool, len(groups))
	for _, i := range list {
		if i < 0 || i >= int64(len(groups)) {
			if n := strconv.FormatInt(i, 10); len(beyond) == 0 {
				beyond = []string{n}
			}
			continue
		}
		named[i] = true
	}
	gone := make([]bool, len(groups)) // by group
	for i, ok := range named {
		if !ok {
			gone[groups[i]] = true
		}
	}
	if always >= 0 {
		gone[groups[always]] = false
	}
	keep = make([]bool, len(groups))
	for i := range keep {
		keep[i] = !gone[groups[i]]
		if !keep[i] {
			dropped++
		}
	}
	return keep, dropped, beyond
}

// intersect keeps what both keep; nil keeps all.
func intersect(a, b []bool) []bool {
	if a == nil {
		return slices.Clone(b)
	}
	for i := range a {
		a[i] = a[i] && b[i]
	}
	return a
}
