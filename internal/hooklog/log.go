// Package hooklog keeps the decisions that were made on this machine for the hooks of
// all hosts, as one chained log that many short processes append to.
//
// It guarantees that an Append without error has written one whole line, which links
// to every line before it (package chain); that lines of several processes never mix;
// that a crash or a kill of a process loses no line that was appended, and a line half
// written is cut off and mentioned by the next; that the log and what was put aside
// stay within a bound; that every text is scrubbed before it reaches the disk; and
// that folder and files are this account's alone.
//
// Do not assume that the last lines survive a loss of power: a line is not synced by
// itself, see Sync. Do not assume that scrubbing finds every secret: it knows
// shapes, names and the values that it was given. Do not assume that an unbroken
// chain is authentic: see package chain.
package hooklog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/chain"
	"github.com/abhed/abhed/internal/strictjson"
)

// File is the name of the newest file in a log's folder; older ones are File.1 and so
// on.
const File = "decisions.jsonl"

// Options tunes a Log. The zero value is right for most uses.
type Options struct {
	// MaxBytes is the size at which the log is put aside and a new one begun; zero
	// means 64 MiB.
	MaxBytes int64
	// Keep is how many logs that were put aside are kept; zero means 4.
	Keep int
	// Secrets are values that are removed wherever they stand, each of at least 8
	// bytes; what is shaped or named like a credential is removed as well.
	Secrets []string
	// Key, if set, signs where the log stands after each line, which takes longer than
	// the line itself.
	Key *chain.Key
	// LockWait is how long another process may hold the log before Append fails; zero
	// means 2 s.
	LockWait time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Log is the log of one folder. Its methods may be called from any goroutine.
type Log struct {
	file  *chain.File
	scrub func([]byte) ([]byte, error)
	now   func() time.Time
}

// Open opens the log in dir, which it makes with mode 0700. An error says what keeps
// decisions from being written.
func Open(dir string, opts Options) (*Log, error) {
	l := &Log{now: opts.Now}
	if l.now == nil {
		l.now = time.Now
	}
	if opts.LockWait <= 0 {
		opts.LockWait = 2 * time.Second
	}
	var err error
	if l.scrub, err = chain.Scrubber(opts.Secrets); err != nil {
		return nil, fmt.Errorf("the decision log: %w", err)
	}
	if err := folder(dir); err != nil {
		return nil, fmt.Errorf("the decision log: %w", err)
	}
	l.file, err = chain.OpenFile(filepath.Join(dir, File), chain.FileOptions{
		MaxBytes: opts.MaxBytes, Keep: opts.Keep, Private: true, Wait: opts.LockWait, Key: opts.Key,
	})
	if err != nil {
		return nil, fmt.Errorf("the decision log: %w", err)
	}
	return l, nil
}

// folder makes dir, or refuses one that isn't this account's alone.
func folder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return fmt.Errorf("%s: found %s, expected a folder", dir, info.Mode().Type())
	case !ok || int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s: found a folder of another account, expected one of account %d: move it away", dir, os.Geteuid())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s: found mode %04o, expected 0700: chmod 700 it once you have looked who could read it", dir, info.Mode().Perm())
	}
	return nil
}

// maxEvent bounds the text of an event in a line: a line may be as long as a message,
// and an event almost is.
const maxEvent = chain.MaxLine - 1<<20

// Append writes e as the next line and sets its Seq, Prev and Hash, and Time if that is
// empty. An error means that the decision isn't written.
func (l *Log) Append(e *Entry) error {
	if e.Time == "" {
		e.Time = ahp.Timestamp(l.now())
	}
	out := *e
	out.Continues, out.Cut = nil, 0
	if len(out.Event) > maxEvent {
		out.Omitted = fmt.Sprintf("the event has %d bytes", len(out.Event))
		out.Event = nil
	}
	// Almost all of the work is done before the log is locked.
	text, err := l.text(&out, chain.Place{Seq: ahead, Prev: zeroHash})
	if err == nil {
		err = l.file.Append(len(text)+256, func(p chain.Place) ([]byte, string, error) {
			return l.seal(text, &out, p)
		})
	}
	if err != nil {
		return fmt.Errorf("the decision can't be logged: %w", err)
	}
	e.Seq, e.Prev, e.Hash = out.Seq, out.Prev, out.Hash
	return nil
}

const (
	// zeroHash stands where a hash is put, and ahead where the number is.
	zeroHash = "0000000000000000000000000000000000000000000000000000000000000000"
	ahead    = 1
)

// text returns the canonical line of e at p, with zeros for its hash.
func (l *Log) text(e *Entry, p chain.Place) ([]byte, error) {
	e.Seq, e.Prev, e.Cut, e.Hash = p.Seq, p.Prev, p.Cut, zeroHash
	if p.Continues != nil {
		e.Continues = &Continued{Hash: p.Continues.Hash, Seq: p.Continues.Seq}
	}
	text := e.canonicalText()
	var err error
	if text == nil {
		text, err = strictjson.Marshal(e)
	}
	if err == nil {
		text, err = l.scrub(text)
	}
	if err == nil && !strictjson.IsCanonical(text) {
		text, err = strictjson.Canonical(text)
	}
	if err == nil && len(text) > chain.MaxLine {
		err = fmt.Errorf("it has %d bytes as a line, the limit is %d", len(text), chain.MaxLine)
	}
	return text, err
}

// seal makes the line of e at p of the text that stands for it at another place.
func (l *Log) seal(text []byte, e *Entry, p chain.Place) (line []byte, hash string, err error) {
	if p.Cut != 0 || p.Continues != nil || p.Prev == "" {
		if text, err = l.text(e, p); err != nil {
			return nil, "", err
		}
	} else if text, err = moved(text, p); err != nil {
		return nil, "", err
	}
	at, err := member(text, "hash")
	if err != nil {
		return nil, "", err
	}
	e.Seq, e.Prev, e.Hash = p.Seq, p.Prev, chain.Stamp(text, at)
	return text, e.Hash, nil
}

// moved returns the text of a line with another place.
func moved(text []byte, p chain.Place) ([]byte, error) {
	prev, err := member(text, "prev")
	if err != nil {
		return nil, err
	}
	seq, err := member(text, "seq")
	if err != nil {
		return nil, err
	}
	prev, seq = prev+len(`"prev":"`), seq+len(`"seq":`)
	out := make([]byte, 0, len(text)+24) // the number is longer, and a line feed follows
	out = append(out, text[:prev]...)
	out = append(out, p.Prev...)
	out = append(out, text[prev+chain.HashSize:seq]...)
	out = strconv.AppendInt(out, p.Seq, 10)
	return append(out, text[seq+1:]...), nil
}

// member returns where the member hash, prev or seq of a line stands. No other member
// from hash on, in the order of names, holds objects with members of these names, and
// a quote within a string is escaped.
func member(text []byte, name string) (int, error) {
	if at := bytes.LastIndex(text, []byte(`"`+name+`":`)); at >= 0 {
		return at, nil
	}
	return 0, fmt.Errorf("the line has no member %s", name)
}

// Sync has everything that this process appended on disk.
func (l *Log) Sync() error { return l.file.Sync() }

// Close closes the log, once. It doesn't sync: a hook that an agent waits for ends with
// it.
func (l *Log) Close() error { return l.file.Close() }
