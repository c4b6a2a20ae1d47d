package conformance

import (
	"slices"
	"strings"
)

// Bounds of what a report holds of one check.
const (
	// maxLineText is how many bytes of a line are kept.
	maxLineText = 1 << 10
	// maxLines is how many lines a transcript has.
	maxLines = 120
	// maxProof is how many lines prove a failure or a warning, and maxPassed a pass:
	// that takes more, because it is about everything that was tried.
	maxProof, maxPassed = 12, 24
	// maxAround is how many lines of the plays of a harness a pass has: they are the
	// same ones for many checks.
	maxAround = 40
)

// transcript holds the start and the end of what was said, however long it was:
// how it began, and what a verdict came from.
type transcript struct {
	head, tail []Line
	count      int // lines in all
}

const maxHead, maxTail = maxLines / 2, maxLines - maxLines/2

// add numbers a line and keeps it.
func (c *transcript) add(l Line) {
	c.count++
	l.Number = c.count
	switch {
	case len(c.head) < maxHead:
		c.head = append(c.head, l)
		return
	case len(c.tail) == maxTail:
		copy(c.tail, c.tail[1:])
		c.tail = c.tail[:maxTail-1]
	}
	c.tail = append(c.tail, l)
}

// lines returns what is kept.
func (c *transcript) lines() []Line { return slices.Concat(c.head, c.tail) }

// since returns the numbers of the kept lines from one on, up to a bound.
func (c *transcript) since(first, bound int) []int {
	var out []int
	for _, l := range c.lines() {
		if l.Number >= first && len(out) < bound {
			out = append(out, l.Number)
		}
	}
	return out
}

// ends returns the numbers of the first and the last kept lines, up to a bound.
func (c *transcript) ends(bound int) []int {
	all := c.since(1, maxLines)
	if len(all) <= bound {
		return all
	}
	return slices.Concat(all[:bound/2], all[len(all)-(bound-bound/2):])
}

// excerpt returns the lines of a play with the numbers given, and as many of those
// around them as the bound allows. The lines are numbered from 1 without a gap.
func excerpt(lines []Line, numbers []int, bound int) []Line {
	if len(lines) <= bound {
		return lines
	}
	keep := map[int]bool{}
	mark := func(n int) {
		if n >= 1 && n <= len(lines) && len(keep) < bound {
			keep[n] = true
		}
	}
	for _, n := range numbers {
		mark(n)
	}
	mark(1) // the registration
	for distance := 1; distance <= len(lines); distance++ {
		for _, n := range append([]int{1}, numbers...) {
			mark(n - distance)
			mark(n + distance)
		}
	}
	var out []Line
	for _, l := range lines {
		if keep[l.Number] {
			out = append(out, l)
		}
	}
	return out
}

// cited names lines of a play.
type cited struct {
	in    *played
	lines []int
}

// cite puts the transcript of a check together from the plays that it names lines
// of, each with an equal share, and returns the numbers of the named lines; bound is
// how many of those there are, and most how many lines in all.
func (v *view) cite(list []cited, bound, most int) []int {
	var plays []*played
	named := map[*played][]int{}
	for _, c := range list {
		if !slices.Contains(plays, c.in) {
			plays = append(plays, c.in)
		}
		lines := slices.DeleteFunc(slices.Clone(c.lines), func(n int) bool { return n < 1 || n > len(c.in.lines) })
		if len(lines) == 0 {
			lines = []int{c.in.endLine, c.in.filesLine}
		}
		for _, n := range lines {
			if !slices.Contains(named[c.in], n) && len(named[c.in]) < bound {
				named[c.in] = append(named[c.in], n)
			}
		}
	}
	var proof []int
	offset := 0
	for _, r := range plays {
		numbers := named[r]
		numbers = numbers[:min(len(numbers), max(1, bound/len(plays)))]
		slices.Sort(numbers)
		for _, l := range excerpt(r.lines, numbers, max(len(numbers), most/len(plays))) {
			l.Number += offset
			v.p.cited = append(v.p.cited, l)
		}
		for _, n := range numbers {
			proof = append(proof, n+offset)
		}
		offset += len(r.lines)
	}
	return proof
}

// lineWith returns the first line of a text that has a word, or "".
func lineWith(text, word string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// How lines begin that tell what is no message.
const (
	saysEOF   = "the end of its standard input"
	saysNames = "the variables of its environment: "
	saysToken = "Authorization: "
)

// tells returns the number of the line of a connection that begins so; 0 is none.
func (r *played) tells(link int, begins string) int {
	for _, l := range r.lines {
		if l.Connection == link && l.Direction == Happened && strings.HasPrefix(l.Text, begins) {
			return l.Number
		}
	}
	return 0
}

// tellToken notes whether a request over HTTP has the registered token. Another
// credential than that may be one of the harness's own, and isn't shown.
func (s *stage) tellToken(a *arrival) {
	if !slices.ContainsFunc(s.play.backends, func(b actor) bool { return b.bearer }) {
		return
	}
	text := "none"
	switch values := a.header.Values("Authorization"); {
	case len(values) > 1:
		text = "more than one"
	case len(values) == 1 && values[0] == "Bearer "+s.env.token:
		text = "the registered token"
	case len(values) == 1:
		text = "something else"
	}
	s.happened(a.link, saysToken+"%s", text)
}
