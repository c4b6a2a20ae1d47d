package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/internal/backends/rules"
	"github.com/abhed/abhed/internal/chain"
	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hooklog"
)

// player judges recorded events by a registration, as the hook of each event's agent
// would.
type player struct {
	wire  *wire
	reg   *ahp.Registration
	rules *rules.Backend
	scrub func([]byte) ([]byte, error)
	// tables is where an agent's events are judged, by its name.
	tables map[string]*table
}

// table is the registration as it holds for one agent.
type table struct {
	h    *harness.Harness
	host *adapter.Host // nil for an agent without an adapter
}

// rulesID is the backend that --rules makes.
const rulesID = "org.abhed.replay.rules"

// addRules registers b behind the others.
func (p *player) addRules(b *rules.Backend) {
	timeout := int64(60_000)
	reg := *p.reg
	reg.Hooks = append(append([]ahp.Backend{}, reg.Hooks...), ahp.Backend{
		ID: rulesID, Transport: ahp.TransportConfig{Type: ahp.TransportStdio, Command: "ahp", Lifecycle: ahp.LifecyclePersistent},
		Subscriptions: []ahp.Subscription{{
			Events: []string{string(ahp.ToolBefore)}, Mode: ahp.ModeIntercept, TimeoutMs: &timeout, FailurePolicy: ahp.FailClosed,
			Content: map[string]ahp.Selection{"default": ahp.SelectBody},
		}},
	})
	p.reg, p.rules = &reg, b
}

func (p *player) scrubber() (err error) {
	p.scrub, err = chain.Scrubber(nil)
	return err
}

// open connects to a backend.
func (p *player) open(b *ahp.Backend) (transport.Transport, error) {
	if p.rules != nil && b.ID == rulesID {
		s := backend.New(p.rules, backend.Options{})
		return transport.InProcess(s.Handle), nil
	}
	return p.wire.connect(b)
}

// table returns where the events of an agent are judged.
func (p *player) table(name string) (*table, error) {
	if t := p.tables[name]; t != nil {
		return t, nil
	}
	t := &table{host: hosts.Lookup(name)}
	reg, m := p.reg, fullManifest(&ahp.Event{Path: adapter.Path})
	if t.host != nil {
		m = t.host.Manifest()
		m.ManagedPolicy.Scopes = []string{"user", "project", "managed"}
		var err error
		if reg, _, err = hookd.Fit(p.reg, m); err != nil {
			return nil, failWith(exitUsage, fmt.Errorf("replay: the registration would be refused for %s: %w", name, err))
		}
	}
	h, err := harness.New(reg, harness.Options{Manifest: m, Open: p.open})
	if err != nil {
		return nil, failWith(exitUsage, fmt.Errorf("replay: the registration can't be used: %s", strings.TrimPrefix(err.Error(), "harness: ")))
	}
	t.h = h
	p.tables[name] = t
	return t, nil
}

func (p *player) close() error {
	var all []error
	for _, t := range p.tables {
		all = append(all, t.h.Close())
	}
	return errors.Join(all...)
}

// decided is what an event comes to now.
type decided struct {
	decision hooklog.Decision
	// effects is what was accepted, for a decision that consists in it.
	effects []string
	why     string
	// failed tells that a backend could not be asked.
	failed bool
}

// decide judges one event.
func (p *player) decide(ctx context.Context, r *recorded) (*decided, error) {
	t, err := p.table(r.host)
	if err != nil {
		return nil, err
	}
	var row *adapter.Row
	caps := fullCapabilities(r.event.Type)
	if t.host != nil {
		row = t.host.Row(r.native)
	}
	if row != nil && row.Type == r.event.Type {
		caps = row.Capabilities(r.event.ContinuationCount)
	}
	if caps == nil { // the agent can't be kept from it any longer
		return &decided{decision: hooklog.Pass}, nil
	}
	got, err := t.h.Dispatch(ctx, r.event, caps, nil, harness.DispatchOptions{NoObservers: true})
	if ctx.Err() != nil {
		return nil, context.Canceled
	}
	if err != nil {
		return nil, failWith(exitFailed, fmt.Errorf("replay: event %s: %w", short(r.event.ID, 64), err))
	}
	d := &decided{}
	if row != nil && row.Type == r.event.Type {
		d.settle(row, r.event, &got.Outcome)
	} else {
		d.plainly(&got.Outcome)
	}
	return d, d.finish(&got.Outcome, p.scrub)
}

// settle decides as the hook does that stands between backends and agent.
func (d *decided) settle(row *adapter.Row, e *ahp.Event, o *ahp.Outcome) {
	v := adapter.Settle(&adapter.Event{Row: row, AHP: e}, o, adapter.Texts{Denial: denialOf(o), Ask: "ask", Withheld: "withheld"})
	switch {
	case v.Deny != "":
		d.decision, d.why = hooklog.Deny, v.Deny
	case v.Ask != "":
		d.decision = hooklog.Ask
	case v.Input != nil || v.Output != nil || v.Prompt != nil || v.Instructions != nil:
		d.decision = hooklog.Rewrite
	case !v.Silent():
		d.decision = hooklog.Tell
	default:
		d.decision = hooklog.Pass
	}
}

// plainly decides for a host that can do everything.
func (d *decided) plainly(o *ahp.Outcome) {
	switch {
	case o.Interrupted || len(o.Denials) > 0:
		d.decision, d.why = hooklog.Deny, denialOf(o)
	case o.Permission == ahp.PermissionAsk:
		d.decision = hooklog.Ask
	case o.Changed:
		d.decision = hooklog.Rewrite
	case o.Candidate != nil || o.Flow != ahp.FlowStateNone:
		d.decision = hooklog.Tell
	default:
		d.decision = hooklog.Pass
	}
}

func denialOf(o *ahp.Outcome) string {
	if d := o.Denial(); d != nil {
		return d.By.Backend + ": " + d.Reason
	}
	return "the check was interrupted"
}

// finish keeps the effects, scrubbed as those in the log are, and who failed.
func (d *decided) finish(o *ahp.Outcome, scrub func([]byte) ([]byte, error)) error {
	answers, err := hooklog.AnswersOf(o.Trace)
	if err != nil {
		return failWith(exitFailed, err)
	}
	var said []string
	for i := range answers {
		a := &answers[i]
		if a.Failure != nil {
			d.failed = true
			said = append(said, fmt.Sprintf("%s failed (%s: %s), so %s", a.Backend, a.Failure.Class, a.Failure.Detail, a.Policy))
		} else if len(a.Effects) > 0 {
			said = append(said, a.Backend)
		}
		for _, raw := range a.Effects {
			text, err := scrub(raw)
			if err != nil {
				return failWith(exitFailed, err)
			}
			d.effects = append(d.effects, canonicalText(text))
		}
	}
	if d.why == "" || d.failed {
		d.why = strings.Join(said, ", ")
	}
	if d.decision != hooklog.Rewrite && d.decision != hooklog.Tell {
		d.effects = nil
	}
	return nil
}
