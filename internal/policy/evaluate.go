package policy

import (
	"fmt"
	"strings"
)

// evaluation is one call being judged. It isn't safe for concurrent use.
type evaluation struct {
	rules    *Ruleset
	in       *Input
	mode     Mode
	paths    resolver
	resolved map[string]resolution
	// aliased has what aliases found.
	aliased map[*pathRule][]*pathRule
	// manyFiles reports that a command named more files than are resolved.
	manyFiles bool
	roots     lazyDirs
	homes     lazyDirs // the home directory
	temp      lazyDirs // the writable places outside the roots
	result    Result
	subject   string // folded, of a URL or text
	// forms is the path of a call whose subject is one.
	forms *PathForms
	// shell is what a command line may do.
	shell *shellCall
}

// finding is why a step matched.
type finding struct {
	rule *rule
	what string
}

// Evaluate judges one call (gate.md §2 step 4): the steps in order, the first
// that matches decides. It runs nothing and changes nothing; it looks at the
// file system to resolve paths and programs. It is safe for concurrent use.
func (r *Ruleset) Evaluate(in Input) Result {
	e := &evaluation{rules: r, in: &in, mode: in.Env.mode()}
	e.paths.home = in.Env.Home
	if !e.prepare() {
		return e.result
	}
	for _, s := range steps {
		if s.take(e) {
			break
		}
	}
	e.describe()
	return e.result
}

// steps are the steps in order; each reports whether it decided. The last one
// always does.
var steps = [...]struct{ take func(*evaluation) bool }{
	{(*evaluation).protected}, {(*evaluation).denyRule}, {(*evaluation).planMode}, {(*evaluation).destructive},
	{(*evaluation).unjudgeable}, {(*evaluation).askRule}, {(*evaluation).modeCovers}, {(*evaluation).allowRule},
	{(*evaluation).byDefault},
}

func (e *evaluation) decide(v Verdict, s Step, f finding, reason string) bool {
	e.result.Verdict, e.result.Step, e.result.Reason = v, s, reason
	if f.rule != nil {
		ref := f.rule.ref
		e.result.Rule = &ref
	}
	e.trace(TraceStep{Step: s, Matched: true, Note: f.what})
	return true
}

func (e *evaluation) pass(s Step, note string) bool {
	e.trace(TraceStep{Step: s, Note: note})
	return false
}

func (e *evaluation) trace(t TraceStep) {
	if e.in.Trace {
		e.result.Trace = append(e.result.Trace, t)
	}
}

// prepare resolves or parses the subject. It returns false if that already
// decided.
func (e *evaluation) prepare() bool {
	e.roots.given = e.in.Call.Roots
	e.temp.given = e.in.Env.Writable
	if e.in.Env.Home != "" {
		e.homes.given = []string{e.in.Env.Home}
	}
	switch d := e.in.Declaration; d.Kind {
	case SubjectPath:
		forms, err := e.resolve(e.in.Call.WorkDir, d.Subject)
		if err != nil {
			e.decide(Deny, StepPath, finding{what: err.Error()}, fmt.Sprintf("refused: %v. The path can't be judged, so nothing runs on it; give a path that exists or whose directory exists.", err))
			return false
		}
		e.forms = &forms
		e.result.Paths = []PathForms{forms}
	case SubjectCommand:
		e.shell = e.command(d.Subject)
	case SubjectURL, SubjectText:
		e.subject = foldName(d.Subject, false)
	}
	return true
}

// protected is the step of protected paths. Of a command only its redirections
// are seen here; the rest is the sandbox's part.
func (e *evaluation) protected() bool {
	if what := e.protectedPath(); what != "" {
		return e.decide(Deny, StepProtected, finding{what: what}, fmt.Sprintf("refused: %s. It is protected in every mode; no other spelling will be accepted.", what))
	}
	return e.pass(StepProtected, "no protected path")
}

