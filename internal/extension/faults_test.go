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

// TestFaults runs every way of failing in every policy: the extension is dead,
// recorded with cause and stderr, and policy goes on.
func TestFaults(t *testing.T) {
	big := `{"content":"` + strings.Repeat("x", 1<<20) + `"}`
	tests := []struct {
		name, action string
		args         string
		class, cause string
	}{
		{"crash", "@stderr oh no && @exit 3", "", "exit", "the process ended: exit code 3"},
		{"crash in a reply", `@raw "{\"block\":" && @exit 0`, "", "exit", "in the middle of a reply: exit code 0"},
		{"closed output", "@closeout && @hang", "", "exit", "closed its standard output and went on running"},
		{"hang", "@hang", "", "timeout", "no reply to tool_call within"},
		{"half a line", `@raw "{\"block\":true}" && @hang`, "", "timeout", "no reply to tool_call within"},
		{"garbage", "Traceback (most recent call last):", "", "invalid", `starts with "Traceback`},
		{"garbage in a brace", "{garbage", "", "invalid", "the reply is no JSON"},
		{"list", "[]", "", "invalid", `starts with "[]`},
		{"empty line", `@raw "\n"`, "", "invalid", `starts with "\n"`},
		{"byte order mark", `@raw "\ufeff{}\n"`, "", "invalid", "a byte order mark"},
		{"text after the brace", `@raw "{} ok\n"`, "", "invalid", "after the reply's closing brace"},
		{"wrong type", `{"block":"yes"}`, "", "invalid", "found a string, expected a boolean"},
		{"repeated name", `{"block":true,"block":false}`, "", "invalid", "the same member name twice"},
		{"bad UTF-8", `@raw "{\"reason\":\"\xff\"}\n"`, "", "invalid", "invalid UTF-8"},
		{"wrong seq", "@seq 1", "", "out_of_step", "the reply to request 2 says seq 3"},
		{"old seq", "@seq -1", "", "out_of_step", "the reply to request 2 says seq 1"},
		{"endless line", "@endless", "", "too_large", "more than 16777216 bytes"},
		{"never reads", "", big, "timeout", "did not read the tool_call request within"},
	}
	for _, tt := range tests {
		for _, onFailure := range []extension.OnFailure{extension.Skip, extension.AskPerson, extension.Block} {
			t.Run(tt.name+"/"+string(onFailure), func(t *testing.T) {
				t.Parallel()
				on := actions{"tool_call": tt.action}
				if tt.args != "" {
					on = actions{"list_tools": "{} && @hang"}
				}
				cfg := with(fakeExt(t, "a", on), func(c *extension.Config) { c.OnFailure, c.Timeout = onFailure, 20*time.Second })
				if tt.class == "timeout" {
					cfg.Timeout = 300 * time.Millisecond
				}
				checkFault(t, cfg, tt.args, tt.class, tt.cause)
			})
		}
	}
}

func checkFault(t *testing.T, cfg extension.Config, args, class, cause string) {
	t.Helper()
	if args == "" {
		args = `{"command":"ls"}`
	}
	rec := &record{}
	h := start(t, rec, cfg, fakeExt(t, "healthy", nil))
	pid := state(t, h, "a").Pid
	begin := time.Now()
	answers := hook(t, h, "bash", args)
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("took %v", took)
	}
	want := map[extension.OnFailure]policy.Verdict{extension.Skip: policy.Allow, extension.AskPerson: policy.Ask, extension.Block: policy.Deny}[cfg.OnFailure]
	for round := 1; round <= 2; round++ { // the call in hand, and a later one
		a := answers[0]
		if got := policy.Join(policy.Allow, objections(answers)); got != want {
			t.Errorf("call %d: the verdict is %s, want %s", round, got, want)
		}
		if a.Asked.Answer != "failed" || a.Asked.Failure != class || a.Asked.Policy != string(cfg.OnFailure) || !strings.Contains(a.Asked.Reason, cause) {
			t.Errorf("call %d: asked %+v, want failed, %s, %q", round, a.Asked, class, cause)
		}
		if answers[1].Asked.Answer != "none" {
			t.Errorf("call %d: the healthy one: %+v", round, answers[1])
		}
		answers = hook(t, h, "bash", `{"command":"ls"}`)
	}
	dead := rec.changes("a", "dead")
	if len(dead) != 1 || !strings.Contains(dead[0].Cause, cause) || !strings.HasPrefix(dead[0].Cause, class+": ") ||
		dead[0].OnFailure != string(cfg.OnFailure) || dead[0].Pid != pid {
		t.Errorf("recorded %+v", dead)
	}
	if strings.Contains(strings.Join(cfg.Env, " "), "@stderr oh no") && (len(dead) != 1 || dead[0].Stderr != "oh no\n") {
		t.Errorf("the end of stderr is missing: %+v", dead)
	}
	if !gone(pid) {
		t.Errorf("process %d is left", pid)
	}
	if s := state(t, h, "a"); s.State != extension.StateDead || s.Pid != 0 || !strings.Contains(s.LastError, cause) {
		t.Errorf("state %+v", s)
	}
}

func TestLargestReply(t *testing.T) {
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
	h := start(t, nil, extension.Config{Name: "a", Command: "sh", Args: []string{"-c", `read -r l; echo '{}'; read -r l; sleep 1000 & exit 4`}})
	begin := time.Now()
	got := one(t, h, "bash", `{}`)
	if got.Asked.Failure != "exit" || !strings.Contains(got.Asked.Reason, "exit code 4") || time.Since(begin) > 4*time.Second {
		t.Errorf("after %v: %+v", time.Since(begin), got.Asked)
	}
}

func TestDeadFromTheStart(t *testing.T) {
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
	cfg := with(fakeExt(t, "a", actions{"tool_call": "@hang"}), func(c *extension.Config) { c.Timeout = 400 * time.Millisecond })
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
	cfg := with(extension.Config{Name: "a", Command: "sh", Args: []string{"-c", `while read -r l; do sleep 0.2; echo '{}'; done`}},
		func(c *extension.Config) { c.Timeout = time.Second })
	h := start(t, nil, cfg)
	const n = 8 // together longer than the time-out
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
