package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/ahpconfig"
	"github.com/abhed/abhed/internal/chain"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/sandbox"
	"github.com/abhed/abhed/internal/session"
	"github.com/abhed/abhed/internal/tool"
)

// mainAgent identifies the agent that a person talks to.
const mainAgent = "main"

// buildOptions is what an engine is built from.
type buildOptions struct {
	loaded       *loaded
	model        model.Client
	systemAppend string
	onEvent      func(event.Event)
	onText       func(string)
	resume       string
	resumeNewest bool

	acceptUnsigned, acceptBroken bool
}

// engine is one session with everything that belongs to it.
type engine struct {
	o        buildOptions
	sys      System
	plan     sandbox.Plan
	tmp      string
	warnings []string
	log      *session.Session
	state    *session.State
	resumed  *session.ResumeInfo
	ext      *extension.Host
	backends *gate.Backends
	// measuring is nil unless telemetry is configured.
	measuring *measuring

	registered *ahpconfig.Loaded
	gate       *gate.Gate
	tools      *tool.Registry
	rules      *gate.Rules
	ruleset    *policy.Ruleset
	matchers   []*matcher
	denied     func(path string) bool // what searches leave out, nil if nothing
	holding    *holding               // what commands may not make or change
	absent     []string               // watched files that weren't there before the command
	abort      func(cause error)      // ends the run
	loop       *agent.Loop
	system     string
	key        *chain.Key     // of the installation
	closers    []func() error // in the order of opening
}

