package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/trust"
)

// home is an account's home folder with a decision log.
type home struct {
	dir string
	log *hooklog.Log
}

func newHome(t *testing.T) *home {
	t.Helper()
	h := &home{dir: t.TempDir()}
	state, err := hooklog.StateDir(h.dir)
	if err != nil {
		t.Fatal(err)
	}
	if h.log, err = hooklog.Open(hooklog.LogDir(state), hooklog.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.log.Close() })
	return h
}

func (h *home) file() string {
	return filepath.Join(h.dir, ".local", "state", "ahp", "log", hooklog.File)
}

// decide logs a decision of codex about a command.
func (h *home) decide(t *testing.T, id, command string, d hooklog.Decision, change func(*hooklog.Entry)) {
	t.Helper()
	e := &hooklog.Entry{
		ID: id, Host: "codex", HostVersion: "0.98.0", Native: "PreToolUse", Type: ahp.ToolBefore, Session: "s1", Call: "c-" + id, Tool: "Bash", Mode: hooklog.ModeService, Decision: d, Milliseconds: 7,
		Time: "2026-11-30T22:00:00Z", Event: ahp.Raw(`{"call":{"id":"c-` + id + `"},"id":"` + id + `","path":"native","session":{"cwd":"/srv","id":"s1"},"source":"urn:test","time":"2026-11-30T22:00:00Z","tool":{"input":{"command":"` + command + `"},"name":"Bash","origin":"native"},"type":"tool.before"}`),
	}
	if d == hooklog.Deny {
		e.Reason, e.Code, e.Applied = "no pushing", "org.test.push", hooklog.AppliedNative
		e.Answers = []hooklog.Answer{{Backend: "org.test.guard", Kind: ahp.AnswerEffects, Milliseconds: 5, Effects: []ahp.Raw{ahp.Raw(`{"reason":"no pushing","type":"deny"}`)}}}
	}
	if change != nil {
		change(e)
	}
	if err := h.log.Append(e); err != nil {
		t.Fatal(err)
	}
}

// run runs one command, which need not be registered.
func (h *home) run(ctx context.Context, stdin io.Reader, dir string, make func(system) *cobra.Command, args ...string) result {
	var out, errs bytes.Buffer
	sys := system{stdin: stdin, stdout: &out, stderr: &errs, environ: []string{"AHP_HOME=" + h.dir}, dir: dir}
	c := make(sys)
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&errs)
	c.SilenceErrors, c.SilenceUsage = true, true
	code := sys.report(c.ExecuteContext(ctx))
	return result{code, out.String(), errs.String()}
}

func (r result) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit %d, want %d", r.code, code)
	}
	for _, s := range texts {
		if !strings.Contains(r.stdout+r.stderr, s) {
			t.Errorf("no %q", s)
		}
	}
	if t.Failed() {
		t.Fatalf("%s\n%s", r.stdout, r.stderr)
	}
}

