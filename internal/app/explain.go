package app

import (
	"context"
	"fmt"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/strictjson"
)

// ExplainOptions is one call to explain.
type ExplainOptions struct {
	SettingsOptions
	Tool, Args string
	JSON       bool
}

// Explain prints how the rules would judge a call. Nothing runs: no tool, no
// extension, no backend.
func Explain(ctx context.Context, o ExplainOptions, sys System) int {
	l, err := loadSettings(o.SettingsOptions, sys)
	if err != nil {
		return sys.fail(ExitUsage, err)
	}
	e, err := explainable(ctx, l, sys)
	if err != nil {
		return sys.fail(ExitUsage, err)
	}
	defer e.close()
	args, err := e.main.tools.Check(o.Tool, []byte(o.Args))
	if err != nil {
		return sys.fail(ExitUsage, err)
	}
	t, _ := e.main.tools.Lookup(o.Tool)
	call := policy.Call{ID: "explain", Tool: o.Tool, ToolVersion: t.Spec().Version, Args: args, WorkDir: l.workspace, Roots: l.roots, Agent: policy.Agent{ID: mainAgent}}
	res := e.mainScope.rules.Load().Explain(call, t.Declare(args))
	if o.JSON {
		res.Trace = nil // the record has none either
		b, err := strictjson.Marshal(res)
		if err != nil {
			return sys.fail(ExitFailure, err)
		}
		fmt.Fprintf(sys.Stdout, "%s\n", b)
		return ExitOK
	}
	fmt.Fprintln(sys.Stdout, res.Explain())
	if len(l.Extensions) > 0 || e.registered.Registration != nil {
		fmt.Fprintln(sys.Stdout, "Extensions and AHP backends were not asked; they can only make this stricter.")
	}
	for _, w := range append(l.notes(), e.warnings...) {
		fmt.Fprintf(sys.Stderr, "warning: %s\n", w)
	}
	return ExitOK
}
