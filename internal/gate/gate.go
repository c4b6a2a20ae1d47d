// Package gate decides every tool call, on every surface (gate.md).
//
// It guarantees that no extension, no backend and no compiled-in hook makes a verdict
// less strict, whatever it answers and in whatever order they are configured; that a
// rewritten call is judged as rewritten and as the model made it, the stricter
// counting; that a decision is on disk before its permit exists; that a permit is for
// exactly the call that was judged; that whoever judges the main agent judges its
// sub-agents too; and that a question is on disk before a person is asked, one at a
// time in a session.
//
// Do not assume that a call that was allowed also ran: the loop redeems the
// permit, and the record holds the outcome. Do not assume that a picture was
// reviewed: extensions see the text that it came with.
package gate

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/tool"
)

// Options is what a gate works with.
type Options struct {
	// Tools, Minter, Rules and Log are required. Rules is called for every
	// evaluation, so that a rule set that changes holds at once.
	Tools  *tool.Registry
	Minter *tool.Minter
	Rules  func() *Rules
	Log    agent.Log
	// Extensions and Backends may be nil: there are none.
	Extensions *extension.Host
	Backends   *Backends
	// Hooks judge beside the extensions.
	Hooks []Hook
	// Approver asks a person; nil means that nobody can be asked, and a question is
	// a denial.
	Approver control.Approver
	// ApprovalTimeout bounds the wait for a person; zero means 10 minutes.
	ApprovalTimeout time.Duration
	// Session, Agent and Roots are facts of every call.
	Session string
	Agent   policy.Agent
	Roots   []string
	// Model is the provider/model that events name; "" is that of Backends.
	Model string
	// Parent is the gate of the agent that started this one, nil for the main agent.
	// Then Extensions, Backends, Hooks, Approver, ApprovalTimeout and Session are the
	// parent's, whatever is here, and so are the approvals for the session: none of
	// them is less strict for a sub-agent.
	Parent *Gate
	// ParentCall is the id of the parent's call that started the agent, if known.
	ParentCall string
	// Now tells the time; nil means the clock.
	Now func() time.Time
}

// Gate is the one judge of an agent of a session. It is safe for concurrent use; a
// person is asked one question at a time, whichever agent it is about.
type Gate struct {
	o       Options
	shared  *shared
	parents parents
	model   atomic.Pointer[string] // nil is that of the parent, or of the backends

	mu       sync.Mutex
	injected map[string]waiting // by call id
	prompts  []string           // what the person said lately, the newest last

	chosen    []*model.Message // what extensions kept of the conversation last
	chosenIDs []string
}

// shared is what the gates of all agents of a session have together.
type shared struct {
	asking chan struct{} // has one element while a person is asked

	mu        sync.Mutex
	approvals map[string]bool // hashes of calls approved for the session
	rulesSeen map[string]bool // hashes of rule sets already in the record
}

// ask waits until nobody else asks the person. False means that ctx ended before;
// else done must be called.
func (s *shared) ask(ctx context.Context) (done func(), ok bool) {
	select {
	case s.asking <- struct{}{}:
		return func() { <-s.asking }, true
	case <-ctx.Done():
		return nil, false
	}
}

var _ agent.Gate = (*Gate)(nil)

