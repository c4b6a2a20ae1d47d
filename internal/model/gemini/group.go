package gemini

import (
	"slices"

	"github.com/abhed/abhed/internal/model"
)

// grouper joins messages that the API wants as one content: the results of one step,
// in the order of its calls, and what the model said without anybody between. What was
// joined once keeps its address, so that it is encoded once.
type grouper struct {
	seen   []*model.Message
	out    []*model.Message
	starts []int // out[i] begins with seen[starts[i]]
}

// group returns ms with runs joined. The slice is valid until the next call.
func (g *grouper) group(ms []*model.Message) []*model.Message {
	same := 0
	for same < len(g.seen) && same < len(ms) && g.seen[same] == ms[same] {
		same++
	}
	// Of the runs known, those stand whose end is known too and still the same.
	keep := len(g.out)
	for keep > 0 && !g.stands(keep-1, same, ms) {
		keep--
	}
	next := 0
	if keep > 0 {
		next = g.end(keep - 1)
	}
	g.out, g.starts = g.out[:keep], g.starts[:keep]
	g.seen = append(g.seen[:same], ms[same:]...)
	for next < len(ms) {
		end := next + 1
		for end < len(ms) && joined(ms[end-1], ms[end]) {
			end++
		}
		g.starts = append(g.starts, next)
		g.out = append(g.out, join(g.before(), ms[next:end]))
		next = end
	}
	return g.out
}

// end returns where in seen the run i ends.
func (g *grouper) end(i int) int {
	if i+1 < len(g.starts) {
		return g.starts[i+1]
	}
	return len(g.seen)
}

// stands reports whether run i is whole in ms, of which same messages are as before.
func (g *grouper) stands(i, same int, ms []*model.Message) bool {
	end := g.end(i)
	return end < same || end == same && (same == len(ms) || !joined(ms[same-1], ms[same]))
}

// before returns the last of what is joined already, nil if nothing is.
func (g *grouper) before() *model.Message {
	if len(g.out) == 0 {
		return nil
	}
	return g.out[len(g.out)-1]
}

func joined(a, b *model.Message) bool {
	return a.Role == b.Role && (a.Role == "tool" || a.Role == "assistant")
}

// join returns the messages of a run as one, which is the message itself if it is
// alone and in order. before is what stands before the run, which may be nil.
func join(before *model.Message, run []*model.Message) *model.Message {
	parts := run[0].Parts
	if len(run) > 1 {
		parts = nil
		for _, m := range run {
			parts = append(parts, m.Parts...)
		}
	}
	if run[0].Role == "tool" && before != nil {
		parts = ordered(parts, before.ToolCalls())
	}
	if len(run) == 1 && (len(parts) == 0 || &parts[0] == &run[0].Parts[0]) {
		return run[0]
	}
	return &model.Message{Role: run[0].Role, Parts: parts}
}

// ordered returns results in the order of their calls; others come last.
func ordered(parts []model.Part, calls []*model.ToolCall) []model.Part {
	place := make(map[string]int, len(calls))
	for i, c := range calls {
		place[c.ID] = i - len(calls)
	}
	compare := func(a, b model.Part) int {
		if a.ToolResult == nil || b.ToolResult == nil {
			return 0
		}
		return place[a.ToolResult.CallID] - place[b.ToolResult.CallID]
	}
	if slices.IsSortedFunc(parts, compare) {
		return parts
	}
	out := slices.Clone(parts)
	slices.SortStableFunc(out, compare)
	return out
}
