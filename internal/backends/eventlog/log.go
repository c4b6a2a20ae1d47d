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
	"fmt"
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

	file *chain.File
}

var _ backend.Observer = (*Log)(nil)

// Open opens the log at path, or makes it with mode 0600. The file must end with a
// sound line of a chain; Verify tells about the others.
func Open(path string, opts Options) (*Log, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	l := &Log{path: path, opts: opts}
	file, err := chain.OpenFile(path, chain.FileOptions{
		MaxBytes: opts.MaxBytes, Keep: opts.Keep, Key: opts.Key, EachSync: true, Heading: l.heading,
	})
	if err != nil {
		return nil, fmt.Errorf("eventlog: %w", err)
	}
	l.file = file
	return l, nil
}

// Close closes the file; everything is on disk already.
func (l *Log) Close() error { return l.file.Close() }

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
	err = l.file.Append(len(out.Event)+1024, func(p chain.Place) ([]byte, string, error) { return seal(out, p) })
	if err != nil {
		return fmt.Errorf("eventlog: %w", err)
	}
	return nil
}

func clip(s string) string { return s[:min(len(s), 1024)] }

// heading is the first line after another log was put aside.
func (l *Log) heading(p chain.Place) ([]byte, string, error) {
	return seal(entry{Time: ahp.Timestamp(l.opts.Now())}, p)
}

// seal makes the line of e at its place.
func seal(e entry, p chain.Place) ([]byte, string, error) {
	e.Seq, e.Prev, e.Cut = p.Seq, p.Prev, p.Cut
	if p.Continues != nil {
		e.Continues = &continued{Seq: p.Continues.Seq, Hash: p.Continues.Hash}
	}
	object, err := strictjson.Marshal(e)
	if err != nil {
		return nil, "", err
	}
	return chain.Seal(object)
}
