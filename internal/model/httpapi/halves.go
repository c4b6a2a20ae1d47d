package httpapi

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/abhed/abhed/internal/strictjson"
)

// Servers that cut their output between the two halves of a UTF-16 pair send
// half characters as escapes. The strict door refuses those, so a frame that
// holds some is rewritten first: each half becomes one of 2048 private characters
// (markBase and on), which a Joiner turns back into whole characters where the
// other half follows, and into U+FFFD elsewhere.
const (
	surrBase = 0xd800
	lowBase  = 0xdc00
	surrEnd  = 0xe000
	markBase = 0x10f800
	markEnd  = markBase + surrEnd - surrBase
)

// RepairHalves returns data with every escape of a lone surrogate replaced, how
// many there were, and whether they were replaced by marks. They are by U+FFFD if
// the frame has real characters that look like marks.
func RepairHalves(data []byte) (out []byte, lone int, marked bool) {
	done := 0
	strictjson.LoneSurrogates(data, func(at int, half rune) {
		if lone == 0 {
			marked = !looksMarked(data)
		}
		lone++
		mark := utf8.RuneError
		if marked {
			mark = markBase + half - surrBase
		}
		out = utf8.AppendRune(append(out, data[done:at]...), mark)
		done = at + strictjson.EscapeLen
	})
	if lone == 0 {
		return data, 0, false
	}
	return append(out, data[done:]...), lone, marked
}

// looksMarked reports whether data may hold a character of the marks' range, as
// UTF-8 or as an escaped pair.
func looksMarked(data []byte) bool {
	low := bytes.ToLower(data)
	return bytes.Contains(data, []byte("\xf4\x8f")) || bytes.Contains(low, []byte(`\udbfe`)) || bytes.Contains(low, []byte(`\udbff`))
}

func isMark(r rune) bool { return r >= markBase && r < markEnd }

// Unmark replaces marks by U+FFFD in text that isn't streamed in pieces.
func Unmark(s string, marked bool) string {
	if !marked {
		return s
	}
	return strings.Map(func(r rune) rune {
		if isMark(r) {
			return utf8.RuneError
		}
		return r
	}, s)
}

// Joiner turns the marks in one streamed text into characters. The zero value is
// ready.
type Joiner struct {
	// Replaced counts the halves that became U+FFFD.
	Replaced int

	high rune // a mark of a first half that waits for the second, or 0
}

// Add returns what of the text is settled once s has arrived; marked is what
// RepairHalves said of the frame that held s.
func (j *Joiner) Add(s string, marked bool) string {
	if s == "" || !marked && j.high == 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		low := marked && isMark(r) && r >= markBase+lowBase-surrBase
		switch {
		case j.high != 0 && low:
			b.WriteRune(utf16.DecodeRune(j.high-markBase+surrBase, r-markBase+surrBase))
			j.high = 0
			continue
		case j.high != 0:
			b.WriteString(j.Flush())
		}
		switch {
		case low:
			j.Replaced++
			b.WriteRune(utf8.RuneError)
		case marked && isMark(r):
			j.high = r
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Flush gives up waiting for a second half.
func (j *Joiner) Flush() string {
	if j.high == 0 {
		return ""
	}
	j.high = 0
	j.Replaced++
	return string(utf8.RuneError)
}
