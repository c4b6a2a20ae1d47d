package chain

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
)

// FileOptions tunes a File. The zero value is right for most uses.
type FileOptions struct {
	// MaxBytes is the size at which the log is put aside and a new one begun; zero
	// means 64 MiB.
	MaxBytes int64
	// Keep is how many logs that were put aside are kept, as FILE.1 (the newest) and
	// so on; zero means 4.
	Keep int
	// Key, if set, signs where the log stands after each line, in FILE.head.
	Key *Key
	// EachSync has every line on disk before Append returns.
	EachSync bool
	// Private refuses a file that belongs to another account or that others can
	// read, and a symbolic link in its place.
	Private bool
	// Wait is how long the lock of another process is waited for; zero means as long
	// as it takes.
	Wait time.Duration
	// Heading, if set, makes the line that begins a log after another was put aside.
	Heading func(Place) (line []byte, hash string, err error)
}

// Place is where a line is to stand.
type Place struct {
	Seq  int64
	Prev string
	// Cut is how many bytes of a line half written were removed before this one.
	Cut int64
	// Continues is the head of the log that was put aside before this line, which is
	// the first of a new one; nil for any other line.
	Continues *Link
}

// File is a log that several processes append to. Each line is written by one call,
// under a lock between processes; a line that a crash left half written is cut off by
// the next writer. Its methods may be called from any goroutine.
type File struct {
	path string
	opts FileOptions

	mu   sync.Mutex
	file *os.File
	// head and size are how the file was left by this File: another process may have
	// written since.
	head Link
	size int64
	// cut is what was cut off and not mentioned by a line yet.
	cut    int64
	closed bool
}

// OpenFile opens the log at path, or makes it with mode 0600. The file must end with
// a sound line of a chain; Verify tells about the others.
func OpenFile(path string, opts FileOptions) (*File, error) {
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = 64 << 20
	}
	if opts.Keep <= 0 {
		opts.Keep = 4
	}
	f := &File{path: path, opts: opts}
	if err := f.reopen(); err != nil {
		return nil, err
	}
	if err := f.locked(f.catchUp); err != nil {
		f.file.Close()
		return nil, err
	}
	return f, nil
}

// Append writes the line that make gives for its place, which has about size bytes.
// Another log is begun first if it would become too large. If the line can't be
// written whole it isn't in the log.
func (f *File) Append(size int, make func(Place) (line []byte, hash string, err error)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return fmt.Errorf("%s: %w", f.path, os.ErrClosed)
	}
	return f.locked(func(there int64) error {
		if err := f.catchUp(there); err != nil {
			return err
		}
		if f.size > 0 && f.size+int64(size) > f.opts.MaxBytes {
			if err := f.rotate(); err != nil {
				return err
			}
		}
		var continues *Link
		if f.size == 0 {
			continues = f.before()
		}
		if continues != nil && f.opts.Heading != nil {
			if err := f.write(f.opts.Heading, continues); err != nil {
				return err
			}
			continues = nil
		}
		return f.write(make, continues)
	})
}

// Sync has everything that this process wrote on disk.
func (f *File) Sync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Sync()
}

// Close closes the file, once.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	return f.file.Close()
}

// write appends one line; the file is locked.
func (f *File) write(make func(Place) ([]byte, string, error), continues *Link) error {
	p := Place{Seq: f.head.Seq + 1, Prev: f.head.Hash, Cut: f.cut, Continues: continues}
	line, hash, err := make(p)
	if err != nil {
		return err
	}
	if _, err := f.file.WriteAt(append(line, '\n'), f.size); err != nil {
		// Part of it may be written, whatever the count says. If this fails as well the
		// next writer cuts the half line off.
		_ = f.file.Truncate(f.size)
		return fmt.Errorf("%s: write a line: %w", f.path, err)
	}
	if f.opts.EachSync {
		if err := f.file.Sync(); err != nil {
			return fmt.Errorf("%s: write a line: %w", f.path, err)
		}
	}
	f.size += int64(len(line)) + 1
	f.head, f.cut = Link{Seq: p.Seq, Prev: p.Prev, Hash: hash}, 0
	return f.sign()
}

// locked calls do with the file locked against other processes. If the log was put
// aside by one of them, the new one is opened.
func (f *File) locked(do func(size int64) error) error {
	for range 16 {
		file := f.file
		if err := lock(file, f.opts.Wait); err != nil {
			return fmt.Errorf("%s: lock: %w", f.path, err)
		}
		mine, err := file.Stat()
		if err != nil {
			return fmt.Errorf("%s: %w", f.path, err)
		}
		if there, err := os.Lstat(f.path); err == nil && os.SameFile(mine, there) || !f.opts.Private && f.sameTarget(mine) {
			err := do(mine.Size())
			_ = flock(f.file, syscall.LOCK_UN) // do may have put file aside and locked another
			return err
		}
		_ = flock(file, syscall.LOCK_UN)
		old := file
		if err := f.reopen(); err != nil {
			return err
		}
		old.Close()
	}
	return fmt.Errorf("%s is replaced again and again", f.path)
}

