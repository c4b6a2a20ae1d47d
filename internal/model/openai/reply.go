package openai

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
	"slices"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/sse"
)

const (
	maxNotes     = 12
	maxModelName = 256 // bytes; a longer name of the answering model is not kept
	// tailWait is how long to wait, after a finish reason, for usage and [DONE].
	tailWait = 5 * time.Second
	// drainWait is how long to wait for the end of the body after [DONE], which
	// lets the connection be used again.
	drainWait = 100 * time.Millisecond
)

var errTooMuch = errors.New("the reply is too long")

// reply assembles one reply from its frames.
type reply struct {
	c       *Client
	w       *watch
	onDelta func(model.Delta)

	text, reasoning         strings.Builder
	textJoin, reasoningJoin joiner
	calls                   callSet
	finish                  string // the finish reason as sent, "" if none came
	done                    bool   // [DONE] came, or the reply was one JSON body
	frames                  int    // frames with choices
	head                    []byte // the first bytes of a stream
	usage                   *model.Usage
	model                   string
	field                   string // the member in which reasoning came
	notes                   []string
}

func newReply(c *Client, w *watch, onDelta func(model.Delta)) *reply {
	if onDelta == nil {
		onDelta = func(model.Delta) {}
	}
	r := &reply{c: c, w: w, onDelta: onDelta}
	r.calls.note = r.note
	return r
}

// note adds something that had to be repaired or assumed, once.
func (r *reply) note(s string) {
	if len(r.notes) < maxNotes && !slices.Contains(r.notes, s) {
		r.notes = append(r.notes, s)
	}
}

// fail returns an error that carries the text so far.
func (r *reply) fail(kind model.ErrorKind, cause error, format string, args ...any) *model.Error {
	return r.partial(r.c.fail(kind, cause, format, args...))
}

func (r *reply) partial(e *model.Error) *model.Error {
	e.Partial = r.text.String() + r.textJoin.flush()
	return e
}

// read consumes the body until the reply is complete. A nil error means that it
// is.
func (r *reply) read(ctx context.Context, resp *http.Response, raw io.Reader) error {
	body, err := r.unpack(resp, raw)
	if err == nil {
		var first byte
		b := bufio.NewReaderSize(body, 512)
		first, err = firstByte(b)
		head, _ := b.Peek(b.Buffered())
		switch {
		case err != nil:
		case first == '{' || first == '[':
			err = r.readWhole(b)
		case first == '<':
			return r.fail(model.ErrMalformed, nil, "the answer is a web page, not a stream of chat completions: %s. Check base_url (it usually ends in /v1)", r.c.quoted(head))
		default:
			r.head = bytes.Clone(head)
			err = r.readStream(b)
		}
	}
	if err == nil {
		r.drain(raw)
		return ctx.Err()
	}
	return r.failed(ctx, err)
}

// failed turns an error of reading into the caller's.
func (r *reply) failed(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	var me *model.Error
	if errors.As(err, &me) {
		return r.partial(me)
	}
	cause := r.w.stalled()
	if r.finish != "" && !errors.Is(err, sse.ErrTooLong) && !errors.Is(err, errTooMuch) {
		if err != io.EOF {
			r.note("the stream broke off after the finish reason")
		}
		return nil
	}
	if cause != nil {
		return r.partial(r.c.stallError(cause, r.position()))
	}
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, sse.ErrTooLong), errors.Is(err, errTooMuch), errors.As(err, &corrupt), errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum):
		return r.fail(model.ErrMalformed, err, "the answer could not be read: %v", err)
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return r.fail(model.ErrCut, io.ErrUnexpectedEOF, "the stream ended %s without a finish reason or [DONE]; expected one of them. No call of the reply is delivered", r.position())
	default:
		return r.fail(model.ErrCut, err, "the connection broke %s: %s. No call of the reply is delivered", r.position(), r.c.quoted([]byte(err.Error())))
	}
}

// position says how far the reply got.
func (r *reply) position() string {
	return fmt.Sprintf("after %d frames (%d bytes of text, %d tool calls begun)", r.frames, r.text.Len(), len(r.calls.list))
}

// unpack undoes the content encoding, and bounds the reply.
func (r *reply) unpack(resp *http.Response, raw io.Reader) (io.Reader, error) {
	switch enc := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))); enc {
	case "", "identity":
		return &bounded{raw, r.c.maxReply, r.c.maxReply}, nil
	case "gzip", "x-gzip":
		z, err := gzip.NewReader(raw)
		if err != nil {
			return nil, err
		}
		return &bounded{z, r.c.maxReply, r.c.maxReply}, nil
	default:
		return nil, r.fail(model.ErrMalformed, nil, "the answer is packed as %s, which was not asked for; expected no packing or gzip", r.c.quoted([]byte(enc)))
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
func (r *reply) readWhole(b *bufio.Reader) error {
	data, err := io.ReadAll(b)
	if err != nil {
		return err
	}
	r.note("the endpoint answered with one JSON body instead of a stream")
	if err := r.frame(data); err != nil {
		var me *model.Error
		switch {
		case errors.As(err, &me):
			return err
		case errors.Is(err, io.ErrUnexpectedEOF):
			return io.ErrUnexpectedEOF
		default:
			return r.fail(model.ErrMalformed, err, "the answer is not a chat completion: %v: %s", err, r.c.quoted(data))
		}
	}
	r.done = true
	return nil
}

// readStream reads the frames of an event stream.
func (r *reply) readStream(b *bufio.Reader) error {
	rd := sse.NewReader(b, sse.Options{})
	for events := 0; !r.done; events++ {
		ev, err := rd.Next()
		if err == io.EOF && events == 0 && !likeStream(r.head) {
			return r.fail(model.ErrMalformed, nil, "the answer is neither an event stream nor JSON: %s. Check base_url (it usually ends in /v1)", r.c.quoted(r.head))
		}
		if err != nil {
			return err
		}
		if err := r.event(ev); err != nil {
			var me *model.Error
			if ev.Unterminated && errors.As(err, &me) && me.Kind == model.ErrMalformed {
				_, err = rd.Next() // half a frame isn't malformed, the stream is cut
			}
			return err
		}
	}
	return nil
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
func (r *reply) drain(raw io.Reader) {
	r.w.tighten(drainWait)
	var rest [512]byte
	for range 8 {
		if _, err := raw.Read(rest[:]); err != nil {
			return
		}
	}
}
