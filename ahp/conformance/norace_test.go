//go:build !race

package conformance_test

// raceEnabled tells that the race detector watches this program.
const raceEnabled = false

// sampled reports whether the broken peer of a check is tried: each is.
func sampled(int, string) bool { return true }
