package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/ahpconfig"
	"github.com/abhed/abhed/internal/chain"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/mcp"
	"github.com/abhed/abhed/internal/memory"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/script"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/sandbox"
	"github.com/abhed/abhed/internal/session"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/tool/bash"
	"github.com/abhed/abhed/internal/tool/todo"
)

// sandboxFile keeps in the state folder that the sandbox worked.
const sandboxFile = "sandbox"

// mainAgent identifies the agent that a person talks to.
const mainAgent = "main"

// buildOptions is what an engine is built from.
type buildOptions struct {
	loaded *loaded
	// model, tools and hooks are compiled in; nil model means the configured one.
	model model.Client
	tools []tool.Tool
	hooks []gate.Hook

	systemAppend string
	output       []byte // JSON Schema of the answer
	sink         control.Sink
	approver     control.Approver
	asker        control.Asker
	resume       string
	resumeNewest bool
	fork         bool
	forkAt       int64

	acceptUnsigned, acceptBroken bool
}

// engine is one session with everything that belongs to it.
type engine struct {
	o        buildOptions
	sys      System
	plan     sandbox.Plan
	tmp      string
	outputs  *os.Root // in tmp, opened before any command ran
	warnings []string
	log      *session.Session
	// id is the session's, record takes what its parts say of themselves. Where there is
	// no session nobody keeps it.
	id     string
	record func(event.Draft) error
	// afresh has the sandbox tried, whatever is remembered.
	afresh   bool
	state    *session.State
	resumed  *session.ResumeInfo
	model    agent.Model // of the main agent at the start
	ext      *extension.Host
	servers  *mcp.Host
	backends *gate.Backends
	// measuring is nil unless telemetry is configured.
	measuring *measuring

	registered   *ahpconfig.Loaded
	minter       *tool.Minter
	verifier     *tool.Verifier
	jobs         *bash.Jobs
	todos        *todo.Tool
	skills       []memory.Skill
	instructions *memory.Instructions
	memoryFiles  []string
	ruleset      *policy.Ruleset
	matchers     []*matcher
	modeNow      atomic.Uint32
	mainScope    *scope
	main         *worker
	ids          *agent.IDs
	serial       chan struct{} // full while a mutating call runs
	tuning       sync.Mutex    // held while the session is changed
	ear          *ear
	meter        meter
	given        []string // what backends gave for the first prompt
	refused      error    // why the session was not started
	origin       string   // the session that this is a fork of
	key          *chain.Key
	closers      []func() error // in the order of opening

	mu           sync.Mutex // guards what follows
	scopes       []*scope
	workers      map[string]*worker // sub-agents that run, by id
	agents       []*running         // all sub-agents, in order
	agentsBefore int                // of the session before it was resumed
	scripts      map[string]*script.Client
	abort        func(cause error) // ends what runs, nil if nothing does
	shutting     bool
}

// build puts an engine together. What was opened before an error is closed again.
func build(ctx context.Context, o buildOptions, sys System) (*engine, error) {
	e := &engine{o: o, sys: sys, workers: map[string]*worker{}, ids: &agent.IDs{}, serial: make(chan struct{}, 1)}
	for _, step := range []func(context.Context) error{
		e.openSandbox, e.openRecord, e.connectMain, e.startTelemetry, e.readRegistrations, e.startExtensions, e.startServers, e.makeTools, e.makeRules, e.firstMode, e.startBackends, e.begin,
	} {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, e.close())
		}
	}
	return e, nil
}

// close ends everything in reverse order and reports the first failure.
func (e *engine) close() error {
	var first error
	for _, c := range slices.Backward(e.closers) {
		if err := c(); err != nil && first == nil {
			first = err
		}
	}
	e.closers = nil
	return first
}

func (e *engine) onClose(f func() error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closers = append(e.closers, f)
}

