package app

import (
	"context"
	"os"
	"slices"
	"sync/atomic"

	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/sandbox"
	"github.com/abhed/abhed/internal/tool/bash"
)

// scope is what all agents share that work in the same folders: what commands may
// not touch there, the rules as they hold there, and the tool that runs commands.
type scope struct {
	e       *engine
	roots   []string
	holding *holding
	absent  []string // watched files that weren't there before the command, not in the background, that runs
	shell   *bash.Tool
	rules   atomic.Pointer[gate.Rules]
	denied  func(path string) bool // what searches leave out, nil if nothing
}

// newScope makes the scope of roots. Its rules are set before anything runs in it.
// more are folders of the home that commands may read besides.
func (e *engine) newScope(roots []string, more ...string) (*scope, error) {
	l := e.o.loaded
	s := &scope{e: e, roots: roots, holding: newHolding(roots)}
	var err error
	s.shell, err = bash.New(e.plan, bash.Options{
		Policy: sandbox.Policy{Roots: roots, HomePaths: append(slices.Clone(l.Sandbox.HomePaths), more...), Network: l.Sandbox.Network, TmpDir: e.tmp},
		Before: s.beforeCommand, After: s.afterCommand, Guard: s.guardJob, Jobs: e.jobs, OutputDir: e.outputs,
	})
	if err != nil {
		return nil, err
	}
	e.onClose(s.holding.clear)
	return s, nil
}

// setRules makes the rules hold as they do in mode.
func (s *scope) setRules(mode policy.Mode) error {
	env, err := s.env(mode)
	if err != nil {
		return err
	}
	rules, err := gate.NewRules(s.e.ruleset, env)
	if err != nil {
		return err
	}
	s.denied = s.e.ruleset.ReadDenied(s.roots, env.Home, env.Protected.Read)
	s.rules.Store(rules)
	return nil
}

// env is what the rules are evaluated with.
func (s *scope) env(mode policy.Mode) (policy.Env, error) {
	e, l := s.e, s.e.o.loaded
	most, err := policy.ParseMode(l.Permissions.MaxMode)
	if err != nil {
		return policy.Env{}, err
	}
	return policy.Env{
		Mode: mode, MaxMode: most, Home: e.sys.home(),
		TierProcess: e.plan.Tier() >= sandbox.TierProcess, NetworkOff: !e.network(),
		Writable:    e.writable(),
		Protected:   e.protected(s.roots),
		EnvHarmless: l.Permissions.EnvHarmless, Runners: l.Permissions.Runners,
	}, nil
}

// readDenied reports whether a search must leave the path out. The rules are
// compiled after the tools are made, and before any of them runs.
func (s *scope) readDenied(path string) bool { return s.denied != nil && s.denied(path) }

// mode returns the permission mode that is in force.
func (e *engine) mode() policy.Mode { return policy.Mode(e.modeNow.Load()) }

// setMode puts a mode into force in every scope.
func (e *engine) setMode(m policy.Mode) error {
	e.mu.Lock()
	scopes := slices.Clone(e.scopes)
	e.mu.Unlock()
	for _, s := range scopes {
		if err := s.setRules(m); err != nil {
			return err
		}
	}
	e.modeNow.Store(uint32(m))
	return nil
}

// firstMode is the mode that the session starts with.
func (e *engine) firstMode(context.Context) error {
	m, err := policy.ParseMode(e.o.loaded.Permissions.Mode)
	if err != nil {
		return err
	}
	if m == policy.ModeBypass && os.Geteuid() == 0 {
		e.warnings = append(e.warnings, "mode bypass runs as root: what no rule stops can change the whole machine")
	}
	return e.setMode(m)
}
