package config

import (
	"strings"
)

// maxGuessed is the longest name for which a nearest one is looked for.
const maxGuessed = 64

// nearest returns the one of known that name was probably meant to be, or "".
// Case counts for nothing; of two equally near the first wins.
func nearest(name string, known []string) string {
	if len(name) > maxGuessed {
		return ""
	}
	best, bestDistance := "", 1+max(1, len(name)/3)
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// distance returns how many single-character insertions, removals, changes and
// swaps of neighbours turn a into b.
func distance(a, b string) int {
	ra, rb := []rune(a), []rune(b)
	var before []int
	last := make([]int, len(rb)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(ra); i++ {
		row := make([]int, len(rb)+1)
		row[0] = i
		for j := 1; j <= len(rb); j++ {
			cost := 1
			if ra[i-1] == rb[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && ra[i-1] == rb[j-2] && ra[i-2] == rb[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(rb)]
}

// didYouMean returns a hint that names the nearest of known, or "".
func didYouMean(name string, known []string) string {
	if n := nearest(name, known); n != "" {
		return "did you mean " + quote(n) + "?"
	}
	return ""
}

// oneOf lists a closed set for a message.
func oneOf(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return "one of " + strings.Join(names, ", ")
}
