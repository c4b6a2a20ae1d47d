package conformance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/proc"
	"github.com/abhed/abhed/internal/strictjson"
)

// Target says how to reach the backend under test: by a command, or at a URL.
type Target struct {
	// Command is the program and its arguments, run without a shell.
	Command []string
	// Dir is the command's working directory; empty means that of this process.
	Dir string
	// Env holds NAME=value entries beyond the small environment that a harness
	// gives a backend. Their values appear in no report.
	Env []string
	// PerEvent runs the command once per message, and not once for all.
	PerEvent bool
	// URL is where the backend listens.
	URL string
	// Token is the bearer token for URL; empty means none. It appears in no report.
	Token string
}

// Options tunes a run. The zero value runs every check.
type Options struct {
	// Events are the event types that the backend claims to support. The first one
	// is used where a check needs just any. Empty means tool.before.
	Events []ahp.EventType
	// ObserverOnly tells that the backend decides about no event: it answers every
	// decision request with -32002. Events is then of no use, and the profile
	// tool-interception isn't claimed.
	ObserverOnly bool
	// DenyInput is a tool input, a JSON object, that the backend is expected to
	// deny at tool.before; nil means that none is known.
	DenyInput ahp.Raw
	// Profiles are those that are claimed; nil means all.
	Profiles []Profile
	// Only are the ids of the checks to run, beside those that they depend on; nil
	// means all.
	Only []string
	// Baseline holds the failures that are known.
	Baseline Baseline
	// Timeout bounds the wait for one answer; zero means 5 s.
	Timeout time.Duration
	// Grace is how long a process may take to end when it is told to; zero means
	// 5 s.
	Grace time.Duration
	// LargeBytes is the size of a large message that must be answered; zero means
	// 5 MB.
	LargeBytes int
	// MaxBytes is the size of a message that need not be taken; zero means
	// ahp.MaxMessageBytes. It is the bound that the backend declares.
	MaxBytes int
	// Sequence is how many requests a persistent process gets in a row; zero means
	// 200.
	Sequence int
	// OnResult, if set, is told of each result as it comes, before the baseline is
	// applied.
	OnResult func(*Result)
}

// PeerError tells that the peer could not be started or reached at all, so that
// nothing can be said of it.
type PeerError struct {
	Peer string
	Err  error
}

// Error returns what was tried, and why it failed.
func (e *PeerError) Error() string {
	return fmt.Sprintf("conformance: %s can't be reached: %v", e.Peer, e.Err)
}

// Unwrap returns the cause.
func (e *PeerError) Unwrap() error { return e.Err }

// Backend runs the checks of a backend against the target and returns the report.
// The error is a *PeerError if the target can't be started or reached, ctx's if
// that ends, and else says what in the arguments makes no sense. A backend that
// fails checks is no error: see Report.OK.
func Backend(ctx context.Context, target Target, opts Options) (*Report, error) {
	e, err := newBackendEnv(target, opts)
	if err != nil {
		return nil, err
	}
	if err := opts.Baseline.check(RoleBackend); err != nil {
		return nil, err
	}
	if err := e.reach(ctx); err != nil {
		return nil, &PeerError{Peer: e.peer(), Err: err}
	}
	pl := plan{
		role: RoleBackend, binding: e.binding, profiles: e.opts.Profiles, only: opts.Only, redact: e.redact, after: e.after,
		prepare: func(p *probe) { p.observer = opts.ObserverOnly },
	}
	results, err := execute(ctx, pl, backendChecks(), e)
	if err != nil {
		return nil, err
	}
	if e.unstarted != nil && results[0].Verdict == Fail {
		return nil, &PeerError{Peer: e.peer(), Err: e.unstarted}
	}
	r := newReport(pl, ahp.Version, e.peer(), results, opts.Baseline)
	r.Stderr = e.redact(e.stderr)
	return r, nil
}

// backendEnv is what the checks of a backend work with.
type backendEnv struct {
	target  Target
	opts    Options
	binding Binding
	run     string // makes the event ids of this run unique
	secrets []string
	mu      sync.Mutex
	count   int
	// hangs tells that the peer was seen not to end in time, so that other checks
	// needn't wait for it again.
	hangs    bool
	verdicts map[string]Verdict
	stderr   string
	// unstarted is why the command can't be started.
	unstarted error
}

func newBackendEnv(target Target, opts Options) (*backendEnv, error) {
	e := &backendEnv{target: target, opts: opts, verdicts: map[string]Verdict{}}
	switch {
	case (len(target.Command) > 0) == (target.URL != ""):
		return nil, errors.New("conformance: a target is a command or a URL, one of them")
	case target.URL != "" && target.PerEvent:
		return nil, errors.New("conformance: per event is for a command; a URL has no lifecycle")
	case target.URL == "" && target.Token != "":
		return nil, errors.New("conformance: a token is for a URL; stdio has no authentication (§16)")
	case target.URL != "":
		e.binding = HTTP
	case target.PerEvent:
		e.binding = StdioPerEvent
	default:
		e.binding = StdioPersistent
	}
	if len(opts.Events) == 0 {
		e.opts.Events = []ahp.EventType{ahp.ToolBefore}
	}
	for _, t := range e.opts.Events {
		if !t.Interceptable() {
			return nil, fmt.Errorf("conformance: %q is no event type that can be intercepted", t)
		}
	}
	for _, profile := range opts.Profiles {
		if !slices.Contains(profiles(), profile) {
			return nil, fmt.Errorf("conformance: %q is no profile; there are %v", profile, profiles())
		}
	}
	if opts.ObserverOnly {
		if e.opts.Profiles == nil {
			e.opts.Profiles = profiles()
		}
		e.opts.Profiles = slices.DeleteFunc(slices.Clone(e.opts.Profiles), func(p Profile) bool { return p == ProfileToolInterception })
	}
	if opts.DenyInput != nil && (strictjson.Check(opts.DenyInput, strictjson.Options{}) != nil || !opts.DenyInput.IsObject()) {
		return nil, errors.New("conformance: the input to deny isn't a JSON object")
	}
	orElse(&e.opts.Timeout, 5*time.Second)
	orElse(&e.opts.Grace, 5*time.Second)
	orElse(&e.opts.LargeBytes, 5_000_000)
	orElse(&e.opts.MaxBytes, ahp.MaxMessageBytes)
	orElse(&e.opts.Sequence, 200)
	var random [4]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	e.run = hex.EncodeToString(random[:])
	e.secrets = secretsOf(target)
	return e, nil
}