// New returns a gate; it panics if a required option is missing.
func New(o Options) *Gate {
	if o.Tools == nil || o.Minter == nil || o.Rules == nil || o.Log == nil {
		panic("gate: Tools, Minter, Rules and Log are required")
	}
	common := &shared{asking: make(chan struct{}, 1), approvals: map[string]bool{}, rulesSeen: map[string]bool{}}
	if p := o.Parent; p != nil {
		common = p.shared
		o.Extensions, o.Backends, o.Hooks, o.Approver = p.o.Extensions, p.o.Backends, p.o.Hooks, p.o.Approver
		o.ApprovalTimeout, o.Session = p.o.ApprovalTimeout, p.o.Session
	}
	if o.ApprovalTimeout == 0 {
		o.ApprovalTimeout = 10 * time.Minute
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	g := &Gate{o: o, shared: common, injected: map[string]waiting{}}
	if o.Model != "" {
		g.model.Store(&o.Model)
	}
	return g
}

// SetModel makes name the provider/model that events name from now on.
func (g *Gate) SetModel(name string) {
	g.model.Store(&name)
	if g.o.Parent == nil && g.o.Backends != nil {
		g.o.Backends.model.Store(&name)
	}
}

// Judge decides one call (gate.md §2). The decision is in the record when it
// returns.
func (g *Gate) Judge(ctx context.Context, p agent.Proposal) agent.Ruling {
	g.parents.enter(p.TurnID)
	j := newJudgement(g, p)
	ruling := j.judge(ctx)
	j.resolved(ctx, ruling)
	return ruling
}

func newJudgement(g *Gate, p agent.Proposal) *judgement {
	j := &judgement{g: g, p: p, began: g.o.Now()}
	j.d = event.Decision{
		Turn: p.Turn, CallID: p.Call.ID, Tool: p.Call.Name, AgentID: g.o.Agent.ID, Depth: g.o.Agent.Depth,
		WorkDir: p.WorkDir, Roots: g.o.Roots,
	}
	j.call = policy.Call{
		ID: p.Call.ID, Tool: p.Call.Name, WorkDir: p.WorkDir, Roots: g.o.Roots,
		Session: g.o.Session, Turn: p.Turn, Agent: g.o.Agent,
	}
	return j
}

func (j *judgement) judge(ctx context.Context) agent.Ruling {
	if ruling := j.arguments(); ruling != nil {
		return ruling
	}
	j.askExtensions(ctx)
	j.askBackends(ctx)
	if ctx.Err() != nil {
		return j.cancelled()
	}
	if err := j.evaluate(); err != nil {
		return &agent.Broken{Err: err}
	}
	return j.settle(ctx)
}

// judgement is the state of judging one call; it belongs to one goroutine.
type judgement struct {
	g     *Gate
	p     agent.Proposal
	began time.Time
	impl  tool.Tool

	call     policy.Call // with the effective arguments
	decl     policy.Declaration
	original policy.Call // with the model's arguments
	origDecl policy.Declaration

	objections []policy.Objection
	refusedAt  string // step of the first refusal before the rules
	stop       *stopped
	candidate  *candidate
	requested  string // id of the permission request's event

	rules         *Rules
	onOriginal    policy.Result
	onFinal       policy.Result
	verdict       policy.Verdict
	matchedByName map[string]bool // extensions whose match fitted in some round

	d event.Decision
}

type stopped struct{ by, reason string }

type candidate struct{ by, content string }

// arguments is step 1: nobody is asked about a call that can't be understood.
func (j *judgement) arguments() agent.Ruling {
	impl, ok := j.g.o.Tools.Lookup(j.p.Call.Name)
	args := []byte(j.p.Call.Args)
	if len(args) == 0 {
		args = []byte("{}") // several APIs send nothing for a call without arguments
	}
	canon, err := j.g.o.Tools.Check(j.p.Call.Name, args)
	if err != nil || !ok {
		j.d.ArgsText = tool.Clean(cut(j.p.Call.Args, 4096))
		return j.refuse("args", "args", err.Error(), "invalid_arguments")
	}
	spec := impl.Spec()
	j.impl = impl
	j.call.ToolVersion, j.d.ToolVersion = spec.Version, spec.Version
	j.call.Args = canon
	j.decl = impl.Declare(canon)
	j.original, j.origDecl = j.call, j.decl
	j.d.Original, j.d.OriginalHash = event.Raw(canon), j.call.Hash()
	return nil
}

// rewrite makes args the effective arguments after checking them as step 1 does.
// by names who rewrote, for the refusal.
func (j *judgement) rewrite(args []byte, by string) bool {
	canon, err := j.g.o.Tools.Check(j.call.Tool, args)
	if err != nil {
		j.object(policy.ObjectDeny(policy.Source{Kind: "gate", Name: "args"}, "rewritten by "+by+": "+err.Error(), "invalid_rewrite"), "args")
		return false
	}
	j.call.Args = canon
	j.decl = j.impl.Declare(canon)
	return true
}

// object adds an objection; step is what a refusal of it will be recorded under.
func (j *judgement) object(o policy.Objection, step string) {
	j.objections = append(j.objections, o)
	if o.Denies() && j.refusedAt == "" {
		j.refusedAt = step
	}
}

func (j *judgement) denied() bool { return j.refusedAt != "" }

// evaluate is step 4: the rules on the original and on the final arguments.
func (j *judgement) evaluate() error {
	j.rules = j.g.o.Rules()
	if err := j.recordRules(); err != nil {
		return err
	}
	j.onOriginal = j.rules.evaluate(j.original, j.origDecl)
	j.onFinal = j.onOriginal
	if !j.unchanged() {
		j.onFinal = j.rules.evaluate(j.call, j.decl)
	}
	j.verdict = policy.Join(j.onFinal.Verdict, j.objections, j.onOriginal.Verdict)
	return nil
}

func (j *judgement) unchanged() bool { return string(j.call.Args) == string(j.original.Args) }

// recordRules stores a rule set in the record the first time that it judges.
func (j *judgement) recordRules() error {
	s := j.g.shared
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rulesSeen[j.rules.hash] {
		return nil
	}
	d := event.Draft{Actor: event.ActorGate, Trust: event.TrustHarness, Payload: &event.RulesSet{Hash: j.rules.hash, Rules: j.rules.doc}}
	if _, err := j.g.o.Log.Append(d); err != nil {
		return err
	}
	s.rulesSeen[j.rules.hash] = true
	return nil
}

// raw encodes a rule result for the record.
func raw(r policy.Result) event.Raw {
	b, err := strictjson.Marshal(r)
	if err != nil {
		return event.Raw("null")
	}
	return b
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}
