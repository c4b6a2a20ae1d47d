package tool

import (
	"context"
	"fmt"
)

// Executor is the only thing that runs tools. It is safe for concurrent use.
type Executor struct {
	tools    *Registry
	verifier *Verifier
}

// NewExecutor returns the executor of the registry's tools for permits that
// verifier redeems.
func NewExecutor(tools *Registry, verifier *Verifier) *Executor {
	return &Executor{tools: tools, verifier: verifier}
}

// Run redeems the permit and runs its call; output, if not nil, receives live
// output. The error is ErrNoPermit if the permit redeems nothing, or the tool's
// own defect, panics included; a call that merely fails is a Result.
func (e *Executor) Run(ctx context.Context, p Permit, output func(string)) (res Result, err error) {
	t, err := e.verifier.redeem(p)
	if err != nil {
		return Result{}, err
	}
	impl, ok := e.tools.Lookup(t.call.Tool)
	if !ok {
		return Result{}, fmt.Errorf("permit for tool %q, which is not registered", t.call.Tool)
	}
	defer func() {
		if r := recover(); r != nil {
			res, err = Result{}, fmt.Errorf("tool %s is broken: %v", t.call.Tool, r)
		}
	}()
	res, err = impl.Run(ctx, Grant{&grant{call: t.call, place: t.place, output: output}})
	if err != nil {
		return Result{}, fmt.Errorf("tool %s: %w", t.call.Tool, err)
	}
	res.Content = Clean(res.Content)
	return res, nil
}
