package conformance

import (
	"context"
	"errors"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// discoveryChecks are about hooks/capabilities, which a backend may lack.
func discoveryChecks() []backendCheck {
	return []backendCheck{
		base("discovery", "AHP-RPC-002.d", "Discovery is answered with a manifest alone, or with -32601", runDiscovery),
		base("discovery.independent", "AHP-RPC-002.d", "Discovery needs no session, and says the same before and after events", runDiscoveryIndependent).after("discovery"),
		base("discovery.closed", "AHP-RPC-002.e", "Further params of a discovery are refused", runDiscoveryClosed).level(Should).after("discovery"),
	}
}

// discover asks for the manifest and returns it as it came, nil if the peer has
// none.
func (e *backendEnv) discover(ctx context.Context, p *probe, l link) (ahp.Raw, error) {
	m, err := made(discovering(e.id()), 0)
	if err != nil {
		return nil, err
	}
	a, err := l.ask(ctx, m)
	if err != nil {
		return nil, err
	}
	if a.raw == nil {
		return nil, p.failf("%s, expected a response", a.nothing())
	}
	_, err = ahp.DecodeManifestReply(a.raw, m.id)
	var rpc *ahp.RPCError
	switch {
	case errors.As(err, &rpc):
		return nil, p.wantError(a, m.id, false, ahp.CodeMethodNotFound)
	case err != nil:
		return nil, p.failf("the answer breaks the protocol: %v", err)
	}
	return peek(a.raw).Result, nil
}

func runDiscovery(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	result, err := e.discover(ctx, p, l)
	if err == nil && result == nil {
		p.note("the peer has no manifest")
	}
	return err
}

func runDiscoveryIndependent(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	before, err := e.discover(ctx, p, l)
	switch {
	case err != nil:
		return err
	case before == nil:
		return p.notApplicable("the peer has no manifest")
	}
	m, err := e.plain()
	if err != nil {
		return err
	}
	a, err := l.ask(ctx, m)
	if err != nil {
		return err
	}
	if _, err := p.wantEffects(a, &m); err != nil {
		return err
	}
	after, err := e.discover(ctx, p, l)
	if err != nil {
		return err
	}
	if !strictjson.Equal(before, after) {
		return p.failf("the manifest after an event differs from the one before it")
	}
	return nil
}

func runDiscoveryClosed(ctx context.Context, p *probe, e *backendEnv) error {
	l, err := e.open(p)
	if err != nil {
		return err
	}
	result, err := e.discover(ctx, p, l)
	switch {
	case err != nil:
		return err
	case result == nil:
		return p.notApplicable("the peer has no manifest")
	}
	m, err := made(discovering(e.id()), ahp.KindShape, set("params.session", object{"id": "session-1"}))
	if err != nil {
		return err
	}
	a, err := l.ask(ctx, m)
	if err != nil {
		return err
	}
	return p.wantError(a, m.id, false, invalidParams()...)
}
