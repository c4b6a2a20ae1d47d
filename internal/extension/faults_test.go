package extension_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/policy"
)

// TestFaults runs every way of failing in one host, whose healthy extension must
// not notice: the extension is dead, recorded with cause and stderr, and policy
// goes on.
func TestFaults(t *testing.T) {
	t.Parallel()
	const timeout = 4 * time.Second
	tests := []struct {
		name         string
		on           actions
		onFailure    extension.OnFailure
		class, cause string
	}{
		{"crash-skip", actions{"tool_call": "@stderr oh no && @exit 3"}, extension.Skip, "exit", "the process ended: exit code 3"},
		{"crash-ask", actions{"tool_call": "@exit 3"}, extension.AskPerson, "exit", "the process ended: exit code 3"},
		{"crash-block", actions{"tool_call": "@exit 3"}, extension.Block, "exit", "the process ended: exit code 3"},
		{"crash-default", actions{"tool_call": "@exit 3"}, "", "exit", "the process ended: exit code 3"},
		{"crash-in-a-reply", actions{"tool_call": `@raw "{\"block\":" && @exit 0`}, extension.Block, "exit", "in the middle of a reply: exit code 0"},
		{"closed-output", actions{"tool_call": "@closeout && @hang"}, extension.Block, "exit", "closed its standard output and went on running"},
		{"hang", actions{"tool_call": "@hang"}, extension.Skip, "timeout", "no reply to tool_call within 4s"},
		{"hang-block", actions{"tool_call": "@hang"}, extension.Block, "timeout", "no reply to tool_call within 4s"},
		{"half-a-line", actions{"tool_call": `@raw "{\"block\":true}" && @hang`}, extension.AskPerson, "timeout", "no reply to tool_call within 4s"},
		{"never-reads", actions{"list_tools": "{} && @hang"}, extension.Block, "timeout", "did not read the tool_call request within 4s"},
		{"garbage", actions{"tool_call": "Traceback (most recent call last):"}, extension.Block, "invalid", `starts with "Traceback`},
		{"garbage-in-a-brace", actions{"tool_call": "{garbage"}, extension.AskPerson, "invalid", "the reply is no JSON"},
		{"list", actions{"tool_call": "[]"}, extension.Skip, "invalid", `starts with "[]`},
		{"empty-line", actions{"tool_call": `@raw "\n"`}, extension.Block, "invalid", `starts with "\n"`},
		{"byte-order-mark", actions{"tool_call": `@raw "\ufeff{}\n"`}, extension.Block, "invalid", "a byte order mark"},
		{"text-after-the-brace", actions{"tool_call": `@raw "{} ok\n"`}, extension.AskPerson, "invalid", "after the reply's closing brace"},
		{"wrong-type", actions{"tool_call": `{"block":"yes"}`}, extension.Block, "invalid", "found a string, expected a boolean"},
		{"repeated-name", actions{"tool_call": `{"block":true,"block":false}`}, extension.Block, "invalid", "the same member name twice"},
		{"bad-UTF-8", actions{"tool_call": `@raw "{\"reason\":\"\xff\"}\n"`}, extension.Skip, "invalid", "invalid UTF-8"},
		{"wrong-seq", actions{"tool_call": "@seq 1"}, extension.Block, "out_of_step", "the reply to request 2 says seq 3"},
		{"old-seq", actions{"tool_call": "@seq -1"}, extension.Block, "out_of_step", "the reply to request 2 says seq 1"},
		{"endless-line", actions{"tool_call": "@endless"}, extension.Block, "too_large", "more than 16777216 bytes"},
	}
	configs := []extension.Config{fakeExt(t, "healthy", nil)}
	for _, tt := range tests {
		configs = append(configs, with(fakeExt(t, tt.name, tt.on), func(c *extension.Config) {
			c.OnFailure = tt.onFailure
			if tt.class == "timeout" {
				c.Timeout = timeout
			}
		}))
	}
	rec := &record{}
	h := start(t, rec, configs...)
	pids := map[string]int{}
	for _, s := range h.States() {
		pids[s.Name] = s.Pid
	}
	// More than a pipe holds, for the one that never reads.
	inHand := byName(hook(t, h, "bash", `{"content":"`+strings.Repeat("x", 1<<20)+`"}`))
	later := byName(hook(t, h, "bash", `{"command":"ls"}`))
	for i, answers := range []map[string]extension.Answer{inHand, later} {
		if a := answers["healthy"]; a.Asked.Answer != "none" || a.Asked.Failure != "" {
			t.Errorf("call %d: the healthy one: %+v", i+1, a.Asked)
		}
	}
	verdicts := map[extension.OnFailure]policy.Verdict{
		"": policy.Allow, extension.Skip: policy.Allow, extension.AskPerson: policy.Ask, extension.Block: policy.Deny,
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			name := string(tt.onFailure)
			if name == "" {
				name = "skip"
			}
			for i, answers := range []map[string]extension.Answer{inHand, later} {
				a := answers[tt.name]
				if got := policy.Join(policy.Allow, []policy.Objection{a.Objection}); got != verdicts[tt.onFailure] {
					t.Errorf("call %d: the verdict is %s, want %s", i+1, got, verdicts[tt.onFailure])
				}
				if a.Asked.Answer != "failed" || a.Asked.Failure != tt.class || a.Asked.Policy != name || !strings.Contains(a.Asked.Reason, tt.cause) {
					t.Errorf("call %d: asked %+v, want failed, %s, %q", i+1, a.Asked, tt.class, tt.cause)
				}
			}
			dead := rec.changes(tt.name, "dead")
			if len(dead) != 1 {
				t.Fatalf("recorded %+v", dead)
			}
			d := dead[0]
			if !strings.HasPrefix(d.Cause, tt.class+": ") || !strings.Contains(d.Cause, tt.cause) || d.OnFailure != name || d.Pid != pids[tt.name] {
				t.Errorf("recorded %+v", d)
			}
			if tt.name == "crash-skip" && d.Stderr != "oh no\n" {
				t.Errorf("the end of stderr was recorded as %q", d.Stderr)
			}
			if !gone(d.Pid) {
				t.Errorf("process %d is left", d.Pid)
			}
			if s := state(t, h, tt.name); s.State != extension.StateDead || s.Pid != 0 || !strings.Contains(s.LastError, tt.cause) {
				t.Errorf("state %+v", s)
			}
		})
	}
}

