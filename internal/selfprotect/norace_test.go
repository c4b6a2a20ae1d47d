//go:build !race

package selfprotect_test

// raced tells that the race detector is on, which makes everything slow.
const raced = false
