// Package brokenbackend is the backend that the conformance suite is tested
// against: one that keeps every rule, and one for each check that breaks the rule
// behind it and nothing else. It is for tests only.
//
// It guarantees that a mutation changes nothing but what it says, so that a suite
// which reports more than the check it names (and what depends on that) is wrong.
//
// Do not assume that it judges anything: it objects to a few texts that the suite
// sends, so that there are effects to look at.
package brokenbackend

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/backend/httpbackend"
)

const (
	// MaxBytes is the bound of a message.
	MaxBytes = 1 << 20
	// DenyInput is what the backend denies.
	DenyInput = `{"command":"rm -rf / --no-preserve-root"}`
)

// Mutation is one way to break the protocol.
type Mutation struct {
	// Check is the id of the check that finds it.
	Check string
	About string
	// handle, if set, sees each message first and may answer it in the server's
	// place: done tells that reply, or none, is the answer. What it returns in
	// instead is what the server gets.
	handle func(b *peer, msg []byte) (reply []byte, instead []byte, done bool)
	// after changes the server's reply, which is nil where there is none.
	after func(b *peer, msg, reply []byte) []byte
	stdio stdio
	// around, if set, wraps the HTTP handler.
	around func(next http.Handler) http.Handler
}

// Find returns the mutation for a check, or the unusual backend of that name.
func Find(check string) (Mutation, bool) {
	for _, m := range append(Mutations(), Unusual()...) {
		if m.Check == check {
			return m, true
		}
	}
	return Mutation{}, false
}

// Mutations returns all mutations.
func Mutations() []Mutation {
	var out []Mutation
	for _, part := range [][]Mutation{messageMutations(), refusalMutations(), strictMutations(), silenceMutations(), decisionMutations(), stdioMutations(), httpMutations()} {
		out = append(out, part...)
	}
	return out
}

// peer is the backend with its mutation; the zero Mutation is none.
type peer struct {
	Mutation
	server *backend.Server
	mu     sync.Mutex
	seen   map[string]int
}

func newPeer(m Mutation) *peer {
	return &peer{Mutation: m, seen: map[string]int{}, server: backend.New(backend.Func(judge), backend.Options{Manifest: ahptest.Manifest()})}
}

// counted counts what is named, and returns how often it was.
func (b *peer) counted(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen[name]++
	return b.seen[name]
}

func (b *peer) reset(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen[name] = 0
}

// Handle answers one message as httpbackend.Server wants it.
func (b *peer) Handle(ctx context.Context, msg []byte) ([]byte, error) {
	if b.handle != nil {
		reply, instead, done := b.handle(b, msg)
		if done {
			return reply, nil
		}
		if instead != nil {
			msg = instead
		}
	}
	reply, err := b.server.Handle(ctx, msg)
	if b.after != nil {
		if changed := b.after(b, msg, reply); string(changed) != string(reply) {
			return changed, nil
		}
	}
	return reply, err
}

// Handler returns the backend over HTTP; with a token it wants that.
func Handler(m Mutation, token string) http.Handler {
	var h http.Handler = httpbackend.Handler(newPeer(m), httpbackend.Options{Token: token})
	h = bounded(h)
	if m.around != nil {
		h = m.around(h)
	}
	return h
}

// judge objects to a few texts, with as many kinds of effects as it may.
func judge(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
	if q.Event.Type != ahp.ToolBefore {
		return permitted(q, &ahp.Notice{Text: "seen"}), nil
	}
	input := string(q.Event.Tool.Input)
	switch {
	case strings.Contains(input, "rm -rf"):
		return permitted(q, &ahp.Notice{Text: "refused"}, &ahp.Deny{Reason: "it removes everything"}), nil
	case strings.Contains(input, "curl") && q.Capabilities.Has(ahp.EffectAsk):
		return permitted(q, &ahp.Ask{}), nil
	case strings.Contains(input, "curl"):
		return permitted(q, &ahp.Deny{Reason: "nobody can be asked"}), nil
	case strings.Contains(input, ".ssh"):
		return permitted(q, &ahp.Modify{Target: ahp.TargetInput, Operation: ahp.OpMerge, Value: ahp.Raw(`{"command":"true"}`)},
			&ahp.Inject{DeliverAt: ahp.DeliverNow, Messages: []ahp.Message{ahp.TextMessage("note", ahp.RoleDeveloper, "Keys stay where they are.")}}), nil
	case strings.Contains(input, "git push"):
		return permitted(q, &ahp.Return{Value: ahp.Raw(`"pushed"`)}, &ahp.Flow{Operation: ahp.FlowStop, Reason: "a person goes on from here"}), nil
	}
	return nil, nil
}

// permitted returns the effects that the request advertises.
func permitted(q *ahp.Intercept, effects ...ahp.Effect) []ahp.Effect {
	var out []ahp.Effect
	for _, e := range effects {
		if q.Capabilities.Accepts(e) == nil {
			out = append(out, e)
		}
	}
	return out
}
