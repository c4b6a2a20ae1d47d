package gate_test

import (
	stdjson "encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/session"
	"github.com/abhed/abhed/internal/tool"
)

// BenchmarkCall compares the gate and the record of one tool call, with no
// extension, no backend and no fsync, with what the standard library takes to
// decode the same call. The limit is ten times.
func BenchmarkCall(b *testing.B) {
	dir, err := filepath.EvalSymlinks(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, tool, args string }{
		{"read", "read", `{"path":"internal/gate/gate.go"}`},
		{"bash", "bash", `{"command":"go test ./internal/gate","description":"run the tests of the gate"}`},
	} {
		wire, err := stdjson.Marshal(map[string]any{"id": "call_0123456789", "type": "function", "function": map[string]any{"name": c.tool, "arguments": c.args}})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name+"/json.Unmarshal", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var call, args map[string]any
				if err := stdjson.Unmarshal(wire, &call); err != nil {
					b.Fatal(err)
				}
				if err := stdjson.Unmarshal([]byte(c.args), &args); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/gate and record", func(b *testing.B) {
			g := benchGate(b, dir)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				p := agent.Proposal{Turn: 1, WorkDir: dir, Call: &model.ToolCall{ID: fmt.Sprintf("call_%d", i), Name: c.tool, Args: c.args}}
				if _, ok := g.Judge(b.Context(), p).(*agent.Run); !ok {
					b.Fatal("not permitted")
				}
			}
		})
	}
}

func benchGate(b *testing.B, dir string) *gate.Gate {
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
	reg, err := tool.NewRegistry(fakeTool{"bash", "command", policy.SubjectCommand, true, &ran}, fakeTool{"read", "path", policy.SubjectPath, false, &ran})
	if err != nil {
		b.Fatal(err)
	}
	set, problems := policy.Compile(policy.RuleLists{Deny: rules("bash(git push*)", "read(**/.env)"), Allow: rules("bash(go test*)")},
		policy.Known{Tools: map[string]policy.SubjectKind{"bash": policy.SubjectCommand, "read": policy.SubjectPath}})
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
	})
}
