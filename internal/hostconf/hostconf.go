// Package hostconf knows where the agents that AHP serves keep their hook
// configuration: every file that can carry hooks or switch them off, the place
// and the form in which AHP is installed, and the events it registers for.
//
// It guarantees that it is data: nothing here reads a file, a variable or the
// clock, and every call returns a fresh copy that the caller may change.
//
// Do not assume that a listed file exists, that the list is complete for a
// version of an agent that was never measured, or that a path is absolute before
// [Roots.Path] has resolved it.
package hostconf

import (
	"path"
	"strings"
)

// Scope is who a configuration file speaks for.
type Scope string

// The scopes. A host need not have each.
const (
	User    Scope = "user"    // one account
	Project Scope = "project" // one repository, and so whoever can write to it
	Managed Scope = "managed" // the machine, written by its administrator
)

// Scopes returns all scopes.
func Scopes() []Scope { return []Scope{User, Project, Managed} }

// Format is how a file is written.
type Format string

// The formats.
const (
	JSON   Format = "json"   // strict JSON
	JSONC  Format = "jsonc"  // JSON with comments and trailing commas
	TOML   Format = "toml"   // TOML 1.0
	Script Format = "script" // a folder with one executable per event, named after it
	Plugin Format = "plugin" // a folder whose code the host loads
)

// File is a configuration source of a host.
type File struct {
	// Path starts with "~/" for the account's home, with "/" for the machine, and
	// is else relative to the project's folder. A "*" in its last element stands
	// for every name. For Script and Plugin it is the folder.
	Path string
	// Mac is the form of an absolute Path on macOS, "" if it is the same there.
	Mac    string
	Scope  Scope
	Format Format
	// Variable names the environment variable that moves the leading part Moves
	// of Path to another place, "" for none.
	Variable, Moves string
	// Carries tells that hooks can be configured here; else the file can only
	// switch them off, or hold the trust in them.
	Carries bool
	// Of names the host whose file this is, if it is another's; "" for its own.
	Of string
}

// SwitchKind is where a switch is thrown.
type SwitchKind string

// The kinds of switches.
const (
	KeySwitch      SwitchKind = "key"      // a key of a configuration file
	VariableSwitch SwitchKind = "variable" // an environment variable
	ArgumentSwitch SwitchKind = "argument" // an argument of the host's command line
)

// Switch is something that turns hooks off.
type Switch struct {
	Kind SwitchKind
	// Name is the variable or the argument; for a key its path, joined by dots.
	Name string
	// Value is the value that turns hooks off, as JSON for a key; "" if any
	// value, or mere presence, does.
	Value string
	// Scopes are those of the files whose key counts; nil for the other kinds.
	Scopes []Scope
	// Stops tells the scopes whose hooks it turns off.
	Stops []Scope
	// Pinned tells the scopes, of those it stops, in which an installation by AHP
	// writes what keeps the switch from counting.
	Pinned []Scope
	// Effect says in words what happens.
	Effect string
}

// Shape is how a hook is written in a file.
type Shape string

// The shapes.
const (
	// Nested is {"hooks":{EVENT:[{"matcher":M,"hooks":[{"type":"command",…}]}]}}.
	Nested Shape = "nested"
	// Flat is {"hooks":{EVENT:[{"command":…}]}}.
	Flat Shape = "flat"
	// List is {"hooks":[{"trigger":EVENT,"action":{…}}]}.
	List Shape = "list"
	// Tables is [[hooks]] with the event as a key, in TOML.
	Tables Shape = "tables"
	// Scripts is one executable file per event.
	Scripts Shape = "scripts"
	// Bridge is one plugin file, written in the host's own language.
	Bridge Shape = "bridge"
)

// Event is a native event that AHP registers for.
type Event struct {
	Name string
	// Tool tells that the event is about one tool call, so that a matcher applies.
	Tool bool
	// Gate tells that the host waits for the answer and that a deny keeps
	// something from happening. Where there is no answer, only a gate can refuse.
	Gate bool
}

// Field is a fixed member of an entry.
type Field struct {
	Name string
	// Value is its JSON text.
	Value string
}

