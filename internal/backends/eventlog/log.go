// Package eventlog is a backend that judges nothing: it keeps a chained log of the
// events that it is told of, and of those that it is asked about.
//
// It guarantees that each event becomes one line whose hash covers the line before
// it (package chain), on disk before an intercepted event is answered; that several
// processes may write to one log; that log and rotated logs together stay within a
// bound; and that a line which a crash left half written is cut off and mentioned.
//
// Do not assume that the log is complete: observations are delivered at best effort,
// and the oldest rotated log is removed. Do not assume that scrubbing finds every
// secret: it knows shapes and the values that it was given, not what is secret.
package eventlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/internal/chain"
	"github.com/abhed/abhed/internal/strictjson"
)

// Options tunes a Log. The zero value is right for most uses.
type Options struct {
	// MaxBytes is the size at which the log is put aside and a new one begun; zero
	// means 64 MiB.
	MaxBytes int64
	// Keep is how many logs that were put aside are kept, as FILE.1 (the newest) and
	// so on; zero means 4.
	Keep int
	// Scrub, if set, changes the text of an event before it is written: see Scrubber.
	Scrub func(event []byte) ([]byte, error)
	// Key, if set, signs where the log stands after each line, in FILE.head.
	Key *chain.Key
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// OnError, if set, is told of observations that could not be written.
	OnError func(error)
}

// Log writes events to a file. It is a backend.Observer; its methods may be called
// from any goroutine.
type Log struct {
	path string
	opts Options

	mu   sync.Mutex
	file *os.File
	// head and size are how the file was left by this Log: another process may have
	// written since.
	head chain.Link
	size int64
}

var _ backend.Observer = (*Log)(nil)

