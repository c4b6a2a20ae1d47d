package install

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// diffContext is how many lines around a change are shown.
const diffContext = 2

// maxDiff bounds the product of the lines that are compared one by one; beyond it the
// changed part is shown whole.
const maxDiff = 4 << 20

// Diff returns what a plan changes, as a unified diff. Values whose names tell that
// they are secret are not shown.
func (p *Plan) Diff() string {
	var b strings.Builder
	secret := secret()
	mask := func(line string) string { return secret.ReplaceAllString(line, `$1"…"`) }
	for _, f := range p.Files {
		if f.Action == Keep {
			continue
		}
		from, to := f.Path, f.Path
		if f.Before == nil {
			from = "/dev/null"
		}
		if f.After == nil {
			to = "/dev/null"
		}
		fmt.Fprintf(&b, "--- %s\n+++ %s\n", from, to)
		if bytes.Equal(f.Before, f.After) {
			fmt.Fprintf(&b, "mode %v\n", f.mode)
		}
		writeHunks(&b, mask, compare(splitLines(f.Before), splitLines(f.After)))
	}
	return b.String()
}

// secret matches a member whose value nobody needs to see. It is compiled when it is
// needed: the program starts for every tool call.
func secret() *regexp.Regexp {
	return regexp.MustCompile(`(?i)("?[\w.-]*(?:key|token|secret|password|authorization|credential)[\w.-]*"?\s*[:=]\s*)("(?:[^"\\]|\\.)*"|'[^']*')`)
}

func splitLines(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	return strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n")
}

// diffLine is one line: ' ' in both, '-' before, '+' after.
type diffLine struct {
	mark byte
	text string
}

// compare returns the lines of both with what became of each.
func compare(a, b []string) []diffLine {
	var head, tail []diffLine
	for len(a) > 0 && len(b) > 0 && same(a[0], b[0]) {
		head, a, b = append(head, diffLine{' ', a[0]}), a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && same(a[len(a)-1], b[len(b)-1]) {
		tail = append([]diffLine{{' ', a[len(a)-1]}}, tail...)
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a)*len(b) > maxDiff {
		for _, l := range a {
			head = append(head, diffLine{'-', l})
		}
		for _, l := range b {
			head = append(head, diffLine{'+', l})
		}
		return append(head, tail...)
	}
	// longest[i][j] is the length of the longest common subsequence of a[i:], b[j:].
	longest := make([][]int32, len(a)+1)
	for i := range longest {
		longest[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if same(a[i], b[j]) {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		switch {
		case i < len(a) && j < len(b) && same(a[i], b[j]):
			head = append(head, diffLine{' ', a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && longest[i+1][j] >= longest[i][j+1]:
			head = append(head, diffLine{'-', a[i]})
			i++
		default:
			head = append(head, diffLine{'+', b[j]})
			j++
		}
	}
	return append(head, tail...)
}

func same(a, b string) bool { return strings.TrimSuffix(a, "\n") == strings.TrimSuffix(b, "\n") }

// writeHunks writes the changed parts with some lines around them.
func writeHunks(out *strings.Builder, mask func(string) string, lines []diffLine) {
	for i := 0; i < len(lines); {
		first := i
		for first < len(lines) && lines[first].mark == ' ' {
			first++
		}
		if first == len(lines) {
			return
		}
		start, last := max(i, first-diffContext), first
		for k := first; k < len(lines) && k <= last+2*diffContext+1; k++ {
			if lines[k].mark != ' ' {
				last = k
			}
		}
		end := min(len(lines), last+diffContext+1)
		from, to := 1, 1
		for _, l := range lines[:start] {
			if l.mark != '+' {
				from++
			}
			if l.mark != '-' {
				to++
			}
		}
		before, after := 0, 0
		for _, l := range lines[start:end] {
			if l.mark != '+' {
				before++
			}
			if l.mark != '-' {
				after++
			}
		}
		if before == 0 {
			from--
		}
		if after == 0 {
			to--
		}
		fmt.Fprintf(out, "@@ -%d,%d +%d,%d @@\n", from, before, to, after)
		for _, l := range lines[start:end] {
			fmt.Fprintf(out, "%c%s\n", l.mark, strings.TrimRight(mask(l.text), "\r\n"))
		}
		i = end
	}
}
