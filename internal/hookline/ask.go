package hookline

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"
)

// ErrNoService tells that no service can be asked: none is there, it is another
// version's, or it went away before it answered. Nothing was answered then, and the
// call is to be judged in this process.
var ErrNoService = errors.New("no service can be asked")

// ErrTime tells that a read or a write lasted too long.
var ErrTime = errors.New("the time is over")

// Socket returns the place of the service's socket in a state folder.
func Socket(state string) string { return state + "/hook.sock" }

// Absent reports whether err of Ask says that no service runs, so that one may be
// started.
func Absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// CheckSocket refuses a socket that isn't this account's alone: whoever listens there
// decides.
func CheckSocket(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s: found %s, expected a socket", path, kindOf(info.Mode()))
	}
	folder, err := os.Lstat(path[:strings.LastIndexByte(path, '/')+1] + ".")
	if err != nil {
		return err
	}
	for _, i := range [...]fs.FileInfo{info, folder} {
		s, is := i.Sys().(*syscall.Stat_t)
		if !is || int(s.Uid) != syscall.Getuid() || i.Mode().Perm()&0o077 != 0 {
			return fmt.Errorf("%s: found it or its folder owned by or open to others (mode %v), expected it to be this account's alone", path, i.Mode().Perm())
		}
	}
	return nil
}

func kindOf(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "a file"
	case m.IsDir():
		return "a folder"
	case m&fs.ModeSymlink != 0:
		return "a symbolic link"
	}
	return "mode " + m.Type().String()
}

// Taken is what a service sends first: it has read the call and judges it.
const Taken = 'T'

// Ask has the service at a socket judge c until a time. One that hasn't taken the call
// after a short while hangs, or has too much to do: it isn't waited for. The error wraps
// ErrNoService if the call is to be judged in this process, and ErrTime if there is no
// time left.
func Ask(socket string, c *Call, id Identity, until time.Time) (Answer, error) {
	none := func(err error) (Answer, error) { return Answer{}, fmt.Errorf("%w: %w", ErrNoService, err) }
	if err := CheckSocket(socket); err != nil {
		return none(err)
	}
	// Plain system calls on a blocking descriptor: no poller, no other thread.
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return none(err)
	}
	defer syscall.Close(fd)
	syscall.CloseOnExec(fd)
	soon := time.Now().Add(min(time.Until(until)/4, maxTaking))
	if err := (line{fd, soon}).hand(socket, c, &id); err != nil {
		if errors.Is(err, ErrTime) {
			err = errors.New("it takes no calls")
		}
		return none(err)
	}
	fields, err := ReadFrame(bufio.NewReaderSize(line{fd, until}, 4<<10), MaxEvent)
	if errors.Is(err, ErrTime) {
		return Answer{}, err
	}
	var a Answer
	if err == nil {
		a, err = AnswerOf(fields)
	}
	if err == nil && !a.Complete() {
		err = fmt.Errorf("it declined (%d)", a.Code)
	}
	if err != nil {
		return none(err)
	}
	return a, nil
}

// maxTaking bounds the time in which a service has to take a call.
const maxTaking = 2 * time.Second

// hand gives the call to the service, and returns once that has taken it.
func (l line) hand(socket string, c *Call, id *Identity) error {
	if err := l.arm(syscall.SO_SNDTIMEO); err != nil {
		return err
	}
	if err := l.connect(socket); err != nil {
		return err
	}
	if err := ownProgram(l.fd, id); err != nil {
		// An older service is to hear that a newer program is here; the event isn't for it.
		_ = l.send(appendCall(nil, &Call{Host: c.Host, Limit: c.Limit}, id))
		return err
	}
	frame := appendCall(make([]byte, 0, min(len(c.Data), step)+1024), c, id)
	if len(c.Data) <= step { // in one piece, which wakes the service once
		frame = append(frame, c.Data...)
	}
	if err := l.send(frame); err != nil {
		return err
	}
	if len(c.Data) > step {
		if err := l.send(c.Data); err != nil {
			return err
		}
	}
	var word [1]byte
	if _, err := l.Read(word[:]); err != nil {
		return err
	}
	if word[0] != Taken {
		return errors.New("it is of another version")
	}
	return nil
}

// line is a blocking socket that is used until a time.
type line struct {
	fd    int
	until time.Time
}

// arm bounds the next operation.
func (l line) arm(option int) error {
	left := time.Until(l.until)
	if left < time.Millisecond { // zero would mean for ever
		return ErrTime
	}
	tv := syscall.NsecToTimeval(int64(left))
	return syscall.SetsockoptTimeval(l.fd, syscall.SOL_SOCKET, option, &tv)
}

func (l line) connect(socket string) error {
	for {
		err := syscall.Connect(l.fd, &syscall.SockaddrUnix{Name: socket})
		switch {
		case err == syscall.EISCONN:
			return nil
		case err == syscall.EINTR: // with a time limit it isn't started again by itself
			if err := l.arm(syscall.SO_SNDTIMEO); err != nil {
				return err
			}
			continue
		case err == syscall.EAGAIN: // too many wait already, for as long as there was time
			return ErrTime
		}
		return err
	}
}

func (l line) send(b []byte) error {
	for {
		n, err := syscall.Write(l.fd, b)
		if n > 0 {
			b = b[n:]
		}
		if err != nil && err != syscall.EINTR && err != syscall.EAGAIN {
			return err
		}
		if len(b) == 0 {
			return nil
		}
		if err := l.arm(syscall.SO_SNDTIMEO); err != nil {
			return err
		}
	}
}

// Read is an io.Reader's.
func (l line) Read(b []byte) (int, error) {
	for {
		if err := l.arm(syscall.SO_RCVTIMEO); err != nil {
			return 0, err
		}
		n, err := syscall.Read(l.fd, b)
		switch {
		case n > 0:
			return n, nil
		case err == nil:
			return 0, errors.New("it ended the connection without an answer")
		case err != syscall.EINTR && err != syscall.EAGAIN:
			return 0, err
		}
	}
}
