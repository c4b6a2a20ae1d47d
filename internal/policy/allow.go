package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// allowsCommand reports whether allow rules, together with the mode for what
// redirections write, cover every part of a command.
func (e *evaluation) allowsCommand() (finding, bool) {
	c := e.shell
	f := finding{what: "no allow rule covers the command"}
	all := len(c.parts) > 0 || len(c.targets) > 0
	foreign := c.foreign(e)
	e.result.Parts = make([]Part, len(c.parts))
	for i, p := range c.parts {
		out := &e.result.Parts[i]
		p.fill(out)
		r, note := e.covers(p, foreign, out)
		if r == nil {
			out.Note = note
			if all {
				all = false
				f.what = fmt.Sprintf("%q is not covered: %s", out.Text, note)
			}
			continue
		}
		ref := r.ref
		out.Rule = &ref
		if f.rule == nil {
			f.rule = r
		}
	}
	if !all {
		f.rule = nil
		return f, false
	}
	for i := range c.targets {
		t := &c.targets[i]
		if t.writes && !t.device && !e.coversWrite(t) {
			return finding{what: fmt.Sprintf("no rule or mode lets it write to %q", show(t.target.text))}, false
		}
	}
	f.what = "every part is covered by an allow rule"
	return f, true
}

func (p *part) fill(out *Part) {
	out.Via, out.Wrapper = show(p.via), p.wrapper
	if len(p.subjects) > 0 {
		out.Text = show(p.subjects[0])
		return
	}
	var names []string
	for _, as := range p.assigns {
		names = append(names, show(as.name)+"="+show(as.value.text))
	}
	out.Text = strings.Join(names, " ")
}

// covers returns the allow rule that covers a part, or says why there is none.
// foreign says why none but a bare rule can, or is "".
func (e *evaluation) covers(p *part, foreign string, out *Part) (*rule, string) {
	harmless := true
	for _, as := range p.assigns {
		harmless = harmless && e.harmless(as.name)
	}
	note := "no allow rule matches"
	for _, r := range e.rules.allow {
		if !r.tool.matches(e.in.Call.Tool) {
			continue
		}
		if r.bare {
			return r, ""
		}
		if r.text == nil {
			continue
		}
		if !harmless {
			note = "it sets variables that aren't known to be harmless (permissions.env_harmless)"
			continue
		}
		if foreign != "" {
			note = foreign
			continue
		}
		if len(p.subjects) == 0 || !r.text.matches(p.subjects[0]) {
			continue
		}
		if why := e.lookalike(p, r, out); why != "" {
			note = why
			continue
		}
		return r, ""
	}
	if len(p.words) == 0 && harmless && len(p.assigns) > 0 {
		return harmlessRule, ""
	}
	return nil, note
}

// harmlessRule stands for the built-in rule that harmless assignments alone need
// no rule. It is never changed.
var harmlessRule = &rule{ref: RuleRef{List: "allow", RuleText: RuleText{Text: "(harmless assignment)", Origin: Origin{File: "built in"}}}}

// harmless reports whether a command may set a variable and still be allowed.
func (e *evaluation) harmless(name string) bool {
	switch name {
	case "LANG", "TZ", "TERM", "NO_COLOR", "CI":
		return true
	}
	return strings.HasPrefix(name, "LC_") || slices.Contains(e.in.Env.EnvHarmless, name)
}

// lookalike says why the program of p isn't the one that the rule means, or
// returns "". A name with a slash is covered only by a rule that has the slash
// too; a bare name only if it is found where the agent can't write.
func (e *evaluation) lookalike(p *part, r *rule, out *Part) string {
	program := p.words[0].text
	if p.words[0].unknown {
		return "its program is unknown"
	}
	if strings.ContainsAny(program, " \t\n") {
		return "the name of its program holds white space"
	}
	if strings.Contains(program, "/") {
		head, _, _ := strings.Cut(r.text.prefix, " ")
		if !strings.Contains(head, "/") {
			return fmt.Sprintf("the rule %s names a program without a path", r.ref.Text)
		}
		if slices.Contains(strings.Split(program, "/"), "..") && !strings.HasPrefix(head, program) {
			return fmt.Sprintf("%q leads out of what the rule %s names", program, r.ref.Text)
		}
		return ""
	}
	if shellBuiltins.has(program) {
		return ""
	}
	if out.Program != "" {
		return ""
	}
	found, err := e.in.Env.lookPath(program)
	if err != nil || !path.IsAbs(found) {
		return fmt.Sprintf("%q is not found in PATH", program)
	}
	forms, err := e.resolve("/", found)
	if err != nil {
		return fmt.Sprintf("%q can't be resolved", found)
	}
	for _, form := range [...]string{forms.Absolute, forms.Place.Path} {
		if inside(form, e.roots.get(e), forms.Place.Fold) || inside(form, e.temp.get(e), forms.Place.Fold) {
			return fmt.Sprintf("%q is found at %q, where the agent can write", program, form)
		}
	}
	out.Program = show(found)
	return ""
}

// coversWrite reports whether an allow rule of write or the mode covers what a
// redirection writes.
func (e *evaluation) coversWrite(t *target) bool {
	if t.target.unknown || t.cwd.unknown && !path.IsAbs(t.target.text) || len(t.forms) == 0 {
		return e.allowsTool(toolWrite)
	}
	for k := range t.forms {
		f := &t.forms[k]
		covered := e.mode >= ModeAcceptEdits && e.inRoots(f)
		for _, r := range e.rules.allow {
			covered = covered || r.tool.matches(toolWrite) && (r.bare || r.path != nil && e.matchesPath(r.path, f, true))
		}
		if !covered {
			return false
		}
	}
	return true
}

// allowsTool reports whether a rule without a pattern allows a tool.
func (e *evaluation) allowsTool(tool string) bool {
	return slices.ContainsFunc(e.rules.allow, func(r *rule) bool { return r.tool.matches(tool) && r.bare })
}
