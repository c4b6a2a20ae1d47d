package harness_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/internal/require"
)

// The tests of this file are kinds of faults seen in other harnesses; the names
// are those of the collection they come from.

// scripted answers each request with the effects that say names.
func scripted(say string, sent *[]string) transport.Transport {
	var mu sync.Mutex
	return transport.InProcess(func(_ context.Context, msg []byte) ([]byte, error) {
		p, err := ahp.Peek(msg)
		if err != nil || !p.HasID {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		if sent != nil {
			*sent = append(*sent, string(msg))
		}
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"draft","effects":%s}}`, p.ID.String(), say), nil
	})
}

// broken is a backend that can't be reached.
func broken() transport.Transport {
	return transport.InProcess(func(context.Context, []byte) ([]byte, error) {
		return nil, &ahp.Failure{Class: ahp.FailConnect, Detail: "connection refused", Err: errors.New("refused")}
	})
}

// A backend that is killed, sleeps past its deadline or prints garbage lets the
// command run only where the registration says fail-open, and then with a trace.
func TestCaseI018(t *testing.T) {
	sh := require.Path(t, "sh")
	scripts := []struct {
		name, script string
		class        ahp.FailureClass
	}{
		{"signal", "read -r line; kill -SEGV $$", ahp.FailExit},
		{"deadline", "read -r line; sleep 30", ahp.FailDeadline},
		{"garbage", "read -r line; echo 'not json'", ahp.FailMalformed},
		{"launch", "", ahp.FailLaunch}, // a sibling: there is no such program
	}
	for _, s := range scripts {
		for _, policy := range []ahp.FailurePolicy{ahp.FailClosed, ahp.FailOpen} {
			for _, lifecycle := range []string{ahp.LifecyclePersistent, ahp.LifecyclePerEvent} {
				t.Run(s.name+"/"+string(policy)+"/"+lifecycle, func(t *testing.T) {
					t.Parallel()
					cfg := ahp.TransportConfig{Type: ahp.TransportStdio, Command: sh, Args: []string{"-c", s.script}, Lifecycle: lifecycle}
					if s.script == "" {
						cfg.Command = filepath.Join(t.TempDir(), "no-such-program")
					}
					link, err := transport.Stdio(cfg, transport.StdioOptions{Name: "test", Grace: 100 * time.Millisecond})
					if err != nil {
						t.Fatal(err)
					}
					sub := ahptest.Intercept(policy, 1500*time.Millisecond, "tool.before")
					h := newHarness(t, harness.Options{Retries: -1}, party{link: link, subs: []ahp.Subscription{sub}})
					out := dispatch(t, h, "i018")
					marker := filepath.Join(t.TempDir(), "ran")
					if out.MayExecute() {
						if err := os.WriteFile(marker, nil, 0o600); err != nil {
							t.Fatal(err)
						}
					}
					if _, err := os.Stat(marker); (err == nil) != (policy == ahp.FailOpen) {
						t.Errorf("ran is %v with %s", err == nil, policy)
					}
					a := out.Trace[0]
					if a.Kind != ahp.AnswerFailure || a.Failure == nil || a.Policy != policy {
						t.Fatalf("trace %+v", a)
					}
					if a.Failure.Class != s.class {
						t.Errorf("class %s, want %s: %v", a.Failure.Class, s.class, a.Failure)
					}
				})
			}
		}
	}
}

// One backend's rewrite survives the plain allow of the next, which has seen it.
func TestCaseI030(t *testing.T) {
	var seen []string
	rewrite := scripted(`[{"type":"modify","target":"input","operation":"replace","value":{"command":"ls -l"}}]`, nil)
	h := newHarness(t, harness.Options{}, intercepts(rewrite, ahp.FailClosed), intercepts(scripted(`[{"type":"allow"}]`, &seen), ahp.FailClosed))
	for i := range 100 {
		out, err := h.Dispatch(t.Context(), ahptest.ToolBefore(fmt.Sprintf("i030-%d", i), `{"command":"ls"}`), ahptest.FullCapabilities(ahp.ToolBefore), nil, harness.DispatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(out.Event.Tool.Input); got != `{"command":"ls -l"}` || out.Permission != ahp.PermissionAllow {
			t.Fatalf("run %d: input %s, permission %s", i, got, out.Permission)
		}
	}
	if len(seen) != 100 {
		t.Fatalf("the second backend was asked %d times", len(seen))
	}
	for _, msg := range seen {
		if !strings.Contains(msg, `{"command":"ls -l"}`) {
			t.Fatalf("the second backend saw %s", msg)
		}
	}
}

// A deny stands in every order, and the trace names who said it; an earlier
// allow ends nothing.
func TestCaseI033AndI034(t *testing.T) {
	says := map[string]string{"deny": `[{"type":"deny","reason":"no"}]`, "allow": `[{"type":"allow"}]`, "abstain": `[]`}
	for _, order := range [][]string{
		{"deny", "allow", "abstain"}, {"deny", "abstain", "allow"}, {"allow", "deny", "abstain"},
		{"allow", "abstain", "deny"}, {"abstain", "deny", "allow"}, {"abstain", "allow", "deny"}, {"allow", "deny"},
	} {
		t.Run(strings.Join(order, ","), func(t *testing.T) {
			var parties []party
			denier := ""
			for i, who := range order {
				parties = append(parties, intercepts(scripted(says[who], nil), ahp.FailClosed))
				if who == "deny" {
					denier = fmt.Sprintf("test.b%d", i)
				}
			}
			h := newHarness(t, harness.Options{}, parties...)
			out, err := h.Dispatch(t.Context(), ahptest.ToolBefore("i033", `{}`), ahptest.FullCapabilities(ahp.ToolBefore), nil, harness.DispatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if out.Permission != ahp.PermissionDeny || out.MayExecute() || out.Denial().By.Backend != denier || out.Denial().Synthetic {
				t.Errorf("permission %s, denial %+v, want that of %s", out.Permission, out.Denial(), denier)
			}
			if last := out.Trace[len(out.Trace)-1]; last.By.Backend != denier {
				t.Errorf("the chain went on to %s after the denial of %s", last.By.Backend, denier)
			}
		})
	}
}

// The budget of the call is shorter than the backend's deadline: the policy still
// applies, in time, and slow backends share the one budget.
func TestCaseI237(t *testing.T) {
	hang := func() transport.Transport {
		return transport.InProcess(func(ctx context.Context, _ []byte) ([]byte, error) { <-ctx.Done(); return nil, ctx.Err() })
	}
	ask := func(t *testing.T, parties ...party) (*harness.Outcome, time.Duration) {
		h := newHarness(t, harness.Options{}, parties...)
		began := time.Now()
		out, err := h.Dispatch(t.Context(), ahptest.ToolBefore("i237", `{}`), noAllow(), nil, harness.DispatchOptions{Budget: 300 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return out, time.Since(began)
	}
	t.Run("fail-open returns in time", func(t *testing.T) {
		out, took := ask(t, intercepts(hang(), ahp.FailOpen), intercepts(hang(), ahp.FailOpen), intercepts(hang(), ahp.FailOpen))
		if !out.MayExecute() || out.Interrupted || took > 10*time.Second {
			t.Errorf("may execute %v, interrupted %v, after %s: %+v", out.MayExecute(), out.Interrupted, took, out.Trace)
		}
	})
	t.Run("one of them is fail-closed", func(t *testing.T) {
		out, _ := ask(t, intercepts(hang(), ahp.FailOpen), intercepts(hang(), ahp.FailClosed))
		if out.MayExecute() || out.Denial() == nil || !out.Denial().Synthetic {
			t.Errorf("outcome %+v", out.Outcome)
		}
	})
}

// A deny with a note of an error beside it is a deny under both policies; an
// error without a verdict follows the policy.
func TestCaseI238(t *testing.T) {
	noted := func() transport.Transport {
		return transport.InProcess(func(_ context.Context, msg []byte) ([]byte, error) {
			p, err := ahp.Peek(msg)
			return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"draft","effects":[{"type":"deny","reason":"undefined variable"}],`+
				`"evaluationError":"rule 7: undefined variable","extensions":{"org.example.error":{"rule":7}}}}`, p.ID.String()), err
		})
	}
	failed := func() transport.Transport {
		return transport.InProcess(func(_ context.Context, msg []byte) ([]byte, error) {
			p, err := ahp.Peek(msg)
			return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32004,"message":"rule 7"}}`, p.ID.String()), err
		})
	}
	for _, policy := range []ahp.FailurePolicy{ahp.FailOpen, ahp.FailClosed} {
		out := dispatch(t, newHarness(t, harness.Options{}, intercepts(noted(), policy)), "i238-deny")
		if d := out.Denial(); d == nil || d.Synthetic || d.Reason != "undefined variable" {
			t.Errorf("%s: a deny with a note gave %+v", policy, out.Outcome)
		}
		out = dispatch(t, newHarness(t, harness.Options{}, intercepts(failed(), policy)), "i238-error")
		if out.MayExecute() != (policy == ahp.FailOpen) {
			t.Errorf("%s: an error gave %+v", policy, out.Outcome)
		}
	}
}

// Two backends of different policies are both down: the closed one decides, and
// the trace lists both.
func TestCaseI239(t *testing.T) {
	for _, order := range [][]ahp.FailurePolicy{{ahp.FailOpen, ahp.FailClosed}, {ahp.FailClosed, ahp.FailOpen}} {
		h := newHarness(t, harness.Options{Retries: -1}, intercepts(broken(), order[0]), intercepts(broken(), order[1]))
		out := dispatch(t, h, "i239")
		if out.MayExecute() || out.Denial() == nil || !out.Denial().Synthetic {
			t.Errorf("%v: %+v", order, out.Outcome)
		}
		for i, a := range out.Trace {
			if a.Failure == nil || a.Failure.Class != ahp.FailConnect || a.Policy != order[i] {
				t.Errorf("%v: trace %d is %+v", order, i, a)
			}
		}
		// The chain ends with a fail-closed failure; before it everybody was asked.
		if want := map[bool]int{true: 2, false: 1}[order[0] == ahp.FailOpen]; len(out.Trace) != want {
			t.Errorf("%v: %d in the trace, want %d", order, len(out.Trace), want)
		}
	}
}

// The policy at the wrong place of a registration is an error that names the
// right one.
func TestCaseI240(t *testing.T) {
	for place, doc := range map[string]string{
		"transport": `{"protocolVersion":"draft","hooks":[{"id":"a.b","transport":{"type":"stdio","command":"x","lifecycle":"persistent","failurePolicy":"fail-open"},
			"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":1,"content":{"default":"body"}}]}]}`,
		"backend": `{"protocolVersion":"draft","hooks":[{"id":"a.b","failurePolicy":"fail-open","transport":{"type":"stdio","command":"x","lifecycle":"persistent"},
			"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":1,"content":{"default":"body"}}]}]}`,
	} {
		_, err := ahp.DecodeRegistration([]byte(doc))
		var e *ahp.Error
		if !errors.As(err, &e) || !strings.HasPrefix(e.Pointer, "/hooks/0/subscriptions/0") || !strings.Contains(err.Error(), "failurePolicy") {
			t.Errorf("in %s: %v", place, err)
		}
	}
}

// That a failed backend was opened is for the trace alone: the next backend isn't
// told.
func TestCaseI243(t *testing.T) {
	var alone, after []string
	dispatch(t, newHarness(t, harness.Options{}, intercepts(scripted(`[]`, &alone), ahp.FailClosed)), "i243")
	h := newHarness(t, harness.Options{Retries: -1}, intercepts(broken(), ahp.FailOpen), intercepts(scripted(`[]`, &after), ahp.FailClosed))
	out := dispatch(t, h, "i243")
	if out.Trace[0].Policy != ahp.FailOpen {
		t.Fatalf("trace %+v", out.Trace[0])
	}
	if len(alone) != 1 || len(after) != 1 || alone[0] != after[0] {
		t.Errorf("alone the backend was sent\n%s\nafter an opened failure\n%s", alone, after)
	}
}
