package boundary_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/boundary"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// errUnreachable makes a fake answer with an error: the harness can't ask it.
var errUnreachable = errors.New("unreachable")

// world is a boundary with its backends, which intercept and observe everything.
type world struct {
	*boundary.Boundary
	h     *harness.Harness
	fakes []*ahptest.Fake
	// watcher only observes.
	watcher *ahptest.Fake
}

// newWorld returns a world with one fail-closed backend per judge. Everything is
// advertised.
func newWorld(t testing.TB, opts boundary.Options, judges ...ahptest.Judge) *world {
	t.Helper()
	return newWorldOf(t, opts, ahptest.Manifest(), ahp.FailClosed, judges...)
}

func newWorldOf(t testing.TB, opts boundary.Options, m *ahp.Manifest, policy ahp.FailurePolicy, judges ...ahptest.Judge) *world {
	t.Helper()
	w := &world{watcher: ahptest.NewFake(nil)}
	reg := &ahp.Registration{ProtocolVersion: ahp.Version}
	links := map[string]transport.Transport{}
	add := func(id string, link transport.Transport, sub ahp.Subscription) {
		links[id] = link
		reg.Hooks = append(reg.Hooks, ahp.Backend{ID: id, Subscriptions: []ahp.Subscription{sub},
			Transport: ahp.TransportConfig{Type: ahp.TransportStdio, Command: "unused", Lifecycle: ahp.LifecyclePersistent}})
	}
	for i, j := range judges {
		f := ahptest.NewFake(j)
		w.fakes = append(w.fakes, f)
		add(fmt.Sprintf("test.b%d", i), f, ahptest.Intercept(policy, time.Minute, "*"))
	}
	add("test.watcher", w.watcher, ahptest.Observe("*"))
	var err error
	w.h, err = harness.New(reg, harness.Options{Manifest: m, Retries: -1, Open: func(b *ahp.Backend) (transport.Transport, error) { return links[b.ID], nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.h.Close() })
	if opts.Source == "" {
		opts.Source = "urn:ahp:test"
	}
	if opts.Session == nil {
		opts.Session = &ahp.Session{ID: "s"}
	}
	if w.Boundary, err = boundary.New(w.h, opts); err != nil {
		t.Fatal(err)
	}
	return w
}

// observed closes the harness, which delivers what is queued, and returns the types
// of what the watcher was told, and the events.
func (w *world) observed(t testing.TB) ([]ahp.EventType, []*ahp.Event) {
	t.Helper()
	if err := w.h.Close(); err != nil {
		t.Error(err)
	}
	var types []ahp.EventType
	events := w.watcher.Observed()
	for _, e := range events {
		types = append(types, e.Type)
	}
	return types, events
}

// at answers events of one type with the effects, and others with none.
func at(t ahp.EventType, effects ...ahp.Effect) ahptest.Judge {
	return func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		if q.Event.Type == t {
			return effects, nil
		}
		return nil, nil
	}
}

// failsAt can't be asked about events of one type.
func failsAt(t ahp.EventType) ahptest.Judge {
	return func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		if q.Event.Type == t {
			return nil, errUnreachable
		}
		return nil, nil
	}
}

// both joins judges of different events.
func both(judges ...ahptest.Judge) ahptest.Judge {
	return func(ctx context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		var all []ahp.Effect
		for _, j := range judges {
			effects, err := j(ctx, q)
			if err != nil {
				return nil, err
			}
			all = append(all, effects...)
		}
		return all, nil
	}
}

// cancelsAt cancels the call while it is asked about an event of one type.
func cancelsAt(t ahp.EventType, cancel *context.CancelFunc) ahptest.Judge {
	return func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		if q.Event.Type == t {
			(*cancel)()
		}
		return nil, nil
	}
}

var (
	deny  = &ahp.Deny{Reason: "not here"}
	stop  = &ahp.Flow{Operation: ahp.FlowStop, Reason: "enough"}
	again = &ahp.Flow{Operation: ahp.FlowContinue, Instruction: "once more"}
)

func returns(v string) *ahp.Return { return &ahp.Return{Value: ahp.Raw(v)} }

func texts(messages []ahp.Message) []string {
	var out []string
	for _, m := range messages {
		for _, p := range m.Parts {
			if p.Text != nil {
				out = append(out, *p.Text)
			}
		}
	}
	return out
}

func messageValue(role ahp.Role, text string) string {
	return `[{"id":"m","role":"` + string(role) + `","parts":[{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":"` + text + `"}]}]`
}

func wantTexts(t *testing.T, got []ahp.Message, want ...string) {
	t.Helper()
	if !slices.Equal(texts(got), want) {
		t.Errorf("texts %q, want %q", texts(got), want)
	}
}

func approves(yes bool) func(context.Context, boundary.Approval) (bool, error) {
	return func(context.Context, boundary.Approval) (bool, error) { return yes, nil }
}
