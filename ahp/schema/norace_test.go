//go:build !race

package schema_test

// raceEnabled tells that the race detector watches this program.
const raceEnabled = false
