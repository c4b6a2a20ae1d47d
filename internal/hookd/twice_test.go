package hookd_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hooklog"
)

// TestCredentialsOfTheEnvironment holds that a service judges nothing for which a
// registration names a variable, which it may not have, and a process of its own does.
func TestCredentialsOfTheEnvironment(t *testing.T) {
	for _, credential := range []string{`"type":"bearer","tokenEnv":"TEST_TOKEN"`, `"type":"bearer","tokenRef":"env:TEST_TOKEN"`} {
		for _, mode := range []string{hooklog.ModeService, hooklog.ModeInProcess} {
			w := newWorld(t, hookd.Options{Mode: mode, LookupEnv: func(string) (string, bool) { return "", false }})
			w.register(`{"protocolVersion":"draft","hooks":[{"id":"com.example.b","transport":{"type":"http","url":"https://127.0.0.1:9/"},"authentication":{` + credential + `},` +
				`"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":1000,"failurePolicy":"fail-closed","content":{"default":"body"}}]}]}`)
			a, err := w.judge.Do(context.Background(), &hookd.Call{Host: "claude-code", Data: bash("s", "t1", w.home, "echo hi"), Limit: 10 * time.Second})
			elsewhere := err != nil && strings.Contains(err.Error(), "must be judged in its own process")
			if elsewhere != (mode == hooklog.ModeService) || !elsewhere && (err != nil || a.Code != hookd.ExitDeny) {
				t.Errorf("%s, %s: %d %s, %v", credential, mode, a.Code, said(a), err)
			}
		}
	}
}

// TestAPermissionIsNoCall holds that an id which was made up for the question whether a
// call may be made isn't taken for the id of a call that was made.
func TestAPermissionIsNoCall(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	w.register(w.document(hook{mode: "allow", policy: "fail-closed", events: `["tool.before","tool.permission.request","tool.after"]`}))
	call := func(native, more string) string {
		a := w.do(hookd.Call{Host: "copilot", Native: native, Data: fmt.Appendf(nil, `{"sessionId":"s","timestamp":1796039805278,"cwd":%q,"toolName":"bash",%s}`, w.home, more)})
		e := w.last()
		if e.Problem != "" || e.Native != native || !e.CallSynthesized {
			t.Fatalf("%s: %s; in the log: %+v", native, said(a), e)
		}
		return e.Call
	}
	for round := range 2 {
		before := call("preToolUse", `"toolArgs":{"command":"a"}`)
		asked := call("permissionRequest", `"toolInput":{"command":"a"},"permissionSuggestions":[]`)
		after := call("postToolUse", `"toolArgs":{"command":"a"},"toolResult":{"resultType":"success","textResultForLlm":"x"}`)
		if before != after || asked == before {
			t.Errorf("round %d: before the call %s, asked %s, after it %s", round, before, asked, after)
		}
	}
}

// TestASlowDeliveryIsJudgedAgain holds that who comes second doesn't wait for longer than
// it can, judges by itself, and says so in the log.
func TestASlowDeliveryIsJudgedAgain(t *testing.T) {
	w := newWorld(t, hookd.Options{Mode: hooklog.ModeService})
	w.register(w.document(hook{mode: "hang", policy: "fail-closed", ms: 30_000}))
	event := fmt.Appendf(nil, `{"session_id":"s","turn_id":"u","cwd":%q,"hook_event_name":"PreToolUse","model":"m","permission_mode":"default","tool_name":"Bash","tool_input":{"command":"x"},"tool_use_id":"c"}`, filepath.Clean(w.home))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	first := later(func() hookd.Answer {
		a, _ := w.judge.Do(ctx, &hookd.Call{Host: "codex", Data: event, Limit: time.Minute})
		return a
	})
	until(t, "the first is asked about", func() bool { return strings.Contains(w.noted(), "asked") })
	const limit = 5 * time.Second
	began := time.Now()
	a := w.do(hookd.Call{Host: "codex", Data: event, Limit: limit})
	if took := time.Since(began); a.Code != hookd.ExitDeny || took > limit {
		t.Errorf("after %v of %v: %d %s", took, limit, a.Code, said(a))
	}
	if e := w.last(); !e.Duplicate || e.Decision != hooklog.Deny {
		t.Errorf("in the log: %+v", e)
	}
	cancel()
	<-first
}

// TestStandingInIsLogged holds that the log tells a refusal that a policy wanted from one
// that stands in for what the host can't do.
func TestStandingInIsLogged(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	for mode, want := range map[string]string{"ask": hooklog.AppliedStoodIn, "deny": hooklog.AppliedNative, "allow": ""} {
		w.register(w.document(hook{mode: mode, policy: "fail-closed"}))
		data := fmt.Appendf(nil, `{"session_id":%q,"turn_id":"u","cwd":%q,"hook_event_name":"PreToolUse","model":"m","permission_mode":"default","tool_name":"Bash","tool_input":{"command":"x"},"tool_use_id":"c"}`, mode, w.home)
		a := w.do(hookd.Call{Host: "codex", Data: data}) // it asks nobody in a run without a person
		if e := w.last(); e.Applied != want || (a.Code == hookd.ExitDeny) != (want != "") {
			t.Errorf("%s: %d %s; in the log %q, expected %q", mode, a.Code, said(a), e.Applied, want)
		}
	}
}