func byName(answers []extension.Answer) map[string]extension.Answer {
	m := map[string]extension.Answer{}
	for _, a := range answers {
		m[a.Name] = a
	}
	return m
}

func TestLargestReply(t *testing.T) {
	t.Parallel()
	h := start(t, nil, fakeExt(t, "a", actions{"tool_call": "@big 16777216"}))
	if got := one(t, h, "bash", `{}`); got.Asked.Answer != "none" {
		t.Errorf("a reply of exactly 16 MiB: %+v", got.Asked)
	}
	h = start(t, nil, fakeExt(t, "a", actions{"tool_call": "@big 16777217"}))
	if got := one(t, h, "bash", `{}`); got.Asked.Failure != "too_large" {
		t.Errorf("a reply of 16 MiB and one byte: %+v", got.Asked)
	}
}

// TestTwoReplies: the first counts, the second kills, and on_failure counts too.
func TestTwoReplies(t *testing.T) {
	t.Parallel()
	for name, want := range map[extension.OnFailure]string{extension.Skip: "ask", extension.AskPerson: "ask", extension.Block: "deny"} {
		rec := &record{}
		h := start(t, rec, with(fakeExt(t, "a", actions{"tool_call": `@raw "{\"ask\":true,\"reason\":\"r\"}\n{}\n"`}),
			func(c *extension.Config) { c.OnFailure = name }))
		got := one(t, h, "bash", `{}`)
		if got.Objection.String() != want || got.Asked.Answer != "ask+failed" || got.Asked.Failure != "out_of_step" {
			t.Errorf("on_failure %s: objection %s, asked %+v", name, got.Objection, got.Asked)
		}
		if dead := rec.changes("a", "dead"); len(dead) != 1 || !strings.Contains(dead[0].Cause, `it wrote "{}\n", which answers no request`) {
			t.Errorf("recorded %+v", dead)
		}
	}
}

