package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/ahptest/fault"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
)

// builtAHP builds the command and returns where it is.
func builtAHP(t *testing.T) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), "ahp")
	if out, err := exec.Command("go", "build", "-o", exe, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return exe
}

// TestBackendRulesThroughAHarness holds that the rules hold in a real harness: with
// both lifecycles, the built command, and a registration.
func TestBackendRulesThroughAHarness(t *testing.T) {
	exe, dir := builtAHP(t), t.TempDir()
	file := filepath.Join(dir, "rules.json")
	if err := os.WriteFile(file, []byte(`{"rules":{"deny":["bash(git push*)"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, lifecycle := range []string{ahp.LifecyclePersistent, ahp.LifecyclePerEvent} {
		h, err := harness.New(&ahp.Registration{ProtocolVersion: ahp.Version, Hooks: []ahp.Backend{{
			ID:            "test.rules",
			Transport:     ahp.TransportConfig{Type: ahp.TransportStdio, Command: exe, Args: []string{"backend", "rules", "--rules", file}, Lifecycle: lifecycle},
			Subscriptions: []ahp.Subscription{ahptest.Intercept(ahp.FailClosed, 20*time.Second, "tool.before")},
		}}}, harness.Options{Manifest: ahptest.Manifest()})
		if err != nil {
			t.Fatal(err)
		}
		for command, want := range map[string]string{"sudo git push": "git push", "ls": "", "$(x)": "can't be judged"} {
			e := ahptest.ToolBefore("e", `{"command":"`+command+`"}`)
			e.Session.Cwd = dir
			out, err := h.Dispatch(t.Context(), e, ahptest.Without(ahptest.FullCapabilities(ahp.ToolBefore), ahp.EffectAsk), nil, harness.DispatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
			switch d := out.Denial(); {
			case want == "" && d != nil, want != "" && d == nil:
				t.Errorf("%s: %q: %+v", lifecycle, command, d)
			case d != nil && (d.Synthetic || !strings.Contains(d.Reason, want)):
				t.Errorf("%s: %q: %+v", lifecycle, command, d)
			}
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestBackendFaultsOfTheCommand holds that the built command shows a harness the
// failure that the menu names, on each carrier.
func TestBackendFaultsOfTheCommand(t *testing.T) {
	exe := builtAHP(t)
	request, err := (&ahp.Intercept{Event: ahptest.ToolBefore("e", `{}`), Capabilities: *ahp.NewCapabilities(ahp.ToolBefore, ahp.EffectDeny)}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"none", "garbage", "wrong_id", "never", "dies_before", "dies_during", "rpc_error"} {
		f, _ := fault.Find(name)
		for carrier, lifecycle := range map[fault.Carrier]string{fault.StdioPersistent: ahp.LifecyclePersistent, fault.StdioPerEvent: ahp.LifecyclePerEvent} {
			link, err := transport.Stdio(ahp.TransportConfig{Type: ahp.TransportStdio, Command: exe, Args: []string{"backend", "fault", name}, Lifecycle: lifecycle}, transport.StdioOptions{})
			if err != nil {
				t.Fatal(err)
			}
			limit := 20 * time.Second
			if f.Classes[carrier] == ahp.FailDeadline {
				limit = 300 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			reply, err := link.Exchange(ctx, request)
			cancel()
			if err == nil {
				if _, err = ahp.DecodeEffectsReply(reply, ahp.StringID("e")); err != nil {
					err = ahp.ReplyFailure(err)
				}
			}
			got := ahp.FailureClass("")
			if failure := ahp.AsFailure(err); failure != nil {
				got = failure.Class
			}
			if got != f.Classes[carrier] {
				t.Errorf("%s on %s: class %q (%v), want %q", name, carrier, got, err, f.Classes[carrier])
			}
			link.Close()
		}
	}
}

// TestBackendFaultListens serves one fault over HTTP and ends it by a signal.
func TestBackendFaultListens(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, builtAHP(t), "backend", "fault", "status_500", "--listen", "127.0.0.1:0")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url, err := bufio.NewReader(stderr).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(strings.TrimSpace(url), "application/json", strings.NewReader(`{"id":"e"}`))
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 500 {
		t.Errorf("status %d", resp.StatusCode)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestBackendNoFlagsOfTests holds that the command has no flags of package testing,
// although it serves a menu that is for tests.
func TestBackendNoFlagsOfTests(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for p := range strings.FieldsSeq(string(out)) {
		if p == "testing" || p == "net/http/httptest" || strings.HasSuffix(p, "/ahp/ahptest") {
			t.Errorf("the command links %s", p)
		}
	}
}

func TestBackendFaultListIsJSON(t *testing.T) {
	r := runAHP(t, "", "backend", "fault", "--list", "--json")
	var rows []map[string]any
	if err := json.NewDecoder(bytes.NewReader([]byte(r.stdout))).Decode(&rows); err != nil || len(rows) != len(fault.Menu())+len(fault.NotifyMenu()) {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}