func (e *evaluation) protectedPath() string {
	write := lazyDirs{given: e.in.Env.Protected.Write}
	read := lazyDirs{given: e.in.Env.Protected.Read}
	check := func(f *PathForms, writes bool) string {
		dirs, verb := &read, "reading"
		if writes {
			dirs, verb = &write, "writing"
		}
		for _, form := range [...]string{f.Absolute, f.Place.Path} {
			if inside(form, dirs.get(e), f.Place.Fold) {
				return fmt.Sprintf("%q is protected from %s", f.Place.Path, verb)
			}
		}
		return ""
	}
	if e.forms != nil {
		if what := check(e.forms, e.in.Declaration.Mutates); what != "" {
			return what
		}
		if e.in.Declaration.Mutates {
			return check(e.forms, false) // an edit shows what was there
		}
		return ""
	}
	if e.shell == nil {
		return ""
	}
	for _, t := range e.shell.targets {
		for i := range t.forms {
			if what := check(&t.forms[i], t.writes); what != "" {
				return what
			}
		}
	}
	return ""
}

func (e *evaluation) denyRule() bool {
	if f := e.matchList(e.rules.deny, e.rules.looks.deny); f.rule != nil {
		return e.decide(Deny, StepDenyRule, f, fmt.Sprintf("refused by %s: %s. A rule of the operator forbids this; rephrasing will not help.", f.rule.ref, f.what))
	}
	return e.pass(StepDenyRule, "no deny rule matches")
}

func (e *evaluation) planMode() bool {
	if e.mode == ModePlan && e.in.Declaration.Mutates {
		return e.decide(Deny, StepPlanMode, finding{what: "the tool isn't read-only"}, fmt.Sprintf("refused: in plan mode only read-only tools run, and this call of %s may change something. Describe the change in the plan instead.", e.in.Call.Tool))
	}
	return e.pass(StepPlanMode, "mode "+e.mode.String())
}

func (e *evaluation) destructive() bool {
	what := ""
	if e.forms != nil && credentialPath(e.forms.Place.Path) == hitYes {
		what = fmt.Sprintf("%q holds credentials", e.forms.Place.Path)
	}
	if e.shell != nil {
		what = e.shell.destructive
	}
	if what != "" {
		return e.decide(Ask, StepDestructive, finding{what: what}, fmt.Sprintf("a person must approve this: %s. This is asked in every mode, whatever the rules allow.", what))
	}
	return e.pass(StepDestructive, "not destructive")
}

func (e *evaluation) unjudgeable() bool {
	if e.shell != nil {
		what := e.shell.unjudgeable()
		if what == "" {
			what = e.possible()
		}
		if what != "" {
			return e.decide(Ask, StepUnjudgeable, finding{what: what}, fmt.Sprintf("a person must approve this command, because what it does can't be judged before it runs: %s. Write it with literal words, or as several simple commands.", what))
		}
		return e.pass(StepUnjudgeable, "judgeable")
	}
	return e.pass(StepUnjudgeable, "no command")
}

func (e *evaluation) askRule() bool {
	if f := e.matchList(e.rules.ask, e.rules.looks.ask); f.rule != nil {
		return e.decide(Ask, StepAskRule, f, fmt.Sprintf("a person must approve this, by %s: %s.", f.rule.ref, f.what))
	}
	return e.pass(StepAskRule, "no ask rule matches")
}

func (e *evaluation) modeCovers() bool {
	note, ok := e.modeCoverage()
	if ok {
		return e.decide(Allow, StepMode, finding{what: note}, "allowed by mode "+e.mode.String()+": "+note)
	}
	return e.pass(StepMode, note)
}

func (e *evaluation) modeCoverage() (note string, ok bool) {
	tool := e.in.Call.Tool
	switch {
	case e.mode == ModeBypass:
		return "nothing objects", true
	case e.mode < ModeAcceptEdits:
		return "mode " + e.mode.String() + " covers only read-only tools inside the roots", false
	case e.forms != nil && (tool == toolWrite || tool == toolEdit):
		if e.inRoots(e.forms) {
			return "an edit inside the roots", true
		}
		return "the place is outside the roots", false
	case e.mode != ModeAuto || e.shell == nil || tool != toolBash:
		return "mode " + e.mode.String() + " doesn't cover this", false
	case !e.in.Env.TierProcess || !e.in.Env.NetworkOff:
		return "mode auto covers commands only in a sandbox of tier process without network", false
	}
	if name := e.shell.variables.turns; name != "" {
		return "mode auto doesn't cover a command line that sets " + name + ", which decides what names mean", false
	}
	if t := e.shell.outside(e); t != "" {
		return t, false
	}
	return "every part is judgeable and not destructive, in a sandbox without network", true
}

