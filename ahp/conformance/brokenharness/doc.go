// Package brokenharness is the harness that the conformance suite is tested
// against: one that keeps every rule, and one for each check that breaks the rule
// behind it and nothing else. It is for tests only.
//
// It guarantees that a defect changes nothing but what it says, so that a suite
// which reports more than the check it names (and what depends on that) is wrong.
//
// Do not assume that it guards anything: it runs the shell commands of its calls as
// they are.
package brokenharness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/boundary"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/ahp/transport/httptransport"
	"github.com/abhed/abhed/internal/strictjson"
)

// RefusedInput is what the harness refuses by a rule of its own.
const RefusedInput = `{"command":"touch '{}'","colour":"red"}`

// Defect is one way to break the protocol.
type Defect struct {
	// Check is the id of the check that finds it.
	Check string
	About string
	// forgives reports whether a registration is no reason to refuse to begin: the
	// calls are then run and nobody is asked.
	forgives func(doc object) bool
	// rejects reports whether a registration is refused.
	rejects func(text string) bool
	// doc changes the registration.
	doc func(doc object)
	// wire changes what goes through a transport.
	wire wire
	// conduct changes what becomes of calls.
	conduct conduct
}

// conduct is what a defect does beside the wire.
type conduct struct {
	eager, stubborn, mute, lawless, generous, unasked, anxious, chatty bool
}

// Find returns the defect for a check.
func Find(check string) (Defect, bool) {
	for _, d := range Defects() {
		if d.Check == check {
			return d, true
		}
	}
	return Defect{}, false
}

// session is one run.
type session struct {
	Defect
	// self is the command that starts Mangle.
	self []string
	mu   sync.Mutex
	// peers are the backends in order.
	peers  []*peer
	memory map[string][]byte
	reg    *ahp.Registration
}

// Main runs the harness with a defect (the zero one is none) over the two files
// that the environment names, and returns the exit code. self is a command which,
// followed by more arguments, calls Mangle with those.
func Main(d Defect, self []string) int {
	s := &session{Defect: d, self: self, memory: map[string][]byte{}}
	if err := s.play(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "harness:", err)
		return 2
	}
	return 0
}

func (s *session) play(ctx context.Context) error {
	doc, err := os.ReadFile(os.Getenv("AHP_CONFORM_REGISTRATION"))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(os.Getenv("AHP_CONFORM_CALLS"))
	if err != nil {
		return err
	}
	var calls []boundary.ToolCall
	for line := range bytes.Lines(text) {
		call, err := boundary.ParseCall(line)
		if err != nil {
			return err
		}
		calls = append(calls, call)
	}
	if s.conduct.chatty {
		fmt.Fprintln(os.Stderr, "token:", os.Getenv("AHP_CONFORM_TOKEN"))
	}
	free := s.conduct.unasked
	var o object
	if strictjson.Unmarshal(doc, &o, strictjson.Options{}) == nil {
		free = free || s.forgives != nil && s.forgives(o)
	}
	if free {
		for _, call := range calls {
			if _, err := s.shell(ctx, call.Input); err != nil {
				fmt.Println(err)
			}
		}
		return nil
	}
	return s.guarded(ctx, doc, calls)
}

// guarded makes the calls as a harness should, but for the defect.
func (s *session) guarded(ctx context.Context, doc []byte, calls []boundary.ToolCall) error {
	if s.rejects != nil && s.rejects(string(doc)) {
		return errors.New("a registration that isn't taken")
	}
	if s.doc != nil {
		doc = edited(doc, s.doc)
	}
	reg, err := ahp.DecodeRegistration(doc)
	if err != nil {
		return err
	}
	if found := ahp.LintSecrets(doc); len(found) > 0 {
		return found[0]
	}
	s.reg = reg
	// A slow machine gets time, but where an observer is meant to hang.
	patience := 10 * time.Second
	if s.blind() {
		patience = 400 * time.Millisecond
	}
	h, err := harness.New(reg, harness.Options{Manifest: manifest(), Open: s.open, ObserveTimeout: patience, CloseTimeout: patience})
	if err != nil {
		return err
	}
	defer h.Close()
	b, err := boundary.New(h, boundary.Options{
		Source: "urn:abhed:broken-harness", Session: &ahp.Session{ID: "one"}, OnMessage: func(text string) { fmt.Println(text) },
		Approve: func(context.Context, boundary.Approval) (bool, error) { return s.conduct.generous, nil },
	})
	if err != nil {
		return err
	}
	if _, err := b.Start(ctx, boundary.SessionStart{Harness: ahp.HarnessInfo{Name: "broken", Version: "1"}, PermissionMode: "default"}); err != nil {
		return err
	}
	for _, call := range calls {
		stop, err := s.call(ctx, b, call)
		if err != nil {
			return err
		}
		if stop {
			break
		}
	}
	return b.End(ctx, "completed", "no more calls", nil)
}

