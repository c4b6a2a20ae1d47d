//go:build race

package conformance_test

import "slices"

// raceEnabled tells that the race detector watches this program.
const raceEnabled = true

// sampled reports whether the broken peer of a check is tried: of the i-th check
// under the race detector every eighth, which takes each part of the suite in, and
// those in which the suite does several things at a time. What a broken peer does
// in its own process the detector doesn't see.
func sampled(i int, id string) bool {
	return i%8 == 0 || slices.Contains([]string{
		"stdio.sequence", "stdio.split", "stdio.end", "large",
		"chain.serial", "closed.silence", "observe", "observers", "late", "deadline",
	}, id)
}
