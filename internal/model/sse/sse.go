// Package sse reads event streams (the text/event-stream format of the HTML
// standard) as model servers really send them.
//
// A Reader yields every event as soon as its last byte has been read, and the
// same events however the bytes are split over reads. Lines may end in LF, CR
// or CRLF, mixed; the space after the colon may be missing; comments and unknown
// fields are skipped; one byte order mark at the start is skipped.
//
// It differs from the standard in one point: an event that the end of the
// stream cut off is not dropped but returned with Unterminated set, because
// servers leave out the last blank line, and because what came is evidence.
//
// Do not assume that the data is UTF-8 or JSON: the bytes are passed on as they
// came. The fields id and retry are ignored: a Reader never reconnects.
package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// DefaultMaxEvent is the bound in bytes that a zero Options.MaxEvent means:
// 16 MiB.
const DefaultMaxEvent = 16 << 20

const (
	firstBuffer   = 16 << 10
	maxEmptyReads = 100
)

// ErrTooLong is the cause of the error for an event above Options.MaxEvent.
var ErrTooLong = errors.New("an event of the stream is too long")

// Options bounds a Reader. The zero value is usable.
type Options struct {
	// MaxEvent is the largest event in bytes, data lines joined, and also the
	// longest line; zero means DefaultMaxEvent.
	MaxEvent int
}

// Event is one event of a stream.
type Event struct {
	// Name is the value of the event field, "" if it had none.
	Name string
	// Data is the data lines joined by LF. It is valid until the next call of Next.
	Data []byte
	// Offset is where the event's first line starts, in bytes from 0.
	Offset int64
	// Unterminated means that the stream ended before the blank line that ends an
	// event: the last line may be cut anywhere.
	Unterminated bool
}

// Reader splits a stream into events. It is for one goroutine.
type Reader struct {
	src      io.Reader
	limit    int
	buf      []byte
	pos, end int   // the unread bytes are buf[pos:end]
	base     int64 // the stream's offset of buf[0]
	skipLF   bool  // the last line ended in CR: a LF that follows belongs to it
	begun    bool
	err      error // sticky, once src has failed
	data     []byte
}

// NewReader returns a Reader of src, from which it reads no more than one Read
// ahead of the event that it returns.
func NewReader(src io.Reader, o Options) *Reader {
	if o.MaxEvent == 0 {
		o.MaxEvent = DefaultMaxEvent
	}
	return &Reader{src: src, limit: o.MaxEvent, buf: make([]byte, min(firstBuffer, o.MaxEvent+1))}
}

// Next returns the next event that has a data field, which may be empty. At the
// end of the stream it returns io.EOF, after a failure of the source that
// failure, and for an event over the bound an error that wraps ErrTooLong. Each
// of them is returned again by later calls.
func (r *Reader) Next() (Event, error) {
	ev := Event{Offset: -1}
	hasData := false
	r.data = r.data[:0]
	for {
		start := r.base + int64(r.pos)
		line, err := r.line()
		if err == nil && len(line) == 0 {
			if hasData {
				ev.Data = r.data
				return ev, nil
			}
			ev = Event{Offset: -1}
			continue
		}
		if len(line) > 0 {
			if ev.Offset < 0 {
				ev.Offset = start
			}
			field, value := split(line)
			switch field {
			case "data":
				if hasData {
					r.data = append(r.data, '\n')
				}
				r.data = append(r.data, value...)
				hasData = true
				if len(r.data) > r.limit {
					r.err = fmt.Errorf("%w: more than %d bytes in the event at byte %d", ErrTooLong, r.limit, ev.Offset)
					return Event{}, r.err
				}
			case "event":
				ev.Name = string(value)
			}
		}
		if err == nil {
			continue
		}
		if hasData && !errors.Is(err, ErrTooLong) {
			ev.Data, ev.Unterminated = r.data, true
			return ev, nil
		}
		return Event{}, err
	}
}

// split returns a line's field name and value.
func split(line []byte) (field string, value []byte) {
	name, value, _ := bytes.Cut(line, []byte(":"))
	return string(name), bytes.TrimPrefix(value, []byte(" "))
}

// line returns the next line without its end. With an error it returns what was
// left of the stream, once.
func (r *Reader) line() ([]byte, error) {
	scanned := 0
	for {
		if r.skipLF && r.pos < r.end {
			if r.buf[r.pos] == '\n' {
				r.pos++
			}
			r.skipLF = false
		}
		if i := bytes.IndexAny(r.buf[r.pos+scanned:r.end], "\r\n"); i >= 0 {
			line := r.buf[r.pos : r.pos+scanned+i]
			r.skipLF = r.buf[r.pos+len(line)] == '\r'
			r.pos += len(line) + 1
			return r.first(line), nil
		}
		scanned = r.end - r.pos
		if scanned > r.limit {
			r.err = fmt.Errorf("%w: a line of more than %d bytes at byte %d", ErrTooLong, r.limit, r.base+int64(r.pos))
		}
		if r.err == nil {
			r.err = r.fill()
		}
		if r.err != nil && r.pos+scanned == r.end {
			line := r.buf[r.pos:r.end]
			r.pos = r.end
			return r.first(line), r.err
		}
	}
}

// first strips the byte order mark from the first line of the stream.
func (r *Reader) first(line []byte) []byte {
	if !r.begun {
		r.begun = true
		line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	}
	return line
}

// fill reads once, after making room. It may return an error together with new
// bytes.
func (r *Reader) fill() error {
	if r.pos > 0 {
		copy(r.buf, r.buf[r.pos:r.end])
		r.base += int64(r.pos)
		r.end -= r.pos
		r.pos = 0
	}
	if r.end == len(r.buf) {
		r.buf = append(r.buf, make([]byte, len(r.buf))...)
	}
	for range maxEmptyReads {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		if n > 0 || err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}
