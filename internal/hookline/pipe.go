package hookline

import (
	"fmt"
	"syscall"
	"time"
)

// readAll appends what comes from fd to b, until it ends: at most limit bytes, until a
// time. What goes beyond is read and dropped, so that who writes it can end.
func readAll(fd int, b []byte, limit int, until time.Time) ([]byte, error) {
	start, dropped := len(b), false
	for {
		if err := await(fd, false, until); err != nil {
			return b, err
		}
		if dropped {
			b = b[:start]
		}
		if cap(b)-len(b) < 512 {
			b = append(b, make([]byte, max(cap(b), 4<<10))...)[:len(b)]
		}
		n, err := syscall.Read(fd, b[len(b):cap(b)])
		switch {
		case err == syscall.EINTR || err == syscall.EAGAIN:
			continue
		case err != nil:
			return b, fmt.Errorf("standard input can't be read: %w", err)
		case n == 0 && dropped:
			return b[:start], fmt.Errorf("the native event has more than %d bytes", limit)
		case n == 0:
			return b, nil
		}
		if b = b[:len(b)+n]; len(b)-start > limit {
			dropped = true
		}
	}
}

// writeAll writes b to a descriptor, whole, until a time. A reader that has gone is an
// error and no signal, which os.File would make of it.
func writeAll(fd int, b []byte, until time.Time) error {
	for len(b) > 0 {
		n, err := syscall.Write(fd, b)
		switch {
		case err == syscall.EAGAIN:
			if err := await(fd, true, until); err != nil {
				return err
			}
		case err != nil && err != syscall.EINTR:
			return err
		}
		b = b[max(n, 0):]
	}
	return nil
}

// await waits until a descriptor, below select's bound of 1024, can be read or written.
func await(fd int, write bool, until time.Time) error {
	for {
		left := time.Until(until)
		if left <= 0 {
			return ErrTime
		}
		tv := syscall.NsecToTimeval(int64(left))
		var set syscall.FdSet
		width := 1024 / len(set.Bits) // the bits of a word differ from system to system
		set.Bits[fd/width] = 1 << (fd % width)
		r, w := &set, (*syscall.FdSet)(nil)
		if write {
			r, w = w, r
		}
		err := choose(fd+1, r, w, &tv)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return err
		case set.Bits[fd/width] != 0:
			return nil
		}
	}
}