// openSandbox finds the strongest tier and holds it against the settings.
func (e *engine) openSandbox(ctx context.Context) error {
	l := e.o.loaded
	tier, err := sandbox.ParseTier(l.Sandbox.MinTier)
	if err != nil {
		return err
	}
	if e.plan, err = sandbox.Detect(ctx, e.trials()).Plan(tier); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "abhed-")
	if err != nil {
		return &operationalError{fmt.Errorf("no temporary folder can be made: %w", err)}
	}
	if e.tmp, err = realDir(tmp); err != nil {
		return &operationalError{err}
	}
	e.onClose(func() error { return os.RemoveAll(e.tmp) })
	outputs := filepath.Join(e.tmp, "output") // commands can read there what was cut
	if err := os.Mkdir(outputs, 0o700); err != nil {
		return &operationalError{err}
	}
	if e.outputs, err = os.OpenRoot(outputs); err != nil {
		return &operationalError{err}
	}
	e.onClose(e.outputs.Close)
	return nil
}

// trials remembers in the state folder that the sandbox worked. The doctor looks anew.
func (e *engine) trials() sandbox.Memory {
	dir := e.sys.stateDir()
	if dir == "" || e.afresh {
		return sandbox.Memory{}
	}
	file := filepath.Join(dir, sandboxFile)
	return sandbox.Memory{
		Known: func(mark string) bool {
			data, err := readBounded(file, 1<<10)
			return err == nil && string(data) == mark
		},
		Worked: func(mark string) { // without it the next start tries again
			if os.MkdirAll(dir, 0o700) == nil {
				_ = os.WriteFile(file, []byte(mark), 0o600)
			}
		},
	}
}

// network reports whether commands have the network: they have it in any case
// where nothing confines them.
func (e *engine) network() bool {
	return e.o.loaded.Sandbox.Network || e.plan.Tier() == sandbox.TierNone
}

// connectMain makes the client of the main agent's model.
func (e *engine) connectMain(context.Context) (err error) {
	if err := e.o.loaded.CheckCAFile(os.ReadFile); err != nil {
		return err
	}
	e.model, err = e.connect("", "")
	return err
}

// startExtensions starts the configured extensions.
func (e *engine) startExtensions(ctx context.Context) error {
	l := e.o.loaded
	if len(l.Extensions) == 0 {
		return nil
	}
	var err error
	e.ext, err = extension.Start(ctx, e.extensionConfigs(), extension.Options{
		SessionID: e.id, Taken: builtinNames(), Confine: e.confineExtension, Record: e.record,
	})
	if err != nil {
		return err
	}
	e.onClose(func() error { e.ext.Close(); return nil })
	return nil
}

// begin makes gate and loop of the main agent, and records what the session starts
// with.
func (e *engine) begin(context.Context) error {
	e.minter, e.verifier = tool.NewAuthority()
	e.main.makeGate()
	e.main.system = e.systemPrompt()
	e.restoreTodos()
	if err := e.recordStart(); err != nil {
		return &operationalError{err}
	}
	l := e.o.loaded
	workDir := l.workspace
	if e.state.WorkDir != "" && inRoots(e.state.WorkDir, l.roots) && exists(e.state.WorkDir) {
		workDir = e.state.WorkDir
	}
	return e.main.makeLoop(loopState{
		workDir: workDir, history: e.state.Messages, first: e.state.First, newest: e.state.Newest, later: e.state.Later, stubbed: e.state.Stubbed, turn: e.state.Turns, model: e.model,
	})
}

// recordStart records the situation of now, and everything that a reader should
// know about it.
func (e *engine) recordStart() error {
	l := e.o.loaded
	var names []string
	for _, s := range e.main.tools.Specs() {
		names = append(names, s.Name)
	}
	started := event.SessionStarted{
		Version: e.sys.Version, Workspace: l.workspace, Roots: l.roots, Model: e.model.Client.Name(), Mode: e.mode().String(),
		Tier: e.plan.Tier().String(), Network: e.network(), NotProtected: e.plan.Gaps(), System: e.main.system, Tools: names, Memory: e.memoryFiles,
	}
	var first event.Payload = &started
	if e.resumed != nil {
		first = e.resumed.Resumed(started)
	}
	if _, err := e.log.AppendDurable(system(first)); err != nil {
		return err
	}
	for _, w := range append(l.notes(), e.warnings...) {
		if _, err := e.log.Append(system(&event.Notice{Level: "warning", Text: w})); err != nil {
			return err
		}
	}
	return nil
}

func system(p event.Payload) event.Draft {
	return event.Draft{Actor: event.ActorSystem, Trust: event.TrustHarness, Payload: p}
}
