package edit

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// byLines is the plain way to make an excerpt.
func byLines(old, body string) string {
	was, is := slices.Collect(strings.Lines(old)), slices.Collect(strings.Lines(body))
	start := 0
	for start < len(was) && start < len(is) && was[start] == is[start] {
		start++
	}
	end := 0
	for end < len(was)-start && end < len(is)-start && was[len(was)-1-end] == is[len(is)-1-end] {
		end++
	}
	from, to := max(0, start-2), min(len(is), len(is)-end+2)
	var b strings.Builder
	for i := from; i < to; i++ {
		if i == from+40 {
			fmt.Fprintf(&b, "(and %d more lines up to line %d)\n", to-i, to)
			break
		}
		fmt.Fprintf(&b, "%d\t%s\n", i+1, clip(strings.TrimRight(is[i], "\r\n"), 300))
	}
	return b.String()
}

// TestExcerptIsThePlainOne draws texts, and has long ones besides.
func TestExcerptIsThePlainOne(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "b", "\n", "\n", "\r\n", "a\n", "b\n"})
	rapid.Check(t, func(r *rapid.T) {
		part := func(name string, most int) string {
			return strings.Join(rapid.SliceOfN(piece, 0, most).Draw(r, name), "")
		}
		head, tail := part("head", 8), part("tail", 8)
		old, body := head+part("old", 6)+tail, head+part("new", rapid.SampledFrom([]int{6, 120}).Draw(r, "most"))+tail
		if old == body {
			return
		}
		got, want := excerpt(old, body), byLines(old, body)
		if strings.Contains(want, "(and ") { // the counts may differ by that empty line
			got, _, _ = strings.Cut(got, "(and ")
			want, _, _ = strings.Cut(want, "(and ")
		}
		if got != want {
			r.Fatalf("%q became %q:\n%q, want\n%q", old, body, got, want)
		}
	})
}

func TestLongExcerptIsThePlainOne(t *testing.T) {
	for n := 30; n < 60; n++ {
		for _, tail := range []string{"", "z", "z\n", "y\nz\n", "x\ny\nz\n", "w\nx\ny\nz"} {
			old, body := "a\nb\nc\n"+tail, "a\nb\nc\n"+strings.Repeat("new\n", n)+tail
			if got, want := excerpt(old, body), byLines(old, body); got != want {
				t.Fatalf("%d lines before %q:\n%q, want\n%q", n, tail, got, want)
			}
		}
	}
}
