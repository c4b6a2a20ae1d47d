package rpcmode

import "strings"

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

// distance counts the characters to add, take away or change, and the neighbours to
// swap, to make b of a.
func distance(a, b []rune) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i, ca := range a {
		for j, cb := range b {
			d := rows[i][j]
			if ca != cb {
				d++
			}
			d = min(d, rows[i][j+1]+1, rows[i+1][j]+1)
			if i > 0 && j > 0 && ca == b[j-1] && cb == a[i-1] {
				d = min(d, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = d
		}
	}
	return rows[len(a)][len(b)]
}
