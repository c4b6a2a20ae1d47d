package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/ahp/transport/httptransport"
	"github.com/abhed/abhed/internal/ahpconfig"
	"github.com/abhed/abhed/internal/strictjson"
)

// exchange is one message that went to a backend, with what came back.
type exchange struct {
	Backend string `json:"backend"`
	Method  string `json:"method"`
	// At is when it was sent (RFC 3339), Milliseconds how long it took.
	At           string  `json:"at"`
	Milliseconds int64   `json:"milliseconds"`
	Request      ahp.Raw `json:"request"`
	// Answer is the reply; AnswerText is one that isn't JSON.
	Answer     ahp.Raw       `json:"answer,omitzero"`
	AnswerText string        `json:"answerText,omitzero"`
	Failure    *failureShown `json:"failure,omitzero"`
}

// failureShown is an operational failure in JSON.
type failureShown struct {
	Class  string `json:"class"`
	Detail string `json:"detail"`
}

func showFailure(err error) *failureShown {
	f := ahp.AsFailure(err)
	switch {
	case err == nil:
		return nil
	case f != nil:
		return &failureShown{string(f.Class), f.Detail}
	case errors.Is(err, context.Canceled):
		return &failureShown{"interrupted", "the call was cancelled"}
	}
	return &failureShown{"bug", err.Error()}
}

// wire opens the backends of a registration and keeps what passes between them and
// the harness. Its methods may be called from any goroutine.
type wire struct {
	sys    system
	loaded *ahpconfig.Loaded
	// once has a line of a backend's standard error printed the first time only: one
	// that can't start is started for every event.
	once bool

	mu        sync.Mutex // guards what follows, and orders lines of standard error
	exchanges []exchange
	said      map[string]bool
}

// maxSaid bounds the lines that are remembered as printed; others are printed again.
const maxSaid = 1000

// open connects to a backend, and notes what passes.
func (w *wire) open(b *ahp.Backend) (transport.Transport, error) {
	t, err := w.connect(b)
	if err != nil {
		return nil, err
	}
	ready := func(context.Context) error { return nil }
	if r, ok := t.(interface{ Ready(context.Context) error }); ok {
		ready = r.Ready
	}
	return &recorder{next: t, backend: b.ID, wire: w, ready: ready}, nil
}

// connect connects to a backend.
func (w *wire) connect(b *ahp.Backend) (transport.Transport, error) {
	if b.Transport.Type == ahp.TransportHTTP {
		c := w.loaded.Credentials(b.ID, w.sys.lookupEnv)
		if err := c.Check(b.Authentication); err != nil {
			return nil, err
		}
		t, err := httptransport.New(b, httptransport.Options{LookupEnv: c.LookupEnv, ResolveRef: c.Resolve})
		if err != nil {
			return nil, err
		}
		return t, nil
	}
	return transport.Stdio(b.Transport, transport.StdioOptions{
		Name: b.ID, Dir: filepath.Dir(w.loaded.FileOf(b.ID)),
		OnStderr: func(line string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			line = b.ID + ": " + line
			if w.once && w.said[line] {
				return
			}
			if w.once && len(w.said) < maxSaid {
				w.said[line] = true
			}
			fmt.Fprintln(w.sys.stderr, line)
		},
	})
}

// taken returns the exchanges so far, in the order in which they ended.
func (w *wire) taken() []exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]exchange{}, w.exchanges...)
}

// recorder is a transport that tells its wire what passes.
type recorder struct {
	next    transport.Transport
	backend string
	wire    *wire
	ready   func(context.Context) error
}

// Ready reports why the credential can't be had, or nil.
func (r *recorder) Ready(ctx context.Context) error { return r.ready(ctx) }

func (r *recorder) Exchange(ctx context.Context, msg []byte) ([]byte, error) {
	began := time.Now()
	reply, err := r.next.Exchange(ctx, msg)
	r.note(began, msg, reply, err)
	return reply, err
}

func (r *recorder) Notify(ctx context.Context, msg []byte) error {
	began := time.Now()
	err := r.next.Notify(ctx, msg)
	r.note(began, msg, nil, err)
	return err
}

func (r *recorder) Close() error { return r.next.Close() }

func (r *recorder) note(began time.Time, msg, reply []byte, err error) {
	x := exchange{Backend: r.backend, At: ahp.Timestamp(began), Milliseconds: time.Since(began).Milliseconds(), Request: bytes.Clone(msg), Failure: showFailure(err)}
	if p, err := ahp.Peek(msg); err == nil {
		x.Method = p.Method
	}
	switch {
	case len(reply) == 0:
	case strictjson.Check(reply, strictjson.Options{}) == nil:
		x.Answer = bytes.Clone(reply)
	default:
		x.AnswerText = string(bytes.ToValidUTF8(reply, []byte("�")))
	}
	r.wire.mu.Lock()
	defer r.wire.mu.Unlock()
	r.wire.exchanges = append(r.wire.exchanges, x)
}
