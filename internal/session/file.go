package session

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
)

const fileSuffix = ".jsonl"

// file is what a session needs of its file; tests put a faulty one in its place.
type file interface {
	io.Writer
	io.Closer
	Truncate(size int64) error
	// Datasync returns once everything written is on disk.
	Datasync() error
}

type osFile struct{ *os.File }

func openFile(path string, flag int) (file, error) {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (f osFile) Datasync() error { return datasync(f.File) }

// lockPath returns the lock's file for the record at path.
func lockPath(path string) string { return strings.TrimSuffix(path, fileSuffix) + ".lock" }

// LockedError says that a session has a writer.
type LockedError struct {
	Path string // of the lock
	PID  int    // of the writer; 0 if it can't be told
}

// Error names the owner and what to do.
func (e *LockedError) Error() string {
	who := "another process"
	switch e.PID {
	case 0:
	case os.Getpid():
		who = fmt.Sprintf("this process (pid %d)", e.PID)
	default:
		who = fmt.Sprintf("the process %d", e.PID)
	}
	return fmt.Sprintf("the session is in use by %s (lock %s): close it there, or end that process", who, e.Path)
}

// lock is an advisory lock that the kernel lets go of when its process dies, so
// that a dead owner's lock is free.
type lock struct {
	f    *os.File
	path string
}

// acquire takes the lock at path or says who has it.
func acquire(path string) (*lock, error) {
	for range 100 {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("the session's lock can't be opened: %w", err)
		}
		switch err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err {
		case nil:
		case syscall.EWOULDBLOCK:
			pid := owner(f)
			f.Close()
			return nil, &LockedError{Path: path, PID: pid}
		case syscall.EINTR:
			f.Close()
			continue
		default:
			f.Close()
			return nil, fmt.Errorf("the session can't be locked (%s): %w", path, err)
		}
		// The owner removes the file when it is done, so the lock may be one on a
		// file that is gone; then it locks nobody out.
		if !stillAt(f, path) {
			f.Close()
			continue
		}
		if err := f.Truncate(0); err == nil {
			_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
			if err != nil {
				f.Close()
				return nil, fmt.Errorf("the session's lock can't be written: %w", err)
			}
		}
		return &lock{f: f, path: path}, nil
	}
	return nil, fmt.Errorf("the session's lock %s changed hands 100 times while it was to be taken: try again", path)
}

func owner(f *os.File) int {
	b := make([]byte, 32)
	n, _ := f.ReadAt(b, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil {
		return 0
	}
	return pid
}

func stillAt(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}

func (l *lock) release() error {
	err := os.Remove(l.path)
	if cerr := l.f.Close(); err == nil {
		err = cerr
	}
	return err
}