// call makes one call, and reports whether it is the last.
func (s *session) call(ctx context.Context, b *boundary.Boundary, call boundary.ToolCall) (stop bool, err error) {
	run := func(ctx context.Context, input ahp.Raw) (boundary.ToolOutput, error) {
		if s.conduct.anxious && s.blind() {
			return boundary.ToolOutput{}, &boundary.Refusal{Reason: "nobody decided"}
		}
		return s.shell(ctx, input)
	}
	if s.conduct.eager {
		out, err := s.shell(ctx, call.Input)
		run = func(context.Context, ahp.Raw) (boundary.ToolOutput, error) { return out, err }
	}
	r, err := b.Tool(ctx, call, run)
	if err != nil {
		return false, err
	}
	if !s.conduct.mute {
		fmt.Println(r.Status, r.Reason)
	}
	if s.conduct.stubborn && r.Status == boundary.Denied && r.Reason != harness.SyntheticReason {
		_, err = s.shell(ctx, call.Input)
	}
	return r.Stop, err
}

// blind reports whether no backend decides anything.
func (s *session) blind() bool {
	for i := range s.reg.Hooks {
		for j := range s.reg.Hooks[i].Subscriptions {
			if s.reg.Hooks[i].Subscriptions[j].Mode == ahp.ModeIntercept {
				return false
			}
		}
	}
	return true
}

// grace is how long a process may take to end: little, because many are made to
// hang. Where some are only told, and have said nothing yet, they may not even have
// begun to read.
func (s *session) grace() time.Duration {
	if s.blind() {
		return 200 * time.Millisecond
	}
	for i := range s.reg.Hooks {
		for j := range s.reg.Hooks[i].Subscriptions {
			if s.reg.Hooks[i].Subscriptions[j].Mode == ahp.ModeObserve {
				return 5 * time.Second
			}
		}
	}
	return 200 * time.Millisecond
}

// shell is the only tool, with a rule of its own: an input holds a command and
// nothing else.
func (s *session) shell(ctx context.Context, input ahp.Raw) (boundary.ToolOutput, error) {
	var o object
	err := strictjson.Unmarshal(input, &o, strictjson.Options{})
	command, _ := o["command"].(string)
	if err != nil || command == "" || len(o) != 1 && !s.conduct.lawless {
		return boundary.ToolOutput{}, &boundary.Refusal{Reason: "the input isn't a command and nothing else"}
	}
	out, err := exec.CommandContext(ctx, "/bin/sh", "-c", command).CombinedOutput()
	return boundary.ToolOutput{Text: strings.ToValidUTF8(string(out), "?")}, err
}

// manifest offers everything that may be offered at a tool call, so that a suite
// has something to look at.
func manifest() *ahp.Manifest {
	m := boundary.Manifest()
	for i := range m.Events {
		if m.Events[i].Event == ahp.ToolBefore {
			m.Events[i].Capabilities.Effects = append(m.Events[i].Capabilities.Effects, ahp.EffectAllow)
		}
	}
	return m
}

// open connects to a backend, through what the defect does to the wire.
func (s *session) open(b *ahp.Backend) (transport.Transport, error) {
	var t transport.Transport
	var err error
	if b.Transport.Type == ahp.TransportHTTP {
		opts := httptransport.Options{LookupEnv: s.wire.lookup}
		if s.wire.trip != nil {
			opts.Client = s.wire.client()
		}
		t, err = httptransport.New(b, opts)
	} else {
		cfg := b.Transport
		if s.wire.mangle != "" {
			cfg.Args = append(append(append([]string{}, s.self[1:]...), s.wire.mangle, cfg.Command), cfg.Args...)
			cfg.Command = s.self[0]
		}
		opts := transport.StdioOptions{Name: b.ID, Backoff: 10 * time.Millisecond, Grace: s.grace()}
		if s.wire.environ {
			opts.Env = os.Environ()
		}
		t, err = transport.Stdio(cfg, opts)
	}
	if err != nil {
		return nil, err
	}
	p := &peer{Transport: t, s: s, backend: b, place: len(s.peers)}
	s.peers = append(s.peers, p)
	return p, nil
}
