package selfprotect

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/abhed/abhed/ahp"
)

// Code is the code of every denial.
const Code = "org.abhed.self_protection"

// Place is a protected file or folder.
type Place struct {
	// Path starts with "~/" for the account's home, with "/" for the machine, and is
	// else relative to any project's folder. A "*" in its last element stands for any
	// name.
	Path string
	// Folder says that everything beneath is protected too.
	Folder bool
	// What says what it is, as the end of "it holds …".
	What string
}

// Options says where AHP is installed.
type Options struct {
	// Home is the account's home, absolute. Empty means unknown: then "~" stands
	// for no known folder, and the names beneath it are protected in every folder.
	Home string
	// Config and State are AHP's folders of this account. Empty means .config/ahp and
	// .local/state/ahp of any home.
	Config, State string
	// Binaries are the absolute paths of the ahp command.
	Binaries []string
	// Registrations and Rules are the registrations in force and the files that their
	// backends read rules from, absolute.
	Registrations, Rules []string
	// More is protected beside what is known.
	More []Place
	// Getenv returns a variable that moves a host's configuration, as the host was
	// started; what it names is protected too. Nil reads none.
	Getenv func(name string) string
	// Fold ignores case; it is always ignored on macOS and Windows.
	Fold bool
}

// Set is what is protected. It is immutable but for a cache of links, and safe for
// concurrent use.
type Set struct {
	home     string
	fold     bool
	binaries []string
	// anywhere holds the names that count in every folder, anchored those that count
	// from "/".
	anywhere, anchored *node
	// rooted are names without a folder of their own, which count in a project's
	// folder and above it.
	rooted map[string]*Place
	// absolute are the places whose path is known, and relative all others' names
	// as they lie in a project or a home.
	absolute, relative []*Place
	// firsts are the relative places by the first component of their names. Most calls
	// need none of them.
	firsts func() map[string][]*Place
	// parsers are parsers of the shell that are at rest.
	parsers sync.Pool

	mu    sync.Mutex
	links map[string]linked
}

// New returns the set for an installation.
func New(o Options) *Set {
	s := &Set{
		fold:     o.Fold || runtime.GOOS == "darwin" || runtime.GOOS == "windows",
		anywhere: &node{}, anchored: &node{}, rooted: map[string]*Place{}, links: map[string]linked{},
	}
	s.firsts = sync.OnceValue(s.byFirst)
	s.parsers.New = func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }
	if path.IsAbs(o.Home) {
		s.home = path.Clean(o.Home)
	}
	s.relative = make([]*Place, 0, len(hostPlaces)+8)
	s.anywhere.next = make([]edge, 0, 64)
	for i := range hostPlaces {
		h := &hostPlaces[i]
		s.protect(&h.Place)
		if to := h.movedTo(o.Getenv); path.IsAbs(to) {
			s.protect(&Place{to, h.Folder, h.What})
		}
	}
	for _, p := range ownPlaces(o) {
		s.protect(&p)
	}
	for _, p := range o.More {
		s.protect(&p)
	}
	for _, b := range o.Binaries {
		s.binaries = append(s.binaries, path.Clean(b))
	}
	return s
}

func (s *Set) byFirst() map[string][]*Place {
	out := map[string][]*Place{}
	for _, p := range s.relative {
		first := s.first(p.Path)
		out[first] = append(out[first], p)
	}
	return out
}

// first returns the first component of a name, as components are compared.
func (s *Set) first(rel string) string {
	first, _, _ := strings.Cut(rel, "/")
	return s.folded(first)
}

// hostPlace is a place of a host.
type hostPlace struct {
	Place
	// variable names what moves it, "" for nothing: its value with rest behind it is
	// the place then.
	variable, rest string
}

// movedTo returns where a variable puts the place, "" if none does.
func (h *hostPlace) movedTo(getenv func(string) string) string {
	if h.variable == "" || getenv == nil {
		return ""
	}
	if value := getenv(h.variable); value != "" {
		return path.Clean(value + h.rest)
	}
	return ""
}

