// Package rules is a policy backend: it judges the tool calls of any harness by the
// rule language of Abhed's gate.
//
// It guarantees that a call which a deny rule matches is denied, and that one which
// an ask rule matches, which is destructive, or whose command can't be judged is
// asked about, or denied where the request doesn't advertise ask; that nothing else
// has an effect, allow rules included; and that what it can't read of a call makes
// it ask, never pass. Tools of other agents are judged as Abhed's by the table of
// package policy, and under their own names where a rule has those; one that isn't in
// the table is asked about where it names a file and a content, and a rule about writing
// or editing is against that file.
//
// Do not assume that it sees more than the event holds: what a program does with its
// arguments, a search through a folder that holds a forbidden file, or a change of
// the file system after the judgement is beyond it. It looks at the file system that
// it runs on, which must be the harness's.
package rules

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/internal/policy"
)

// maxReason bounds the reason of a denial, in bytes.
const maxReason = 4 << 10

// Options tunes a Backend.
type Options struct {
	// Home is the home directory that "~" stands for. Empty is unknown, and then a
	// rule that names "~" is an error.
	Home string
	// Getenv returns a variable of the environment that commands run in; nil means
	// os.Getenv.
	Getenv func(string) string
}

// Backend judges by one set of rules. It is immutable and safe for concurrent use.
type Backend struct {
	rules *policy.Ruleset
	env   policy.Env
	// named are the tools that some rule names.
	named map[string]bool
	// relative says that some deny or ask rule has a pattern relative to a root, and
	// general that some is about every tool and has a pattern.
	relative, general bool
}

// New compiles the rules of a document. The warnings are of rules that stay in
// force; an error names the file and the line of every rule that is wrong.
func New(d *Document, opts Options) (b *Backend, warnings []string, err error) {
	b = &Backend{named: map[string]bool{}}
	known := policy.Known{Tools: policy.AbhedTools()}
	var faults []string
	for _, r := range slices.Concat(d.lists.Deny, d.lists.Ask, d.lists.Allow) {
		name, pattern, has := strings.Cut(r.Text, "(")
		b.named[name] = true
		if has && strings.HasPrefix(pattern, "~") && opts.Home == "" {
			faults = append(faults, fmt.Sprintf("%s: error: rule %q: the home directory is unknown, so \"~\" means nothing; set HOME", r.Origin, r.Text))
		}
		if w := learn(&known, name); w != "" {
			warnings = append(warnings, fmt.Sprintf("%s: warning: rule %q: %s", r.Origin, r.Text, w))
		}
	}
	for _, r := range slices.Concat(d.lists.Deny, d.lists.Ask) {
		name, pattern, has := strings.Cut(r.Text, "(")
		b.general = b.general || has && name == "*"
		kind := known.Tools[name]
		paths := name == "*" || kind == policy.SubjectPath || kind == policy.SubjectText
		b.relative = b.relative || has && paths && !strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "~") && !strings.HasPrefix(pattern, "**")
	}
	set, problems := policy.Compile(d.lists, known)
	for i := range problems {
		p := &problems[i]
		switch {
		case !p.Warning:
			faults = append(faults, p.Error())
		case !strings.HasPrefix(p.Rule.Text, "mcp__"): // which servers there are nobody knows here
			warnings = append(warnings, p.Error())
		}
	}
	if len(faults) > 0 {
		return nil, warnings, fmt.Errorf("%s", strings.Join(faults, "\n"))
	}
	b.rules = set
	b.env = policy.Env{Mode: policy.ModeBypass, Home: opts.Home, Getenv: opts.Getenv, Runners: d.runners, EnvHarmless: d.harmless}
	return b, warnings, nil
}

