package app

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/mcp"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/proc"
	"github.com/abhed/abhed/internal/sandbox"
	"github.com/abhed/abhed/internal/strictjson"
)

// startServers starts the configured MCP servers.
func (e *engine) startServers(ctx context.Context) error {
	l := e.o.loaded
	var servers []mcp.Server
	for _, name := range slices.Sorted(maps.Keys(l.MCP)) {
		c := l.MCP[name]
		if c.Disabled {
			continue
		}
		s := mcp.Server{
			Name: name, Command: c.Command, Args: c.Args, Dir: cmp.Or(c.Cwd, l.workspace), URL: c.URL, ReadOnly: c.ReadOnly, Only: c.Tools,
			StartTimeout: c.StartTimeout(), CallTimeout: c.Timeout(), Headers: map[string]string{},
		}
		for _, k := range slices.Sorted(maps.Keys(c.Env)) {
			s.Env = append(s.Env, k+"="+c.Env[k])
		}
		for header, variable := range c.HeadersEnv {
			v := e.sys.Getenv(variable)
			if v == "" {
				return fmt.Errorf("MCP server %q sends the header %s from the variable %s, which isn't set", name, header, variable)
			}
			s.Headers[header] = v
		}
		servers = append(servers, s)
	}
	if len(servers) == 0 {
		return nil
	}
	taken := builtinNames()
	if e.ext != nil {
		for _, t := range e.ext.Tools() {
			taken = append(taken, t.Spec().Name)
		}
	}
	budget := int(l.MCPBudgetTokens)
	if budget == 0 {
		budget = -1
	}
	var err error
	e.servers, err = mcp.Start(ctx, servers, mcp.Options{
		Confine: e.confineServer, Record: e.record,
		Elicit: e.elicit, Roots: l.roots, BudgetTokens: budget, Taken: taken, Version: e.sys.Version, CAFile: l.HTTP.CAFile,
	})
	if err != nil {
		return err
	}
	e.onClose(func() error { e.servers.Close(); return nil })
	return nil
}

// confineServer runs the process of a server like a command of the agent: its roots
// writable but for what is protected, the rest read-only, no network unless the settings
// say so. What deny rules of read and write forbid is held as it is at the start.
func (e *engine) confineServer(name string, spec proc.Spec) (proc.Spec, error) {
	if e.plan.Tier() < sandbox.TierProcess {
		return spec, nil // the operator accepted a session without a sandbox
	}
	l, c := e.o.loaded, e.o.loaded.MCP[name]
	p := sandbox.Policy{Roots: slices.Clone(l.roots), HomePaths: slices.Clone(l.Sandbox.HomePaths), Network: c.Network}
	if spec.Dir != "" && !inRoots(spec.Dir, p.Roots) {
		p.HomePaths = append(p.HomePaths, spec.Dir)
	}
	e.confineProgram(spec, &p)
	unread, unwritten, err := e.deniedPaths(p.Roots)
	if err != nil {
		return proc.Spec{}, err
	}
	unread = slices.DeleteFunc(unread, func(path string) bool { return slices.Contains(p.HomePaths, path) })
	p.Hidden, p.Protected = append(p.Hidden, unread...), append(p.Protected, unwritten...)
	return e.plan.Confine(spec, p)
}

// elicit puts the question of a server to the backends and the person.
func (e *engine) elicit(ctx context.Context, q mcp.Elicitation) (mcp.ElicitAnswer, error) {
	result, err := e.main.gate.Elicit(ctx, agent.At{}, q.Server, string(q.Params), e.o.asker)
	if err != nil {
		return mcp.ElicitAnswer{}, err
	}
	var r struct {
		Action  string    `json:"action"`
		Content event.Raw `json:"content"`
	}
	if err := strictjson.Unmarshal([]byte(result), &r, strictjson.Options{}); err != nil {
		return mcp.ElicitAnswer{}, err
	}
	return mcp.ElicitAnswer{Action: r.Action, Content: r.Content}, nil
}

// serverNames lists the MCP servers by which rules may name them, those that are down
// or disabled included.
func (e *engine) serverNames() []string {
	names := slices.Sorted(maps.Keys(e.o.loaded.MCP))
	if e.servers != nil { // as they stand in the names of tools
		names = append(names, e.servers.Servers()...)
		slices.Sort(names)
	}
	return slices.Compact(names)
}

// named returns the rules with the names that MCP tools have here, where those differ
// from the servers' own.
func (e *engine) named(rules []policy.RuleText) []policy.RuleText {
	if e.servers == nil {
		return rules
	}
	var out []policy.RuleText
	for _, r := range rules {
		for _, text := range e.servers.Rules(r.Text) {
			r.Text = text
			out = append(out, r)
		}
	}
	return out
}
