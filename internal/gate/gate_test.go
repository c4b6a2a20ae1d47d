package gate_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/policy"
)

func TestRulesDecide(t *testing.T) {
	r := newRig(t)
	r.rules = policy.RuleLists{Deny: rules("bash(curl *)"), Ask: rules("bash(make *)"), Allow: rules("bash(echo *)")}
	r.runs("read", `{"path":"a.txt"}`)
	r.runs("bash", `{"command":"echo hi"}`)
	r.refused("rules", "deny rule bash(curl *) (test)", "bash", `{"command":"echo hi && curl http://x"}`)
	r.refused("headless", "Nobody can be asked", "bash", `{"command":"make all"}`)
	r.refused("headless", "outside the roots", "read", `{"path":"/etc/passwd"}`)
	d := last[*event.Decision](r.log)
	if d.RulesHash == "" || d.RulesHash != last[*event.RulesSet](r.log).Hash {
		t.Errorf("the decision names rule set %q, the record holds %q", d.RulesHash, last[*event.RulesSet](r.log).Hash)
	}
}

func TestArgumentsAskNobody(t *testing.T) {
	r := newRig(t)
	asked := filepath.Join(r.dir, "asked")
	r.extensions(r.script("nosy", `*'"tool_call"'*) touch `+asked+`; echo '{}' ;;`))
	r.refused("args", "There is no tool named \"Bash\"", "Bash", `{"command":"ls"}`)
	r.refused("args", "same member name twice", "bash", `{"command":"ls","command":"rm -rf /"}`)
	r.refused("args", "differs from \"command\" only in case", "bash", `{"command":"ls","Command":"rm"}`)
	r.refused("args", "", "bash", `{"command":"ls`)
	r.refused("args", "", "bash", `[]`)
	if _, err := os.Stat(asked); err == nil {
		t.Error("an extension was asked about arguments that can't be used")
	}
	if d := last[*event.Decision](r.log); d.ArgsText != "[]" || d.Original != nil {
		t.Errorf("the decision holds text %q and original %q", d.ArgsText, d.Original)
	}
}

func TestExtensionVetoes(t *testing.T) {
	r := newRig(t)
	r.env.Mode = policy.ModeBypass
	r.extensions(
		r.script("guard", `*'"tool_call"'*push*) echo '{"block":true,"reason":"no pushing"}' ;;`),
		r.script("careful", `*'"tool_call"'*deploy*) echo '{"ask":true,"reason":"sure?"}' ;;`),
		r.script("yea", `*) echo '{"allow":true,"block":false,"permit":"yes","decision":"allow"}' ;;`),
	)
	r.runs("bash", `{"command":"ls"}`)
	r.refused("extension", "refused by extension guard. Reason: no pushing.", "bash", `{"command":"git push"}`)
	r.refused("headless", "extension careful: sure?", "bash", `{"command":"deploy"}`)
	d := last[*event.Decision](r.log)
	if len(d.Asked) != 6 || d.Asked[0].Name != "careful" || d.Asked[0].Answer != "ask" || d.Asked[1].Name != "guard" || d.Asked[1].Answer != "none" {
		t.Errorf("asked: %+v", d.Asked)
	}
	r.rules.Deny = rules("bash(ls*)")
	r.refused("rules", "deny rule", "bash", `{"command":"ls"}`)
}

// TestRewriteIsJudgedBothWays holds that a rewrite neither launders a denied call
// nor escapes the rules itself.
func TestRewriteIsJudgedBothWays(t *testing.T) {
	r := newRig(t)
	r.env.Mode = policy.ModeBypass
	r.rules.Deny = rules("bash(bad*)", "bash(worse)")
	r.extensions(r.script("fix", `*'"command":"bad'*) echo '{"args":{"command":"good"}}' ;;
*'"args":{"command":"fine"'*) echo '{"args":{"command":"worse"}}' ;;
*'"command":"plain"'*) echo '{"args":{"command":"plainer"}}' ;;`))
	r.refused("rules", "deny rule", "bash", `{"command":"bad"}`)
	d := last[*event.Decision](r.log)
	if string(d.Final) != `{"command":"good"}` || string(d.Original) != `{"command":"bad"}` {
		t.Errorf("original %s, final %s", d.Original, d.Final)
	}
	r.refused("rules", "deny rule", "bash", `{"command":"fine"}`)
	r.runs("bash", `{"command":"plain","description":"x"}`)
	if got := r.ran[len(r.ran)-1]; got != `bash {"command":"plainer"}` {
		t.Errorf("what ran is %s", got)
	}
	if d := last[*event.Decision](r.log); d.OriginalHash == d.FinalHash {
		t.Error("the rewritten call has the hash of the original")
	}
}

