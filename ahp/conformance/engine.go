package conformance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/abhed/abhed/internal/run"
)

// plan says which checks to run, and how.
type plan struct {
	role     Role
	binding  Binding
	profiles []Profile // nil means all
	only     []string  // nil means all
	// redact takes secrets out of a text; nil changes nothing.
	redact func(string) string
	// prepare gets each check's probe before it runs; may be nil.
	prepare func(*probe)
	// after is told of each result as it comes; may be nil.
	after func(*Result)
}

// execute runs the checks in their order and returns a result for each that the
// plan selects. It stops with ctx's error.
func execute[E any](ctx context.Context, pl plan, list []scenario[E], env E) ([]Result, error) {
	wanted, err := selection(pl, list)
	if err != nil {
		return nil, err
	}
	var results []Result
	verdicts := map[string]Verdict{}
	for _, s := range list {
		if !wanted[s.ID] {
			continue
		}
		started := time.Now()
		r := one(ctx, &pl, s, env, verdicts)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("conformance: %w", context.Cause(ctx))
		}
		r.Elapsed = time.Since(started)
		verdicts[r.ID] = r.Verdict
		if pl.after != nil {
			pl.after(&r)
		}
		results = append(results, r)
	}
	return results, nil
}

// one runs one check, or says why not.
func one[E any](ctx context.Context, pl *plan, s scenario[E], env E, verdicts map[string]Verdict) Result {
	switch {
	case !s.concerns(pl.binding):
		return Result{Check: s.Check, Verdict: NotApplicable, Reason: fmt.Sprintf("has no meaning with the binding %s", pl.binding)}
	case pl.profiles != nil && !slices.Contains(pl.profiles, s.Profile):
		return Result{Check: s.Check, Verdict: NotApplicable, Reason: fmt.Sprintf("the profile %s isn't claimed", s.Profile)}
	}
	for _, id := range s.DependsOn {
		switch verdicts[id] {
		case Fail, Warn, Blocked, SuiteError:
			return Result{Check: s.Check, Verdict: Blocked, BlockedBy: id, Reason: fmt.Sprintf("needs %s, which didn't pass", id)}
		}
	}
	p := &probe{redact: pl.redact}
	if pl.prepare != nil {
		pl.prepare(p)
	}
	err := run.Protect(func() error {
		defer p.end()
		return s.run(ctx, p, env)
	})
	return p.judge(s.Check, err)
}

// selection returns the ids to run: those asked for and what they depend on.
func selection[E any](pl plan, list []scenario[E]) (map[string]bool, error) {
	depends := map[string][]string{}
	wanted := map[string]bool{}
	for _, s := range list {
		depends[s.ID] = s.DependsOn
		wanted[s.ID] = pl.only == nil
	}
	var add func(id string)
	add = func(id string) {
		wanted[id] = true
		for _, d := range depends[id] {
			add(d)
		}
	}
	for _, id := range pl.only {
		if _, known := depends[id]; !known {
			return nil, fmt.Errorf("conformance: there is no check %q of a %s", id, pl.role)
		}
		add(id)
	}
	return wanted, nil
}
