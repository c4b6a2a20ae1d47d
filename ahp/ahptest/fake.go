package ahptest

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/transport"
)

// Judge decides like a backend.Handler.
type Judge func(ctx context.Context, q *ahp.Intercept) ([]ahp.Effect, error)

// Says returns a Judge that always gives the same effects.
func Says(effects ...ahp.Effect) Judge {
	return func(context.Context, *ahp.Intercept) ([]ahp.Effect, error) { return effects, nil }
}

// Fake is a backend in the test's own program: a transport.Transport that
// remembers what it was sent. Its methods may be called from any goroutine.
type Fake struct {
	transport.Transport
	mu       sync.Mutex
	requests []*ahp.Intercept
	observed []*ahp.Event
	raw      [][]byte
}

// NewFake returns a fake that decides by judge; nil never objects.
func NewFake(judge Judge) *Fake {
	f := &Fake{}
	if judge == nil {
		judge = Says()
	}
	server := backend.New(&fakeHandler{fake: f, judge: judge}, backend.Options{})
	f.Transport = transport.InProcess(func(ctx context.Context, msg []byte) ([]byte, error) {
		f.mu.Lock()
		f.raw = append(f.raw, bytes.Clone(msg))
		f.mu.Unlock()
		reply, _ := server.Handle(ctx, msg) // the reply says what went wrong
		return reply, nil
	})
	return f
}

type fakeHandler struct {
	fake  *Fake
	judge Judge
}

func (h *fakeHandler) Intercept(ctx context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
	h.fake.mu.Lock()
	h.fake.requests = append(h.fake.requests, q)
	h.fake.mu.Unlock()
	return h.judge(ctx, q)
}

func (h *fakeHandler) Observe(_ context.Context, e *ahp.Event) {
	h.fake.mu.Lock()
	defer h.fake.mu.Unlock()
	h.fake.observed = append(h.fake.observed, e)
}

// Requests returns the decision requests so far, in order.
func (f *Fake) Requests() []*ahp.Intercept {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.requests)
}

// Observed returns the observed events so far, in order.
func (f *Fake) Observed() []*ahp.Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.observed)
}

// Messages returns every message so far as it was sent, in order.
func (f *Fake) Messages() [][]byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.raw)
}
