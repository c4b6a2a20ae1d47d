package app_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/model/modeltest"
)

// meddler changes the session while it is asked about a call.
type meddler struct{ meddle func(context.Context) }

func (m *meddler) Approve(ctx context.Context, q control.Question) (control.Decision, error) {
	m.meddle(ctx)
	return control.Decision{Hash: q.Hash, Allow: true, Scope: event.ScopeOnce, By: "ann"}, nil
}

// TestSwitchDuringAPrompt switches the model while a call waits for an approval: the
// next request is the new model's. A stopped switch ends the prompt instead, before
// the call is run; a refused one changes nothing.
func TestSwitchDuringAPrompt(t *testing.T) {
	tests := map[string]struct {
		say              []ahp.Effect
		reason           string
		one, two         int
		marker, switched bool
	}{
		"no opinion": {nil, "completed", 1, 1, true, true},
		"refused":    {[]ahp.Effect{deny()}, "completed", 2, 0, true, false},
		"stopped":    {[]ahp.Effect{stop()}, "stopped", 1, 0, false, false},
		"both":       {[]ahp.Effect{stop(), deny()}, "completed", 2, 0, true, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, call("write", markerArgs), done())
			two := w.providers(done())
			l := &listener{judge: func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) { return backend.Answer(q, tt.say...) }}
			w.hooks("org.test.judge", l.serve(t), intercept(ahp.ModelSwitchBefore, "fail-closed")+","+strings.Replace(observeAll, "*", "model.*", 1))
			m := &meddler{}
			s := w.open(control.Start{Approver: m})
			m.meddle = func(ctx context.Context) {
				err := s.Tune().SetModel(ctx, "two/m2")
				if tt.switched != (err == nil) {
					t.Errorf("switched: %v", err)
				}
				if err != nil {
					refusal(t, err, control.CodeUsage)
				}
			}
			a := s.Prompt(t.Context(), control.Prompt{Text: "do it"})
			if n, m := len(w.server.Requests()), len(two.Requests()); a.Reason != tt.reason || n != tt.one || m != tt.two || w.has("marker") != tt.marker {
				t.Errorf("it ended with %s (%s); requests %d and %d, want %d and %d; marker %t", a.Reason, a.Detail, n, m, tt.one, tt.two, w.has("marker"))
			}
			if want := map[bool]string{true: "two/m2", false: "one/m1"}[tt.switched]; s.Info().Model != want {
				t.Errorf("the model is %s, want %s", s.Info().Model, want)
			}
			if n := len(l.of(ahp.ModelSwitchAfter)); (n == 1) != tt.switched {
				t.Errorf("told of %d switches", n)
			}
			// The session goes on with the model that it has.
			if tt.reason == "stopped" {
				if a := s.Prompt(t.Context(), control.Prompt{Text: "again"}); a.Text != "done" || len(w.server.Requests()) != 2 {
					t.Errorf("after a stop: %+v", a)
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			switches := 0
			for _, e := range w.events(result{record: s.Info().Record}) {
				if p, ok := e.Payload.(*event.ModelSwitched); ok && p.From == "one/m1" && p.To == "two/m2" {
					switches++
				}
			}
			if (switches == 1) != tt.switched {
				t.Errorf("the record has %d switches", switches)
			}
		})
	}
}

// TestNothingChangedIsNoEvent asks for what is the case already, and for what can't
// be: no backend hears of it.
func TestNothingChangedIsNoEvent(t *testing.T) {
	w := newWorld(t, done())
	w.providers()
	l := &listener{}
	w.hooks("org.test.judge", l.serve(t), intercept("*", "fail-closed")+","+observeAll)
	s := w.open(control.Start{})
	for _, err := range []error{s.Tune().SetMode(t.Context(), "default"), s.Tune().SetModel(t.Context(), "one/m1")} {
		if err != nil {
			t.Error(err)
		}
	}
	refusal(t, s.Tune().SetMode(t.Context(), "bypass"), control.CodeUsage)
	refusal(t, s.Tune().SetMode(t.Context(), "lenient"), control.CodeUsage)
	refusal(t, s.Tune().SetModel(t.Context(), "three/m3"), control.CodeConfig)
	if c, err := s.Tune().Compact(t.Context()); err != nil || c.Done {
		t.Errorf("%+v %v", c, err)
	}
	for _, on := range beside() {
		if n := len(l.of(on)); n != 0 {
			t.Errorf("%s: %d events", on, n)
		}
	}
}

// hanging is a backend that is silent about events of one type, and tells that it was
// asked.
func hanging(on ahp.EventType) (judge backend.Func, asked chan struct{}) {
	asked = make(chan struct{}, 10)
	return func(ctx context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
		if q.Event.Type == on {
			asked <- struct{}{}
			<-ctx.Done()
		}
		return nil, nil
	}, asked
}

