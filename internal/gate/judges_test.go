package gate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/policy"
)

// judged gives the rig a compiled-in hook that objects by the command.
func (r *rig) judged(name string, judge func(command string) policy.Objection) *[]string {
	var asked []string
	r.opts.Hooks = append(r.opts.Hooks, gate.Hook{Name: name, Judge: func(_ context.Context, c policy.Call, d policy.Declaration) policy.Objection {
		asked = append(asked, d.Subject)
		o := judge(d.Subject)
		for i := range c.Args { // it can't change what was judged
			c.Args[i] = 'x'
		}
		c.Roots[0] = "/"
		return o
	}})
	return &asked
}

var nobody = policy.Source{Kind: "gate", Name: "rules"}

func TestCompiledInHooksObject(t *testing.T) {
	r := newRig(t)
	r.env.Mode = policy.ModeBypass
	r.rules.Deny = rules("bash(bad)")
	p := &person{answer: yes}
	r.opts.Approver = p
	asked := r.judged("mine", func(c string) policy.Objection {
		switch c {
		case "push":
			return policy.ObjectDeny(nobody, "no pushing", "mine.push")
		case "deploy":
			return policy.ObjectAsk(nobody, "sure?", "")
		case "panic":
			panic("boom")
		case "bad":
			return policy.NoObjection(nobody)
		}
		return policy.Objection{}
	})
	r.runs("bash", `{"command":"ls"}`)
	if got := r.ran[0]; got != `bash {"command":"ls"}` {
		t.Errorf("what ran is %s", got)
	}
	r.refused("hook", "refused by hook mine. Reason: no pushing.", "bash", `{"command":"push"}`)
	d := last[*event.Decision](r.log)
	if d.Code != "mine.push" || len(d.Asked) != 1 || d.Asked[0].Kind != "hook" || d.Asked[0].Name != "mine" || d.Asked[0].Answer != "deny" || d.Asked[0].Round != 1 {
		t.Errorf("%+v", d)
	}
	r.runs("bash", `{"command":"deploy"}`)
	if len(p.asked) != 1 || p.asked[0].SessionOffered || p.asked[0].Why[0] != "hook mine: sure?" {
		t.Errorf("%+v", p.asked)
	}
	r.refused("hook", "failed while it judged", "bash", `{"command":"panic"}`)
	if d := last[*event.Decision](r.log); d.Asked[0].Answer != "failed" || !strings.Contains(d.Asked[0].Reason, "boom") {
		t.Errorf("%+v", d.Asked)
	}
	r.refused("rules", "deny rule", "bash", `{"command":"bad"}`)
	if fmt.Sprint(*asked) != "[ls push deploy panic bad]" {
		t.Errorf("asked about %v", *asked)
	}
}

// TestCompiledInHooksJudgeRewrites holds that they are asked in every round: about
// what extensions made of a call, and what backends did.
func TestCompiledInHooksJudgeRewrites(t *testing.T) {
	r := newRig(t)
	r.env.Mode = policy.ModeBypass
	asked := r.judged("mine", func(c string) policy.Objection {
		if c == "good" {
			return policy.ObjectDeny(nobody, "not good", "")
		}
		return policy.Objection{}
	})
	r.extensions(r.script("fix", `*'"command":"a"'*'"round":1'*) echo '{"args":{"command":"good"}}' ;;`))
	r.refused("hook", "not good", "bash", `{"command":"a"}`)
	r.opts.Extensions, r.gate = nil, nil
	r.serve("fail-closed", on("one", ahp.ToolBefore, modifyGood))
	r.refused("hook", "not good", "bash", `{"command":"b"}`)
	if fmt.Sprint(*asked) != "[a good b good]" {
		t.Errorf("asked about %v", *asked)
	}
	if d := last[*event.Decision](r.log); d.Asked[len(d.Asked)-1].Round != 4 {
		t.Errorf("%+v", d.Asked)
	}
}

// I015: nothing runs before who is asked has answered; with no objection it runs after.
// How it is with each kind of tool see TestNothingRunsBeforeItIsJudged.
func TestI015ToolsStartAfterTheHooks(t *testing.T) {
	r := newRig(t)
	r.env.Mode = policy.ModeBypass
	asked := r.judged("slow", func(c string) policy.Objection {
		<-time.After(20 * time.Millisecond)
		if len(r.ran) > 0 {
			t.Errorf("%s ran before it was judged", c)
		}
		if c == "bad" {
			return policy.ObjectDeny(nobody, "no", "")
		}
		return policy.Objection{}
	})
	r.refused("hook", "Reason: no.", "bash", `{"command":"bad"}`)
	r.runs("bash", `{"command":"fine"}`)
	if len(*asked) != 2 || len(r.ran) != 1 {
		t.Errorf("asked about %v, ran %v", *asked, r.ran)
	}
}

// I026, I028: what a hook refuses for a sub-agent isn't read, and the reason reaches
// the model as the call's result.
func TestI028ReasonReachesTheModel(t *testing.T) {
	r := newRig(t)
	guard, log := r.heard("guard", "tool_call", `{"block":true,"reason":"use make fmt"}`)
	r.extensions(guard)
	r.gate = r.sub(gate.New(r.opts), 1, "")
	r.refused("extension", "Reason: use make fmt.", "read", `{"path":"a.go"}`)
	if !strings.Contains(log(), `"path":"a.go"`) || len(r.ran) > 0 {
		t.Errorf("the extension read %q, ran %v", log(), r.ran)
	}
	text := "Not run: refused by extension guard. Reason: use make fmt."
	f, err := r.gate.Finish(t.Context(), agent.Outcome{Call: policy.Call{ID: "c1", Tool: "read", Args: []byte(`{}`)}, Kind: "denied", Content: text, IsError: true})
	if err != nil || f.Content != text || !f.IsError {
		t.Errorf("the model reads %+v, %v", f, err)
	}
}

// I031: of a call that is rewritten and asked about the person sees the rewritten
// text, and exactly that runs. The sibling: so it is with a rewrite by a backend.
func TestI031RewriteAndAsk(t *testing.T) {
	for _, backend := range []bool{false, true} {
		r := newRig(t)
		r.env.Mode = policy.ModeBypass
		var q control.Question
		r.opts.Approver = &person{answer: func(asked control.Question) (control.Decision, error) { q = asked; return yes(asked) }}
		if backend {
			r.serve("fail-closed", on("one", ahp.ToolBefore, modifyGood, `{"type":"ask"}`))
		} else {
			r.extensions(r.script("fix", `*'"command":"ls"'*) echo '{"ask":true,"reason":"sure?","args":{"command":"good"}}' ;;`))
		}
		r.runs("bash", `{"command":"ls"}`)
		if q.Args != `{"command":"good"}` || q.Original != `{"command":"ls"}` || len(r.ran) != 1 || r.ran[0] != `bash {"command":"good"}` {
			t.Errorf("backend %t: asked %+v, ran %v", backend, q, r.ran)
		}
		if p := last[*event.ApprovalRequested](r.log); p.Args != q.Args || p.Original != q.Original || p.Hash != q.Hash {
			t.Errorf("recorded %+v", p)
		}
	}
}
