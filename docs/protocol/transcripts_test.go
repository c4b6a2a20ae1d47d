// Package protocol runs what docs/protocol says: every transcript of its
// pages goes through the real harness side, over memory and over the pipes of a
// real process, and every message and outcome must be the one that is written.
package protocol_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
)

// repliesEnv names the file of scripted replies that makes the test binary a
// backend.
const repliesEnv = "PROTOCOL_DOC_REPLIES"

func TestMain(m *testing.M) {
	if file := os.Getenv(repliesEnv); file != "" {
		os.Exit(playBackend(file, os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// playBackend answers each request with the next reply of the file, and leaves
// the request open where the reply is silence.
func playBackend(file string, in io.Reader, out io.Writer) int {
	data, err := os.ReadFile(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var replies []string
	if err := json.Unmarshal(data, &replies); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, ahp.MaxMessageBytes)
	for lines.Scan() {
		if p, err := ahp.Peek(lines.Bytes()); err != nil || !p.HasID {
			continue
		}
		if len(replies) == 0 {
			fmt.Fprintln(os.Stderr, "a request that the transcript doesn't have")
			return 1
		}
		if replies[0] != silence {
			fmt.Fprintln(out, replies[0])
		}
		replies = replies[1:]
	}
	return 0
}

func TestTranscripts(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages:", err)
	}
	count := 0
	for _, page := range pages {
		for _, s := range readTranscripts(t, page) {
			count++
			t.Run(fmt.Sprintf("%s:%d", page, s.line), func(t *testing.T) {
				t.Run("memory", func(t *testing.T) { s.run(t, s.memory) })
				t.Run("stdio", func(t *testing.T) {
					s.run(t, func(t *testing.T, b *ahp.Backend) (transport.Transport, error) { return s.process(t, b) })
				})
			})
		}
	}
	if count < 8 {
		t.Errorf("%d transcripts were found; the pages have more, so the reader misses them", count)
	}
}

// memory opens a scripted backend inside the test.
func (s *transcript) memory(_ *testing.T, b *ahp.Backend) (transport.Transport, error) {
	var mu sync.Mutex
	replies := s.replies(b.ID)
	return transport.InProcess(func(ctx context.Context, msg []byte) ([]byte, error) {
		if p, err := ahp.Peek(msg); err != nil || !p.HasID {
			return nil, nil
		}
		mu.Lock()
		if len(replies) == 0 {
			mu.Unlock()
			return nil, fmt.Errorf("%s was sent a request that the transcript doesn't have: %s", b.ID, msg)
		}
		reply := replies[0]
		replies = replies[1:]
		mu.Unlock()
		if reply == silence {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return []byte(reply), nil
	}), nil
}

// process opens the same backend as a real process.
func (s *transcript) process(t *testing.T, b *ahp.Backend) (transport.Transport, error) {
	file := filepath.Join(t.TempDir(), "replies.json")
	data, err := json.Marshal(s.replies(b.ID))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return nil, err
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cfg := ahp.TransportConfig{Type: ahp.TransportStdio, Command: exe, Lifecycle: ahp.LifecyclePersistent}
	return transport.Stdio(cfg, transport.StdioOptions{Name: b.ID, Env: append(ahptest.ChildEnv(), repliesEnv+"="+file)})
}

// run dispatches the transcript's event and compares everything that was said.
func (s *transcript) run(t *testing.T, open func(*testing.T, *ahp.Backend) (transport.Transport, error)) {
	reg, err := ahp.DecodeRegistration([]byte(s.one("registration")))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	sent := map[string][]any{}
	h, err := harness.New(reg, harness.Options{Manifest: ahptest.Manifest(), Open: func(b *ahp.Backend) (transport.Transport, error) {
		link, err := open(t, b)
		if err != nil {
			return nil, err
		}
		return transport.Record(link, func(m transport.Traffic) {
			if m.Direction == transport.ToBackend {
				mu.Lock()
				defer mu.Unlock()
				sent[b.ID] = append(sent[b.ID], parse(t, string(m.Message)))
			}
		}), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	e, err := ahp.DecodeEvent([]byte(s.one("event")))
	if err != nil {
		t.Fatal(err)
	}
	q, err := ahp.DecodeRequest([]byte(s.expand(`{"jsonrpc":"2.0","id":"` + e.ID + `","method":"hooks/intercept","params":{
		"protocolVersion":"draft","event":"@event","capabilities":"@capabilities"}}`)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := h.Dispatch(ctx, e, &q.(*ahp.Intercept).Capabilities, nil, harness.DispatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := out.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parse(t, s.one("outcome")), parse(t, outcomeJSON(t, out))); diff != "" {
		t.Errorf("outcome (- page, + harness):\n%s", diff)
	}
	mu.Lock()
	defer mu.Unlock()
	want := map[string][]any{}
	for _, l := range s.lines {
		if id, ok := strings.CutSuffix(l.key, " <-"); ok {
			want[id] = append(want[id], parse(t, s.expand(l.value)))
		}
	}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("messages to the backends (- page, + harness):\n%s", diff)
	}
}

// outcomeJSON writes an outcome as the pages do: what isn't there is left out.
func outcomeJSON(t *testing.T, out *harness.Outcome) string {
	t.Helper()
	o := map[string]any{"decision": "no objection", "mayExecute": out.MayExecute()}
	if out.Permission != ahp.PermissionNone {
		o["decision"] = out.Permission
	}
	if d := out.Denial(); d != nil {
		o["reason"], o["by"] = d.Reason, d.By.Backend
		if d.Synthetic {
			o["synthetic"] = true
		}
	}
	if out.Changed {
		o["changedBy"] = out.ChangedBy.Backend
		switch out.Event.Type.Target() {
		case ahp.TargetInput:
			o["input"] = json.RawMessage(out.Event.Tool.Input)
		case ahp.TargetOutput:
			o["output"] = texts(out.Event.Items.Messages)
		}
	}
	if out.Candidate != nil {
		o["result"] = json.RawMessage(out.Candidate.Value)
	}
	if len(out.Messages) > 0 {
		o["messages"] = out.Messages
	}
	if out.Flow != "" && out.Flow != ahp.FlowStateNone {
		o["flow"] = out.Flow
	}
	if len(out.Instructions) > 0 {
		o["instructions"] = out.Instructions
	}
	var failures []any
	for _, a := range out.Trace {
		if a.Failure != nil {
			failures = append(failures, map[string]any{"backend": a.By.Backend, "class": a.Failure.Class, "policy": a.Policy})
		}
	}
	if failures != nil {
		o["failures"] = failures
	}
	data, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// texts returns the texts of messages.
func texts(list []ahp.Message) []string {
	out := []string{}
	for _, m := range list {
		for _, p := range m.Parts {
			if p.Text != nil {
				out = append(out, *p.Text)
			}
		}
	}
	return out
}

func parse(t *testing.T, text string) any {
	t.Helper()
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}