// TestUnaskedOutput: what is written between two requests kills, though nobody is
// asking.
func TestUnaskedOutput(t *testing.T) {
	t.Parallel()
	path, release := fifo(t)
	rec := &record{}
	h := start(t, rec, fakeExt(t, "a", actions{"tool_call": "{} && @wait " + path + ` && @raw "\n" && @hang`}))
	if got := one(t, h, "bash", `{}`); got.Asked.Answer != "none" {
		t.Fatalf("first call: %+v", got)
	}
	release()
	eventually(t, "the death", func() bool { return len(rec.changes("a", "dead")) == 1 })
	if got := one(t, h, "bash", `{}`); got.Asked.Failure != "out_of_step" {
		t.Errorf("second call: %+v", got.Asked)
	}
}

// TestDiesBetweenCalls: a one-shot program answers once and is dead then.
func TestDiesBetweenCalls(t *testing.T) {
	t.Parallel()
	rec := &record{}
	h := start(t, rec, fakeExt(t, "a", actions{"tool_call": `{"ask":true} && @exit 0`}))
	if got := one(t, h, "bash", `{}`); !got.Objection.Asks() {
		t.Errorf("the last words of a process don't count: %+v", got)
	}
	eventually(t, "the death", func() bool { return len(rec.changes("a", "dead")) == 1 })
	if got := rec.changes("a", "dead")[0].Cause; got != "exit: the process ended: exit code 0" {
		t.Errorf("cause %q", got)
	}
}

// TestDescendantHoldsThePipes: the extension's end is that of its process, even
// if a child of it keeps the streams open.
func TestDescendantHoldsThePipes(t *testing.T) {
	t.Parallel()
	h := start(t, nil, extension.Config{Name: "a", Command: "sh", Args: []string{"-c", `read -r l; echo '{}'; read -r l; sleep 1000 & exit 4`},
		Timeout: time.Minute})
	begin := time.Now()
	got := one(t, h, "bash", `{}`)
	if got.Asked.Failure != "exit" || !strings.Contains(got.Asked.Reason, "exit code 4") || time.Since(begin) > 30*time.Second {
		t.Errorf("after %v: %+v", time.Since(begin), got.Asked)
	}
}

func TestDeadFromTheStart(t *testing.T) {
	t.Parallel()
	rec := &record{}
	h := start(t, rec, extension.Config{Name: "a", Command: "/no/such/program", OnFailure: extension.AskPerson}, fakeExt(t, "b", nil))
	answers := hook(t, h, "bash", `{}`)
	if len(answers) != 2 || !answers[0].Objection.Asks() || answers[0].Asked.Failure != "start" || answers[1].Asked.Answer != "none" {
		t.Errorf("answers %+v", answers)
	}
	if dead := rec.changes("a", "dead"); len(dead) != 1 || !strings.Contains(dead[0].Cause, "/no/such/program") {
		t.Errorf("recorded %+v", dead)
	}
}

// TestInterruptedWait: the late reply is thrown away and the next request gets its
// own.
func TestInterruptedWait(t *testing.T) {
	t.Parallel()
	path, release := fifo(t)
	log := filepath.Join(t.TempDir(), "log")
	cfg := fakeExt(t, "a", actions{
		"tool_call": "@wait " + path + ` && {"block":true,"reason":"late","log":"late"}`, "permission_request": `{"block":true,"reason":"own"}`,
	})
	cfg.Env = append(cfg.Env, fakeLog+"="+log)
	rec := &record{}
	h := start(t, rec, cfg)
	ctx, cancel := context.WithCancel(context.Background())
	answers := make(chan []extension.Answer)
	go func() { answers <- h.PolicyHook(ctx, extension.ToolCall{Call: call(t, "bash", `{}`)}) }()
	eventually(t, "the request", func() bool { return len(logLines(t, log)) == 2 })
	cancel()
	a := (<-answers)[0]
	if !a.Objection.Denies() || a.Asked.Answer != "failed" || a.Asked.Failure != "interrupted" {
		t.Errorf("the interrupted call: %+v", a)
	}
	go release()
	own := h.PermissionRequest(context.Background(), call(t, "bash", `{}`), policy.Declaration{}, "")
	if len(own) != 1 || own[0].Objection.Reason() != "own" {
		t.Errorf("the next request got %+v", own)
	}
	if s := state(t, h, "a"); s.State != extension.StateStarted {
		t.Errorf("state %+v", s)
	}
	if lines := rec.lines("a", "log"); lines != nil {
		t.Errorf("the late reply was heeded: %q", lines)
	}
}

