package conformance

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestLongConversation: whatever the length, a failure names lines that are there,
// and those that it was seen from.
func TestLongConversation(t *testing.T) {
	for _, n := range []int{1, 12, maxHead, maxLines, maxLines + 1, 1000} {
		p := &probe{}
		for i := range n {
			p.record(1, ToPeer, fmt.Appendf(nil, "question %d", i+1))
			p.record(1, FromPeer, fmt.Appendf(nil, "answer %d", i+1))
		}
		r := p.judge(Check{}, p.failf("the last answer is wrong"))
		shown := r.Proven()
		if len(shown) != 2 || shown[1].Number != 2*n || shown[1].Text != fmt.Sprintf("answer %d", n) || len(r.Transcript) != min(2*n, maxLines) {
			t.Errorf("%d exchanges: %+v of %d lines", n, shown, len(r.Transcript))
		}
		r = p.judge(Check{}, nil)
		shown = r.Proven()
		if len(shown) != min(2*n, maxPassed) || shown[0].Number != 1 || shown[len(shown)-1].Number != 2*n {
			t.Errorf("%d exchanges that pass: %+v", n, shown)
		}
	}
}

// TestChatter: a peer that goes on and on after one message is shown by its first
// lines that are kept.
func TestChatter(t *testing.T) {
	p := &probe{}
	p.record(1, ToPeer, []byte("question"))
	for range 1000 {
		p.record(1, FromPeer, []byte("answer"))
	}
	var f *finding
	if !errors.As(p.failf("too many"), &f) || len(f.proof) != maxProof || f.proof[0] != 1 {
		t.Errorf("%+v", f)
	}
}

func TestExcerpt(t *testing.T) {
	var lines []Line
	for n := range 300 {
		lines = append(lines, Line{Number: n + 1})
	}
	for _, numbers := range [][]int{nil, {1}, {300}, {7, 150, 151}} {
		got := excerpt(lines, numbers, 40)
		for _, n := range append([]int{1}, numbers...) {
			if !slices.ContainsFunc(got, func(l Line) bool { return l.Number == n }) {
				t.Errorf("%v: line %d is missing", numbers, n)
			}
		}
		if len(got) != 40 || !slices.IsSortedFunc(got, func(a, b Line) int { return a.Number - b.Number }) {
			t.Errorf("%v: %d lines", numbers, len(got))
		}
	}
}

// TestLineBound: what stands for a byte that can't be shown is longer than that.
func TestLineBound(t *testing.T) {
	for _, text := range []string{strings.Repeat("\x00", 5000), strings.Repeat("\x00", maxLineText), strings.Repeat("\xffa", maxLineText), strings.Repeat("é", maxLineText)} {
		if got := (&probe{}).readable([]byte(text)); len(got) > maxLineText+len("…") || !strings.HasSuffix(got, "…") || strings.ToValidUTF8(got, "") != got {
			t.Errorf("%d bytes of %q", len(got), got[:8])
		}
	}
	if got := (&probe{}).readable([]byte(strings.Repeat("a", maxLineText))); len(got) != maxLineText {
		t.Errorf("what fits is cut to %d", len(got))
	}
}