func TestLogCommand(t *testing.T) {
	h := newHome(t)
	h.run(t.Context(), nil, "", newLog).want(t, exitOK, "No such decision is logged")
	for i := range 30 {
		h.decide(t, fmt.Sprintf("e%02d", i), "ls", []hooklog.Decision{hooklog.Pass, hooklog.Deny}[i%2], func(e *hooklog.Entry) {
			if i%3 == 0 {
				e.Host, e.Session = "crush", "s2"
			}
			e.Reason += "\x1b[31m\nnext \u202e"
		})
	}
	r := h.run(t.Context(), nil, "", newLog)
	r.want(t, exitOK, "deny", "codex", "PreToolUse", "Bash", "7 ms  e29  no pushing")
	if n := strings.Count(r.stdout, "\n"); n != 20 || strings.ContainsAny(r.stdout, "\x1b\u202e") {
		t.Errorf("%d lines: %q", n, r.stdout)
	}
	for want, args := range map[string][]string{
		"e28 e29": {"-n", "2"},
		"e24 e27": {"-n", "2", "--host", "crush"},
		"e21 e27": {"-n", "2", "--session", "s2", "--denied"},
		"":        {"-n", "0"},
		"e27 e29": {"-n", "2", "--denied"},
	} {
		r := h.run(t.Context(), nil, "", newLog, append(args, "--json")...)
		r.want(t, exitOK)
		var ids []string
		for line := range strings.Lines(r.stdout) {
			e, err := hooklog.Decode([]byte(strings.TrimSuffix(line, "\n")))
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, e.ID)
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%v: %s, want %s", args, got, want)
		}
	}
	h.run(t.Context(), nil, "", newLog, "-n", "-1").want(t, exitUsage, "expected a number from 0")
	if err := os.WriteFile(h.file(), []byte("noise\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.run(t.Context(), nil, "", newLog).want(t, exitFailed, hooklog.File+":1: ")
}

// TestLogFollow holds that decisions are shown as they are made.
func TestLogFollow(t *testing.T) {
	h := newHome(t)
	h.decide(t, "old", "ls", hooklog.Pass, nil)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	r, w := io.Pipe()
	c := newLog(system{stdout: w, stderr: io.Discard, environ: []string{"AHP_HOME=" + h.dir}})
	c.SetArgs([]string{"--follow", "--denied"})
	done := make(chan error, 1)
	go func() {
		err := c.ExecuteContext(ctx)
		done <- errors.Join(err, w.Close())
	}()
	var once sync.Once
	var seen strings.Builder
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	go func() { // it may look for the end only after this; then it is told of a later one
		for i := 0; ctx.Err() == nil; i++ {
			select {
			case <-ctx.Done():
			case <-tick.C:
				_ = h.log.Append(&hooklog.Entry{ID: fmt.Sprint("new", i), Decision: []hooklog.Decision{hooklog.Pass, hooklog.Deny}[i%2]})
			}
		}
	}()
	buf := make([]byte, 4096)
	for {
		n, err := r.Read(buf)
		seen.Write(buf[:n])
		if strings.Count(seen.String(), "\n") >= 3 {
			once.Do(stop)
		}
		if err != nil {
			break
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if s := seen.String(); strings.Contains(s, "old") || strings.Contains(s, "pass") || !strings.Contains(s, "deny") {
		t.Errorf("followed %q", s)
	}
}

func TestExplain(t *testing.T) {
	h := newHome(t)
	file := filepath.Join(h.dir, "registration.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.decide(t, "aaaa-1", "git push", hooklog.Deny, func(e *hooklog.Entry) {
		e.Registration = []hooklog.Source{{Path: file, SHA256: trust.Sum([]byte("{}"))}, {Path: file + ".gone", SHA256: trust.Sum(nil)}}
		e.Applied, e.Repeat, e.Duplicate, e.CallSynthesized = hooklog.AppliedStoodIn, 2, true, true
		e.Answers = append(e.Answers, hooklog.Answer{Backend: "org.test.slow", Subscription: 1, Kind: ahp.AnswerFailure, Failure: &hooklog.Failure{Class: "timeout", Detail: "no answer"}, Policy: "fail-closed", Milliseconds: 50})
	})
	h.decide(t, "aaaa-2", "ls", hooklog.Pass, func(e *hooklog.Entry) {
		e.Problem = "the input was empty, so --on-missing allow answered"
		e.Event = nil
		e.Untrusted = []string{"/srv/.ahp/registration.json"}
	})
	h.run(t.Context(), nil, "", newExplain, "aaaa-1").want(t, exitOK,
		"codex 0.98.0", "tool.before, natively PreToolUse", "c-aaaa-1 (the agent gives none)", "service in 7 ms", file+" (same now)", ".gone (gone now)",
		"org.test.guard, subscription 0, answered after 5 ms:", `{"reason":"no pushing","type":"deny"}`, "org.test.slow, subscription 1, failed after 50 ms, so fail-closed applied: timeout: no answer",
		"Decision: deny (stood in)", "Reason: no pushing", "org.test.push", "git push", "What to change:", "org.test.guard denied it", "subscription 1 is fail-closed: make it answer, or change the subscription in "+file,
		"codex can't do at PreToolUse", "denied 2 times before", "two scopes", ".gone is gone since this decision")
	h.run(t.Context(), nil, "", newExplain, "aaaa-2").want(t, exitOK, "Nobody was asked.", "The check itself failed: the input was empty", "Put right what went wrong in the check itself", "/srv/.ahp/registration.json had no say, because nobody has trusted it")
	h.decide(t, "ask-1", "make deploy", hooklog.Ask, func(e *hooklog.Entry) {
		e.Repeat = 1
		e.Answers = []hooklog.Answer{{Backend: "org.test.guard", Kind: ahp.AnswerEffects, Effects: []ahp.Raw{ahp.Raw(`{"type":"ask"}`)}}}
	})
	h.run(t.Context(), nil, "", newExplain, "ask-1").want(t, exitOK, "org.test.guard wants a person to decide; ", "denied once before")
	h.run(t.Context(), nil, "", newExplain, "aaaa").want(t, exitUsage, "several decisions begin so")
	h.run(t.Context(), nil, "", newExplain, "b").want(t, exitNegative, `"b" is no decision in `)
	h.run(t.Context(), nil, "", newExplain, "").want(t, exitUsage, "empty id")
	h.run(t.Context(), nil, "", newExplain, "a", "b").want(t, exitUsage, "found 2 arguments, expected the ID of one decision")
	var x explained
	r := h.run(t.Context(), nil, "", newExplain, "--json", "aaaa-1")
	if err := strictjson.Unmarshal([]byte(r.stdout), &x, strictjson.Options{}); err != nil || x.Decision.ID != "aaaa-1" || len(x.Advice) != 6 || x.Files[0].Now != "same" {
		t.Errorf("%v, %s", err, r.stdout)
	}
}

func TestVerifyCommand(t *testing.T) {
	h := newHome(t)
	h.run(t.Context(), nil, "", newVerify).want(t, exitOK, "decisions: 0")
	for i := range 3 {
		h.decide(t, fmt.Sprint("e", i), "ls", hooklog.Deny, nil)
	}
	h.run(t.Context(), nil, "", newVerify).want(t, exitOK, "files: 1, decisions: 3, the chain is whole")
	data, err := os.ReadFile(h.file())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.file(), bytes.Replace(data, []byte(`"decision":"deny"`), []byte(`"decision":"pass"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	h.run(t.Context(), nil, "", newVerify).want(t, exitNegative, hooklog.File+":1: the line was changed", "faults: ")
	h.run(t.Context(), nil, "", newVerify, "--json").want(t, exitNegative, `"line":1`)
	if err := os.RemoveAll(filepath.Dir(h.file())); err != nil {
		t.Fatal(err)
	}
	h.run(t.Context(), nil, "", newVerify).want(t, exitOK, "No decision is logged")
}

const denyPush = `{"rules":{"deny":["bash(git push*)"]}}`

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReplayByRules(t *testing.T) {
	h := newHome(t)
	h.decide(t, "e1", "git push origin", hooklog.Pass, nil)
	h.decide(t, "e2", "ls", hooklog.Pass, nil)
	h.decide(t, "e3", "git push", hooklog.Deny, nil)
	h.decide(t, "e4", "rm", hooklog.Deny, func(e *hooklog.Entry) { e.Answers[0].Backend = hookd.SelfProtection })
	h.decide(t, "e5", "ls", hooklog.Pass, func(e *hooklog.Entry) { e.Event = nil })
	h.decide(t, "e6", "git push", hooklog.Pass, func(e *hooklog.Entry) { e.Host = "an-agent-of-old" })
	h.decide(t, "e7", "git status", hooklog.Deny, func(e *hooklog.Entry) { e.Answers[0].Backend = hookd.Canary })
	rules := write(t, "rules.json", denyPush)
	r := h.run(t.Context(), nil, "", newReplay, "--rules", rules)
	r.want(t, exitNegative, "e1  codex        Bash             pass -> deny", "e6  an-agent-of-", "judged: 4, would change: 2", "not judged: 1: self-protection decided", "not judged: 1: the event isn't in the log", "not judged: 1: a canary of \"ahp doctor\"")
	if strings.Contains(r.stdout, "e3  ") || strings.Contains(r.stdout, "e2  ") {
		t.Errorf("shows what doesn't change: %s", r.stdout)
	}
	var out replayed
	r = h.run(t.Context(), nil, "", newReplay, "--rules", rules, "--json", h.file())
	if err := strictjson.Unmarshal([]byte(r.stdout), &out, strictjson.Options{}); err != nil || r.code != exitNegative || len(out.Changed) != 2 || out.Changed[0].ID != "e1" || out.Changed[0].After != hooklog.Deny || out.Changed[0].Why == "" {
		t.Errorf("%v, %+v", err, r)
	}
	// Nobody objects to anything: what was denied would pass.
	r = h.run(t.Context(), nil, "", newReplay, "--rules", write(t, "rules.json", `{"rules":{}}`))
	r.want(t, exitNegative, "e3  codex        Bash             deny -> pass", "before: no pushing", "would change: 1")
	h2 := newHome(t)
	h2.decide(t, "e3", "git push", hooklog.Deny, nil)
	h2.run(t.Context(), nil, "", newReplay, "--rules", rules).want(t, exitOK, "judged: 1, would change: 0")
}

func TestReplayRefuses(t *testing.T) {
	h := newHome(t)
	rules := write(t, "rules.json", denyPush)
	h.run(t.Context(), nil, "", newReplay).want(t, exitUsage, "expected --registration or --rules")
	h.run(t.Context(), nil, "", newReplay, "--rules", rules).want(t, exitOK, "judged: 0")
	h.run(t.Context(), nil, "", newReplay, "--rules", rules, "missing").want(t, exitUsage, "missing")
	h.run(t.Context(), nil, "", newReplay, "--rules", rules, write(t, "x", "hello\n")).want(t, exitUsage, "x:1: ", "expected a decision log")
	h.run(t.Context(), nil, "", newReplay, "--rules", rules, write(t, "x", "{\"a\":1}\n")).want(t, exitUsage, "x:1: ")
	h.run(t.Context(), nil, "", newReplay, "--rules", rules, "/dev/null").want(t, exitUsage, "expected a regular file")
	h.run(t.Context(), nil, "", newReplay, "--rules", write(t, "r", `{"rules":{"dney":[]}}`)).want(t, exitUsage, "r:1:")
	h.run(t.Context(), nil, "", newReplay, "--registration", write(t, "r", `{}`)).want(t, exitUsage, "r:1:")
	ctx, stop := context.WithCancel(t.Context())
	stop()
	h.decide(t, "e1", "ls", hooklog.Pass, nil)
	h.run(ctx, nil, "", newReplay, "--rules", rules).want(t, exitFailed, "interrupted")
}

// TestReplayByRegistration asks a real backend, which is told of nothing.
func TestReplayByRegistration(t *testing.T) {
	h := newHome(t)
	h.decide(t, "e1", "ls", hooklog.Pass, nil)
	h.decide(t, "e2", "ls -l", hooklog.Rewrite, func(e *hooklog.Entry) {
		e.Answers = []hooklog.Answer{{Backend: "com.example.http", Kind: ahp.AnswerEffects, Effects: []ahp.Raw{ahp.Raw(`{"operation":"replace","target":"input","type":"modify","value":{"command":"ls -a"}}`)}}}
	})
	var mu sync.Mutex
	var bodies []string
	effect := `{"type":"modify","target":"input","operation":"replace","value":{"command":"ls -a"}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, string(body))
		var q struct {
			ID ahp.Raw `json:"id"`
		}
		if err := strictjson.Unmarshal(body, &q, strictjson.Options{}); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"draft","effects":[%s]}}`, q.ID, effect)
	}))
	defer server.Close()
	registration := write(t, "registration.json", `{"protocolVersion":"draft","hooks":[{"id":"com.example.http","transport":{"type":"http","url":"`+server.URL+`"},"subscriptions":[`+
		`{"events":["tool.before"],"mode":"intercept","timeoutMs":20000,"failurePolicy":"fail-closed","content":{"default":"body"}},`+
		`{"events":["tool.before"],"mode":"observe","content":{"default":"body"}}]}]}`)
	h.run(t.Context(), nil, "", newReplay, "--registration", registration).want(t, exitNegative, "e1  codex        Bash             pass -> rewrite  com.example.http", "judged: 2, would change: 1")
	mu.Lock()
	effect = `{"type":"modify","target":"input","operation":"replace","value":{"command":"ls -A"}}`
	mu.Unlock()
	h.run(t.Context(), nil, "", newReplay, "--registration", registration).want(t, exitNegative, "e2  codex        Bash             rewrite -> rewrite  the same decision with other effects", "would change: 2")
	for _, b := range bodies {
		if strings.Contains(b, "observe") {
			t.Errorf("an observer was told: %s", b)
		}
	}
	server.Close()
	h.run(t.Context(), nil, "", newReplay, "--registration", registration).want(t, exitFailed, "pass -> deny", "with a backend that failed: 2")
}

// TestReplaySaysOnce has a backend fail at every event in the same words.
func TestReplaySaysOnce(t *testing.T) {
	require.Path(t, "sh")
	h := newHome(t)
	for i := range 5 {
		h.decide(t, fmt.Sprint("e", i), "ls", hooklog.Pass, nil)
	}
	registration := write(t, "registration.json", `{"protocolVersion":"draft","hooks":[{"id":"com.example.broken","transport":{"type":"stdio","command":"sh","args":["-c","echo no rules >&2; echo $$ >&2; exit 2"],"lifecycle":"per_event"},"subscriptions":[`+
		`{"events":["tool.before"],"mode":"intercept","timeoutMs":20000,"failurePolicy":"fail-closed","content":{"default":"body"}}]}]}`)
	r := h.run(t.Context(), nil, "", newReplay, "--registration", registration)
	r.want(t, exitFailed, "with a backend that failed: 5")
	if n, all := strings.Count(r.stderr, "com.example.broken: no rules\n"), strings.Count(r.stderr, "com.example.broken: "); n != 1 || all < 6 {
		t.Errorf("%d and %d in all, want 1 and at least 6: %s", n, all, r.stderr)
	}
}

// TestReplayAbhed replays the decisions of an Abhed session's record.
func TestReplayAbhed(t *testing.T) {
	var text []byte
	add := func(p event.Payload) {
		e := event.Event{ID: fmt.Sprintf("0192e4a0-7c1e-7b7e-9a55-%012d", len(text)), SessionID: "0192e4a0-7c1e-7b7e-9a55-000000000000", Seq: int64(1 + bytes.Count(text, []byte("\n"))), Time: time.Unix(1, 0).UTC(),
			Actor: event.ActorGate, Trust: event.TrustUntrusted, Payload: p, Hash: strings.Repeat("0", 64)}
		line, err := event.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		text = append(append(text, line...), '\n')
	}
	call := func(command string, asked ...event.Asked) *event.Decision {
		return &event.Decision{CallID: "c", Tool: "bash", AgentID: "main", Original: event.Raw(`{"command":"` + command + `"}`), Outcome: "run", Step: "rules", WorkDir: "/srv", Roots: []string{"/srv"}, Asked: asked}
	}
	add(call("git push"))
	add(call("git push", event.Asked{Kind: "backend", Name: "org.test#0", Step: "tool.before", Answer: "ask+deny", Reason: "no"}))
	add(call("ls", event.Asked{Kind: "backend", Name: "org.test#0", Step: "tool.before", Answer: "failed", Policy: "fail-closed", Failure: "timeout"}, event.Asked{Kind: "extension", Name: "x", Step: "tool_call", Answer: "deny"}))
	add(&event.Notice{Text: "hello"})
	add(&event.Decision{CallID: "c", Tool: "bash", AgentID: "main", ArgsText: "{", Outcome: "deny", Step: "args"})
	file := write(t, "record.jsonl", string(text))
	h := newHome(t)
	h.run(t.Context(), nil, "", newReplay, "--rules", write(t, "rules.json", denyPush), file).want(t, exitNegative,
		"abhed        bash             pass -> deny", "abhed        bash             deny -> pass", "before: org.test#0: timeout", "judged: 3, would change: 2", "not judged: 1: the call has no arguments")
}
