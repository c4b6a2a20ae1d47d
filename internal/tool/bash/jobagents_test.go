package bash_test

import (
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/sandbox"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/tool"
	"github.com/abhed/abhed/internal/tool/bash"
	"github.com/abhed/abhed/internal/tool/tooltest"
)

// runAs runs a call of an agent.
func runAs(t *testing.T, it tool.Tool, dir string, agent policy.Agent, args m) tool.Result {
	t.Helper()
	reg, err := tool.NewRegistry(it)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := strictjson.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	call, err := policy.Call{ID: "c", Tool: it.Spec().Name, WorkDir: dir, Roots: []string{dir}, Agent: agent}.WithArgs(raw)
	if err != nil {
		t.Fatal(err)
	}
	minter, verifier := tool.NewAuthority()
	res, err := tool.NewExecutor(reg, verifier).Run(t.Context(), minter.Mint(call, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestAgentsSeeTheirOwnJobs(t *testing.T) {
	t.Parallel()
	s := begin(t, plan(t, sandbox.TierNone), bash.JobsOptions{}, bash.Options{})
	run := func(it tool.Tool, agent policy.Agent, args m) tool.Result { return runAs(t, it, s.dir, agent, args) }
	sub, other, lead := policy.Agent{ID: "sub", Depth: 1}, policy.Agent{ID: "other", Depth: 1}, policy.Agent{ID: "main"}
	run(s.bash, sub, m{"command": "sleep 600", "background": true})
	run(s.bash, lead, m{"command": "sleep 601", "background": true})
	if list := s.jobs.List(); list[0].Agent != sub || list[1].Agent != lead {
		t.Errorf("%+v", list)
	}
	for _, tt := range []struct {
		agent policy.Agent
		args  m
		want  string
		fails bool
	}{
		{other, m{"action": "list"}, "(no command was started in the background)", false},
		{other, m{"action": "kill", "id": "job1"}, `no background command "job1". There are: none.`, true},
		{sub, m{"action": "read", "id": "job2"}, "There are: job1.", true},
		{sub, m{"action": "read"}, "Give the id", true},
		{lead, m{"action": "list"}, "started by the agent sub\n  sleep 600\njob2 is running", false},
		{lead, m{"action": "read", "id": "job1"}, "job1 is running", false},
	} {
		if res := run(s.look, tt.agent, tt.args); res.IsError != tt.fails || !strings.Contains(res.Content, tt.want) {
			t.Errorf("%s %v: %q, want %q", tt.agent.ID, tt.args, res.Content, tt.want)
		}
	}
	if n := s.jobs.EndAgent("sub"); n != 1 || s.jobs.List()[0].Running() || !s.jobs.List()[1].Running() {
		t.Errorf("%d ended: %+v", n, s.jobs.List())
	}
}

func TestJobsDeclares(t *testing.T) {
	t.Parallel()
	it := bash.NewJobsTool(bash.NewJobs(bash.JobsOptions{}))
	for raw, want := range map[string]policy.Declaration{
		`{"action":"list"}`:             {Kind: policy.SubjectText, Subject: "list"},
		`{"action":"read","id":"job1"}`: {Kind: policy.SubjectText, Subject: "read job1"},
		`{"action":"kill","id":"job1"}`: {Kind: policy.SubjectText, Subject: "kill job1", Mutates: true},
	} {
		if got := it.Declare([]byte(raw)); got != want {
			t.Errorf("%s: %+v", raw, got)
		}
	}
	for _, raw := range []string{`{}`, `{"action":"start"}`, `{"action":"read","id":""}`, `{"action":"read","id":"x","wait_ms":60001}`, `{"action":"list","x":1}`} {
		if tooltest.Check(t, it, raw) == nil {
			t.Errorf("%s was accepted", raw)
		}
	}
}