func TestRewritesThatDontSettle(t *testing.T) {
	r := newRig(t)
	r.env.Mode = policy.ModeBypass
	r.extensions(r.script("more", `*'"tool_call"'*) n=$(printf %s "$r" | tr -cd X | wc -c); echo '{"args":{"command":"'$(printf 'X%.0s' $(seq $((n+1))))'"}}' ;;`))
	r.refused("extension", "more still rewrite the arguments after 3 rounds", "bash", `{"command":"a"}`)

	r = newRig(t)
	r.env.Mode = policy.ModeBypass
	r.extensions(
		r.script("one", `*'"command":"a"'*) echo '{"args":{"command":"b"}}' ;;`),
		r.script("two", `*'"command":"a"'*) echo '{"args":{"command":"c"}}' ;;`))
	r.refused("extension", "one and two rewrite `command` differently", "bash", `{"command":"a"}`)

	r = newRig(t)
	r.env.Mode = policy.ModeBypass
	r.extensions(r.script("odd", `*'"tool_call"'*) echo '{"args":{"cmd":"b"}}' ;;`))
	r.refused("args", "rewritten by odd", "bash", `{"command":"a"}`)
}

func TestDeadExtensions(t *testing.T) {
	for policyName, want := range map[extension.OnFailure]string{extension.Skip: "run", extension.AskPerson: "headless", extension.Block: "extension"} {
		r := newRig(t)
		r.env.Mode = policy.ModeBypass
		c := r.script("frail", `*'"tool_call"'*) echo nonsense ;;`)
		c.OnFailure = policyName
		r.extensions(c)
		for range 2 { // the call in hand, and the ones after it
			ruling := r.judge("bash", `{"command":"ls"}`)
			d := last[*event.Decision](r.log)
			if _, ran := ruling.(*agent.Run); ran != (want == "run") || want != "run" && d.Step != want {
				t.Errorf("on_failure %s: %s at step %s", policyName, show(ruling), d.Step)
			}
			if len(d.Asked) == 0 || d.Asked[0].Answer != "failed" || d.Asked[0].Policy != string(policyName) {
				t.Errorf("on_failure %s: asked %+v", policyName, d.Asked)
			}
		}
	}
}

func TestApprovalIsForOneCall(t *testing.T) {
	r := newRig(t)
	p := &person{answer: yes}
	r.opts.Approver = p
	r.runs("bash", `{"command":"make"}`)
	r.runs("bash", `{"command":"make"}`)
	if len(p.asked) != 2 {
		t.Fatalf("asked %d times for two calls", len(p.asked))
	}
	if a := last[*event.Approval](r.log); !a.Allowed || a.By != "ann" || a.Hash != p.asked[1].Hash {
		t.Errorf("recorded approval %+v", a)
	}
	for name, answer := range map[string]func(control.Question) (control.Decision, error){
		"no": func(q control.Question) (control.Decision, error) { return control.Decision{Hash: q.Hash}, nil },
		"for another call": func(control.Question) (control.Decision, error) {
			return control.Decision{Hash: p.asked[0].Hash, Allow: true}, nil
		},
		"error with allow": func(q control.Question) (control.Decision, error) {
			return control.Decision{Hash: q.Hash, Allow: true}, errors.New("x")
		},
		"session unoffered": func(q control.Question) (control.Decision, error) {
			return control.Decision{Hash: q.Hash, Allow: true, Scope: event.ScopeSession}, nil
		},
		"zero Answer at all": func(control.Question) (control.Decision, error) { return control.Decision{}, nil },
	} {
		p.answer = answer
		ruling := r.judge("bash", `{"command":"rm -rf x"}`)
		if _, ok := ruling.(*agent.Refused); !ok {
			t.Errorf("answer %s: got %s", name, show(ruling))
		}
	}
}

func TestApprovalForTheSession(t *testing.T) {
	r := newRig(t)
	p := &person{answer: func(q control.Question) (control.Decision, error) {
		return control.Decision{Hash: q.Hash, Allow: true, Scope: event.ScopeSession, By: "ann"}, nil
	}}
	r.opts.Approver = p
	r.runs("bash", `{"command":"make"}`)
	r.runs("bash", `{"command":"make"}`)
	if len(p.asked) != 1 {
		t.Errorf("asked %d times though approved for the session", len(p.asked))
	}
	r.runs("bash", `{"command":"make all"}`)
	if len(p.asked) != 2 {
		t.Error("an approval held for another command")
	}
	r.rules.Deny = rules("bash(make)")
	r.refused("rules", "deny rule", "bash", `{"command":"make"}`)
}