func (f *File) sameTarget(mine os.FileInfo) bool {
	there, err := os.Stat(f.path)
	return err == nil && os.SameFile(mine, there)
}

// lock takes the exclusive lock; wait of zero is without end.
func lock(file *os.File, wait time.Duration) error {
	if wait <= 0 {
		return flock(file, syscall.LOCK_EX)
	}
	end := time.Now().Add(wait)
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 500*time.Microsecond) {
		err := flock(file, syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if !time.Now().Before(end) {
			return fmt.Errorf("another process has held it for %v: %w", wait, os.ErrDeadlineExceeded)
		}
		time.Sleep(pause)
	}
}

func flock(file *os.File, how int) error {
	for {
		err := syscall.Flock(int(file.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// reopen opens what stands at the path now.
func (f *File) reopen() error {
	flags := os.O_RDWR | os.O_CREATE | syscall.O_NONBLOCK // a pipe is not waited for
	if f.opts.Private {
		flags |= syscall.O_NOFOLLOW
	}
	file, err := os.OpenFile(f.path, flags, 0o600)
	if err != nil {
		return err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: found %s, expected a regular file", f.path, info.Mode().Type())
	}
	if err == nil && f.opts.Private {
		err = private(f.path, info)
	}
	if err != nil {
		file.Close()
		return err
	}
	f.file, f.head, f.size = file, Link{}, 0
	return nil
}

// private refuses a file that is not this account's alone.
func private(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return fmt.Errorf("%s: found no owner on this system, expected one", path)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s: found it owned by account %d, expected account %d: move it away", path, st.Uid, os.Geteuid())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s: found mode %04o, expected 0600: chmod 600 it once you have looked who could read it", path, info.Mode().Perm())
	}
	return nil
}

// catchUp finds where the file, which has size bytes, ends and cuts off a line that is
// half written. The file is locked.
func (f *File) catchUp(size int64) error {
	if size == f.size {
		return nil
	}
	head, end, err := lastLink(f.file, size)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	if cut := size - end; cut > 0 {
		if err := f.file.Truncate(end); err != nil {
			return fmt.Errorf("%s: cut off a line half written: %w", f.path, err)
		}
		f.cut += cut
	}
	f.head, f.size = head, end
	return nil
}

// rotate puts the log aside and begins another, which is locked then. The old one is
// locked meanwhile, and at no moment is there none at the path: others see the old
// one or the new one.
func (f *File) rotate() error {
	old, next := f.file, f.path+".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("begin another log: %w", err)
	}
	file, err := os.OpenFile(next, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("begin another log: %w", err)
	}
	if err = lock(file, f.opts.Wait); err == nil {
		err = f.aside(old)
	}
	if err == nil {
		err = os.Rename(next, f.path)
	}
	if err != nil {
		file.Close()
		return fmt.Errorf("put %s aside: %w", f.path, err)
	}
	f.file, f.head, f.size = file, Link{}, 0
	return old.Close() // unlocks it as well
}

// aside gives the log, which is open as old, the name FILE.1 too, and moves the
// older ones on.
func (f *File) aside(old *os.File) error {
	mine, err := old.Stat()
	if err != nil {
		return err
	}
	if first, err := os.Lstat(f.path + ".1"); err == nil && os.SameFile(first, mine) {
		return nil // a process was killed in the midst of this
	}
	free := 1
	for free < f.opts.Keep {
		if _, err := os.Lstat(fmt.Sprintf("%s.%d", f.path, free)); errors.Is(err, os.ErrNotExist) {
			break
		}
		free++
	}
	for i := free; i > 1; i-- {
		for _, suffix := range []string{"", HeadSuffix} {
			if err := f.move(fmt.Sprintf(".%d%s", i-1, suffix), fmt.Sprintf(".%d%s", i, suffix)); err != nil {
				return err
			}
		}
	}
	if f.opts.Keep == 1 {
		if err := os.Remove(f.path + ".1"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := f.move(HeadSuffix, ".1"+HeadSuffix); err != nil {
		return err
	}
	return os.Link(f.path, f.path+".1")
}

func (f *File) move(from, to string) error {
	if err := os.Rename(f.path+from, f.path+to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// before returns the head of the log that was put aside last; nil for none, or for
// one that doesn't end with a sound line.
func (f *File) before() *Link {
	file, err := os.OpenFile(f.path+".1", os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	head, _, err := lastLink(file, info.Size())
	if err != nil || head.Seq == 0 {
		return nil
	}
	return &head
}
