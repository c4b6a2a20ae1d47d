package gate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/tool"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(tableVar); file != "" {
		extensionMain(file, os.Args[1])
		return
	}
	goleak.VerifyTestMain(m)
}

// fakeTool is a tool with one string argument, its subject.
type fakeTool struct {
	name    string
	member  string
	kind    policy.SubjectKind
	mutates bool
	ran     *[]string
}

func (f fakeTool) Spec() tool.Spec {
	return tool.Spec{Name: f.name, Version: "1", Schema: fmt.Appendf(nil,
		`{"type":"object","properties":{%q:{"type":"string"},"description":{"type":"string"},"n":{"type":"integer"}},"required":[%q],"additionalProperties":false}`, f.member, f.member)}
}

func (f fakeTool) Declare(args []byte) policy.Declaration {
	var m map[string]any
	_ = strictjson.Unmarshal(args, &m, strictjson.Options{})
	s, _ := m[f.member].(string)
	return policy.Declaration{Kind: f.kind, Subject: s, Mutates: f.mutates}
}

func (f fakeTool) Run(_ context.Context, g tool.Grant) (tool.Result, error) {
	*f.ran = append(*f.ran, f.name+" "+string(g.Args()))
	return tool.OK("ran"), nil
}

// memLog keeps the record in memory.
type memLog struct {
	mu     sync.Mutex
	events []event.Payload
	fail   func(event.Payload) error
}

func (l *memLog) Append(d event.Draft) (event.Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		if err := l.fail(d.Payload); err != nil {
			return event.Event{}, err
		}
	}
	l.events = append(l.events, d.Payload)
	return event.Event{Payload: d.Payload}, nil
}

func (l *memLog) AppendDurable(d event.Draft) (event.Event, error) { return l.Append(d) }
func (l *memLog) Sign() error                                      { return nil }

// last returns the newest payload of a type.
func last[P event.Payload](l *memLog) P {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.events) - 1; i >= 0; i-- {
		if p, ok := l.events[i].(P); ok {
			return p
		}
	}
	var none P
	return none
}

// rig is a gate with fake tools and real rules in a temporary workspace.
type rig struct {
	t     *testing.T
	dir   string
	ran   []string
	log   *memLog
	exec  *tool.Executor
	gate  *gate.Gate
	rules policy.RuleLists
	env   policy.Env
	opts  gate.Options
	known policy.Known
	h     *harness.Harness // of subscribed
	calls int
}

func newRig(t *testing.T) *rig {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, dir: dir, log: &memLog{}, env: policy.Env{Mode: policy.ModeDefault}}
	r.known = policy.Known{Tools: map[string]policy.SubjectKind{}}
	var tools []tool.Tool
	for _, f := range []fakeTool{
		{"bash", "command", policy.SubjectCommand, true, &r.ran},
		{"read", "path", policy.SubjectPath, false, &r.ran},
		{"write", "path", policy.SubjectPath, true, &r.ran},
	} {
		tools = append(tools, f)
		r.known.Tools[f.name] = f.kind
	}
	reg, err := tool.NewRegistry(tools...)
	if err != nil {
		t.Fatal(err)
	}
	minter, verifier := tool.NewAuthority()
	r.exec = tool.NewExecutor(reg, verifier)
	r.opts = gate.Options{
		Tools: reg, Minter: minter, Log: r.log, Session: "s1", Agent: policy.Agent{ID: "main"}, Roots: []string{dir},
		Rules: r.current,
	}
	return r
}

// current compiles the rig's rules anew, as a gate sees a change at once.
func (r *rig) current() *gate.Rules {
	set, problems := policy.Compile(r.rules, r.known)
	if set == nil {
		r.t.Fatalf("rules: %v", problems)
	}
	g, err := gate.NewRules(set, r.env)
	if err != nil {
		r.t.Fatal(err)
	}
	return g
}

func rules(texts ...string) []policy.RuleText {
	var out []policy.RuleText
	for _, s := range texts {
		out = append(out, policy.RuleText{Text: s, Origin: policy.Origin{File: "test"}})
	}
	return out
}

// judge asks the gate about a call.
func (r *rig) judge(name, args string) agent.Ruling {
	r.t.Helper()
	if r.gate == nil {
		r.gate = gate.New(r.opts)
	}
	r.calls++
	return r.gate.Judge(r.t.Context(), agent.Proposal{
		Turn: 1, WorkDir: r.dir, Call: &model.ToolCall{ID: fmt.Sprintf("c%d", r.calls), Name: name, Args: args},
	})
}

// runs asserts that the call is permitted, and runs it with its permit.
func (r *rig) runs(name, args string) {
	r.t.Helper()
	ruling := r.judge(name, args)
	run, ok := ruling.(*agent.Run)
	if !ok {
		r.t.Fatalf("%s %s: got %s, want a permit", name, args, show(ruling))
	}
	if _, err := r.exec.Run(r.t.Context(), run.Permit, nil); err != nil {
		r.t.Fatal(err)
	}
}

// refused asserts that the call is refused at a step, with a text for the model.
func (r *rig) refused(step, text, name, args string) {
	r.t.Helper()
	before := len(r.ran)
	ruling := r.judge(name, args)
	refused, ok := ruling.(*agent.Refused)
	if !ok {
		r.t.Fatalf("%s %s: got %s, want a refusal", name, args, show(ruling))
	}
	d := last[*event.Decision](r.log)
	if d.Step != step || d.Outcome != "deny" {
		r.t.Errorf("%s %s: refused at step %q with outcome %q, want step %q", name, args, d.Step, d.Outcome, step)
	}
	if !strings.Contains(refused.Text, text) {
		r.t.Errorf("%s %s: the model reads %q, which lacks %q", name, args, refused.Text, text)
	}
	if len(r.ran) != before {
		r.t.Errorf("%s %s: it ran all the same", name, args)
	}
}

func show(r agent.Ruling) string { return fmt.Sprintf("%T %+v", r, r) }

// extensions starts extensions given as the body of a shell `case` over the
// request in $r.
func (r *rig) extensions(cfgs ...extension.Config) {
	r.t.Helper()
	h, err := extension.Start(r.t.Context(), cfgs, extension.Options{
		SessionID: "s1", Record: func(d event.Draft) error { _, err := r.log.Append(d); return err },
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(h.Close)
	r.opts.Extensions = h
}

func (r *rig) script(name, cases string) extension.Config {
	r.t.Helper()
	file := filepath.Join(r.t.TempDir(), name+".sh")
	text := "while IFS= read -r r; do case $r in\n" + cases + "\n*) echo '{}' ;;\nesac; done\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	return extension.Config{Name: name, Command: "sh", Args: []string{file}}
}

// person answers questions.
type person struct {
	asked  []control.Question
	answer func(control.Question) (control.Decision, error)
}

func (p *person) Approve(_ context.Context, q control.Question) (control.Decision, error) {
	p.asked = append(p.asked, q)
	return p.answer(q)
}

func yes(q control.Question) (control.Decision, error) {
	return control.Decision{Hash: q.Hash, Allow: true, Scope: event.ScopeOnce, By: "ann"}, nil
}