// learn makes a name known that a rule has, and returns a warning if it is no tool
// of Abhed's. What can't be a name is left to the compiler, which refuses it.
func learn(known *policy.Known, name string) string {
	if rest, is := strings.CutPrefix(name, "mcp__"); is {
		if server, _, ok := strings.Cut(rest, "__"); ok && server != "" && !slices.Contains(known.MCPServers, server) {
			known.MCPServers = append(known.MCPServers, server)
		}
		return ""
	}
	if _, is := known.Tools[name]; is || name == "" || strings.ContainsAny(name, "*?)\\ \t\n") {
		return ""
	}
	if native := policy.LookupNative(name); native != nil {
		known.Tools[name] = native[0].Kind
		return fmt.Sprintf("%q is some agents' own name for %s; the rule holds for a tool of exactly this name. Write %q to mean that tool of every agent", name, native[0].Tool, native[0].Tool)
	}
	known.Tools[name] = policy.SubjectText
	return fmt.Sprintf("no agent is known to have a tool %q; it is compared as written", name)
}

// Manifest returns what the backend takes, as an answer to discovery.
func (b *Backend) Manifest() *ahp.Manifest {
	return ahp.NewManifest(ahp.ManifestEvent{
		Event: ahp.ToolBefore, Modes: []ahp.Mode{ahp.ModeIntercept},
		Capabilities: ahp.NewCapabilities(ahp.ToolBefore, ahp.EffectDeny, ahp.EffectAsk),
	})
}

// Intercept judges a tool call before it runs; it has no objection to anything else.
func (b *Backend) Intercept(ctx context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
	if q.Event.Type != ahp.ToolBefore {
		return nil, nil
	}
	v, err := b.judge(ctx, q.Event)
	if err != nil {
		return nil, err
	}
	answer := backend.Reply(q)
	switch v.is {
	case policy.Allow:
	case policy.Ask:
		answer.AskOrDeny(clip(v.reason + " Nobody can be asked here."))
		if answer.Can(ahp.EffectAsk, ahp.EffectMessage) { // "ask" itself has no room for a reason
			answer.Add(&ahp.Notice{Text: clip(v.reason)})
		}
	default:
		answer.Deny(clip(v.reason))
	}
	return answer.Effects()
}

func clip(s string) string {
	if len(s) <= maxReason {
		return s
	}
	return strings.ToValidUTF8(s[:maxReason], "") + "…"
}

// verdict is the strictest judgement so far, and why.
type verdict struct {
	is     policy.Verdict
	reason string
}

func (v *verdict) raise(to policy.Verdict, reason string) {
	if to > v.is || to == 0 {
		v.is, v.reason = policy.Join(to, nil), reason
	}
}

// judge returns the strictest verdict over everything that the call names.
func (b *Backend) judge(ctx context.Context, e *ahp.Event) (verdict, error) {
	v := verdict{is: policy.Allow}
	c := b.place(e.Session)
	subjects, dirs, unread := read(e.Tool, b.guesses())
	for _, why := range unread {
		v.raise(policy.Ask, b.cannot(e.Tool, why))
	}
	for _, s := range subjects {
		for _, tool := range b.names(e.Tool, s) {
			for _, in := range b.inputs(c, s, tool, dirs) {
				if ctx.Err() != nil {
					return v, fmt.Errorf("%w: %w", backend.ErrUnavailable, ctx.Err())
				}
				r := b.rules.Evaluate(in)
				if r.Step == policy.StepPath && len(s.tools) == 0 {
					r = b.nowhere(in, r)
				}
				if s.guess {
					r = guessed(r)
				}
				v.raise(r.Verdict, r.Reason)
			}
		}
		if why := b.uncertain(c, s); why != "" {
			v.raise(policy.Ask, b.cannot(e.Tool, why))
		}
		if v.is == policy.Deny {
			break
		}
	}
	return v, nil
}

// nowhere judges a path that leads nowhere, of a tool that nobody knows to work with
// files: what it calls a path may be none. Only where a rule is about such a tool the
// refusal stands.
func (b *Backend) nowhere(in policy.Input, refused policy.Result) policy.Result {
	if b.general || b.named[in.Call.Tool] {
		return refused
	}
	in.Declaration.Kind = policy.SubjectText
	return b.rules.Evaluate(in)
}

func (b *Backend) cannot(t *ahp.Tool, why string) string {
	return fmt.Sprintf("a person must approve this call of %s, because it can't be judged before it runs: %s.", clipName(t.Name), why)
}