// Open opens the log at path, or makes it with mode 0600. The file must end with a
// sound line of a chain; Verify tells about the others.
func Open(path string, opts Options) (*Log, error) {
	if opts.MaxBytes <= 0 {
		opts.MaxBytes = 64 << 20
	}
	if opts.Keep <= 0 {
		opts.Keep = 4
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	l := &Log{path: path, opts: opts}
	if err := l.reopen(); err != nil {
		return nil, err
	}
	err := l.locked(func() error {
		_, err := l.catchUp()
		return err
	})
	if err != nil {
		l.file.Close()
		return nil, err
	}
	return l, nil
}

// Close closes the file; everything is on disk already.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}

// Manifest returns what the backend takes, as an answer to discovery: every event,
// for observation, and for interception without any effect.
func (l *Log) Manifest() *ahp.Manifest {
	var rows []ahp.ManifestEvent
	for _, t := range ahp.EventTypes() {
		row := ahp.NewManifestEvent(t, ahp.ModeObserve)
		if t.Interceptable() {
			row.Modes = append(row.Modes, ahp.ModeIntercept)
			row.Capabilities = ahp.NewCapabilities(t)
		}
		rows = append(rows, row)
	}
	return ahp.NewManifest(rows...)
}

// Intercept writes the event down and has no objection. If it can't be written the
// answer is that no decision could be made.
func (l *Log) Intercept(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
	if err := l.append("intercept", q.Event); err != nil {
		return nil, fmt.Errorf("%w: %w", backend.ErrUnavailable, err)
	}
	return nil, nil
}

// Observe writes the event down.
func (l *Log) Observe(_ context.Context, e *ahp.Event) {
	if err := l.append("observe", e); err != nil && l.opts.OnError != nil {
		l.opts.OnError(err)
	}
}

// entry is one line of the log.
type entry struct {
	Seq  int64  `json:"seq"`
	Prev string `json:"prev"`
	Time string `json:"time"`
	// Mode is how the event came: "intercept" or "observe". It is empty in a line
	// that is about the log itself.
	Mode  string  `json:"mode,omitempty"`
	Event ahp.Raw `json:"event,omitempty"`
	// Omitted says why the event isn't there whole.
	Omitted string `json:"omitted,omitempty"`
	// Cut is how many bytes of a line half written were removed before this one.
	Cut int64 `json:"cut,omitzero"`
	// Continues is the head of the log that was put aside before this one.
	Continues *continued `json:"continues,omitzero"`
}

type continued struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

func (l *Log) append(mode string, e *ahp.Event) error {
	text, err := e.Encode()
	if err == nil && l.opts.Scrub != nil {
		text, err = l.opts.Scrub(text)
	}
	if err != nil {
		return fmt.Errorf("eventlog: event %q: %w", e.ID, err)
	}
	out := entry{Time: ahp.Timestamp(l.opts.Now()), Mode: mode, Event: text}
	// A line may be as long as a message, and an event almost is.
	if len(text) > chain.MaxLine-(4<<10) {
		out.Omitted = fmt.Sprintf("the event has %d bytes", len(text))
		if out.Event, err = strictjson.Marshal(map[string]string{"id": clip(e.ID), "source": clip(e.Source), "type": string(e.Type)}); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.locked(func() error {
		cut, err := l.catchUp()
		if err != nil {
			return err
		}
		out.Cut = cut
		if l.size > 0 && l.size+int64(len(out.Event))+1024 > l.opts.MaxBytes {
			if err := l.rotate(); err != nil {
				return err
			}
		}
		return l.write(out)
	})
}

func clip(s string) string { return s[:min(len(s), 1024)] }

// write seals and appends one line; the file is locked.
func (l *Log) write(e entry) error {
	e.Seq, e.Prev = l.head.Seq+1, l.head.Hash
	object, err := strictjson.Marshal(e)
	if err != nil {
		return err
	}
	line, hash, err := chain.Seal(object)
	if err != nil {
		return fmt.Errorf("eventlog: %w", err)
	}
	if _, err := l.file.WriteAt(append(line, '\n'), l.size); err != nil {
		return fmt.Errorf("eventlog: %w", err)
	}
	if err := l.file.Sync(); err != nil {
		return fmt.Errorf("eventlog: %w", err)
	}
	l.size += int64(len(line)) + 1
	l.head = chain.Link{Seq: e.Seq, Prev: e.Prev, Hash: hash}
	return l.sign()
}

// locked calls f with the file locked against other processes. If the log was put
// aside by one of them, the new one is opened.
func (l *Log) locked(f func() error) error {
	for range 16 {
		file := l.file
		if err := flock(file, syscall.LOCK_EX); err != nil {
			return fmt.Errorf("eventlog: lock %s: %w", l.path, err)
		}
		mine, err := file.Stat()
		if err != nil {
			return fmt.Errorf("eventlog: %w", err)
		}
		if there, err := os.Stat(l.path); err == nil && os.SameFile(mine, there) {
			err := f()
			flock(l.file, syscall.LOCK_UN) // f may have put file aside and locked another
			return err
		}
		flock(file, syscall.LOCK_UN)
		file.Close()
		if err := l.reopen(); err != nil {
			return err
		}
	}
	return fmt.Errorf("eventlog: %s is replaced again and again", l.path)
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

func (l *Log) reopen() error {
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("eventlog: %w", err)
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		f.Close()
		return fmt.Errorf("eventlog: %s isn't a regular file", l.path)
	}
	l.file, l.head, l.size = f, chain.Link{}, 0
	return nil
}

// catchUp finds where the file ends and cuts off a line that is half written; cut is
// how many bytes that were. The file is locked.
func (l *Log) catchUp() (cut int64, err error) {
	info, err := l.file.Stat()
	if err != nil {
		return 0, fmt.Errorf("eventlog: %w", err)
	}
	if info.Size() == l.size {
		return 0, nil
	}
	line, end, err := lastLine(l.file, info.Size())
	if err != nil {
		return 0, fmt.Errorf("eventlog: %s: %w", l.path, err)
	}
	head := chain.Link{}
	if end > 0 {
		computed, stated, err := chain.HashOf(line)
		if err == nil && computed != stated {
			err = errors.New("its hash doesn't fit")
		}
		if err == nil {
			head, err = chain.ParseLink(line)
		}
		if err != nil {
			return 0, fmt.Errorf("eventlog: %s: the last line isn't one of a log: %w; move the file away to begin another", l.path, err)
		}
	}
	if cut = info.Size() - end; cut > 0 {
		if err := l.file.Truncate(end); err != nil {
			return 0, fmt.Errorf("eventlog: %w", err)
		}
	}
	l.head, l.size = head, end
	return cut, nil
}

// rotate puts the log aside and begins another; the file is locked and stays so for
// others until they see that it was replaced.
func (l *Log) rotate() error {
	for _, suffix := range []string{"", headSuffix} {
		for i := l.opts.Keep; i > 0; i-- {
			from := fmt.Sprintf("%s.%d%s", l.path, i-1, suffix)
			if i == 1 {
				from = l.path + suffix
			}
			err := os.Rename(from, fmt.Sprintf("%s.%d%s", l.path, i, suffix))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return fmt.Errorf("eventlog: put %s aside: %w", filepath.Base(from), err)
			}
		}
	}
	before, old := l.head, l.file
	// Another process may have begun the new log in the meantime.
	if err := l.reopen(); err != nil {
		return err
	}
	defer old.Close() // unlocks it as well
	if err := flock(l.file, syscall.LOCK_EX); err != nil {
		return fmt.Errorf("eventlog: %w", err)
	}
	if _, err := l.catchUp(); err != nil {
		return err
	}
	return l.write(entry{Time: ahp.Timestamp(l.opts.Now()), Continues: &continued{Seq: before.Seq, Hash: before.Hash}})
}