// Target is one place where AHP is installed in a scope.
type Target struct {
	File
	Shape Shape
	// Existing tells that Path holds a "*" and that the entries go into each
	// file that is there already, instead of a file of our own.
	Existing bool
	// Command is the member that holds the command line.
	Command string
	// Head are members that a new file starts with.
	Head []Field
	// Fields are members of every entry, beside the command.
	Fields []Field
	// Closed are members of the entries of events named in ClosedFor, where a
	// missing answer is to refuse: the host's own way to fail closed.
	Closed    []Field
	ClosedFor []string
	// ToolMatcher is the matcher of tool events that lets every tool through, ""
	// if the key must be left out. Other events never have one.
	ToolMatcher string
	// LimitKey is the member that holds the time limit; "" if there is none.
	LimitKey string
	// LimitUnit is the unit of LimitKey in milliseconds: 1 or 1000.
	LimitUnit int
	Events    []Event
	// Remains says what the person has to do before the host runs the hooks.
	Remains []string
}

// LimitMS is the time that AHP asks a host to wait for it, in milliseconds, in
// the unit of the host where there is a key for it. Hosts without such a key wait
// for at least as long, or for ever, in which case the bridge has a timer.
const LimitMS = 60_000

// Host is what is known about one agent's configuration.
type Host struct {
	Name string
	// Files are the configuration sources, lowest authority first where that is
	// known. Every target's file is among them.
	Files    []File
	Targets  []Target
	Switches []Switch
	// EventArgument tells that the payload does not name its event, so that the
	// installed line must.
	EventArgument bool
	// Unregistered are events that the host has and AHP leaves alone, and why.
	Unregistered map[string]string
	// Traps are facts about its configuration that an installer must respect.
	Traps []string
}

// In returns the places of a scope; none if the host has no such scope.
func (h Host) In(s Scope) []Target {
	var out []Target
	for _, t := range h.Targets {
		if t.Scope == s {
			out = append(out, t)
		}
	}
	return out
}

// Event returns the registered event of that name.
func (h Host) Event(name string) (Event, bool) {
	for _, t := range h.Targets {
		for _, e := range t.Events {
			if e.Name == name {
				return e, true
			}
		}
	}
	return Event{}, false
}

// All returns every host in the order of the documentation.
func All() []Host {
	return []Host{
		claudeCode(), codex(), gemini(), qwen(), opencode(), kilo(), pi(), crush(), copilot(), cursor(),
		droid(), goose(), cline(), kiro(), windsurf(), openhands(), kimi(), auggie(), continueCLI(),
	}
}

// Names returns the names of all hosts, in the order of All.
func Names() []string {
	var out []string
	for _, h := range All() {
		out = append(out, h.Name)
	}
	return out
}

// Lookup returns the host of that name.
func Lookup(name string) (Host, bool) {
	for _, h := range All() {
		if h.Name == name {
			return h, true
		}
	}
	return Host{}, false
}

// Roots are the folders that a File's path is relative to.
type Roots struct {
	Home, Project string
	// Getenv returns a variable's value; nil reads none. Only what looks at a
	// host as its user started it may pass one: an installed line never does.
	Getenv func(name string) string
	// Mac selects the paths of macOS.
	Mac bool
	// Machine is put in front of absolute paths; "" for the machine itself. Tests
	// set it.
	Machine string
}

// Path returns the place of a file with the roots put in. It may still hold "*".
func (r Roots) Path(f File) string {
	p := f.Path
	if r.Mac && f.Mac != "" {
		p = f.Mac
	}
	if f.Variable != "" && r.Getenv != nil {
		if value := r.Getenv(f.Variable); value != "" {
			if rest, is := strings.CutPrefix(p, f.Moves); is {
				return value + rest
			}
		}
	}
	switch {
	case strings.HasPrefix(p, "~/"):
		return path.Join(r.Home, p[2:])
	case strings.HasPrefix(p, "/"):
		return path.Join("/", r.Machine, p)
	default:
		return path.Join(r.Project, p)
	}
}
