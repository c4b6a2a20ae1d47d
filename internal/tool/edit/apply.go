package edit

import (
	"fmt"
	"sort"
	"strings"

	"github.com/abhed/abhed/internal/workspace"
)

const (
	// maxListed is how many lines of several occurrences are named.
	maxListed = 10
	// maxCounted is how far occurrences are counted where one was expected, maxPlaces
	// how many are replaced at once.
	maxCounted = 10_000
	maxPlaces  = 1_000_000
)

// apply makes one change in body and returns the new body and the number of places,
// or a problem in words for the model.
func (c change) apply(e workspace.Encoding, body string) (next string, places int, problem string) {
	old, new := *c.Old, *c.New
	if e == workspace.UTF8BOM { // the mark isn't part of the text that was shown
		old, new = strings.TrimPrefix(old, "\uFEFF"), strings.TrimPrefix(new, "\uFEFF")
	}
	switch {
	case old == new:
		return "", 0, "old_string and new_string are the same."
	case old == "":
		return "", 0, "old_string is empty; give the text to replace."
	case e == workspace.EightBit && !ascii(old+new):
		return "", 0, "the file is not UTF-8, and its encoding is not known, so only ASCII text can be replaced in it without damage."
	}
	v := newView(body)
	oldLF := toLF(old)
	if oldLF == toLF(new) { // a change of line endings alone: take both as written
		v, oldLF = rawView(body), old
	}
	var found []int
	if c.ReplaceAll {
		found = v.find(oldLF, len(oldLF), maxPlaces+1)
	} else {
		found = v.find(oldLF, 1, maxCounted)
	}
	switch {
	case len(found) == 0:
		return "", 0, notFound(v.text, oldLF)
	case len(found) > 1 && !c.ReplaceAll:
		least := ""
		if len(found) == maxCounted {
			least = "at least "
		}
		return "", 0, fmt.Sprintf("old_string occurs %s%d times, at lines %s. Add lines around it to make it unique, or set replace_all.",
			least, len(found), v.lines(found))
	case len(found) > maxPlaces:
		return "", 0, fmt.Sprintf("old_string occurs more than %d times; use a program to replace that many.", maxPlaces)
	}
	return v.replace(found, len(oldLF), new), len(found), ""
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}

func toLF(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// view is a text in which CRLF reads as LF, and the way back.
type view struct {
	body string
	text string
	crlf []int // the positions in text of the LFs that are CRLF in body, ascending
	raw  bool  // text is body as it is
}

func newView(body string) view {
	v := view{body: body, text: toLF(body)}
	if len(v.text) == len(body) {
		return v
	}
	for i, off := 0, 0; ; {
		j := strings.Index(body[i:], "\r\n")
		if j < 0 {
			return v
		}
		v.crlf = append(v.crlf, i+j-off)
		i, off = i+j+2, off+1
	}
}

func rawView(body string) view { return view{body: body, text: body, raw: true} }

// original returns the position in body of a position in text.
func (v view) original(pos int) int { return pos + sort.SearchInts(v.crlf, pos) }

// find returns where old occurs in text, up to a limit. With a step of 1 overlapping
// occurrences are among them: a text that overlaps itself isn't unique. With its own
// length they are apart.
func (v view) find(old string, step, limit int) []int {
	var found []int
	for from := 0; ; {
		i := strings.Index(v.text[from:], old)
		if i < 0 || len(found) == limit {
			return found
		}
		found = append(found, from+i)
		from += i + step
	}
}

// lines names the lines of positions in text.
func (v view) lines(found []int) string {
	var names []string
	for _, pos := range found[:min(len(found), maxListed)] {
		names = append(names, fmt.Sprint(1+strings.Count(v.text[:pos], "\n")))
	}
	if more := len(found) - len(names); more > 0 {
		return strings.Join(names, ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}

// replace puts new in the place of the occurrences.
func (v view) replace(found []int, length int, new string) string {
	var b strings.Builder
	at := 0
	for _, pos := range found {
		start, end := v.original(pos), v.original(pos+length)
		b.WriteString(v.body[at:start])
		b.WriteString(v.withEndings(new, start, end))
		at = end
	}
	b.WriteString(v.body[at:])
	return b.String()
}

// withEndings returns new with the line endings of what it replaces, one by one; a
// line more than before ends like the last of them, or like the line it is in.
func (v view) withEndings(new string, start, end int) string {
	if v.raw || !strings.Contains(new, "\n") {
		return new
	}
	endings := endingsIn(v.body[start:end])
	if len(endings) == 0 {
		endings = []string{v.endingAt(start, end)}
	}
	var b strings.Builder
	for i, line := range strings.Split(toLF(new), "\n") {
		if i > 0 {
			b.WriteString(endings[min(i-1, len(endings)-1)])
		}
		b.WriteString(line)
	}
	return b.String()
}

func endingsIn(s string) []string {
	var list []string
	for line := range strings.Lines(s) {
		switch {
		case strings.HasSuffix(line, "\r\n"):
			list = append(list, "\r\n")
		case strings.HasSuffix(line, "\n"):
			list = append(list, "\n")
		}
	}
	return list
}

// endingAt returns how the line at a place ends, or else the line before it.
func (v view) endingAt(start, end int) string {
	i := strings.IndexByte(v.body[end:], '\n')
	if i >= 0 {
		i += end
	} else {
		i = strings.LastIndexByte(v.body[:start], '\n')
	}
	if i > 0 && v.body[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}
