package httpapi

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/sse"
	"github.com/abhed/abhed/internal/strictjson"
)

const (
	// TailWait is how long the end of a body is waited for once the reply has said how
	// it ended (Answer.Finishing).
	TailWait = 5 * time.Second
	// drainWait is how long to wait for the end of the body after the last event,
	// which lets the connection be used again.
	drainWait = 100 * time.Millisecond
)

var errTooMuch = errors.New("the reply is too long")

// State says how far a reply has come.
type State int

const (
	// Open is a reply of which more must come.
	Open State = iota
	// Ended is a reply that has said how it ended; what may still come is not needed.
	Ended
	// Done is a reply after which nothing more comes.
	Done
)

// Assembler builds a reply from what an Answer reads. Its errors, if they are no
// *model.Error, become model.ErrMalformed with the place and the bytes; in every
// failure Read sets Partial.
type Assembler interface {
	// Frame takes the data of one event, which is not empty and valid only during the
	// call, and the event's name, "" for none. Events named error, ping, heartbeat or
	// keepalive don't reach it.
	Frame(name string, data []byte) error
	// Whole takes a reply that came as one JSON body instead of a stream.
	Whole(data []byte) error
	// State says how far the reply has come. After Whole it isn't asked.
	State() State
	// Partial returns the text so far.
	Partial() string
	// Position says how far the reply got, for errors, as "after 3 frames".
	Position() string
	// Note takes what had to be repaired or assumed.
	Note(s string)
}

// Answer is an answer of status 2xx whose body is still to be read.
type Answer struct {
	api  *API
	ctx  context.Context
	w    *watch
	resp *http.Response
	raw  io.Reader
	head []byte // the first bytes of a stream
}

// Close ends the answer and its timers.
func (a *Answer) Close() {
	a.w.stop()
	_ = a.resp.Body.Close() // nothing is left to be lost
}

// Progress restarts the wait for content: the reply has moved on.
func (a *Answer) Progress() { a.w.progress() }

// Finishing shortens all waits to TailWait, once the reply has said how it ended.
func (a *Answer) Finishing() { a.w.tighten(TailWait) }

// Read consumes the body until as is complete. A nil error means that it is; every
// other one is an *model.Error, or ctx's error if ctx ended first.
func (a *Answer) Read(as Assembler) error {
	body, err := a.unpack()
	if err == nil {
		var first byte
		b := bufio.NewReaderSize(body, 512)
		first, err = firstByte(b)
		head, _ := b.Peek(b.Buffered())
		switch {
		case err != nil:
		case first == '{' || first == '[':
			err = a.readWhole(b, as)
		case first == '<':
			err = a.api.Fail(model.ErrMalformed, nil, "the answer is a web page, not a stream of %s: %s. Check base_url (%s)", a.api.words.API, a.api.Quoted(head), a.api.words.BaseURL)
		default:
			a.head = bytes.Clone(head)
			err = a.readStream(b, as)
		}
	}
	if err == nil {
		a.drain()
		return a.ctx.Err()
	}
	return a.failed(err, as)
}

// failed turns an error of reading into the caller's.
func (a *Answer) failed(err error, as Assembler) error {
	if ended := a.ctx.Err(); ended != nil {
		return ended
	}
	var me *model.Error
	if !errors.As(err, &me) {
		tooLong := errors.Is(err, sse.ErrTooLong) || errors.Is(err, errTooMuch)
		if as.State() != Open && !tooLong {
			if err != io.EOF {
				as.Note("the stream broke off after the finish reason")
			}
			return nil
		}
		me = a.failure(err, tooLong, as)
	}
	me.Partial = as.Partial()
	return me
}

func (a *Answer) failure(err error, tooLong bool, as Assembler) *model.Error {
	if cause := a.w.stalled(); cause != nil {
		return a.api.stallError(cause, as.Position())
	}
	var corrupt flate.CorruptInputError
	switch {
	case tooLong, errors.As(err, &corrupt), errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return a.api.Fail(model.ErrMalformed, err, "the answer could not be read: %v", err)
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return a.api.Fail(model.ErrCut, io.ErrUnexpectedEOF, "the stream ended %s without %s. No call of the reply is delivered", as.Position(), a.api.words.End)
	default:
		return a.api.Fail(model.ErrCut, err, "the connection broke %s: %s. No call of the reply is delivered", as.Position(), a.api.Quoted([]byte(err.Error())))
	}
}

