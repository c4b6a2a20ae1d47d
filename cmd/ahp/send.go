package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/ahpconfig"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/trust"
)

// newSend is "ahp send".
func newSend(sys system) *cobra.Command {
	var o sendOptions
	c := &cobra.Command{
		Use:   "send EVENT.json",
		Short: "Send one event through a registration and show what happens",
		Long: `Read one event ("-" is standard input), ask every matching interceptor about it and let
every matching observer know, as a harness does that can enforce whatever the event type
allows. Shown are every request with its answer, the time it took or why it failed, and the
outcome.

The registrations are the managed one, ` + ahpconfig.ManagedFile + `, and the one that
--registration or AHP_REGISTRATION names; else the user's, ~/.config/ahp/registration.json,
and the project's, .ahp/registration.json. AHP_HOME takes the place of the home folder.
A tokenRef or clientSecretRef is env:NAME or file:PATH. Attachments stay out: there is
nobody here to lend their bytes, so a registration with an upload is refused.

A user.elicitation.result is judged against the request that it answers, which --request
names; the request itself is sent to nobody.

Exit codes: 0 nothing speaks against the operation, 1 a backend denied or stopped it,
2 wrong use or configuration, 3 a backend could not be asked or told, or the call was
interrupted.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return failWith(exitUsage, fmt.Errorf("send takes one FILE that holds one event, and was given %d", len(args)))
			}
			return o.run(cmd.Context(), sys, args[0])
		},
	}
	c.Flags().StringVar(&o.registration, "registration", "", "registration `FILE`")
	c.Flags().StringVar(&o.request, "request", "", "the user.elicitation.request that the event answers, in this `FILE`")
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	return c
}

type sendOptions struct {
	registration string
	request      string
	json         bool
}

// sent is the result in JSON.
type sent struct {
	ID        string        `json:"id"`
	Type      ahp.EventType `json:"type"`
	Exchanges []exchange    `json:"exchanges"`
	// Answers holds every subscription that was asked, in order.
	Answers      []answerShown      `json:"answers"`
	Observations []observationShown `json:"observations"`
	// Outcome is absent for an event that is only observed.
	Outcome *outcomeShown `json:"outcome,omitzero"`
	// Interrupted tells that the call was cancelled before everybody was told.
	Interrupted bool `json:"interrupted,omitzero"`
}

type answerShown struct {
	Backend      string         `json:"backend"`
	Subscription int            `json:"subscription"`
	Kind         ahp.AnswerKind `json:"kind"`
	Effects      []ahp.Raw      `json:"effects"`
	Milliseconds int64          `json:"milliseconds"`
	Failure      *failureShown  `json:"failure,omitzero"`
	// Policy is what was applied to the failure.
	Policy ahp.FailurePolicy `json:"policy,omitzero"`
}

type observationShown struct {
	Backend      string        `json:"backend"`
	Subscription int           `json:"subscription"`
	Milliseconds int64         `json:"milliseconds"`
	Failure      *failureShown `json:"failure,omitzero"`
}

// outcomeShown is the verdict of "ahp evaluate", with who made it.
type outcomeShown struct {
	verdict
	Denials     []denialShown `json:"denials,omitzero"`
	StopReason  string        `json:"stopReason,omitzero"`
	Interrupted bool          `json:"interrupted,omitzero"`
}

type denialShown struct {
	Backend string `json:"backend"`
	Reason  string `json:"reason"`
	Code    string `json:"code,omitzero"`
	// Synthetic tells that the backend could not be asked.
	Synthetic bool `json:"synthetic,omitzero"`
}

func (o *sendOptions) run(ctx context.Context, sys system, file string) error {
	e, err := sys.event(file)
	if err != nil {
		return err
	}
	var asked *ahp.Event
	if o.request != "" {
		if asked, err = sys.event(o.request); err != nil {
			return err
		}
	}
	loaded, err := sys.registration(o.registration)
	if err != nil {
		return err
	}
	w := &wire{sys: sys, loaded: loaded}
	out, err := send(ctx, w, e, asked)
	if err != nil {
		return err
	}
	return sys.conclude(out, o.json)
}

// event reads one event.
func (s system) event(file string) (*ahp.Event, error) {
	data, err := s.read(file)
	if err != nil {
		return nil, err
	}
	e, err := ahp.DecodeEvent(data)
	if err != nil {
		return nil, wrong(file, data, err)
	}
	return e, nil
}

// registration loads what holds for this command: file, or AHP_REGISTRATION, or
// the user's and the project's.
func (s system) registration(file string) (*ahpconfig.Loaded, error) {
	if file == "" {
		file = s.getenv("AHP_REGISTRATION")
	}
	state, err := hooklog.StateDir(s.getenv("AHP_HOME"))
	if err != nil {
		return nil, failWith(exitUsage, err)
	}
	loaded, err := ahpconfig.Load(ahpconfig.Options{
		File: file, Home: s.getenv("AHP_HOME"), Dir: s.dir, Trusted: trust.Open(filepath.Join(state, "trust.json")).Trusted,
	})
	if err != nil {
		return nil, failWith(exitUsage, err)
	}
	if loaded.Registration == nil {
		return nil, failWith(exitUsage, fmt.Errorf("no registration: none of %s is there; name one with --registration", strings.Join(loaded.Looked, ", ")))
	}
	return loaded, nil
}

// fullManifest offers everything that the protocol allows for every event.
func fullManifest(e *ahp.Event) *ahp.Manifest {
	m := ahp.NewManifest()
	for _, t := range ahp.EventTypes() {
		modes := []ahp.Mode{ahp.ModeObserve}
		if t.Interceptable() {
			modes = append(modes, ahp.ModeIntercept)
		}
		row := ahp.NewManifestEvent(t, modes...)
		row.Capabilities = fullCapabilities(t)
		m.Events = append(m.Events, row)
	}
	m.Authentication = []string{"bearer", "oauth"}
	m.ManagedPolicy.Scopes = []string{"user", "project", "managed"}
	if e.Path != "" {
		m.ToolPaths = []string{e.Path}
	}
	return m
}

// fullCapabilities advertises everything that t allows, and one continuation.
func fullCapabilities(t ahp.EventType) *ahp.Capabilities {
	if !t.Interceptable() {
		return nil
	}
	c := ahp.NewCapabilities(t, t.Effects()...)
	if c.Flow != nil {
		if c.Flow.Operations = t.FlowOperations(); len(c.Flow.Operations) > 1 {
			left, count := int64(1), int64(0)
			c.Flow.RemainingContinuations, c.Flow.ContinuationCount = &left, &count
		}
	}
	if t == ahp.UserElicitationRequest || t == ahp.UserElicitationResult {
		c.Elicitation = &ahp.ElicitationCapability{Form: &ahp.ElicitationMode{}, URL: &ahp.ElicitationMode{}}
	}
	return c
}

// send asks and tells everybody about e, and waits for all of it. asked is the
// elicitation that e answers, nil for none.
func send(ctx context.Context, w *wire, e, asked *ahp.Event) (_ *sent, err error) {
	out := &sent{ID: e.ID, Type: e.Type, Answers: []answerShown{}, Observations: []observationShown{}}
	var mu sync.Mutex // guards out.Observations
	h, err := harness.New(w.loaded.Registration, harness.Options{Manifest: fullManifest(e), Open: w.open, OnDelivery: func(d harness.Delivery) {
		mu.Lock()
		defer mu.Unlock()
		o := observationShown{Backend: d.By.Backend, Subscription: d.By.Index, Milliseconds: d.Milliseconds}
		if d.Failure != nil {
			o.Failure = showFailure(d.Failure)
		}
		out.Observations = append(out.Observations, o)
	}})
	if err != nil {
		return nil, failWith(exitUsage, fmt.Errorf("the registration can't be used: %s", strings.TrimPrefix(err.Error(), "harness: ")))
	}
	defer func() {
		if bad := h.Close(); err == nil && bad != nil {
			err = failWith(exitFailed, bad)
		}
	}()
	if asked != nil {
		if _, err := h.Elicitations().Add(asked); err != nil {
			return nil, failWith(exitUsage, fmt.Errorf("--request: %s", strings.TrimPrefix(err.Error(), "ahp: ")))
		}
	}
	if e.Type.Interceptable() {
		err = out.intercept(ctx, h, e)
	} else {
		err = observe(ctx, h, e)
	}
	if out.Interrupted = errors.Is(err, context.Canceled); err != nil && !out.Interrupted {
		return nil, failWith(exitUsage, fmt.Errorf("the event can't be sent: %s", strings.TrimPrefix(err.Error(), "harness: ")))
	}
	mu.Lock()
	defer mu.Unlock()
	out.Exchanges = w.taken()
	return out, nil
}

func observe(ctx context.Context, h *harness.Harness, e *ahp.Event) error {
	d, err := h.Observe(ctx, e)
	if err != nil {
		return err
	}
	return d.Wait(ctx)
}

// intercept dispatches e and fills out with what it came to.
func (s *sent) intercept(ctx context.Context, h *harness.Harness, e *ahp.Event) error {
	caps := fullCapabilities(e.Type)
	got, err := h.Dispatch(ctx, e, caps, nil, harness.DispatchOptions{})
	if err != nil {
		return err
	}
	v, err := verdictOf(&got.Outcome, caps, func(ahp.Raw) bool { return true })
	if err != nil {
		return err
	}
	if v.ID, err = strictjson.Marshal(e.ID); err != nil {
		return err
	}
	s.Outcome = &outcomeShown{verdict: *v, StopReason: got.StopReason, Interrupted: got.Interrupted}
	for _, d := range got.Denials {
		s.Outcome.Denials = append(s.Outcome.Denials, denialShown{d.By.Backend, d.Reason, d.Code, d.Synthetic})
	}
	for i := range got.Trace {
		a := &got.Trace[i]
		shown := answerShown{Backend: a.By.Backend, Subscription: a.By.Index, Kind: a.Kind, Effects: []ahp.Raw{}, Milliseconds: a.Milliseconds, Policy: a.Policy}
		if a.Failure != nil {
			shown.Failure = showFailure(a.Failure)
		}
		for _, effect := range a.Effects {
			raw, err := ahp.EncodeEffect(effect)
			if err != nil {
				return err
			}
			shown.Effects = append(shown.Effects, raw)
		}
		s.Answers = append(s.Answers, shown)
	}
	return got.Wait(ctx)
}
