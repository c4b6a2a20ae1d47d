package app

import (
	"fmt"
	"sync/atomic"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/tool"
)

// maxStderrLines is how many lines of standard error of one backend are recorded.
const maxStderrLines = 10_000

// stderrLines returns what takes the lines of a backend's standard error. The
// processes of one backend share the bound, so it may be called by several.
func stderrLines(backend string, record func(event.Payload)) func(line string) {
	var lines atomic.Int64
	logged := func(level, line string) {
		record(&event.ExtensionLogged{Name: "backend " + backend, Level: level, Line: line})
	}
	return func(line string) {
		switch n := lines.Add(1); {
		case n <= maxStderrLines:
			logged("log", tool.Clean(line))
		case n == maxStderrLines+1:
			logged("warning", fmt.Sprintf("more than %d lines on standard error; the rest is not recorded", maxStderrLines))
		}
	}
}