// TestClosedWhileItIsAsked ends the session, or what runs, while a backend is asked
// about a change: it isn't made, and whoever waits for it hears why.
func TestClosedWhileItIsAsked(t *testing.T) {
	changes := map[ahp.EventType]func(context.Context, control.Session) error{
		ahp.ConfigChangeBefore: func(ctx context.Context, s control.Session) error { return s.Tune().SetMode(ctx, "plan") },
		ahp.ModelSwitchBefore:  func(ctx context.Context, s control.Session) error { return s.Tune().SetModel(ctx, "two/m2") },
		ahp.ContextCompactBefore: func(ctx context.Context, s control.Session) error {
			_, err := s.Tune().Compact(ctx)
			return err
		},
		ahp.ContextCompactAfter: func(ctx context.Context, s control.Session) error {
			_, err := s.Tune().Compact(ctx)
			return err
		},
	}
	for on, change := range changes {
		t.Run(string(on), func(t *testing.T) {
			filled := modeltest.Turn{Text: strings.Repeat("and so on ", 3000)}
			w := newWorld(t, filled, done(), modeltest.Turn{Text: "SUMMARY"}, done())
			w.providers()
			w.settings(strings.Replace(w.read(w.opts.ConfigFile), `"two/m2"`, `"one/m1":{"context_window":16000},"two/m2"`, 1))
			judge, asked := hanging(on)
			w.hooks("org.test.judge", (&listener{judge: judge}).serve(t), intercept(on, "fail-open"))
			s := w.open(control.Start{})
			for range 2 {
				if a := s.Prompt(t.Context(), control.Prompt{Text: "do it"}); a.Reason != "completed" {
					t.Fatalf("%+v", a)
				}
			}
			errs := make(chan error, 1)
			go func() { errs <- change(t.Context(), s) }()
			<-asked
			began := time.Now()
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			text := refusal(t, <-errs, control.CodeFailed)
			if took := time.Since(began); took > 10*time.Second || text == "" {
				t.Errorf("%q after %s", text, took)
			}
			if i := s.Info(); i.Mode != "default" || i.Model != "one/m1" {
				t.Errorf("the mode is %s, the model %s", i.Mode, i.Model)
			}
			for _, e := range w.events(result{record: s.Info().Record}) {
				switch e.Payload.(type) {
				case *event.ModeChanged, *event.ModelSwitched, *event.ContextReduced:
					t.Errorf("the record has %s", e.Payload.Type())
				}
			}
		})
	}
}

// TestCompactOnDemand compacts between prompts: backends see it outside any turn, and
// who refuses it is named; then the next request has everything.
func TestCompactOnDemand(t *testing.T) {
	for name, refuse := range map[string]bool{"no opinion": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			long := "FILLED " + strings.Repeat("and so on ", 3000)
			turns := []modeltest.Turn{{Text: long}, done(), {Text: "SUMMARY"}, {Text: "last"}}
			if refuse {
				turns = slices.Delete(turns, 2, 3)
			}
			w := newWorld(t, turns...)
			w.settings(`{"models":{"env/test":{"context_window":16000}}}`)
			l := &listener{judge: func(_ context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
				if refuse {
					return backend.Answer(q, deny())
				}
				return backend.Answer(q, inject(ahp.DeliverNow))
			}}
			w.hooks("org.test.judge", l.serve(t), intercept(ahp.ContextCompactBefore, "fail-closed")+","+strings.Replace(observeAll, "*", "context.*", 1))
			s := w.open(control.Start{})
			s.Prompt(t.Context(), control.Prompt{Text: "do it"})
			s.Prompt(t.Context(), control.Prompt{Text: "and this"})
			c, err := s.Tune().Compact(t.Context())
			if err != nil || c.Done == refuse || (c.After < c.Before) != c.Done || refuse && !strings.Contains(c.Detail, "org.test.judge: not on Fridays") {
				t.Errorf("%+v %v", c, err)
			}
			if a := s.Prompt(t.Context(), control.Prompt{Text: "go on"}); a.Text != "last" {
				t.Errorf("%+v", a)
			}
			requests := w.server.Requests()
			all := strings.Join(sent(requests[len(requests)-1]), "\n")
			if strings.Contains(all, "FILLED") != refuse || strings.Contains(all, "SUMMARY") == refuse || strings.Contains(all, "CONTEXT") == refuse || !strings.Contains(all, "user do it\n") {
				t.Errorf("the model was sent %s", all)
			}
			for _, e := range l.events {
				if e.Turn != nil || e.Type == ahp.ContextCompactBefore && e.Trigger != "manual" {
					t.Errorf("%s: turn %v, trigger %q", e.Type, e.Turn, e.Trigger)
				}
			}
			if n := len(l.of(ahp.ContextCompactAfter)); (n == 0) != refuse {
				t.Errorf("told of %d summaries", n)
			}
		})
	}
}

// TestForksNameTheirOrigin looks at how a session starts that is a fork of another,
// named by its id, by a part of it, by its file, or as the newest one.
func TestForksNameTheirOrigin(t *testing.T) {
	w := newWorld(t, done())
	first := w.run(t.Context())
	id := strings.TrimSuffix(filepath.Base(first.record), ".jsonl")
	last := w.events(first)
	starts := map[string]control.Start{
		"startup ": {}, "resume ": {Resume: id}, "fork " + id: {Resume: id, ForkAt: 2}, "fork  " + id: {Resume: id[:len(id)-3], ForkAt: 2},
		"fork   " + id: {Resume: first.record, ForkAt: int64(len(last))}, "fork    " + id: {Continue: true, ForkAt: 2},
	}
	order := []string{"fork    " + id, "fork " + id, "fork  " + id, "fork   " + id, "resume ", "startup "}
	l := &listener{}
	w.hooks("org.test.judge", l.serve(t), intercept(ahp.SessionStart, "fail-closed"))
	for n, want := range order {
		s := w.open(control.Start(starts[want]))
		e := l.of(ahp.SessionStart)[n]
		from := ""
		if e.ResumedFrom != nil {
			from = e.ResumedFrom.ID
		}
		if got := fmt.Sprintf("%s %s", e.Trigger, from); got != strings.Join(strings.Fields(want), " ") && got != want {
			t.Errorf("the session starts with %q, want %q", got, want)
		}
		if is := s.Info().SessionID == id; is != (e.Trigger == "resume") || e.Session.ID != s.Info().SessionID {
			t.Errorf("%s: the session is %s", e.Trigger, e.Session.ID)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
