//go:build !linux

package e2e

// alone calls f; a network of its own is for Linux.
func alone(f func(network string)) { f("") }

// strays returns nothing: there is no portable way to find what a run left
// behind, so only its process group is ended.
func strays(network, dir string) []int { return nil }
