package rpcmode

import (
	"slices"
	"strings"
)

// maxGuessed is the longest name for which a nearest one is looked for.
const maxGuessed = 64

// unknown says that name isn't one of known, with the one that was probably meant.
func unknown(what, name string, known []string) string {
	text := "unknown " + what + " " + quote(name)
	if len(known) == 0 {
		return text + ", expected none"
	}
	text += ", expected one of " + strings.Join(known, ", ")
	if n := nearest(name, known); n != "" {
		text += " (did you mean " + quote(n) + "?)"
	}
	return text
}

// nearest returns the one of known that name was probably meant to be, or "". Case
// counts for nothing.
func nearest(name string, known []string) string {
	if len(name) > maxGuessed {
		return ""
	}
	best, bestDistance := "", 1+max(1, len(name)/3)
	for _, k := range known {
		if d := distance([]rune(strings.ToLower(name)), []rune(strings.ToLower(k))); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance counts the characters to add, take away or change to make b of a.
func distance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, ca := range a {
		above := slices.Clone(row)
		row[0] = i + 1
		for j, cb := range b {
			changed := above[j]
			if ca != cb {
				changed++
			}
			row[j+1] = min(changed, above[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
