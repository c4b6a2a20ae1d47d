package gate_test

import (
	stdjson "encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/session"
	"github.com/abhed/abhed/internal/tool"
)

// BenchmarkCall compares the gate and the record of one tool call, with no
// extension, no backend and no fsync, with what the standard library takes to
// decode the same call. Both are timed in turn, in one loop, so that a busy machine
// slows both; "x-decode" is the ratio, and its limit is ten. "judge" is the
// decision alone, "whole" is decision, start and outcome in the record.
func BenchmarkCall(b *testing.B) {
	dir, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("a line of the file that is to be written\\n", 50)
	for _, c := range []struct{ name, tool, args string }{
		{"read", "read", `{"path":"internal/gate/gate.go"}`},
		{"bash", "bash", `{"command":"go test ./internal/gate","description":"run the tests of the gate"}`},
		{"write", "write", `{"path":"internal/gate/gate.go","description":"` + text + `"}`},
	} {
		wire := []byte(`{"id":"call_0123456789","name":"` + c.tool + `","arguments":` + c.args + `}`)
		for _, whole := range []bool{false, true} {
			name := c.name + "/judge"
			if whole {
				name = c.name + "/whole"
			}
			b.Run(name, func(b *testing.B) {
				g, log := benchGate(b, dir)
				var decoding, judging time.Duration
				for i := 0; b.Loop(); i++ {
					start := time.Now()
					var call map[string]any
					if err := stdjson.Unmarshal(wire, &call); err != nil {
						b.Fatal(err)
					}
					decoded := time.Now()
					benchCall(b, g, log, fmt.Sprintf("call_%d", i), dir, c.tool, c.args, whole)
					decoding += decoded.Sub(start)
					judging += time.Since(decoded)
				}
				b.ReportMetric(float64(judging)/float64(decoding), "x-decode")
			})
		}
	}
}

// benchCall judges a call and, if whole, records its start and its outcome.
func benchCall(b *testing.B, g *gate.Gate, log *session.Session, id, dir, name, args string, whole bool) {
	run, ok := g.Judge(b.Context(), agent.Proposal{Turn: 1, WorkDir: dir, Call: &model.ToolCall{ID: id, Name: name, Args: args}}).(*agent.Run)
	if !ok {
		b.Fatal("not permitted")
	}
	if !whole {
		return
	}
	start := event.Draft{Actor: event.ActorTool, Trust: event.TrustHarness, Payload: &event.ToolStarted{Turn: 1, CallID: id, Tool: name, Hash: run.Permit.Hash()}}
	if _, err := log.AppendDurable(start); err != nil {
		b.Fatal(err)
	}
	if _, err := g.Finish(b.Context(), agent.Outcome{Turn: 1, Call: run.Call, Decl: run.Decl, Kind: "ok", Content: "done", Ran: true}); err != nil {
		b.Fatal(err)
	}
}

func benchGate(b *testing.B, dir string) (*gate.Gate, *session.Session) {
	b.Helper()
	store, err := session.OpenStore(b.TempDir(), session.Options{NoSync: true})
	if err != nil {
		b.Fatal(err)
	}
	log, err := store.Create(dir, session.CreateOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = log.Close() })
	var ran []string
	reg, err := tool.NewRegistry(fakeTool{"bash", "command", policy.SubjectCommand, true, &ran}, fakeTool{"read", "path", policy.SubjectPath, false, &ran}, fakeTool{"write", "path", policy.SubjectPath, true, &ran})
	if err != nil {
		b.Fatal(err)
	}
	set, problems := policy.Compile(policy.RuleLists{Deny: rules("bash(git push*)", "read(**/.env)"), Allow: rules("bash(go test*)", "write(**)")},
		policy.Known{Tools: map[string]policy.SubjectKind{"bash": policy.SubjectCommand, "read": policy.SubjectPath, "write": policy.SubjectPath}})
	if set == nil {
		b.Fatal(problems)
	}
	r, err := gate.NewRules(set, policy.Env{Mode: policy.ModeDefault})
	if err != nil {
		b.Fatal(err)
	}
	minter, _ := tool.NewAuthority()
	return gate.New(gate.Options{
		Tools: reg, Minter: minter, Log: log, Session: log.ID(), Agent: policy.Agent{ID: "main"}, Roots: []string{dir},
		Rules: func() *gate.Rules { return r },
	}), log
}
