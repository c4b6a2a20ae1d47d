package app

import (
	"context"
	"errors"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/sandbox"
	"github.com/abhed/abhed/internal/tool"
)

// makeRules compiles the rules for the tools that exist.
func (e *engine) makeRules(context.Context) error {
	l := e.o.loaded
	known := knownTools(e.main.candidates())
	known.MCPServers = e.serverNames()
	set, found := policy.Compile(policy.RuleLists{
		Deny: e.named(restrictions(l.Permissions.Deny, e.sys.home())), Ask: e.named(restrictions(l.Permissions.Ask, e.sys.home())), Allow: e.named(ruleTexts(l.Permissions.Allow)),
	}, known)
	warnings, err := problems(found)
	if err != nil {
		return err
	}
	e.warnings = append(e.warnings, warnings...)
	if err := e.compileMatchers(known); err != nil {
		return err
	}
	e.ruleset = set
	return nil
}

// writable lists where commands can write outside the roots. Without a sandbox
// that is at least the home folder and the temporary folders.
func (e *engine) writable() []string {
	dirs := []string{e.tmp, "/tmp", "/var/tmp", "/dev/shm"}
	if e.plan.Tier() == sandbox.TierNone && e.sys.home() != "" {
		dirs = append(dirs, e.sys.home())
	}
	return dirs
}

// knownTools tells the rules what tools there are and what their subjects are, those
// included that this session doesn't offer: a rule about them is no fault.
func knownTools(tools []tool.Tool) policy.Known {
	known := policy.Known{Tools: map[string]policy.SubjectKind{}}
	for _, t := range tools {
		known.Tools[t.Spec().Name] = t.Declare([]byte("{}")).Kind
	}
	return known
}

// sessionless is an engine without session: enough to judge, and to start what belongs
// to it. What that says of itself goes to record.
func sessionless(ctx context.Context, l *loaded, sys System, record func(event.Draft) error) (*engine, error) {
	e := &engine{o: buildOptions{loaded: l}, sys: sys, id: "none", record: record, afresh: true}
	for _, step := range []func(context.Context) error{e.openSandbox, e.readRegistrations} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, e.close())
		}
	}
	return e, nil
}

// explainable is one that has rules. Nothing runs.
func explainable(ctx context.Context, l *loaded, sys System) (*engine, error) {
	e, err := sessionless(ctx, l, sys, nil)
	if err != nil {
		return nil, err
	}
	for _, step := range []func(context.Context) error{e.makeTools, e.makeRules, e.firstMode} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, e.close())
		}
	}
	return e, nil
}
