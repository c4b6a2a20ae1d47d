package extension

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/event"
)

// anyHistory draws a conversation as a harness makes them: calls with ids that come
// again, results right after them, later, or never, and texts in between.
func anyHistory() *rapid.Generator[[]*event.Message] {
	return rapid.Custom(func(t *rapid.T) []*event.Message {
		var out []*event.Message
		id := rapid.SampledFrom([]string{"c0", "c1", "c2"})
		for range rapid.IntRange(0, 25).Draw(t, "n") {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				out = append(out, &event.Message{Role: event.RoleUser, Parts: []event.Part{event.TextPart("u")}})
			case 1:
				m := &event.Message{Role: event.RoleAssistant, Parts: []event.Part{event.TextPart("a")}}
				for _, c := range rapid.SliceOfNDistinct(id, 0, 3, rapid.ID[string]).Draw(t, "calls") {
					m.Parts = append(m.Parts, event.Part{ToolCall: &event.ToolCall{ID: c, Name: "t", Args: "{}"}})
				}
				out = append(out, m)
			default:
				m := &event.Message{Role: event.RoleTool}
				for range rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "results") {
					m.Parts = append(m.Parts, event.Part{ToolResult: &event.ToolResult{CallID: id.Draw(t, "id"), Name: "t"}})
				}
				out = append(out, m)
			}
		}
		return out
	})
}

// callerOf returns the index of the message whose call the result answers, found in
// the slow and plain way; -1 if there is none.
func callerOf(messages []*event.Message, at int, id string) int {
	for i := at - 1; i >= 0; i-- {
		for _, c := range messages[i].ToolCalls() {
			if c.ID == id {
				return i
			}
		}
	}
	return -1
}

func TestKeepProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		messages := anyHistory().Draw(t, "messages")
		n := len(messages)
		lists := rapid.SliceOfN(rapid.SliceOfN(rapid.Int64Range(-1, int64(n)), 0, 2*n+2), 1, 4).Draw(t, "lists")
		groups := together(messages)
		var prompt *event.Message
		if n > 0 && rapid.Bool().Draw(t, "has prompt") {
			prompt = messages[rapid.IntRange(0, n-1).Draw(t, "prompt")]
		}
		always := newest(messages, prompt)
		combine := func(lists [][]int64) []bool {
			var keep []bool
			for _, l := range lists {
				k, _, _ := kept(l, groups, always)
				keep = intersect(keep, k)
			}
			return keep
		}
		keep := combine(lists)

		// Order and duplicates have no effect, neither of lists nor within them.
		var shuffled [][]int64
		for _, l := range rapid.Permutation(lists).Draw(t, "order") {
			l = rapid.Permutation(slices.Concat(l, l)).Draw(t, "list")
			shuffled = append(shuffled, l, l)
		}
		if got := combine(shuffled); !slices.Equal(got, keep) {
			t.Fatalf("lists %v keep %v, in another order %v", lists, keep, got)
		}
		// The person's newest message stays.
		if prompt != nil && !keep[slices.Index(messages, prompt)] {
			t.Fatalf("the prompt was dropped: %v", keep)
		}
		if i := lastUser(messages); prompt == nil && i >= 0 && !keep[i] {
			t.Fatalf("the newest message of the person was dropped: %v", keep)
		}
		// A result and its call stay or go together.
		for i, m := range messages {
			for _, p := range m.Parts {
				if p.ToolResult == nil {
					continue
				}
				if c := callerOf(messages, i, p.ToolResult.CallID); c >= 0 && keep[c] != keep[i] {
					t.Fatalf("message %d has the call (kept: %v), %d the result (kept: %v)", c, keep[c], i, keep[i])
				}
			}
		}
		// Nothing that anybody left out is sent, but for the one that always is and what
		// belongs to it; and nothing is dropped without somebody who left out a part.
		for i := range messages {
			out := slices.ContainsFunc(lists, func(l []int64) bool { return leavesOut(l, groups, groups[i]) })
			if mine := always >= 0 && groups[i] == groups[always]; keep[i] != (mine || !out) {
				t.Fatalf("message %d of %v: kept %v, left out by somebody: %v", i, groups, keep[i], out)
			}
		}
	})
}

func lastUser(messages []*event.Message) int {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == event.RoleUser {
			return i
		}
	}
	return -1
}

// leavesOut reports whether a list lacks a message of the group.
func leavesOut(list []int64, groups []int, group int) bool {
	for i, g := range groups {
		if g == group && !slices.Contains(list, int64(i)) {
			return true
		}
	}
	return false
}

// TestShownEncodesOnce: a message is encoded once while it is shown again and
// again, and what is remembered is bounded.
func TestShownEncodesOnce(t *testing.T) {
	t.Parallel()
	s := shown{limit: 32 << 10}
	message := func(text string) *event.Message {
		return &event.Message{Role: event.RoleUser, Parts: []event.Part{event.TextPart(text)}}
	}
	m := message("first")
	line := func(messages ...*event.Message) string {
		r := &request{}
		s.add(r, messages)
		return string(r.tail)
	}
	want := `,"messages":[{"index":0,"role":"user","content":"first"},{"index":1,"role":"user","content":"first"}]`
	if got := line(m, m); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	first := &s.encoded(m)[0]
	big := make([]*event.Message, 40)
	for i := range big {
		big[i] = message(strings.Repeat("x", 1<<10))
	}
	line(append([]*event.Message{m}, big...)...)
	if &s.encoded(m)[0] != first {
		t.Error("the message was encoded a second time")
	}
	for range 3 {
		line(big...)
	}
	if _, ok := s.young[m]; ok {
		t.Error("a message that isn't shown any more is still remembered")
	}
	if _, ok := s.old[m]; ok {
		t.Error("a message that isn't shown any more is still remembered")
	}
	if s.size > s.limit {
		t.Errorf("%d bytes are remembered, the limit is %d", s.size, s.limit)
	}
}