// unpack undoes the content encoding, and bounds the reply.
func (a *Answer) unpack() (io.Reader, error) {
	limit := a.api.maxReply
	switch enc := strings.ToLower(strings.TrimSpace(a.resp.Header.Get("Content-Encoding"))); enc {
	case "", "identity":
		return &bounded{a.raw, limit, limit}, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(a.raw)
		if err != nil {
			return nil, err
		}
		return &bounded{z, limit, limit}, nil
	default:
		return nil, a.api.Fail(model.ErrMalformed, nil, "the answer is packed as %s, which was not asked for; expected no packing or gzip", a.api.Quoted([]byte(enc)))
	}
}

// bounded fails where io.LimitReader would pretend that the stream had ended.
type bounded struct {
	r           io.Reader
	left, limit int
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("%w: more than %d bytes", errTooMuch, b.limit)
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// firstByte returns the first byte that isn't white space, without consuming it.
func firstByte(b *bufio.Reader) (byte, error) {
	for {
		c, err := b.ReadByte()
		if err != nil {
			return 0, err
		}
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c, b.UnreadByte()
		}
	}
}

// readWhole reads a reply that is one JSON body instead of a stream.
func (a *Answer) readWhole(b *bufio.Reader, as Assembler) error {
	data, err := io.ReadAll(b)
	if err != nil {
		return err
	}
	as.Note("the endpoint answered with one JSON body instead of a stream")
	err = as.Whole(data)
	var me *model.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &me):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return io.ErrUnexpectedEOF
	default:
		return a.api.Fail(model.ErrMalformed, err, "the answer is not of %s: %v: %s", a.api.words.API, err, a.api.Quoted(data))
	}
}

// readStream reads the frames of an event stream.
func (a *Answer) readStream(b *bufio.Reader, as Assembler) error {
	rd := sse.NewReader(b, sse.Options{})
	for events := 0; as.State() != Done; events++ {
		ev, err := rd.Next()
		if err == io.EOF && events == 0 && !likeStream(a.head) {
			return a.api.Fail(model.ErrMalformed, nil, "the answer is neither an event stream nor JSON: %s. Check base_url (%s)", a.api.Quoted(a.head), a.api.words.BaseURL)
		}
		if err != nil {
			return err
		}
		if err := a.event(ev, as); err != nil {
			var me *model.Error
			if ev.Unterminated && errors.As(err, &me) && me.Kind == model.ErrMalformed {
				_, err = rd.Next() // half a frame isn't malformed, the stream is cut
			}
			return err
		}
	}
	return nil
}

// event handles one event of the stream.
func (a *Answer) event(ev sse.Event, as Assembler) error {
	data := bytes.TrimSpace(ev.Data)
	switch {
	case len(data) == 0, ev.Name == "ping", ev.Name == "heartbeat", ev.Name == "keepalive":
		return nil
	case ev.Name == "error":
		return a.api.FrameError(data)
	case bytes.IndexByte(data, '\n') < 0, strictjson.Check(data, strictjson.Options{}) == nil:
		return a.located(as.Frame(ev.Name, data), ev, data)
	}
	// Servers that leave out the blank line between events.
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := a.located(as.Frame("", line), ev, line); err != nil {
			return err
		}
	}
	return nil
}

// located adds place and bytes to a frame that could not be understood.
func (a *Answer) located(err error, ev sse.Event, data []byte) error {
	var me *model.Error
	if err == nil || errors.As(err, &me) {
		return err
	}
	return a.api.Fail(model.ErrMalformed, err, "the event at byte %d of the stream could not be understood: %v: %s", ev.Offset, err, a.api.Quoted(data))
}

// likeStream reports whether head may be the start of an event stream.
func likeStream(head []byte) bool {
	for _, start := range []string{"data", "event", "id", "retry", ":", "\xef\xbb\xbf"} {
		if n := min(len(head), len(start)); string(head[:n]) == start[:n] {
			return true
		}
	}
	return false
}

// drain reads the last bytes of a finished body, for a moment.
func (a *Answer) drain() {
	a.w.tighten(drainWait)
	var rest [512]byte
	for range 8 {
		if _, err := a.raw.Read(rest[:]); err != nil {
			return
		}
	}
}
