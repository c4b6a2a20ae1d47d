//go:build !race

package conformance_test

// raceEnabled tells that the race detector watches this program.
const raceEnabled = false
