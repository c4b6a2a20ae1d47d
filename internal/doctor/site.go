package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/internal/hookline"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/install"
)

// site is one installation: a host in a scope.
type site struct {
	d       *doctor
	host    hostconf.Host
	dialect *adapter.Host
	scope   hostconf.Scope
	sources []*source
	record  *install.Record
	// lines are our hooks in the files of this scope.
	lines []hook
	// call is how the lines start ahp; its Binary is "" if that is unknown.
	call install.Call
}

func (s *site) add(f Finding) {
	f.Host, f.Scope = s.host.Name, s.scope
	s.d.add(f)
}

// options are those of an installation like this one.
func (s *site) options() install.Options {
	return install.Options{Scope: s.scope, Roots: s.d.o.Roots, State: s.d.o.State, Call: s.call}
}

// find reports whether there is an installation: by its record, or by our lines.
func (s *site) find() (bool, error) {
	record, err := install.ReadRecord(s.host.Name, s.options())
	s.record = record
	for _, src := range s.sources {
		if src.Scope != s.scope || src.Of != "" {
			continue
		}
		for _, k := range src.hooks(s.host.Name) {
			if k.ours() {
				s.lines = append(s.lines, k)
			}
		}
	}
	s.call = s.learn()
	return record != nil || len(s.lines) > 0, err
}

// learn returns how the lines start ahp: as it is remembered, or as most of them say.
func (s *site) learn() install.Call {
	if s.record != nil && s.record.Seen != nil {
		return s.record.Seen.Call
	}
	votes := map[install.Call]int{}
	var best install.Call
	for _, k := range s.lines {
		c, err := callOf(k)
		if err != nil {
			continue
		}
		c.Host, c.Event, c.LimitMS = "", "", 0
		if votes[c]++; votes[c] > votes[best] {
			best = c
		}
	}
	return best
}

// callOf reads the call back from a hook of ours.
func callOf(k hook) (install.Call, error) {
	if k.bridge == nil {
		return install.ParseLine(k.command)
	}
	if len(k.bridge.Args) == 0 || k.bridge.Binary == "" {
		return install.Call{}, fmt.Errorf("the bridge was changed: it starts nothing")
	}
	c, _, err := hookline.Parse(k.bridge.Args[1:])
	on := install.Deny
	if c.Open {
		on = install.Allow
	}
	return install.Call{
		Binary: k.bridge.Binary, Host: c.Host, Registration: c.Registration, Home: c.Home,
		OnMissing: on, LimitMS: int(c.Limit.Milliseconds()), NoSelfProtect: c.Unprotected,
	}, err
}

// state is the state folder that the lines use.
func (s *site) state() string {
	if s.call.Home == "" {
		return s.d.o.State
	}
	state, err := hooklog.StateDir(s.call.Home)
	if err != nil {
		return s.d.o.State
	}
	return state
}

// examine looks at everything of an installation.
func (s *site) examine(ctx context.Context) {
	if s.record == nil {
		s.add(Finding{Level: Warning, Check: "record", What: "AHP is installed, and nothing remembers by whom and how: what was there before can't be restored, and what changed since can't be told", Do: s.again()})
	}
	s.parses()
	s.compare()
	s.switches()
	s.foreign()
	if s.host.Name == "codex" {
		s.codex()
	}
	s.folderTrust()
	s.binary()
	s.registration(ctx)
	s.canaries(ctx)
}

// again is the advice to install again.
func (s *site) again() string {
	text := "run ahp install " + s.host.Name
	if s.scope != hostconf.User {
		text += " --scope " + string(s.scope)
	}
	if s.call.OnMissing == install.Allow {
		text += " --on-missing allow"
	}
	if s.call.Registration != "" {
		text += " --registration " + s.call.Registration
	}
	return text
}

// parses says which sources the host can't read.
func (s *site) parses() {
	read := 0
	for _, src := range s.sources {
		switch {
		case src.err == nil:
			read++
		case src.Of != "":
			s.add(Finding{Level: Warning, Check: "config-parse", What: fmt.Sprintf("a file of %s, which %s reads too, can't be read: %v", src.Of, s.dialect.Title, src.err), Where: src.where(), Do: "repair the file"})
		default:
			s.add(Finding{Level: Wrong, Check: "config-parse", What: fmt.Sprintf("%s can't read this file, and may drop all hooks with it: %v", s.dialect.Title, src.err), Where: src.where(), Do: "repair the file"})
		}
	}
	s.add(Finding{Level: OK, Check: "config-parse", What: fmt.Sprintf("%d configuration files were read", read)})
}

