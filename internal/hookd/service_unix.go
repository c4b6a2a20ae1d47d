package hookd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockService takes the lock of the account's service, which ends with the process.
func lockService(state string) (*os.File, error) {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, err
	}
	fd, err := unix.Open(lockFile(state), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", lockFile(state), err)
	}
	f := os.NewFile(uintptr(fd), lockFile(state))
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrRunning
		}
		return nil, fmt.Errorf("%s: %w", lockFile(state), err)
	}
	return f, nil
}

// Start starts the service in a session of its own, with nothing of the host's open: the
// caller has called CloseOnExec. It doesn't wait for it.
func Start(executable, home string) error {
	args := []string{"daemon", "run"}
	if home != "" {
		args = append(args, "--home", home)
	}
	c := exec.Command(executable, args...)
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return fmt.Errorf("the service can't be started: %w", err)
	}
	return c.Process.Release()
}
