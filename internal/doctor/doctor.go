// Package doctor finds out whether an installation of AHP does what it was installed
// for: it sends canaries through the installed lines, as the agent would, and reads
// every configuration source of the agent.
//
// It guarantees that it changes nothing of an agent's or a person's; that a canary
// counts as answered only if the log has ahp's decision on it; that every wait has an
// end; and that no finding quotes a secret that is shaped or named like one.
//
// Do not assume that an agent which was not started in this way reads these files: what
// its own command line, or a variable of another environment, switches off is not seen
// here. Do not assume that what can't be told is in order: such things are notes.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/chain"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/strictjson"
)

// Level says how bad a finding is.
type Level string

// The levels.
const (
	OK      Level = "ok"
	Note    Level = "note"    // to be known
	Warning Level = "warning" // to be looked at
	Wrong   Level = "wrong"   // AHP does not, or can not, hold what it was installed for
)

// Finding is one thing that was looked at.
type Finding struct {
	// Host and Scope name the installation; both are "" for what concerns all.
	Host  string         `json:"host,omitzero"`
	Scope hostconf.Scope `json:"scope,omitzero"`
	Level Level          `json:"level"`
	// Check is the short name of what was looked at.
	Check string `json:"check"`
	What  string `json:"what"`
	// Where is FILE or FILE:LINE.
	Where string `json:"where,omitzero"`
	// Do says what to do.
	Do string `json:"do,omitzero"`
}

// Report is what was found, installation by installation.
type Report struct {
	Wrong    bool      `json:"wrong"`
	Findings []Finding `json:"findings"`
}

// Service is what the warm service says of itself.
type Service struct {
	PID     int
	Program string
	// Changed is when that program was changed, as it was started.
	Changed time.Time
}

// Options says where to look, and lends what this package can't do itself.
type Options struct {
	// Hosts are the agents to look at; none means those with an installation.
	Hosts []string
	// Scope is the only one to look at; "" means all.
	Scope hostconf.Scope
	// Roots are where the agents' files are. Without a project its files are not read.
	Roots hostconf.Roots
	// State is AHP's state folder.
	State string
	// Self is this program's file.
	Self string
	// Managed is the administrator's registration; "" is the usual place.
	Managed string
	// Environ is the environment that an agent would have, NAME=VALUE.
	Environ []string
	// Versions asks agents for their version by starting them.
	Versions bool
	// WholeLog checks all of the log instead of its end.
	WholeLog bool
	// Timeout bounds one canary; zero means 30 s. Reach bounds one question to a
	// backend; zero means 5 s.
	Timeout, Reach time.Duration
	// Measured returns the versions of a host that were measured.
	Measured func(host string) []string
	// Fit makes a registration one for a host, with notes; as the hook does.
	Fit func(*ahp.Registration, *ahp.Manifest) (*ahp.Registration, []string, error)
	// Service asks the service in a state folder; nil without an error if none runs.
	Service func(ctx context.Context, state string) (*Service, error)
	// Announce lets one canary through, and CanaryDeny and CanaryPass are the names of
	// their tools.
	Announce               func(state, id string) (withdraw func(), err error)
	CanaryDeny, CanaryPass string
}

// doctor is one run.
type doctor struct {
	o      Options
	report *Report
	scrub  func([]byte) ([]byte, error)
	// reached are the backends that were asked, by file and id.
	reached map[string]bool
}

// Run looks at everything. The error is for a wrong use.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	if o.Reach == 0 {
		o.Reach = 5 * time.Second
	}
	if o.Roots.Project == o.Roots.Home { // its files are the user's
		o.Roots.Project = ""
	}
	scrub, err := chain.Scrubber(nil)
	if err != nil {
		return nil, err
	}
	for _, name := range o.Hosts {
		if _, is := hostconf.Lookup(name); !is {
			return nil, fmt.Errorf("the host %q isn't known; known are %s", name, strings.Join(hostconf.Names(), ", "))
		}
	}
	d := &doctor{o: o, report: &Report{Findings: []Finding{}}, scrub: scrub, reached: map[string]bool{}}
	d.state()
	installed := 0
	for _, h := range hostconf.All() {
		if len(o.Hosts) > 0 && !slices.Contains(o.Hosts, h.Name) {
			continue
		}
		n, err := d.host(ctx, h)
		if err != nil {
			return nil, err
		}
		installed += n
	}
	if installed == 0 && len(o.Hosts) == 0 {
		d.add(Finding{Level: Note, Check: "installed", What: "AHP is in the configuration of no agent that can be seen from here", Do: "run ahp install HOST"})
	}
	d.log(ctx)
	d.service(ctx)
	for _, f := range d.report.Findings {
		d.report.Wrong = d.report.Wrong || f.Level == Wrong
	}
	return d.report, nil
}

// host looks at one agent, and returns the number of its installations.
func (d *doctor) host(ctx context.Context, h hostconf.Host) (int, error) {
	all := d.sources(h)
	n := 0
	for _, scope := range hostconf.Scopes() {
		if len(h.In(scope)) == 0 || d.o.Scope != "" && d.o.Scope != scope || scope == hostconf.Project && d.o.Roots.Project == "" {
			continue
		}
		s := &site{d: d, host: h, dialect: hosts.Lookup(h.Name), scope: scope, sources: all}
		is, err := s.find()
		if err != nil {
			s.add(Finding{Level: Wrong, Check: "record", What: err.Error(), Do: "repair it, or move it away and install again"})
		}
		if !is {
			continue
		}
		n++
		s.examine(ctx)
		if err := context.Cause(ctx); err != nil {
			return n, err
		}
	}
	if n == 0 && slices.Contains(d.o.Hosts, h.Name) {
		d.add(Finding{Host: h.Name, Scope: d.o.Scope, Level: Wrong, Check: "installed", What: "AHP is not in the configuration of " + hosts.Lookup(h.Name).Title + ": nothing of it is checked", Do: "run ahp install " + h.Name})
	}
	if n > 0 {
		d.version(ctx, h)
		d.heartbeat(h)
	}
	return n, nil
}

// add takes a finding, without what is shaped like a secret.
func (d *doctor) add(f Finding) {
	f.What, f.Do, f.Where = d.clean(f.What), d.clean(f.Do), adapter.Clean(f.Where)
	d.report.Findings = append(d.report.Findings, f)
}

// clean returns text for a terminal, without what is shaped like a secret.
func (d *doctor) clean(text string) string {
	type said struct {
		Text string `json:"text"`
	}
	raw, err := strictjson.Marshal(said{adapter.Clean(text)})
	if err == nil {
		raw, err = d.scrub(raw)
	}
	var out said
	if err == nil {
		err = strictjson.Unmarshal(raw, &out, strictjson.Options{})
	}
	if err != nil {
		return "(a text that can't be shown)"
	}
	return out.Text
}

// short cuts a text for one line.
func short(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// at names a line of a file.
func at(path string, line int) string {
	if line > 0 {
		return fmt.Sprintf("%s:%d", path, line)
	}
	return path
}

// failure says what kept a backend from answering, with its class.
func failure(err error) string {
	var f *ahp.Failure
	if errors.As(err, &f) {
		return fmt.Sprintf("%s: %s", f.Class, f.Error())
	}
	return err.Error()
}
