//go:build !race

package bash

import "time"

// allowed is the CPU time for cleaning a long line.
const allowed = 200 * time.Millisecond