// The tools whose names modes and the rules about commands know.
const (
	toolRead  = "read"
	toolWrite = "write"
	toolEdit  = "edit"
	toolBash  = "bash"
)

// inRoots reports whether the true place lies in a root.
func (e *evaluation) inRoots(f *PathForms) bool {
	return inside(f.Place.Path, e.roots.get(e), f.Place.Fold)
}

func (e *evaluation) allowRule() bool {
	if e.shell != nil {
		f, ok := e.allowsCommand()
		if ok {
			return e.decide(Allow, StepAllowRule, f, "allowed: "+f.what)
		}
		return e.pass(StepAllowRule, f.what)
	}
	for _, r := range e.rules.allow {
		if what, ok := e.matches(r, true); ok {
			return e.decide(Allow, StepAllowRule, finding{r, what}, "allowed by "+r.ref.String())
		}
	}
	return e.pass(StepAllowRule, "no allow rule matches")
}

func (e *evaluation) byDefault() bool {
	switch {
	case e.forms != nil && !e.inRoots(e.forms):
		return e.decide(Ask, StepDefault, finding{what: "outside the roots"}, e.askText(fmt.Sprintf("%q lies outside the roots %s, and no allow rule covers it", e.forms.Place.Path, strings.Join(e.in.Call.Roots, ", "))))
	case e.in.Declaration.Mutates:
		return e.decide(Ask, StepDefault, finding{what: "no rule and no mode covers this call"}, e.askText(fmt.Sprintf("it may change something, and neither an allow rule nor mode %s covers it", e.mode)))
	}
	return e.decide(Allow, StepDefault, finding{what: "a read-only tool inside the roots"}, "allowed: the tool is read-only and stays inside the roots")
}

func (e *evaluation) askText(why string) string {
	return fmt.Sprintf("a person must approve this call of %s: %s.", e.in.Call.Tool, why)
}

// matchList returns the first rule of a deny or ask list that matches.
func (e *evaluation) matchList(list []*rule, looks []look) finding {
	for _, r := range list {
		if what, ok := e.matches(r, false); ok {
			return finding{r, what}
		}
	}
	if e.shell != nil {
		return e.lookFor(looks)
	}
	return finding{}
}

// restricts reports whether deny and ask rules of another tool hold for this one
// too: grep shows what a file holds, and so does edit, which quotes the lines
// around a change; and an edit writes.
func restricts(m toolMatch, tool string) bool {
	return (tool == "grep" || tool == toolEdit) && m.matches(toolRead) || tool == toolEdit && m.matches(toolWrite)
}

// matches reports whether a rule matches the call, and what of it. With allow
// only what truly happens counts, else any form.
func (e *evaluation) matches(r *rule, allow bool) (what string, ok bool) {
	if !r.tool.matches(e.in.Call.Tool) {
		if allow || r.bare || r.path == nil || !restricts(r.tool, e.in.Call.Tool) {
			return "", false
		}
	}
	if r.bare {
		return "it names the tool", true
	}
	switch e.in.Declaration.Kind {
	case SubjectPath:
		if r.path != nil && e.forms != nil && e.matchesPath(r.path, e.forms, allow) {
			return fmt.Sprintf("it matches %q", e.forms.Place.Path), true
		}
	case SubjectCommand:
		if r.text != nil && !allow {
			return e.shell.matchesText(r)
		}
	case SubjectURL:
		if r.url != nil && matchesURL(r.url, e.subject, allow) {
			return fmt.Sprintf("it matches %q", e.subject), true
		}
	case SubjectText:
		if r.text != nil && r.text.matches(e.subject) {
			return fmt.Sprintf("it matches %q", e.subject), true
		}
	}
	return "", false
}
