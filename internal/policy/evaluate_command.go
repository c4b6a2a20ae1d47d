package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// shellCall is a command line being judged.
type shellCall struct {
	*analysis
	targets []target
	// destructive and maybe say which part is, or may be, destructive.
	destructive string
	maybe       string
}

// target is the file of a redirection, resolved from each directory that it may
// be seen from.
type target struct {
	redir
	forms []PathForms
	// device reports that nothing is kept of what is written.
	device bool
}

// command parses a command line and looks for what is destructive.
func (e *evaluation) command(command string) *shellCall {
	c := &shellCall{analysis: analyze(command, e.in.Call.WorkDir, &e.in.Env, e.rules.parsers.parse)}
	for _, r := range c.redirs {
		c.targets = append(c.targets, e.target(r))
	}
	c.judge(e)
	return c
}

func (e *evaluation) target(r redir) target {
	t := target{redir: r, device: slices.Contains(safeDevices, r.target.text)}
	if r.target.unknown || t.device || r.target.text == "" {
		return t
	}
	for _, d := range r.cwd.dirs {
		given := processView(r.target.text)
		if strings.HasPrefix(given, "~") {
			given = "./" + given // the shell has expanded what it expands
		}
		forms, err := e.resolve(d, given)
		if err != nil {
			// What can't be resolved is compared as text, and covered by nothing.
			text := show(given)
			abs := path.Clean(text)
			if !path.IsAbs(text) {
				abs = path.Join(show(d), text)
			}
			forms = PathForms{Given: text, Absolute: abs, Place: Place{Path: abs}}
			t.target.unknown = true
		}
		t.forms = append(t.forms, forms)
		e.result.Paths = append(e.result.Paths, forms)
	}
	return t
}

// judge runs the table of destructive commands over every part and redirection.
func (c *shellCall) judge(e *evaluation) {
	note := func(h hit, format string, args ...any) {
		switch {
		case h == hitYes && c.destructive == "":
			c.destructive = fmt.Sprintf(format, args...)
		case h == hitMaybe && c.maybe == "":
			c.maybe = fmt.Sprintf(format, args...)
		}
	}
	for _, f := range c.bombs {
		note(hitYes, "the function %q starts itself again and again (fork bomb)", f)
	}
	for _, t := range c.targets {
		if t.writes {
			note(rawDevice(t.target), "it writes to the device %q", show(t.target.text))
			if t.bare && !t.device {
				note(hitYes, "it empties %q (truncation)", show(t.target.text))
			}
		}
		note(credentialWord(t.target, t.cwd), "%q may hold credentials (credential read)", show(t.target.text))
	}
	seen := seenWords{}
	for _, p := range c.parts {
		if h, row := destructive(p.words); h != hitNo {
			note(h, "%q (%s)", show(p.subjects[0]), row.name)
		}
		for _, w := range p.ownWords() {
			if seen.again(w, p.cwd) {
				continue
			}
			if h := credentialWord(w, p.cwd); h != hitNo {
				note(h, "%q may hold credentials (credential read)", show(w.text))
			}
		}
	}
	if c.maybe == "" {
		c.judgeTails(e)
	}
}

// credentialWord says whether a word, or the part of it after "=" or "@", is a
// file of secrets.
func credentialWord(w word, at *cwds) hit {
	out := hitNo
	for _, s := range pathsIn(w.text) {
		s = processView(s)
		if path.IsAbs(s) || s != "" && s[0] <= anyName {
			out = either(out, credentialPath(cleanWord(s)))
			continue
		}
		for _, d := range at.dirs {
			out = either(out, credentialPath(cleanWord(d+"/"+s)))
		}
	}
	return out
}

// cleanWord cleans a path as text; one with unknown stretches only of what is
// sure to be nothing.
func cleanWord(s string) string {
	if !strings.ContainsAny(s, unknownBytes) {
		return path.Clean(s)
	}
	if strings.Contains(s, "..") {
		return s
	}
	return path.Clean(s)
}

// processView drops what leads from /proc back to the files: the working
// directory and the root of a process. What it returns may be relative.
func processView(s string) string {
	for range 8 {
		clean := s
		if strings.Contains(s, "//") || strings.Contains(s, "/./") {
			clean = path.Clean(s)
		}
		rest, ok := strings.CutPrefix(clean, "/proc/")
		if !ok {
			return s
		}
		_, inRoot, root := strings.Cut(rest, "/root/")
		_, inDir, cwd := strings.Cut(rest, "/cwd/")
		switch {
		case root && (!cwd || len(inRoot) > len(inDir)):
			s = "/" + inRoot
		case cwd && inDir != "":
			s = strings.TrimLeft(inDir, "/")
		default:
			return s
		}
	}
	return s
}

// pathsIn returns the texts of a word that may be taken as a path: the word, what
// follows "=", "@" or ":" in it, and the value of a short option.
func pathsIn(s string) []string {
	if s == "" {
		return nil
	}
	out := []string{s}
	for _, sep := range []string{"=", "@", ":"} {
		if _, after, ok := strings.Cut(s, sep); ok && after != "" {
			out = append(out, after)
		}
	}
	if len(s) > 2 && s[0] == '-' && s[1] != '-' {
		out = append(out, s[2:])
	}
	return out
}

// unjudgeable says why the command can't be judged, or returns "".
func (c *shellCall) unjudgeable() string {
	if len(c.faults) > 0 {
		return strings.Join(c.faults, "; ")
	}
	return c.maybe
}

// outside says which redirection writes outside every place that mode auto
// covers, or returns "".
func (c *shellCall) outside(e *evaluation) string {
	for i := range c.targets {
		t := &c.targets[i]
		if !t.writes || t.device {
			continue
		}
		if t.target.unknown || t.cwd.unknown && !path.IsAbs(t.target.text) {
			return fmt.Sprintf("the redirection to %q may write anywhere", show(t.target.text))
		}
		for k := range t.forms {
			f := &t.forms[k]
			if !e.inRoots(f) && !inside(f.Place.Path, e.temp.get(e), f.Place.Fold) {
				return fmt.Sprintf("the redirection to %q writes outside the roots", f.Place.Path)
			}
		}
	}
	return ""
}

// matchesText reports whether a deny or ask rule matches some part.
func (c *shellCall) matchesText(r *rule) (what string, ok bool) {
	for _, p := range c.parts {
		for _, s := range p.subjects {
			if r.text.matches(s) {
				return fmt.Sprintf("the command runs %q", show(p.subjects[0])), true
			}
		}
	}
	return "", false
}

// possible says which deny or ask rule may match for some value of an unknown
// word, or returns "".
func (e *evaluation) possible() string {
	for _, list := range [...][]*rule{e.rules.deny, e.rules.ask} {
		for _, r := range list {
			if r.text == nil || r.bare || !r.tool.matches(e.in.Call.Tool) {
				continue
			}
			for _, p := range e.shell.parts {
				if what := p.maybeMatches(r); what != "" {
					return what
				}
			}
		}
	}
	return e.possibleLook()
}

func (p *part) maybeMatches(r *rule) string {
	for _, s := range p.subjects {
		if r.text.possible(s) && !r.text.matches(s) {
			return fmt.Sprintf("%q may turn out to match %s", show(p.subjects[0]), r.ref)
		}
	}
	return ""
}
