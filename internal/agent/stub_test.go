package agent_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
)

// TestStubsStandForOldResults holds which results become stubs, that they are read
// back, and that a summary isn't asked for where they are enough.
func TestStubsStandForOldResults(t *testing.T) {
	b := setup(t, nil, says("done"), says("done"))
	m := b.inWindow(16_000, true)
	b.opts.Context.StubBytes, b.opts.Context.KeepResults = 1000, 3
	b.opts.History = past(30, 2000) // 15,000 tokens or more
	for _, i := range []int{2, 4} {
		b.opts.History[i].Parts[0].ToolResult.Content = "short"
	}
	l := agent.New(b.opts)
	want(t, l.Run(t.Context(), agent.Prompt{Text: "more"}), agent.ReasonCompleted)
	r := of[*event.ContextReduced](b.log)
	if len(r) != 1 || len(r[0].Stubs) != 25 || r[0].Trigger != "auto" || len(m.summaries) != 0 {
		t.Fatalf("recorded %d reductions, %d requests for a summary: %+v", len(r), len(m.summaries), r)
	}
	sent := b.model.last().Messages
	for i := range 30 {
		id := fmt.Sprintf("h%d", i+1)
		whole := b.opts.History[2*i+2].Parts[0].ToolResult.Content
		got := sent[2*i+2].Parts[0].ToolResult
		content, stubbed := l.Stubbed(id)
		if stub := i >= 2 && i < 27; stub != stubbed || stub != (got.Content != whole) || stub && (content != whole || !strings.Contains(got.Content, `"`+id+`"`) || !strings.Contains(got.Content, "2002 bytes") && !strings.Contains(got.Content, "2003 bytes")) {
			t.Errorf("%s: stub %v, %.120q", id, stubbed, got.Content)
		}
	}
	if _, ok := l.Stubbed("nobody"); ok {
		t.Error("a call that there was not can be read back")
	}
	// Manual: the stubs that there are stay, whatever the summary does.
	if _, _, detail := l.Compact(t.Context()); detail != "" {
		t.Error(detail)
	}
	if content, ok := l.Stubbed("h10"); !ok || !strings.HasPrefix(content, "h10r") {
		t.Errorf("after a summary h10 reads %.20q", content)
	}
}

// TestStubsAreNoLongerThanResults holds that a result that is shorter than its stub
// stays.
func TestStubsAreNoLongerThanResults(t *testing.T) {
	b := setup(t, nil, says("done"))
	b.inWindow(0, false)
	b.opts.Context.StubBytes, b.opts.Context.KeepResults = 1, 1
	b.opts.History = past(2, 50)
	if before, after, _ := agent.New(b.opts).Compact(t.Context()); after != before || len(reductions(b.log)) != 0 {
		t.Errorf("from %d to %d tokens", before, after)
	}
}

// TestStubsOfAnEarlierRun holds that a resumed loop reads back what it is given, and
// makes no second stub of a stub.
func TestStubsOfAnEarlierRun(t *testing.T) {
	b := setup(t, nil, says("done"))
	b.inWindow(0, false)
	b.opts.Context.StubBytes, b.opts.Context.KeepResults = 100, 1
	b.opts.History = past(3, 2000)
	b.opts.Stubbed = map[string]string{"h1": "the whole"}
	l := agent.New(b.opts)
	l.Compact(t.Context())
	if content, ok := l.Stubbed("h1"); !ok || content != "the whole" {
		t.Errorf("read back %q", content)
	}
	r := of[*event.ContextReduced](b.log)
	if len(r) != 1 || slices.ContainsFunc(r[0].Stubs, func(s event.Stub) bool { return s.CallID == "h1" }) || len(r[0].Stubs) != 1 {
		t.Errorf("recorded %+v", r)
	}
}
