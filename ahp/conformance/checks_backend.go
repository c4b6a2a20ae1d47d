package conformance

import (
	"context"
	"strings"

	"github.com/abhed/abhed/ahp"
)

type backendCheck = scenario[*backendEnv]

// root is the check that everything depends on: a peer that doesn't answer at all
// shows nothing.
const root = "answer"

// greaseChecks are those after which every valid request carries unknown members.
func greaseChecks() []string {
	return []string{"grease.envelope", "grease.params", "grease.event", "grease.open"}
}

// backendChecks returns the checks of the role backend, in the order in which they
// run.
func backendChecks() []backendCheck {
	var out []backendCheck
	for _, part := range [][]backendCheck{
		envelopeChecks(), growthChecks(), refusalChecks(), strictChecks(), silenceChecks(), discoveryChecks(), decisionChecks(), stdioChecks(), httpChecks(), authChecks(),
	} {
		out = append(out, part...)
	}
	return out
}

// must returns a check of a MUST that depends on root; requirements are separated
// by spaces.
func must(id, requirements string, profile Profile, about string, bindings []Binding, run func(context.Context, *probe, *backendEnv) error) backendCheck {
	return backendCheck{Check: Check{
		ID: id, About: about, Requirements: strings.Fields(requirements), Level: Must, Role: RoleBackend, Profile: profile,
		Bindings: bindings, DependsOn: []string{root},
	}, run: run}
}

// base is must for a rule of the profile base, with every binding.
func base(id, requirements, about string, run func(context.Context, *probe, *backendEnv) error) backendCheck {
	return must(id, requirements, ProfileBase, about, everywhere(), run)
}

// level returns the check with another level.
func (s scenario[E]) level(l Level) scenario[E] {
	s.Level = l
	return s
}

// after returns the check with other checks that it depends on.
func (s scenario[E]) after(ids ...string) scenario[E] {
	s.DependsOn = ids
	return s
}

// asked opens a link and asks m.
func (e *backendEnv) asked(ctx context.Context, p *probe, m message) (*answer, error) {
	l, err := e.open(p)
	if err != nil {
		return nil, err
	}
	return l.ask(ctx, m)
}

// accepts holds that m is answered with valid effects.
func (e *backendEnv) accepts(ctx context.Context, p *probe, m message) error {
	a, err := e.asked(ctx, p, m)
	if err != nil {
		return err
	}
	_, err = p.wantEffects(a, &m)
	return err
}

// acceptsEdited holds that a valid request with the edits is accepted.
func (e *backendEnv) acceptsEdited(edits ...edit) func(context.Context, *probe, *backendEnv) error {
	return func(ctx context.Context, p *probe, e *backendEnv) error {
		m, err := e.request(0, edits...)
		if err != nil {
			return err
		}
		return e.accepts(ctx, p, m)
	}
}

// variant is one of several messages that a check sends.
type variant struct {
	name   string
	breaks ahp.Kind
	edits  []edit
}

// each sends a request per variant over one link and gives the answer to judge.
func (e *backendEnv) each(ctx context.Context, p *probe, variants []variant, judge func(a *answer, m *message) error) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	for _, v := range variants {
		m, err := e.request(v.breaks, v.edits...)
		if err != nil {
			return err
		}
		a, err := l.ask(ctx, m)
		if err == nil {
			err = judge(a, &m)
		}
		if err != nil {
			return named(v.name, err)
		}
	}
	return nil
}

// named puts the name of a variant before the reason of a finding.
func named(name string, err error) error {
	if f, is := err.(*finding); is {
		return &finding{verdict: f.verdict, reason: name + ": " + f.reason, proof: f.proof}
	}
	return err
}

// ofTool reports whether the event that the checks go by is a tool call before it
// runs.
func (e *backendEnv) ofTool() bool { return e.opts.Events[0] == ahp.ToolBefore }
