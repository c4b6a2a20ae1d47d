//go:build race

package ahp_test

// raced tells that the race detector is on, which allocates too.
const raced = true
