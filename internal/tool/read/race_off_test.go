//go:build !race

package read_test

import "time"

// allowed is the CPU time for reading a long line.
const allowed = 200 * time.Millisecond
