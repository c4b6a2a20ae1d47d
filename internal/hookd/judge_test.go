package hookd_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/selfprotect"
)

func TestVerdicts(t *testing.T) {
	for _, tt := range []struct {
		mode, policy string
		code         int
		stdout       string   // a part, "" for nothing at all
		reason       []string // parts of it
		decision     hooklog.Decision
	}{
		{"allow", "fail-closed", hookd.ExitPass, "", nil, hooklog.Pass},
		{"deny", "fail-open", hookd.ExitDeny, `"permissionDecision":"deny"`, []string{"Refused by com.example.b0: not in this house", "Retryable: yes", "Accepted instead: ask the owner"}, hooklog.Deny},
		{"ask", "fail-closed", hookd.ExitDeliver, `"permissionDecision":"ask"`, nil, hooklog.Ask},
		{"rewrite", "fail-closed", hookd.ExitDeliver, `"updatedInput":{"command":"echo safe"}`, nil, hooklog.Rewrite},
		{"notice", "fail-closed", hookd.ExitDeliver, `{"systemMessage":"seen"}`, nil, hooklog.Tell},
		{"stop", "fail-closed", hookd.ExitDeliver, `"continue":false`, nil, hooklog.Tell},
		{"crash", "fail-closed", hookd.ExitDeny, `"permissionDecision":"deny"`, []string{"could not be completed", "Retryable: yes"}, hooklog.Deny},
		{"crash", "fail-open", hookd.ExitPass, "", nil, hooklog.Pass},
		{"garbage", "fail-closed", hookd.ExitDeny, `"permissionDecision":"deny"`, []string{"could not be completed"}, hooklog.Deny},
		{"garbage", "fail-open", hookd.ExitPass, "", nil, hooklog.Pass},
	} {
		t.Run(tt.mode+" "+tt.policy, func(t *testing.T) {
			w := newWorld(t, hookd.Options{})
			w.register(w.document(hook{mode: tt.mode, policy: tt.policy}))
			a := w.do(hookd.Call{Data: bash("s", "t1", w.home, "echo hi")})
			if a.Code != tt.code || !strings.Contains(string(a.Stdout), tt.stdout) || tt.stdout == "" && len(a.Stdout) > 0 || len(a.Stderr) > 0 {
				t.Errorf("%d %q %q, want %d with %q", a.Code, a.Stdout, a.Stderr, tt.code, tt.stdout)
			}
			for _, part := range tt.reason {
				if !strings.Contains(said(a), part) {
					t.Errorf("%q, want %q in it", a.Stderr, part)
				}
			}
			if strings.Contains(string(a.Stdout), `"allow"`) {
				t.Errorf("a permission was given: %q", a.Stdout)
			}
			e := w.last()
			if e.Decision != tt.decision || e.Host != "claude-code" || e.Tool != "Bash" || e.Call != "t1" || e.Session != "s" || len(e.Answers) != 1 || e.Problem != "" || len(e.Registration) != 1 {
				t.Errorf("in the log: %+v", e)
			}
		})
	}
}

// TestInTime holds that the host gets an answer before its own limit, whatever the
// registration allows the backend.
func TestInTime(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]int{"fail-closed": hookd.ExitDeny, "fail-open": hookd.ExitPass} {
		w := newWorld(t, hookd.Options{})
		w.register(w.document(hook{mode: "hang", policy: policy, ms: 3_600_000}))
		const limit = 8 * time.Second // a fifth of it is what a busy machine may lose
		began := time.Now()
		a := w.do(hookd.Call{Data: bash("s", "t1", w.home, "echo hi"), Limit: limit})
		if took := time.Since(began); took > limit {
			t.Errorf("%s: the answer took %v, and the host waits for %v", policy, took, limit)
		}
		if a.Code != want {
			t.Errorf("%s: %d %q", policy, a.Code, said(a))
		}
		if e := w.last(); len(e.Answers) != 1 || e.Answers[0].Failure == nil || e.Answers[0].Failure.Class != string(ahp.FailDeadline) {
			t.Errorf("%s: in the log: %+v", policy, e)
		}
	}
}

