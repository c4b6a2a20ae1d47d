package conformance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// HarnessTarget says how to run the harness under test. The command is run once for
// each of many small sessions, in an empty folder of its own. It reads an AHP
// registration and a file of tool calls, makes the calls in their order, each unless
// it is refused, and ends: with exit code 0 if every call was made or refused or the
// session was stopped, with another, and without a call, if it can't hold itself to
// the registration. Each line of calls is {"name":"bash","input":{"command":"…"}},
// and a command is for a POSIX shell. These variables are in its environment:
//
//	AHP_CONFORM_REGISTRATION  the path of the registration
//	AHP_CONFORM_CALLS         the path of the calls
//	AHP_CONFORM_DIR           the folder in which it runs; commands write there
//	AHP_CONFORM_RESULTS       where it may write, in any form, what it told of its calls
//	AHP_CONFORM_TOKEN         the bearer token that registrations name by this name
//
// In Command's arguments {registration}, {calls} and {dir} stand for the paths.
type HarnessTarget struct {
	// Command is the program and its arguments, run without a shell.
	Command []string
	// Env holds NAME=value entries beyond the small environment that every child of
	// the suite gets. Their values appear in no report.
	Env []string
	// Binding is how the harness reaches its backends.
	Binding Binding
}

// HarnessOptions tunes a run. Relay is required for the stdio bindings.
type HarnessOptions struct {
	// Relay is the absolute path of a program and arguments that, followed by two more
	// arguments, end in a call of Relay with those. It stands in the registrations.
	Relay []string
	// RefusedInput is a tool input, a JSON object, which the harness's own rules
	// refuse, whatever a backend says; "{}" in it becomes the path of the file by
	// which the suite sees that it ran. nil means that none is known.
	RefusedInput ahp.Raw
	// Profiles are those that are claimed; nil means all.
	Profiles []Profile
	// Only are the ids of the checks to run, beside those that they depend on; nil
	// means all.
	Only []string
	// Baseline holds the failures that are known.
	Baseline Baseline
	// Deadline is the timeoutMs of subscriptions whose backend doesn't answer, or not
	// well; zero means one second.
	Deadline time.Duration
	// Limit is how long one run of the command may take, beside the deadlines in it;
	// zero means 30 s.
	Limit time.Duration
	// Grace is how long a deadline may be exceeded before that counts as a failure;
	// zero means 5 s.
	Grace time.Duration
	// Parallel is how many runs of the command there are at a time; zero means 4.
	Parallel int
	// OnResult, if set, is told of each result as it comes, before the baseline is
	// applied.
	OnResult func(*Result)
}

// Harness runs the checks of a harness against the target and returns the report.
// The error is a *PeerError if the command can't be started, ctx's if that ends, and
// else says what in the arguments makes no sense. A harness that fails checks is no
// error: see Report.OK.
func Harness(ctx context.Context, target HarnessTarget, opts HarnessOptions) (*Report, error) {
	e, err := newHarnessEnv(target, opts)
	if err != nil {
		return nil, err
	}
	if err := opts.Baseline.check(RoleHarness); err != nil {
		return nil, err
	}
	pl := plan{
		role: RoleHarness, binding: target.Binding, profiles: opts.Profiles, only: opts.Only, redact: e.redact, after: opts.OnResult,
	}
	checks := harnessChecks()
	if err := e.rehearse(ctx, pl, checks); err != nil {
		return nil, err
	}
	results, err := execute(ctx, pl, checks, e)
	if err != nil {
		return nil, err
	}
	r := newReport(pl, ahp.Version, e.peer(), results, opts.Baseline)
	r.Stderr = e.redact(e.stderr)
	return r, nil
}

// harnessEnv is what the checks of a harness work with.
type harnessEnv struct {
	target  HarnessTarget
	opts    HarnessOptions
	binding Binding
	program string
	token   string
	quiet   *log.Logger
	secrets []string
	plays   []*play

	mu      sync.Mutex
	results map[string]*played
	stderr  string
}

