package hookline

import (
	"strconv"
	"strings"
	"syscall"
)

// stateOf returns the folder of what ahp keeps, as package hooklog does, from a user
// database that is a file; "" where the account isn't in it.
func stateOf(home, database string) string {
	if home == "" {
		home = homeIn(slurp(database, 1<<20), syscall.Getuid())
	}
	if !strings.HasPrefix(home, "/") {
		return ""
	}
	return home + "/.local/state/ahp"
}

// homeIn returns the home folder of an account in the text of a user database.
func homeIn(text string, uid int) string {
	number := strconv.Itoa(uid)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '+' || line[0] == '-' {
			continue
		}
		if parts := strings.SplitN(line, ":", 7); len(parts) >= 6 && parts[0] != "" && parts[2] == number {
			return parts[5]
		}
	}
	return ""
}

// slurp reads a small regular file, "" if it can't be read or has more than limit bytes.
// It keeps the runtime's poller asleep, which os.ReadFile starts.
func slurp(path string, limit int) string {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer syscall.Close(fd)
	b := make([]byte, 0, 4096)
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := syscall.Read(fd, b[len(b):cap(b)])
		switch {
		case err == syscall.EINTR:
		case err != nil || len(b)+n > limit:
			return ""
		case n == 0:
			return string(b)
		default:
			b = b[:len(b)+n]
		}
	}
}