// TestInterruptedWaitIsBounded: no late reply within the time-out kills.
func TestInterruptedWaitIsBounded(t *testing.T) {
	t.Parallel()
	cfg := with(fakeExt(t, "a", actions{"tool_call": "@hang"}), func(c *extension.Config) { c.Timeout = 3 * time.Second })
	rec := &record{}
	h := start(t, rec, cfg)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if a := h.PolicyHook(ctx, extension.ToolCall{Call: call(t, "bash", `{}`)})[0]; a.Asked.Failure != "interrupted" {
		t.Errorf("the interrupted call: %+v", a.Asked)
	}
	// It waits for the stream, and the clock of its own request doesn't run meanwhile.
	if a := one(t, h, "bash", `{}`); a.Asked.Failure != "timeout" {
		t.Errorf("the next call: %+v", a.Asked)
	}
	if dead := rec.changes("a", "dead"); len(dead) != 1 {
		t.Errorf("recorded %+v", dead)
	}
}

// TestClockStartsWithTheRequest: waiting for the stream is no part of the time-out.
func TestClockStartsWithTheRequest(t *testing.T) {
	t.Parallel()
	cfg := with(extension.Config{Name: "a", Command: "sh", Args: []string{"-c", `while read -r l; do sleep 0.3; echo '{}'; done`}},
		func(c *extension.Config) { c.Timeout = 2 * time.Second })
	h := start(t, nil, cfg)
	const n = 9 // together longer than the time-out
	answers := make(chan extension.Answer)
	for range n {
		go func() {
			answers <- h.PolicyHook(context.Background(), extension.ToolCall{Call: call(t, "bash", `{}`)})[0]
		}()
	}
	for range n {
		if a := <-answers; a.Asked.Answer != "none" {
			t.Errorf("asked %+v", a.Asked)
		}
	}
}

func TestAlreadyInterrupted(t *testing.T) {
	t.Parallel()
	h := start(t, nil, fakeExt(t, "a", nil))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if a := h.PolicyHook(ctx, extension.ToolCall{Call: call(t, "bash", `{}`)})[0]; !a.Objection.Denies() {
		t.Errorf("an interrupted call is let through: %+v", a)
	}
	if r := h.ToolResult(ctx, call(t, "bash", `{}`), policy.Declaration{}, "secret", false); !r.Withheld || strings.Contains(r.Content, "secret") {
		t.Errorf("an interrupted result is shown: %+v", r)
	}
	if a := one(t, h, "bash", `{}`); a.Asked.Answer != "none" {
		t.Errorf("the next call: %+v", a.Asked)
	}
}

// TestBrokenArguments: arguments that can't be sent are our bug and refuse.
func TestBrokenArguments(t *testing.T) {
	t.Parallel()
	h := start(t, nil, fakeExt(t, "a", nil))
	a := h.PolicyHook(context.Background(), extension.ToolCall{Call: policy.Call{Tool: "bash", Args: []byte(`{"a":`)}})[0]
	if !a.Objection.Denies() || a.Asked.Failure != "internal_bug" {
		t.Errorf("got %+v", a)
	}
	if s := state(t, h, "a"); s.State != extension.StateStarted {
		t.Errorf("the extension pays for it: %+v", s)
	}
}

func TestStderrFlood(t *testing.T) {
	t.Parallel()
	rec := &record{}
	h := start(t, rec, extension.Config{Name: "a", Command: "sh", Args: []string{"-c",
		`i=0; while [ $i -lt 10100 ]; do echo "line $i" >&2; i=$((i+1)); done; while read -r l; do echo '{}'; done`}})
	one(t, h, "bash", `{}`)
	h.Close()
	if n := len(rec.lines("a", "log")); n != 10_000 {
		t.Errorf("%d lines recorded, want 10000", n)
	}
	want := []string{"more than 10000 lines on standard error; the rest is not recorded"}
	if d := cmp.Diff(want, rec.lines("a", "warning")); d != "" {
		t.Errorf("warnings (-want +got):\n%s", d)
	}
}
