package session

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/event"
)

const benchArgs = `{"command":"go test ./internal/...","description":"run the tests of the internal packages","timeout_ms":60000}`

// benchCall returns what one tool call records before the tool runs.
func benchCall(i int) []event.Payload {
	hash := strings.Repeat("ab", 32)
	rules := event.Raw(`{"file":"config.json","line":12,"rule":"bash(go test*)","step":"allow","verdict":"allow"}`)
	id := fmt.Sprintf("call_%d", i)
	return []event.Payload{
		&event.Decision{
			Turn: i, CallID: id, Tool: "bash", ToolVersion: "1", AgentID: "main", Original: event.Raw(benchArgs), OriginalHash: hash, Final: event.Raw(benchArgs), FinalHash: hash,
			Outcome: "run", Verdict: "allow", Step: "rules", RulesHash: hash, RulesOriginal: rules, RulesFinal: rules, WorkDir: "/home/u/project", Roots: []string{"/home/u/project"},
			Mode: "default", SubjectKind: "command", Subject: "go test ./internal/...", Mutates: true,
			Asked: []event.Asked{{Kind: "extension", Name: "guard", Version: hash, Step: "tool_call", Round: 1, Answer: "none"}},
		},
		&event.ToolStarted{Turn: i, CallID: id, Tool: "bash", Hash: hash},
	}
}

// benchTurn returns a whole turn: ten events with the signature that ends it.
func benchTurn(i int) []event.Payload {
	id := fmt.Sprintf("call_%d", i)
	n := int64(1000)
	return append(append([]event.Payload{
		&event.TurnStarted{Turn: i},
		&event.ModelRequested{Turn: i, Attempt: 1, Model: "m", Messages: 2 * i},
		&event.ModelResponded{Turn: i, Attempt: 1, Finish: "tool_calls", Usage: &event.Usage{Input: &n, Output: &n}, Message: event.Message{Role: event.RoleAssistant, Parts: []event.Part{
			event.TextPart("Let me run the tests to see where we are."), {ToolCall: &event.ToolCall{ID: id, Name: "bash", Args: benchArgs}},
		}}},
	}, benchCall(i)...),
		&event.ToolEnded{Turn: i, CallID: id, Tool: "bash", Outcome: "ok", Content: strings.Repeat("ok  \tgithub.com/example/project/internal/thing\t0.012s\n", 6), DurationMS: 12},
		&event.Notice{Level: "info", Text: "something worth a line"},
		&event.ExtensionLogged{Name: "guard", Level: "log", Line: "looked at a command"},
		&event.TurnEnded{Turn: i},
	)
}

// BenchmarkRecordCall measures what the record adds to one tool call, without
// the disk: the decision and the start.
func BenchmarkRecordCall(b *testing.B) {
	for name, secrets := range map[string][][]byte{"plain": nil, "20 secrets": benchSecrets()} {
		b.Run(name, func(b *testing.B) {
			s := create(b, newStore(b, Options{NoSync: true, Secrets: secrets}))
			payloads := benchCall(1)
			b.ReportAllocs()
			for b.Loop() {
				for _, p := range payloads {
					if _, err := s.AppendDurable(draft(p)); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
	b.Run("json.Unmarshal of the call", func(b *testing.B) {
		call := []byte(`{"id":"call_1","name":"bash","arguments":` + benchArgs + `}`)
		for b.Loop() {
			var m map[string]any
			if err := json.Unmarshal(call, &m); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func benchSecrets() [][]byte {
	var out [][]byte
	for i := range 20 {
		sum := sha256.Sum256([]byte{byte(i)})
		out = append(out, []byte(fmt.Sprintf("sk-%x", sum[:20])))
	}
	return out
}

func BenchmarkAppend(b *testing.B) {
	s := create(b, newStore(b, Options{NoSync: true}))
	p := benchCall(1)[0]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Append(draft(p)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendDurable(b *testing.B) {
	for _, writers := range []int{1, 16} {
		b.Run(fmt.Sprintf("%d writers", writers), func(b *testing.B) {
			s := create(b, newStore(b, Options{}))
			p := benchCall(1)[0]
			var wg sync.WaitGroup
			for g := range writers {
				wg.Go(func() {
					for i := g; i < b.N; i += writers {
						if _, err := s.AppendDurable(draft(p)); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// BenchmarkLargeRecord compares decoding a record of 100,000 events with a
// resume of it, and reports the memory that the resume needed at most.
func BenchmarkLargeRecord(b *testing.B) {
	st := newStore(b, Options{NoSync: true})
	s := create(b, st)
	mustAppend(b, s, started())
	for i := 1; s.Head().Seq < 100_000; i++ {
		for _, p := range benchTurn(i) {
			if _, err := s.Append(draft(p)); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.Sign(); err != nil {
			b.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	fi, err := os.Stat(s.Path())
	if err != nil {
		b.Fatal(err)
	}
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(fi.Size())
		for b.Loop() {
			f, err := os.Open(s.Path())
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for r := bufio.NewReaderSize(f, 1<<20); ; n++ {
				line, err := r.ReadSlice('\n')
				if err != nil {
					break
				}
				if _, err := event.Decode(bytes.TrimSpace(line)); err != nil {
					b.Fatal(err)
				}
			}
			f.Close()
			if n < 100_000 {
				b.Fatal(n)
			}
		}
	})
	b.Run("resume", func(b *testing.B) {
		b.SetBytes(fi.Size())
		for b.Loop() {
			peak := watchHeap()
			r, state, _, err := st.Resume(s.ID(), ResumeOptions{})
			if err != nil || len(state.Messages) < 20_000 {
				b.Fatal(err)
			}
			b.ReportMetric(float64(peak())/1e6, "MB-peak")
			r.Close()
		}
	})
	b.Run("verify", func(b *testing.B) {
		b.SetBytes(fi.Size())
		for b.Loop() {
			if rep, err := Verify(s.Path(), st.Key().Public()); err != nil || !rep.OK {
				b.Fatal(err, rep)
			}
		}
	})
}

// watchHeap samples the heap until the function it returns is called, which
// returns the largest growth.
func watchHeap() func() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	start, peak := m.HeapAlloc, uint64(0)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			if m.HeapAlloc > start {
				peak = max(peak, m.HeapAlloc-start)
			}
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	return func() uint64 { close(stop); <-done; return peak }
}
