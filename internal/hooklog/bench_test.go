package hooklog_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/strictjson"
)

// sample is a decision about an event of about 2 KB.
func sample() *hooklog.Entry {
	event := `{"id":"0192e4a0-7c1e-7b7e-9a55-000000000001","payload":{"tool":{"call":{"id":"call-1","input":{"command":"go test ./... && git status","text":"` +
		strings.Repeat(`line of a file that is \"edited\"\n`, 50) + `"}},"name":"shell"}},"session":{"cwd":"/home/someone/project","id":"s-1"},"source":"codex","time":"2026-11-30T22:00:00Z","type":"tool.before"}`
	return &hooklog.Entry{
		ID: "0192e4a0-7c1e-7b7e-9a55-000000000001", Host: "codex", HostVersion: "0.98.0", Native: "PreToolUse", Type: ahp.ToolBefore, Session: "s-1", Turn: "t-1",
		Call: "call-1", Tool: "shell", Mode: hooklog.ModeService, Decision: hooklog.Deny, Applied: hooklog.AppliedNative, Reason: "no", Milliseconds: 3,
		Registration: []hooklog.Source{{Path: "/etc/ahp/registration.json", SHA256: strings.Repeat("ab", 32)}},
		Answers:      []hooklog.Answer{{Backend: "rules", Kind: ahp.AnswerEffects, Effects: []ahp.Raw{ahp.Raw(`{"reason":"no","type":"deny"}`)}, Milliseconds: 2}},
		Event:        ahp.Raw(event),
	}
}

// BenchmarkAppend is to be compared with BenchmarkEncodeAndHash, which is the least
// that there is to do.
func BenchmarkAppend(b *testing.B) {
	l, e := open(b, b.TempDir()+"/log", hooklog.Options{MaxBytes: 1 << 30}), sample()
	b.ReportAllocs()
	for b.Loop() {
		if err := l.Append(e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeAndHash(b *testing.B) {
	e := sample()
	b.ReportAllocs()
	for b.Loop() {
		text, err := strictjson.Marshal(e)
		if err != nil {
			b.Fatal(err)
		}
		if len(fmt.Sprintf("%x", sha256.Sum256(text))) != 64 {
			b.Fatal("no hash")
		}
	}
}
