// Package hookline is the beginning of "ahp hook": it reads the installed line and the
// event, and has the warm service judge it. An agent starts this program for every tool
// call, so that with a service this is all that happens, before the packages that judge
// are even initialised (see First).
//
// It guarantees that an answer is only given whole, on standard output and standard
// error, with an exit code that says so; that only a socket of this account alone is
// asked, and only about the very program that asks; that no read and no write lasts
// longer than the line's limit allows; and that whatever it can't do is left undone for
// the caller, with what was read so far.
//
// Do not assume that it judges or knows hosts: the service does, or package hookd in
// this process. Do not import what initialises more than fmt does, nor a package of
// this module: each costs every call of every agent.
package hookline

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The exit codes of "ahp hook": any other one is no answer.
const (
	ExitPass    = 40 // nothing stands against it; nothing is printed, or what the host needs
	ExitDeliver = 41 // the text on standard output must reach the host
	ExitDeny    = 42 // a refusal, in the host's form
	ExitNone    = 3  // no answer: it could not be written
)

// DefaultLimit is the host's limit where the installed line doesn't say it.
const DefaultLimit = 30 * time.Second

// MaxEvent bounds a native event in bytes. An event beyond it is answered by policy:
// no message of the protocol could hold it.
const MaxEvent = 64 << 20

// Call is one native event with what the installed line says.
type Call struct {
	// Host is the host's name.
	Host string
	// Native names the event where the payload doesn't.
	Native string
	// Registration, if set, is read instead of the user's and the project's. It is
	// absolute.
	Registration string
	// Home is the home folder; "" means that of the account in the user database.
	Home string
	// Dir is the folder that the hook was started in: the project's, where the event
	// doesn't say another.
	Dir string
	// Open tells that what can't be judged passes (--on-missing allow).
	Open bool
	// Limit is the host's own limit for the hook; zero means DefaultLimit.
	Limit time.Duration
	// Unprotected turns self-protection off.
	Unprotected bool
	// Markers holds the variables by which a host is recognised: those that are set.
	Markers map[string]string
	// Data is what came on standard input.
	Data []byte
}

// HostLimit returns the host's limit.
func (c *Call) HostLimit() time.Duration {
	if c.Limit <= 0 {
		return DefaultLimit
	}
	return c.Limit
}

// Budget returns how long an answer may take: 80 % of the host's limit.
func (c *Call) Budget() time.Duration { return c.HostLimit() * 8 / 10 }

// Patience returns how long is waited for an answer before it is given by policy: a
// little more than the budget, which who judges keeps by itself.
func (c *Call) Patience() time.Duration { return c.HostLimit() * 83 / 100 }

// Spend takes what has passed of the budget off the limit, which holds from now on.
func (c *Call) Spend(passed time.Duration) {
	c.Limit = max(c.HostLimit()-passed*10/8, time.Millisecond)
}

// Answer is what "ahp hook" prints and how it exits.
type Answer struct {
	Code           int
	Stdout, Stderr []byte
}

// Complete reports whether a is an answer: one of the three codes, with its text.
func (a *Answer) Complete() bool {
	switch a.Code {
	case ExitPass:
		return true
	case ExitDeliver:
		return len(a.Stdout) > 0
	case ExitDeny:
		return len(a.Stdout)+len(a.Stderr) > 0
	}
	return false
}

// Markers returns the names of the variables that a hook passes on: those by which the
// adapters recognise a host.
func Markers() []string { return []string{"COPILOT_CLI", "CURSOR_VERSION"} }

// Parse reads the arguments behind "hook". The call is what could be read, even with
// an error. It is written by hand: the line was written by "ahp install".
func Parse(args []string) (c Call, noService bool, err error) {
	p := parser{args: args}
	for p.next() {
		switch p.name {
		case "--event":
			c.Native = p.take()
		case "--registration":
			c.Registration = p.path()
		case "--home":
			c.Home = p.path()
		case "--limit":
			c.Limit = p.limit()
		case "--on-missing":
			c.Open = p.open()
		case "--no-service":
			noService = p.yes()
		case "--no-self-protect":
			c.Unprotected = p.yes()
		default:
			if strings.HasPrefix(p.name, "-") || c.Host != "" {
				p.fail(`found %q, expected HOST and the flags that "ahp install" writes`, p.args[p.at-1])
				continue
			}
			c.Host = p.args[p.at-1]
		}
	}
	return c, noService, p.err
}

// parser goes through arguments.
type parser struct {
	args        []string
	at          int
	name, value string
	has         bool
	err         error
}

func (p *parser) fail(format string, args ...any) {
	p.err = errors.Join(p.err, fmt.Errorf("ahp hook: "+format, args...))
}

func (p *parser) next() bool {
	if p.at >= len(p.args) {
		return false
	}
	p.name, p.value, p.has = strings.Cut(p.args[p.at], "=")
	p.at++
	return true
}

// take returns the value of the flag.
func (p *parser) take() string {
	if !p.has {
		if p.at >= len(p.args) {
			p.fail("%s is missing its value", p.name)
			return ""
		}
		p.value = p.args[p.at]
		p.at++
	}
	return p.value
}

// yes returns true, for a flag that has no value.
func (p *parser) yes() bool {
	if p.has {
		p.fail("%s=%s: expected no value", p.name, p.value)
	}
	return true
}

func (p *parser) path() string {
	path := p.take()
	if path != "" && path[0] != '/' {
		p.fail("found the relative path %s, expected an absolute one", path)
	}
	return path
}

func (p *parser) limit() time.Duration {
	before := p.err
	ms, err := strconv.ParseInt(p.take(), 10, 32)
	if p.err == before && (err != nil || ms <= 0) {
		p.fail("--limit %s: expected milliseconds, 1 or more", p.value)
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

func (p *parser) open() bool {
	before := p.err
	switch p.take() {
	case "allow":
		return true
	case "deny":
	default:
		if p.err == before {
			p.fail("--on-missing %s: expected deny or allow", p.value)
		}
	}
	return false
}
