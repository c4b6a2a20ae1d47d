package event

import "testing"

// decision is of the size that a real one has.
func decision() *Decision {
	args := Raw(`{"command":"go test ./internal/...","description":"run the tests of the internal packages","timeout_ms":60000}`)
	return &Decision{
		Turn: 3, CallID: "call_9f2c1a", Tool: "bash", ToolVersion: "1", AgentID: "main", Original: args, OriginalHash: testHash, Final: args, FinalHash: testHash,
		Outcome: "run", Verdict: "allow", Step: "rules", By: "allow rule", RulesHash: testHash, RulesOriginal: Raw(`{"file":"config.json","line":12,"rule":"bash(go test*)","step":"allow","verdict":"allow"}`),
		RulesFinal: Raw(`{"file":"config.json","line":12,"rule":"bash(go test*)","step":"allow","verdict":"allow"}`), WorkDir: "/home/user/project", Roots: []string{"/home/user/project"},
		Mode: "default", SubjectKind: "command", Subject: "go test ./internal/...", Mutates: true, MS: 1,
		Asked: []Asked{{Kind: "extension", Name: "guard", Version: testHash, Step: "tool_call", Round: 1, Answer: "none", MS: 1}},
	}
}

func BenchmarkAppendDecision(b *testing.B) {
	e := sample(decision())
	var enc Encoder
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		l, err := enc.Append(buf[:0], &e)
		if err != nil {
			b.Fatal(err)
		}
		buf = l.Bytes
	}
	b.SetBytes(int64(len(buf)))
}

func BenchmarkDecodeDecision(b *testing.B) {
	line := mustEncode(b, sample(decision()))
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(line); err != nil {
			b.Fatal(err)
		}
	}
}
