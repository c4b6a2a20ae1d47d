package hookline

import "syscall"

// choose is select(2), whose result differs from system to system.
func choose(n int, r, w *syscall.FdSet, timeout *syscall.Timeval) error {
	_, err := syscall.Select(n, r, w, nil, timeout)
	return err
}
