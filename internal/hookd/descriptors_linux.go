package hookd

import (
	"math"

	"golang.org/x/sys/unix"
)

// CloseOnExec keeps what this process was started with from its children, but standard
// input, output and error, which each is given anew. A host waits for the end of every
// pipe that it gave a hook, and a child which still holds one makes it wait.
func CloseOnExec() error {
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err == nil {
		return nil
	}
	return closeListed("/proc/self/fd") // a kernel before 5.11
}