func clipName(s string) string { return strings.ToValidUTF8(s[:min(len(s), 128)], "") }

// names returns the names under which a subject is judged: Abhed's, and those that
// a rule has for this very tool.
func (b *Backend) names(t *ahp.Tool, s subject) []string {
	out := slices.Clone(s.tools)
	own := []string{t.Name}
	if t.MCP != nil {
		own = append(own, "mcp__"+t.MCP.Server.ID+"__"+t.MCP.ToolName)
		if t.MCP.Server.Name != "" {
			own = append(own, "mcp__"+t.MCP.Server.Name+"__"+t.MCP.ToolName)
		}
	}
	for _, name := range own {
		// A rule may also name a whole MCP server, so those names always count.
		if (b.named[name] || strings.HasPrefix(name, "mcp__") || len(s.tools) == 0) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// where is what an event says of the place of a call.
type where struct {
	cwd   string // "" if it isn't known
	roots []string
	// noRoots says that the roots aren't known, and roots is everything.
	noRoots bool
}

// place reads the session: its roots are workspaceRoots, else cwd.
func (b *Backend) place(s *ahp.Session) where {
	var w where
	if s != nil {
		if path.IsAbs(s.Cwd) {
			w.cwd = s.Cwd
		}
		for _, r := range s.WorkspaceRoots {
			if path.IsAbs(r) {
				w.roots = append(w.roots, r)
			}
		}
	}
	switch {
	case len(w.roots) > 0:
	case w.cwd != "":
		w.roots = []string{w.cwd}
	default:
		w.roots, w.noRoots = []string{"/"}, true
	}
	return w
}

// uncertain says what isn't known of the place that a subject is in, or returns "".
func (b *Backend) uncertain(w where, s subject) string {
	relative := s.kind == policy.SubjectPath && !path.IsAbs(s.text) && !strings.HasPrefix(s.text, "~")
	switch {
	case relative && slices.Contains(b.workdirs(w, s.dirs), ""):
		return fmt.Sprintf("where the patch of %q is applied isn't known", clipName(s.text))
	case relative && w.cwd == "":
		return fmt.Sprintf("%q is a relative path, and the event has no absolute session.cwd", clipName(s.text))
	case w.noRoots && b.relative && (s.kind == policy.SubjectPath || s.kind == policy.SubjectCommand):
		return "rules are relative to the workspace, and the event has neither an absolute session.cwd nor session.workspaceRoots"
	}
	return ""
}

// inputs returns what is evaluated for one subject under one name: a command in
// every directory that it may run in, a path from every one that it may start at.
func (b *Backend) inputs(w where, s subject, tool string, dirs []string) []policy.Input {
	from := []string{w.cwd}
	switch {
	case s.kind == policy.SubjectCommand:
		from = append(from, b.workdirs(w, dirs)...)
	case w.cwd == "":
		from = w.roots
	}
	if s.kind == policy.SubjectPath {
		from = append(slices.Clone(from), slices.DeleteFunc(b.workdirs(w, s.dirs), func(d string) bool { return d == "" })...)
	}
	out := make([]policy.Input, len(from))
	for i, dir := range from {
		out[i] = policy.Input{
			Call:        policy.Call{Tool: tool, WorkDir: dir, Roots: w.roots},
			Declaration: policy.Declaration{Kind: s.kind, Subject: s.text, Mutates: true},
			Env:         b.env,
		}
	}
	return out
}

// workdirs returns the directories that the call's own members name, as written and
// with links resolved; "" stands for one that isn't known.
func (b *Backend) workdirs(w where, dirs []string) []string {
	var out []string
	for _, d := range dirs {
		start := w.cwd
		if start == "" {
			start = "/" // of no matter to an absolute path
		}
		known := d != "" && (w.cwd != "" || path.IsAbs(d) || strings.HasPrefix(d, "~"))
		forms, err := policy.Resolve(start, d, b.env.Home)
		if !known || err != nil {
			out = append(out, "")
			continue
		}
		out = append(out, forms.Absolute)
		if forms.Place.Path != forms.Absolute {
			out = append(out, forms.Place.Path)
		}
	}
	return out
}
