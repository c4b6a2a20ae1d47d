package bash

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
)

// maxWait bounds how long a read waits for output.
const maxWait = time.Minute

// JobsTool is the tool jobs, by which the model looks after background commands. Make
// it with NewJobsTool. A sub-agent sees its own jobs only, the main agent all.
type JobsTool struct {
	jobs       *Jobs
	head, tail int
}

var _ tool.Tool = (*JobsTool)(nil)

// NewJobsTool returns the tool for the jobs of a session.
func NewJobsTool(jobs *Jobs) *JobsTool { return &JobsTool{jobs, 16 << 10, 16 << 10} }

type jobsArgs struct {
	Action string `json:"action"`
	ID     string `json:"id"`
	WaitMS int64  `json:"wait_ms"`
}

const jobsSchema = `{
  "type": "object",
  "properties": {
    "action": {"type": "string", "enum": ["list", "read", "kill"], "description": "list shows all background commands; read gives the output of one since the last read, and how it ended; kill ends one with everything it started."},
    "id": {"type": "string", "minLength": 1, "maxLength": 40, "description": "Which one, as bash named it; for read and kill."},
    "wait_ms": {"type": "integer", "minimum": 0, "maximum": %d, "description": "For read: how long to wait, in milliseconds, if there is no new output yet. Default 0."}
  },
  "required": ["action"],
  "additionalProperties": false
}`

// Spec returns the tool's description for the model.
func (t *JobsTool) Spec() tool.Spec {
	return tool.Spec{
		Name: "jobs", Version: "1", Fixed: true, Schema: fmt.Appendf(nil, jobsSchema, maxWait.Milliseconds()),
		Description: "Look after the commands that bash started in the background: list them, read their new output, kill one.",
	}
}

// Declare says that the call is about its action and the job; only kill changes
// something.
func (t *JobsTool) Declare(raw []byte) policy.Declaration {
	a, _ := tool.Decode[jobsArgs](raw) // the schema has been checked
	return policy.Declaration{Kind: policy.SubjectText, Subject: strings.TrimSpace(a.Action + " " + a.ID), Mutates: a.Action == "kill"}
}

// Run lists, reads or kills.
func (t *JobsTool) Run(ctx context.Context, g tool.Grant) (tool.Result, error) {
	a, err := tool.Decode[jobsArgs](g.Args())
	if err != nil {
		return tool.Result{}, err
	}
	agent := g.Call().Agent
	if a.Action == "list" {
		return t.list(agent), nil
	}
	if a.ID == "" {
		return tool.Fail(fmt.Sprintf("Give the id of the background command to %s. %s", a.Action, t.names(agent))), nil
	}
	j := t.jobs.find(a.ID)
	if j == nil || !sees(agent, j.agent) {
		return tool.Fail(fmt.Sprintf("There is no background command %q. %s", a.ID, t.names(agent))), nil
	}
	if a.Action == "kill" {
		if ended := !j.info().Running(); ended {
			return tool.OK(fmt.Sprintf("%s; there was nothing to kill.", j.state())), nil
		}
		j.end("killed")
	} else {
		j.await(ctx, time.Duration(a.WaitMS)*time.Millisecond)
	}
	return tool.OK(j.report(t.head, t.tail)), nil
}

// report returns the new output and how the job stands.
func (j *job) report(head, tail int) string {
	text, notes := j.take(head, tail)
	if text == "" {
		notes = append(notes, "no new output")
	} else if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	for _, n := range append(notes, j.state()) {
		text += "(" + n + ")\n"
	}
	return text
}

// sees reports whether an agent may look after a job of owner.
func sees(agent, owner policy.Agent) bool { return agent.Depth == 0 || agent.ID == owner.ID }

func (t *JobsTool) mine(agent policy.Agent) []JobInfo {
	var out []JobInfo
	for _, i := range t.jobs.List() {
		if sees(agent, i.Agent) {
			out = append(out, i)
		}
	}
	return out
}

func (t *JobsTool) names(agent policy.Agent) string {
	var ids []string
	for _, i := range t.mine(agent) {
		ids = append(ids, i.ID)
	}
	return "There are: " + cmp.Or(strings.Join(ids, ", "), "none") + "."
}

func (t *JobsTool) list(agent policy.Agent) tool.Result {
	var b strings.Builder
	for _, i := range t.mine(agent) {
		if j := t.jobs.find(i.ID); j != nil {
			fmt.Fprintf(&b, "%s; %d bytes of output not read\n", j.state(), i.Unread)
		}
		if i.Agent.ID != agent.ID {
			fmt.Fprintf(&b, "  started by the agent %s\n", tool.Clean(i.Agent.ID))
		}
		fmt.Fprintf(&b, "  %s\n", oneLine(i.Command, 400))
	}
	if b.Len() == 0 {
		return tool.OK("(no command was started in the background)")
	}
	return tool.OK(b.String())
}