func newHarnessEnv(target HarnessTarget, opts HarnessOptions) (*harnessEnv, error) {
	e := &harnessEnv{target: target, opts: opts, binding: target.Binding, results: map[string]*played{}, quiet: log.New(discard{}, "", 0)}
	switch {
	case len(target.Command) == 0:
		return nil, errors.New("conformance: the harness has no command")
	case !slices.Contains(everywhere(), target.Binding):
		return nil, fmt.Errorf("conformance: %q is no binding; there are %v", target.Binding, everywhere())
	case target.Binding != HTTP && (len(opts.Relay) == 0 || !filepath.IsAbs(opts.Relay[0])):
		return nil, errors.New("conformance: the stdio bindings need a relay with an absolute path")
	case opts.RefusedInput != nil && (strictjson.Check(opts.RefusedInput, strictjson.Options{}) != nil || !opts.RefusedInput.IsObject()):
		return nil, errors.New("conformance: the input that is refused isn't a JSON object")
	case opts.RefusedInput != nil && !strings.Contains(string(opts.RefusedInput), "{}"):
		return nil, errors.New("conformance: the input that is refused has no {}, so that nobody could see it run")
	}
	for _, profile := range opts.Profiles {
		if !slices.Contains(profiles(), profile) {
			return nil, fmt.Errorf("conformance: %q is no profile; there are %v", profile, profiles())
		}
	}
	e.program = target.Command[0]
	if strings.ContainsRune(e.program, filepath.Separator) {
		abs, err := filepath.Abs(e.program)
		if err != nil {
			return nil, err
		}
		e.program = abs // the command runs in another folder
	}
	orElse(&e.opts.Deadline, time.Second)
	orElse(&e.opts.Limit, 30*time.Second)
	orElse(&e.opts.Grace, 5*time.Second)
	orElse(&e.opts.Parallel, 4)
	var random [12]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	e.token = "conform-" + hex.EncodeToString(random[:])
	e.secrets = secretsOf(Target{Env: target.Env, Token: e.token})
	e.plays = e.allPlays()
	return e, nil
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func (e *harnessEnv) redact(s string) string {
	for _, secret := range e.secrets {
		s = strings.ReplaceAll(s, secret, "[redacted]")
	}
	return s
}

// peer names the target in reports.
func (e *harnessEnv) peer() string { return e.redact(strings.Join(e.target.Command, " ")) }

func (e *harnessEnv) keepStderr(tail string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if tail != "" {
		e.stderr = tail
	}
}

// rehearse runs the plays that the wanted checks look at, several at a time: first
// the plain one, and the others only if that shows that there is a harness at all.
func (e *harnessEnv) rehearse(ctx context.Context, pl plan, checks []harnessCheck) error {
	wanted, err := selection(pl, checks)
	if err != nil {
		return err
	}
	known := map[string]*play{}
	for _, p := range e.plays {
		known[p.name] = p
	}
	var todo []*play
	for _, c := range checks {
		if !wanted[c.ID] || !c.concerns(e.binding) || pl.profiles != nil && !slices.Contains(pl.profiles, c.Profile) {
			continue
		}
		for _, name := range playsOf(c.ID) {
			if p := known[name]; p != nil && !slices.Contains(todo, p) && name != playPlain {
				todo = append(todo, p)
			}
		}
	}
	plain := e.perform(ctx, known[playPlain])
	e.results[playPlain] = plain
	if plain.err != nil {
		return plain.err
	}
	if answersAtAll(plain) != "" {
		return nil
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, e.opts.Parallel)
	for _, p := range todo {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			r := e.perform(ctx, p)
			e.mu.Lock()
			defer e.mu.Unlock()
			e.results[p.name] = r
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("conformance: %w", context.Cause(ctx))
	}
	return nil
}

// get returns what came of a play.
func (e *harnessEnv) get(name string) (*played, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.results[name]
	switch {
	case r == nil:
		return nil, fmt.Errorf("the play %s was not run", name)
	case r.err != nil:
		return nil, fmt.Errorf("the play %s: %w", name, r.err)
	}
	return r, nil
}