// build puts an engine together. What was opened before an error is closed again.
func build(ctx context.Context, o buildOptions, sys System) (*engine, error) {
	e := &engine{o: o, sys: sys}
	for _, step := range []func(context.Context) error{
		e.openSandbox, e.openRecord, e.startTelemetry, e.readRegistrations, e.startExtensions, e.makeTools, e.makeRules, e.startBackends, e.begin,
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

func (e *engine) onClose(f func() error) { e.closers = append(e.closers, f) }

// openSandbox finds the strongest tier and holds it against the settings.
func (e *engine) openSandbox(ctx context.Context) error {
	l := e.o.loaded
	tier, err := sandbox.ParseTier(l.Sandbox.MinTier)
	if err != nil {
		return err
	}
	if e.plan, err = sandbox.Detect(ctx).Plan(tier); err != nil {
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
	return nil
}

// network reports whether commands have the network: they have it in any case
// where nothing confines them.
func (e *engine) network() bool {
	return e.o.loaded.Sandbox.Network || e.plan.Tier() == sandbox.TierNone
}

// openRecord opens the record of a new session or of the one to go on with.
func (e *engine) openRecord(context.Context) error {
	values, warnings, err := secrets(e.o.loaded, e.sys)
	if err != nil {
		return err
	}
	e.warnings = append(e.warnings, warnings...)
	dir := e.sys.stateDir()
	if dir == "" {
		return errors.New("there is no place for the record: neither XDG_STATE_HOME nor HOME is an absolute path")
	}
	store, err := session.OpenStore(dir, session.Options{Secrets: values})
	if err != nil {
		return &operationalError{err}
	}
	e.key = store.Key()
	if err := e.resumeOrCreate(store); err != nil {
		return err
	}
	e.onClose(e.log.Close)
	if e.o.onEvent != nil {
		e.log.Subscribe(e.o.onEvent)
	}
	return nil
}

func (e *engine) resumeOrCreate(store *session.Store) error {
	id, workspace := e.o.resume, e.o.loaded.workspace
	if e.o.resumeNewest {
		infos, err := store.ListWorkspace(workspace)
		if err != nil {
			return &operationalError{err}
		}
		if len(infos) == 0 {
			return fmt.Errorf("there is no session of the workspace %s to go on with", workspace)
		}
		id = infos[0].ID
	}
	var err error
	if id == "" {
		if e.log, err = store.Create(workspace, session.CreateOptions{}); err != nil {
			return &operationalError{err}
		}
		e.state = &session.State{}
		return nil
	}
	if err := sameWorkspace(store, id, workspace); err != nil {
		return err
	}
	var info session.ResumeInfo
	e.log, e.state, info, err = store.Resume(id, session.ResumeOptions{AcceptUnsigned: e.o.acceptUnsigned, AcceptBroken: e.o.acceptBroken})
	e.resumed = &info
	return err
}

// sameWorkspace refuses to go on in another workspace than the session's: its
// history speaks of other files.
func sameWorkspace(store *session.Store, id, workspace string) error {
	file, err := store.Find(id)
	if err != nil {
		return err
	}
	infos, err := store.List()
	if err != nil {
		return &operationalError{err}
	}
	for _, i := range infos {
		if i.Path == file && i.Root != "" && i.Root != workspace {
			return fmt.Errorf("session %s belongs to the workspace %s, and this is %s; go on with -C %s", i.ID, i.Root, workspace, i.Root)
		}
	}
	return nil
}

// startExtensions starts the configured extensions.
func (e *engine) startExtensions(ctx context.Context) error {
	l := e.o.loaded
	if len(l.Extensions) == 0 {
		return nil
	}
	configs, err := e.extensionConfigs()
	if err != nil {
		return err
	}
	e.ext, err = extension.Start(ctx, configs, extension.Options{
		SessionID: e.log.ID(), Taken: builtinNames(), Confine: e.confineExtension,
		Record: func(d event.Draft) error { _, err := e.log.Append(d); return err },
	})
	if err != nil {
		return err
	}
	e.onClose(func() error { e.ext.Close(); return nil })
	return nil
}

// makeTools builds the registry: the built-in tools, then the extensions'.
func (e *engine) makeTools(context.Context) error {
	tools, err := e.builtins()
	if err != nil {
		return err
	}
	e.onClose(e.holding.clear)
	if e.ext != nil {
		tools = append(tools, e.ext.Tools()...)
	}
	e.tools, err = tool.NewRegistry(tools...)
	return err
}

// begin makes gate and loop, and records what the session starts with.
func (e *engine) begin(context.Context) error {
	minter, verifier := tool.NewAuthority()
	l := e.o.loaded
	cost, err := price(l)
	if err != nil {
		return err
	}
	e.system = systemPrompt(l, e.network(), e.o.systemAppend)
	e.gate = gate.New(gate.Options{
		Tools: e.tools, Minter: minter, Rules: func() *gate.Rules { return e.rules }, Log: e.log,
		Extensions: e.ext, Backends: e.backends, Session: e.log.ID(), Agent: policy.Agent{ID: mainAgent}, Roots: l.roots,
	})
	if err := e.recordStart(); err != nil {
		return &operationalError{err}
	}
	workDir := l.workspace
	if e.state.WorkDir != "" && exists(e.state.WorkDir) {
		workDir = e.state.WorkDir
	}
	var hooks agent.Hooks // nil without backends, so that the loop builds nothing for them
	if e.backends != nil {
		hooks = e.gate
	}
	specs := toolSpecs(e.tools)
	e.loop = agent.New(agent.Options{
		Model: agent.Model{Client: e.o.model, Price: cost}, Gate: e.gate, Hooks: hooks, Exec: tool.NewExecutor(e.tools, verifier), Log: e.log, System: e.system, Tools: func() []model.ToolSpec { return specs },
		Limits: agent.Limits{Turns: int(l.Limits.MaxTurns), Tokens: l.Limits.MaxTokens, CostUSD: l.Limits.MaxCostUSD, Time: time.Duration(l.Limits.MaxSeconds) * time.Second},
		OnDelta: func(d control.Delta) {
			if d.Kind == "text" && e.o.onText != nil {
				e.o.onText(d.Text)
			}
		},
		Retry: e.sys.Retry,
		WorkDir: workDir, History: e.state.Messages, Later: e.state.Later, Turn: e.state.Turns,
	})
	return nil
}

func toolSpecs(r *tool.Registry) []model.ToolSpec {
	var specs []model.ToolSpec
	for _, s := range r.Specs() {
		specs = append(specs, model.ToolSpec{Name: s.Name, Description: s.Description, Schema: s.Schema})
	}
	return specs
}

// recordStart records the situation of now, and everything that a reader should
// know about it.
func (e *engine) recordStart() error {
	l := e.o.loaded
	var names []string
	for _, s := range e.tools.Specs() {
		names = append(names, s.Name)
	}
	started := event.SessionStarted{
		Version: e.sys.Version, Workspace: l.workspace, Roots: l.roots, Model: e.o.model.Name(), Mode: l.Permissions.Mode,
		Tier: e.plan.Tier().String(), Network: e.network(), NotProtected: e.plan.Gaps(), System: e.system, Tools: names,
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

// run does one prompt and records the end of the run.
func (e *engine) run(ctx context.Context, prompt string) agent.Result {
	ctx, end := e.traced(ctx)
	defer end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	e.abort = cancel
	given, err := e.sessionStarted(ctx)
	res := agent.Result{Reason: agent.ReasonError}
	if err != nil {
		res.Detail = "the session was not started: " + err.Error()
	} else {
		res = e.loop.Run(ctx, agent.Prompt{Text: prompt, Given: given})
	}
	e.sessionEnded(ctx, res)
	ended := &event.SessionEnded{Reason: string(res.Reason), Detail: res.Detail, Turns: res.Turns, Usage: &res.Usage}
	if _, err := e.log.AppendDurable(system(ended)); err != nil && res.Reason != agent.ReasonError {
		res.Reason, res.Detail = agent.ReasonError, err.Error()
	}
	return res
}
