//go:build race

package read_test

import "time"

// allowed is the CPU time for reading a long line: the race detector takes most of it.
const allowed = 10 * time.Second