func orElse[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// secretsOf returns the texts that no report may hold. Very short values of the
// environment are no secrets, and taking them out would garble everything.
func secretsOf(t Target) []string {
	var out []string
	if t.Token != "" {
		out = append(out, t.Token)
	}
	for _, entry := range t.Env {
		if _, value, _ := strings.Cut(entry, "="); len(value) >= 6 {
			out = append(out, value)
		}
	}
	if u, err := url.Parse(t.URL); err == nil && u.User != nil {
		if password, has := u.User.Password(); has && password != "" {
			out = append(out, password)
		}
	}
	return out
}

func (e *backendEnv) redact(s string) string {
	for _, secret := range e.secrets {
		s = strings.ReplaceAll(s, secret, "[redacted]")
	}
	return s
}

// peer names the target in reports.
func (e *backendEnv) peer() string {
	if e.binding == HTTP {
		u, err := url.Parse(e.target.URL)
		if err != nil {
			return "the URL"
		}
		u.RawQuery = ""
		return e.redact(u.Redacted())
	}
	return e.redact(strings.Join(e.target.Command, " "))
}

// reach reports why the peer's URL can't be reached, or nil.
func (e *backendEnv) reach(ctx context.Context) error {
	if e.binding != HTTP {
		return nil // the first check tells; see notStarted
	}
	u, err := url.Parse(e.target.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("not an http or https URL")
	}
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), u.Scheme)
	}
	d := net.Dialer{Timeout: e.opts.Timeout}
	c, err := d.DialContext(ctx, "tcp", host)
	if err != nil {
		return err
	}
	return c.Close()
}

func (e *backendEnv) spec() proc.Spec {
	return proc.Spec{
		Path: e.target.Command[0], Args: e.target.Command[1:], Dir: e.target.Dir, Env: proc.Environ(e.target.Env), Grace: e.opts.Grace,
	}
}

func (e *backendEnv) after(r *Result) {
	e.mu.Lock()
	e.verdicts[r.ID] = r.Verdict
	e.mu.Unlock()
	if e.opts.OnResult != nil {
		e.opts.OnResult(r)
	}
}

func (e *backendEnv) keepStderr(tail string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if tail != "" {
		e.stderr = tail
	}
}

// notStarted notes why the command can't be started. If that is so at the first
// check there is no peer.
func (e *backendEnv) notStarted(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.unstarted = err
}

// impatient notes that the peer doesn't end.
func (e *backendEnv) impatient() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hangs = true
}

func (e *backendEnv) seenHanging() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.hangs
}

// patience is how long a process may take for one message and its end. One that
// was seen not to end isn't waited for where no answer is to come.
func (e *backendEnv) patience(answered bool) time.Duration {
	switch hangs := e.seenHanging(); {
	case hangs && answered:
		return min(e.opts.Timeout, time.Second)
	case hangs:
		return min(e.opts.Timeout, drainTime)
	}
	return e.opts.Timeout
}

// open returns a link to the peer for one check.
func (e *backendEnv) open(p *probe) (link, error) {
	switch e.binding {
	case HTTP:
		return e.openHTTP(p), nil
	case StdioPerEvent:
		return &perEventLink{env: e, p: p}, nil
	}
	return e.openStdio(p)
}

// id returns an event id that no earlier message of any run had.
func (e *backendEnv) id() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count++
	return fmt.Sprintf("conform-%s-%d", e.run, e.count)
}

// event returns a fresh sample of the event type that the checks go by.
func (e *backendEnv) event() object { return samples(e.opts.Events[0])[0] }

// request returns a decision request about that event, after the edits. Once the
// peer has shown that it ignores unknown members, every valid request has some.
func (e *backendEnv) request(breaks ahp.Kind, edits ...edit) (message, error) {
	event := e.event()
	m := intercepting(e.id(), event, everything(event))
	if breaks == 0 && e.greased() {
		grease(m)
	}
	return made(m, breaks, edits...)
}

// plain returns a valid decision request.
func (e *backendEnv) plain() (message, error) { return e.request(0) }

// observation returns a notification of that event, after the edits.
func (e *backendEnv) observation(breaks ahp.Kind, edits ...edit) (message, error) {
	return made(observing(e.id(), e.event()), breaks, edits...)
}

// greased reports whether every check of unknown members has passed.
func (e *backendEnv) greased() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, id := range greaseChecks() {
		if e.verdicts[id] != Pass {
			return false
		}
	}
	return true
}

// grease adds a member that no revision knows wherever those are to be ignored.
func grease(m object) {
	for _, path := range []string{"x-conform", "params.x-conform", "params.event.x-conform", "params.capabilities.x-conform"} {
		set(path, object{"unknown": true})(m)
	}
}