func TestByPolicy(t *testing.T) {
	whole := string(bash("s", "t1", "/", "echo hi"))
	for _, tt := range []struct{ name, data, part string }{
		{"nothing", "", "is empty"}, {"a byte order mark alone", "\xef\xbb\xbf", "is empty"}, {"line feeds alone", "\n\r\n\n", "is empty"},
		{"cut", whole[:len(whole)-9], "can't be read"}, {"two documents", whole + whole, "can't be read"}, {"an unknown event", strings.Replace(whole, "PreToolUse", "PreToolUses", 1), "isn't known"},
		{"no tool", strings.Replace(whole, "tool_name", "tool", 1), "tool_name"}, {"input of another kind", strings.Replace(whole, `{"command":"echo hi"}`, `7`, 1), "no JSON object"},
		{"a repeated member", strings.Replace(whole, `"cwd"`, `"tool_name":"Read","cwd"`, 1), "tool_name"}, {"a list", "[1]", "can't be read"}, {"text", "hello", "can't be read"},
		{"a lone surrogate", strings.Replace(whole, "echo hi", `\ud800`, 1), "surrogate"}, {"bad UTF-8", strings.Replace(whole, "echo hi", "\xff", 1), "UTF-8"},
		{"deep", `{"session_id":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}", "can't be read"},
	} {
		w := newWorld(t, hookd.Options{})
		w.register(w.document(hook{mode: "allow", policy: "fail-open"}))
		a := w.do(hookd.Call{Data: []byte(tt.data)})
		if a.Code != hookd.ExitDeny || !strings.Contains(said(a), tt.part) || !strings.Contains(said(a), "could not be checked") {
			t.Errorf("%s: %d %q, want %q in a refusal", tt.name, a.Code, a.Stderr, tt.part)
		}
		if e := w.last(); e.Problem == "" || !strings.Contains(e.Problem, "--on-missing deny") {
			t.Errorf("%s: in the log: %+v", tt.name, e)
		}
		if a := w.do(hookd.Call{Data: []byte(tt.data), Open: true}); a.Code != hookd.ExitPass {
			t.Errorf("%s, where such calls pass: %d %q", tt.name, a.Code, said(a))
		}
		if w.noted() != "" {
			t.Errorf("%s: a backend was asked: %s", tt.name, w.noted())
		}
	}
	for _, data := range []string{whole + "\r\n", "\xef\xbb\xbf" + whole, "\r\n\t " + whole + "\n\n"} {
		w := newWorld(t, hookd.Options{})
		w.register(w.document(hook{mode: "deny", policy: "fail-open"}))
		if a := w.do(hookd.Call{Data: []byte(data)}); a.Code != hookd.ExitDeny || !strings.Contains(said(a), "not in this house") {
			t.Errorf("%q: %d %q", data[:3], a.Code, said(a))
		}
	}
}

func TestRegistrationAtFault(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	ask := func(part string) {
		t.Helper()
		a := w.do(hookd.Call{Data: bash("s", "t1", w.home, "echo hi")})
		if a.Code != hookd.ExitDeny || !strings.Contains(said(a), part) {
			t.Errorf("%d %q, want %q", a.Code, a.Stderr, part)
		}
	}
	ask("no AHP registration is in force")
	w.register(`{"protocolVersion":"draft","hooks":[]}`)
	ask("registration.json:1:")
	good := w.document(hook{mode: "allow", policy: "fail-closed"})
	w.register(strings.Replace(good, `"timeoutMs"`, `"timeoutms"`, 1))
	ask("registration.json:1:")
	// A second entry of the same backend makes the whole document ambiguous.
	w.register(strings.Replace(w.document(hook{mode: "allow", policy: "fail-closed"}, hook{mode: "allow", policy: "fail-open"}), "example.b1", "example.b0", 1))
	ask("each backend once")
	w.register(w.document(hook{mode: "allow", policy: "fail-closed", events: `["tool.before","model.request.before"]`}))
	ask("model.request.before, which this host has no way to block")
	w.register(w.document(hook{mode: "allow", policy: "fail-closed", events: `["session.start"]`}))
	ask("session.start, which this host has no way to block")
	w.register(good)
	if err := os.Chmod(filepath.Join(w.home, ".config", "ahp", "registration.json"), 0o666); err != nil {
		t.Fatal(err)
	}
	ask("writ")
	w.register(good)
	if err := os.Chmod(filepath.Join(w.home, ".config", "ahp", "registration.json"), 0o600); err != nil {
		t.Fatal(err)
	}
	if a := w.do(hookd.Call{Data: bash("s", "t1", w.home, "echo hi")}); a.Code != hookd.ExitPass {
		t.Errorf("%d %q", a.Code, said(a))
	}
}

// TestWhatIsNotWrittenDownIsRefused: a decision that the log doesn't hold isn't told.
func TestWhatIsNotWrittenDownIsRefused(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	w.register(w.document(hook{mode: "allow", policy: "fail-open"}))
	if a := w.do(hookd.Call{Data: bash("s", "t1", w.home, "echo hi")}); a.Code != hookd.ExitPass {
		t.Fatalf("%d %q", a.Code, said(a))
	}
	file := filepath.Join(hooklog.LogDir(w.judge.StateDir()), hooklog.File)
	if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o700)); err != nil {
		t.Fatal(err)
	}
	a := w.do(hookd.Call{Data: bash("s", "t2", w.home, "echo hi")})
	if a.Code != hookd.ExitDeny || !strings.Contains(said(a), "can't be written down") {
		t.Errorf("%d %q", a.Code, said(a))
	}
	w.register(w.document(hook{mode: "deny", policy: "fail-closed"}))
	if a := w.do(hookd.Call{Data: bash("s", "t3", w.home, "echo hi"), Open: true}); a.Code != hookd.ExitDeny || !strings.Contains(said(a), "not in this house") {
		t.Errorf("a refusal that isn't written down: %d %q", a.Code, said(a))
	}
}

func TestLoopBreaker(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	w.register(w.document(hook{mode: "deny", policy: "fail-closed"}))
	var lengths []int
	for i := range 5 {
		a := w.do(hookd.Call{Data: bash("s", fmt.Sprintf("t%d", i), w.home, "rm -rf /")})
		lengths = append(lengths, len(said(a)))
		if e := w.last(); e.Repeat != i {
			t.Errorf("call %d counts as repeated %d times", i, e.Repeat)
		}
		if i >= 3 && !strings.Contains(said(a), "Repeating this call can't succeed") {
			t.Errorf("call %d: %q", i, a.Stderr)
		}
	}
	if lengths[1] >= lengths[0] {
		t.Errorf("the texts have %v bytes, expected the second to be shorter", lengths)
	}
	// The same call, judged for another line of the host's.
	w.do(hookd.Call{Data: bash("s", "t4", w.home, "rm -rf /"), Open: true})
	if e := w.last(); e.Repeat != 4 {
		t.Errorf("one call for two lines counts as repeated %d times", e.Repeat)
	}
	for name, data := range map[string][]byte{"another call": bash("s", "t9", w.home, "rm -rf /tmp"), "another session": bash("z", "t9", w.home, "rm -rf /")} {
		w.do(hookd.Call{Data: data})
		if e := w.last(); e.Repeat != 0 {
			t.Errorf("%s counts as repeated %d times", name, e.Repeat)
		}
	}
}

// TestSessionsDontWait holds that a session whose backend hangs delays no other.
func TestSessionsDontWait(t *testing.T) {
	w := newWorld(t, hookd.Options{Mode: hooklog.ModeService})
	w.register(w.document(hook{mode: "hang", policy: "fail-open", ms: 30_000}))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan hookd.Answer, 1)
	go func() {
		a, _ := w.judge.Do(ctx, &hookd.Call{Host: "claude-code", Data: bash("slow", "t1", w.home, "echo hi"), Limit: time.Minute})
		ended <- a
	}()
	until(t, "the slow session's backend is asked", func() bool { return strings.Contains(w.noted(), "asked") })
	// The same registration, another session: its own process answers, after its own time.
	a := w.do(hookd.Call{Data: bash("quick", "t1", w.home, "echo hi"), Limit: time.Second})
	if a.Code != hookd.ExitPass {
		t.Errorf("%d %q", a.Code, said(a))
	}
	if n := strings.Count(w.noted(), "asked"); n != 2 {
		t.Errorf("%d backends were asked, expected one for each session", n)
	}
	select {
	case a := <-ended:
		t.Errorf("the slow session ended first: %+v", a)
	default:
	}
	cancel()
	if a := <-ended; a.Code != hookd.ExitDeny {
		t.Errorf("a cancelled call: %+v", a)
	}
}

func TestProtectionComesFirst(t *testing.T) {
	w := newWorld(t, hookd.Options{})
	rules := filepath.Join(w.home, "rules.json")
	w.register(strings.Replace(w.document(hook{mode: "allow", policy: "fail-closed"}), `"args":[`, fmt.Sprintf(`"args":["backend","allow",%q,"--rules",%q,`, w.notes, rules), 1))
	for i, command := range []string{"echo > ~/.claude/settings.json", "rm " + filepath.Join(w.home, ".config", "ahp", "registration.json"), "echo '{}' > " + rules, "cp /bin/true " + exe(t), "ahp uninstall claude-code"} {
		a := w.do(hookd.Call{Data: bash("s", fmt.Sprint("t", i), w.home, command)})
		if a.Code != hookd.ExitDeny || !strings.Contains(said(a), hookd.SelfProtection) {
			t.Errorf("%s: %d %q", command, a.Code, said(a))
		}
		if e := w.last(); e.Code != selfprotect.Code || len(e.Answers) != 1 || e.Answers[0].Backend != hookd.SelfProtection {
			t.Errorf("in the log: %+v", e)
		}
	}
	if strings.Contains(w.noted(), "asked") {
		t.Errorf("a backend was asked all the same: %s", w.noted())
	}
	until(t, "the interceptor is told", func() bool { return strings.Contains(w.noted(), "observed tool.before") })
	for i, call := range []hookd.Call{
		{Data: bash("s", "u0", w.home, "echo > ~/.claude/settings.json"), Unprotected: true}, {Data: bash("s", "u1", w.home, "cat ~/.claude/settings.json")},
	} {
		if a := w.do(call); a.Code != hookd.ExitPass {
			t.Errorf("%d: %d %q", i, a.Code, said(a))
		}
	}
}

// TestNativeOnRequest: a backend sees the agent's own event only if it asks for it, and
// the log never has it.
func TestNativeOnRequest(t *testing.T) {
	for include, want := range map[bool]bool{true: true, false: false} {
		w := newWorld(t, hookd.Options{})
		document := w.document(hook{mode: "show native", policy: "fail-closed"})
		if include {
			document = strings.Replace(document, `"mode":"intercept"`, `"mode":"intercept","includeNative":true`, 1)
		}
		w.register(document)
		w.do(hookd.Call{Data: bash("s", "t1", w.home, "echo hi")})
		if got := strings.Contains(w.noted(), `native {"cwd":`); got != want {
			t.Errorf("asked for: %v, seen: %v: %s", include, got, w.noted())
		}
		if e := w.last(); strings.Contains(string(e.Event), "hook_event_name") {
			t.Errorf("the log has the native event: %s", e.Event)
		}
	}
}