// ownPlaces returns AHP's own places.
func ownPlaces(o Options) []Place {
	out := []Place{
		{Path: "~/.config/ahp", Folder: true, What: "AHP's configuration and registration"},
		{Path: "~/.local/state/ahp", Folder: true, What: "AHP's log, trust store and socket"},
		{Path: ".ahp", Folder: true, What: "the project's AHP registration"},
		{Path: "/etc/ahp", Folder: true, What: "AHP's managed registration"},
	}
	add := func(list []string, folder bool, what string) {
		for _, p := range list {
			if path.IsAbs(p) {
				out = append(out, Place{Path: path.Clean(p), Folder: folder, What: what})
			}
		}
	}
	add([]string{o.Config}, true, "AHP's configuration and registration")
	add([]string{o.State}, true, "AHP's log, trust store and socket")
	add(o.Binaries, false, "the ahp command")
	add(o.Registrations, false, "an AHP registration in force")
	add(o.Rules, false, "rules of an AHP backend in force")
	return out
}

// protect adds a place, which isn't changed later.
func (s *Set) protect(p *Place) {
	rel, home := strings.CutPrefix(p.Path, "~/")
	switch {
	case home:
		s.relative = append(s.relative, &Place{Path: rel, Folder: p.Folder, What: p.What})
		s.anywhere.add(s.trimmed(rel), p)
	case path.IsAbs(p.Path):
		s.absolute = append(s.absolute, p)
		s.anchored.add(s.trimmed(p.Path), p)
		if under, is := strings.CutPrefix(p.Path, "/etc/"); is && strings.Contains(under, "/") {
			s.anywhere.add(s.trimmed(p.Path), p) // under whatever stands for "/"
		}
	case !strings.Contains(rel, "/") && !strings.HasPrefix(rel, "."):
		s.rooted[s.folded(rel)] = p
	default:
		s.relative = append(s.relative, p)
		s.anywhere.add(s.trimmed(rel), p)
	}
}

func (s *Set) folded(name string) string {
	if s.fold {
		return strings.ToLower(name)
	}
	return name
}

// trimmed returns a clean path as its components are compared, without a slash at its
// ends.
func (s *Set) trimmed(p string) string { return s.folded(strings.Trim(p, "/")) }

// split returns the components of a clean path.
func (s *Set) split(p string) []string { return strings.Split(s.trimmed(p), "/") }

// Manifest returns what the set takes, as an answer to discovery.
func (s *Set) Manifest() *ahp.Manifest {
	return ahp.NewManifest(ahp.ManifestEvent{
		Event: ahp.ToolBefore, Modes: []ahp.Mode{ahp.ModeIntercept},
		Capabilities: ahp.NewCapabilities(ahp.ToolBefore, ahp.EffectDeny),
	})
}

// Intercept denies a tool call that would change what is protected, and has no
// opinion about anything else. The only error is the context's.
func (s *Set) Intercept(ctx context.Context, q *ahp.Intercept) ([]ahp.Effect, error) {
	deny, err := s.Judge(ctx, q.Event)
	if err != nil || deny == nil {
		return nil, err
	}
	return []ahp.Effect{deny}, nil
}

// Judge returns why a tool call is denied, or nil.
func (s *Set) Judge(ctx context.Context, e *ahp.Event) (*ahp.Deny, error) {
	if e == nil || e.Type != ahp.ToolBefore || e.Tool == nil {
		return nil, nil
	}
	j := newJudgement(ctx, s, e)
	j.tool(e.Tool)
	if err := ctx.Err(); err != nil && j.found == nil {
		return nil, fmt.Errorf("judging a call for self-protection: %w", err)
	}
	if j.found == nil {
		return nil, nil
	}
	return &ahp.Deny{Reason: j.found.reason(), Code: Code}, nil
}

// finding is why a call is denied.
type finding struct {
	place *Place
	// act is what the call does where it is about no place.
	act string
}

// reason says what is protected and who may change it.
func (f *finding) reason() string {
	if f.place == nil {
		return fmt.Sprintf("self-protection: %s. An agent may not do this. A person may, in a terminal outside the agent; rephrasing the call will not help.", f.act)
	}
	return fmt.Sprintf("self-protection: this call may change %s, which holds %s. An agent may read it but not change it. A person may, outside the agent, "+
		"with \"ahp install\", \"ahp uninstall\" or \"ahp trust\", or by hand; rephrasing the call will not help.", f.place.Path, f.place.What)
}