// binary looks at the program that the lines start.
func (s *site) binary() {
	path := s.call.Binary
	if path == "" {
		s.add(Finding{Level: Wrong, Check: "binary", What: "no line tells which program it starts", Do: s.again()})
		return
	}
	info, err := os.Stat(path)
	if err != nil {
		s.add(Finding{Level: Wrong, Check: "binary-missing", What: "the program of the installed line can't be found: every call is answered by --on-missing " + string(s.call.OnMissing), Where: path, Do: "put ahp back there, or " + s.again()})
		return
	}
	if _, err := install.CheckBinary(path, s.d.o.Roots.Project); err != nil {
		s.add(Finding{Level: Wrong, Check: "binary", What: err.Error(), Where: path, Do: s.again() + " with a program that only you can change"})
		return
	}
	ok := true
	if self, err := os.Stat(s.d.o.Self); err != nil || !os.SameFile(self, info) {
		ok = false
		s.add(Finding{Level: Warning, Check: "binary-other", What: "the line starts another ahp than this one, which is " + s.d.o.Self, Where: path, Do: "run that one's doctor, or " + s.again() + " with this one"})
	}
	if s.record != nil && s.record.Seen != nil && s.record.Seen.BinarySHA256 != "" {
		sum, err := install.SumFile(path)
		switch {
		case err != nil:
			ok = false
			s.add(Finding{Level: Wrong, Check: "binary", What: err.Error(), Where: path, Do: s.again()})
		case sum != s.record.Seen.BinarySHA256:
			ok = false
			s.add(Finding{Level: Wrong, Check: "binary-replaced", What: fmt.Sprintf("the program was replaced since ahp install: its SHA-256 is %.12s…, and was %.12s…", sum, s.record.Seen.BinarySHA256), Where: path, Do: "if that was an update, " + s.again() + "; else find out who did it"})
		}
	}
	if ok {
		s.add(Finding{Level: OK, Check: "binary", What: "the line starts this program, unchanged", Where: path})
	}
}

// foreign names what others have registered for the events at which AHP decides.
func (s *site) foreign() {
	behind, twice := false, false // a hook of ours was met; in a file of another host
	for _, src := range s.sources {
		for _, k := range src.hooks(s.host.Name) {
			behind = behind || k.ours()
			if k.ours() && src.Of != "" && !twice {
				twice = true
				s.add(Finding{Level: Note, Check: "two-lines", What: fmt.Sprintf("%s runs the hooks of %s too, where AHP is installed as well: one call is asked about twice", s.dialect.Title, src.Of), Where: k.path})
			}
			if k.ours() || k.command == "" {
				continue
			}
			e, is := s.host.Event(k.event)
			if src.Format == hostconf.Plugin {
				if !slices.Contains([]string{".js", ".ts", ".mjs", ".cjs", ".mts", ".cts"}, filepath.Ext(k.path)) {
					continue
				}
				s.add(Finding{Level: Note, Check: "other-hook", What: "another plugin is loaded too, and can change a call after AHP has judged it", Where: k.path})
				continue
			}
			if !is || !e.Gate {
				continue
			}
			f := Finding{Level: Note, Check: "other-hook", Where: at(k.path, k.line)}
			f.What = fmt.Sprintf("another hook runs at %s and can change the call that AHP judged: %s", k.event, short(k.command, 80))
			if s.host.Name == "qwen" && behind && e.Tool {
				f.Level, f.Check = Warning, "later-hook"
				f.What = fmt.Sprintf("a later hook runs at %s, whose permissionDecision allow cancels the refusals of earlier hooks but for those with continue:false, as AHP's are: %s", k.event, short(k.command, 80))
				f.Do = "put it before AHP's entry"
			}
			s.add(f)
		}
	}
}

// folderTrust says what a host wants before it runs hooks, where that can't be seen.
func (s *site) folderTrust() {
	text := ""
	switch {
	case s.host.Name == "gemini":
		text = "with folder trust on, Gemini drops the user's own hooks too in a folder that isn't trusted; which folders are is not known here"
	case s.host.Name == "copilot" && s.scope == hostconf.Project:
		text = "Copilot runs a repository's hooks only in a folder that it trusts; whether it does is not known here"
	case s.host.Name == "pi" && s.scope == hostconf.Project:
		text = "pi 1.x in print mode skips a project's extensions unless the project is trusted; whether it is is not known here"
	case s.host.Name == "claude-code" && s.scope != hostconf.Managed:
		text = "in an interactive session no hook runs until the folder is trusted"
	}
	if text != "" {
		s.add(Finding{Level: Note, Check: "folder-trust", What: text})
	}
}

// target returns the place of this scope that a path belongs to.
func (s *site) target(path string) (hostconf.Target, bool) {
	for _, t := range s.host.In(s.scope) {
		for _, p := range expand(s.d.o.Roots, t.File) {
			if p == path {
				return t, true
			}
		}
		folder := s.d.o.Roots.Path(t.File)
		if (t.Shape == hostconf.Scripts || t.Shape == hostconf.Bridge) && filepath.Dir(path) == folder {
			return t, true
		}
	}
	return hostconf.Target{}, false
}

// events joins names.
func events(list []string) string {
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ", ")
}
