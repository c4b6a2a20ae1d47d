//go:build !race

package policy

// slowness is how much slower than otherwise the tests run.
const slowness = 1