// TestRulesInForceAtThePermit changes the rules while the question is open.
func TestRulesInForceAtThePermit(t *testing.T) {
	r := newRig(t)
	p := &person{answer: func(q control.Question) (control.Decision, error) {
		r.rules.Deny = rules("bash(make)")
		return yes(q)
	}}
	r.opts.Approver = p
	r.refused("permit", "became stricter", "bash", `{"command":"make"}`)
}

// TestPlaceInForceAtThePermit turns a folder into a link while the question is
// open.
func TestPlaceInForceAtThePermit(t *testing.T) {
	r := newRig(t)
	sub := filepath.Join(r.dir, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	r.opts.Approver = &person{answer: func(q control.Question) (control.Decision, error) {
		if err := os.Remove(sub); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/etc", sub); err != nil {
			t.Fatal(err)
		}
		return yes(q)
	}}
	r.refused("permit", "leads elsewhere", "write", `{"path":"sub/x"}`)
}

func TestUnansweredQuestionExpires(t *testing.T) {
	r := newRig(t)
	r.opts.ApprovalTimeout = time.Millisecond
	r.opts.Approver = waiting{}
	r.refused("expired", "nobody answered in time", "bash", `{"command":"make"}`)
}

type waiting struct{}

func (waiting) Approve(ctx context.Context, _ control.Question) (control.Decision, error) {
	<-ctx.Done()
	return control.Decision{}, ctx.Err()
}

func TestPermissionRequestMayRefuse(t *testing.T) {
	r := newRig(t)
	p := &person{answer: yes}
	r.opts.Approver = p
	r.extensions(r.script("night", `*'"permission_request"'*) echo '{"block":true,"reason":"not at night"}' ;;`))
	r.refused("extension", "not at night", "bash", `{"command":"make"}`)
	if len(p.asked) != 0 {
		t.Error("a person was asked after an extension refused the question")
	}
}

func TestQuestionShowsEveryByte(t *testing.T) {
	r := newRig(t)
	p := &person{answer: yes}
	r.opts.Approver = p
	r.judge("bash", `{"command":"echo \u202e\u200b\u001b[2K\r ok"}`)
	if len(p.asked) != 1 {
		t.Fatalf("asked %d times", len(p.asked))
	}
	if q := p.asked[0].Args; strings.ContainsAny(q, "\u202e\u200b\x1b\r") || !strings.Contains(q, `\u202e\u200b`) {
		t.Errorf("the person sees %q", q)
	}
}

func TestCancelledWhileJudged(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	r.opts.Approver = &person{answer: func(q control.Question) (control.Decision, error) { cancel(); return yes(q) }}
	g := gate.New(r.opts)
	ruling := g.Judge(ctx, agent.Proposal{WorkDir: r.dir, Call: &model.ToolCall{ID: "c", Name: "bash", Args: `{"command":"make"}`}})
	if _, ok := ruling.(*agent.Cancelled); !ok {
		t.Errorf("got %s", show(ruling))
	}
}

// TestNoRecordNoPermit lets the decision's append fail.
func TestNoRecordNoPermit(t *testing.T) {
	for _, approver := range []control.Approver{nil, &person{answer: yes}} {
		r := newRig(t)
		r.env.Mode = policy.ModeBypass
		r.opts.Approver = approver
		r.log.fail = func(p event.Payload) error {
			if p.Type() == event.TypeDecision {
				return errors.New("disk full")
			}
			return nil
		}
		if ruling, ok := r.judge("bash", `{"command":"ls"}`).(*agent.Broken); !ok || ruling.Err == nil {
			t.Errorf("got %s", show(ruling))
		}
	}
}

func TestResultsPassTheExtensions(t *testing.T) {
	r := newRig(t)
	r.extensions(r.script("redact", `*'"tool_result"'*SECRET*) echo '{"content":"[redacted]"}' ;;`))
	g := gate.New(r.opts)
	o := agent.Outcome{Call: policy.Call{ID: "c", Tool: "read", Args: []byte(`{}`)}, Kind: "ok", Content: "a SECRET", Ran: true}
	f, err := g.Finish(t.Context(), o)
	if err != nil || f.Content != "[redacted]" {
		t.Errorf("the model reads %q, %v", f.Content, err)
	}
	e := last[*event.ToolEnded](r.log)
	if e.Content != "[redacted]" || len(e.OriginalHash) != 64 || len(e.RewrittenBy) != 1 {
		t.Errorf("recorded %+v", e)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f, err = g.Finish(ctx, o)
	if err != nil || strings.Contains(f.Content, "SECRET") || !f.IsError {
		t.Errorf("an interrupted run gives the model %q, %v", f.Content, err)
	}
}
