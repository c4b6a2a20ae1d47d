//go:build race

package bash

import "time"

// allowed is the CPU time for cleaning a long line: the race detector takes most of it.
const allowed = 10 * time.Second
