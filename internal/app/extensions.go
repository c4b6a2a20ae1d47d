package app

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/config"
	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/proc"
	"github.com/abhed/abhed/internal/sandbox"
)

// endLimit bounds what is said to extensions and backends at the end of a session.
const endLimit = 2 * time.Second

// matcher narrows an extension to the calls that its rules match. Its rules can
// only be compiled when all tools are known, which is after the extension has
// started and before it is asked about a call.
type matcher struct {
	extension string
	rules     []config.Rule
	set       *policy.Ruleset
	home      string
}

// matches reports whether the extension wants to judge the call: any part of it
// fits, or it can't be judged at all.
func (m *matcher) matches(c policy.Call, d policy.Declaration) bool {
	return m.set == nil || m.set.Matches(policy.Input{Call: c, Declaration: d, Env: policy.Env{Mode: policy.ModeBypass, Home: m.home}})
}

// extensionConfigs turns the settings into what the host takes.
func (e *engine) extensionConfigs() []extension.Config {
	var out []extension.Config
	for i, x := range e.o.loaded.Extensions {
		c := extension.Config{
			Name: x.Name, Command: x.Command, Args: x.Args, Dir: e.o.loaded.extensionDir(i), Events: x.Events,
			Timeout: x.Timeout(), InvokeTimeout: x.InvokeTimeout(), OnFailure: extension.OnFailure(x.OnFailure), Sandbox: x.Sandbox,
		}
		for k, v := range x.Env {
			c.Env = append(c.Env, k+"="+v)
		}
		slices.Sort(c.Env)
		if len(x.Match) > 0 {
			m := &matcher{extension: x.Name, rules: x.Match, home: e.sys.home()}
			e.matchers = append(e.matchers, m)
			c.Match = m.matches
		}
		out = append(out, c)
	}
	return out
}

// compileMatchers compiles the match rules against the tools that exist.
func (e *engine) compileMatchers(known policy.Known) error {
	for _, m := range e.matchers {
		set, found := policy.Compile(policy.RuleLists{Deny: e.named(ruleTexts(m.rules))}, known)
		warnings, err := problems(found)
		if err != nil {
			return fmt.Errorf("extension %q, match: %w", m.extension, err)
		}
		e.warnings = append(e.warnings, warnings...)
		m.set = set
	}
	return nil
}

// extensionDir returns where the extension of that number starts, and so what a
// relative path in its arguments means: its cwd, or the folder that relative paths
// in its settings file start at. A confined one gets no folder that it didn't ask
// for, because it could write there.
func (l *loaded) extensionDir(i int) string {
	x := l.Extensions[i]
	origin, ok := l.Origin(fmt.Sprintf("extensions[%d].name", i))
	switch {
	case x.Cwd != "" || x.Sandbox || !ok || !filepath.IsAbs(origin.File):
		return x.Cwd
	case origin.Layer == config.Project:
		return l.workspace
	default:
		return filepath.Dir(origin.File)
	}
}

// confineExtension runs an extension without network, and read-only but for its
// own folder.
func (e *engine) confineExtension(spec proc.Spec) (proc.Spec, error) {
	if e.plan.Tier() < sandbox.TierProcess {
		return proc.Spec{}, fmt.Errorf("it is to run in a sandbox, and none is available (tier %s)", e.plan.Tier())
	}
	var p sandbox.Policy
	if spec.Dir != "" {
		p.Roots = []string{spec.Dir}
	}
	e.confineProgram(spec, &p)
	return e.plan.Confine(spec, p)
}

// sessionStarted tells extensions and backends that the session begins, and
// returns context for the model.
func (e *engine) sessionStarted(ctx context.Context) ([]string, error) {
	if e.ext != nil {
		e.ext.SessionStart(ctx, e.extensionSession())
	}
	if e.backends == nil {
		return nil, nil
	}
	trigger := "startup"
	switch {
	case e.origin != "":
		trigger = "fork"
	case e.resumed != nil:
		trigger = "resume"
	}
	return e.main.gate.Start(ctx, trigger, e.origin, e.main.system)
}

// sessionEnded tells them that it ends, even if it was interrupted.
func (e *engine) sessionEnded(ctx context.Context, res agent.Result) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endLimit)
	defer cancel()
	if e.ext != nil {
		e.ext.SessionEnd(ctx, string(res.Reason))
	}
	if e.backends != nil {
		e.backends.End(ctx, res)
	}
}
