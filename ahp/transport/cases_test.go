package transport_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/internal/require"
)

// The tests of this file are the rows of the case table that concern a backend as a
// process, by their ids: what went wrong in other hosts, and the right outcome here.
// Beside each row stands a case of the same kind that the table doesn't have.

// denies is a denial of the event "e" as a backend writes it.
const denies = `{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[{"type":"deny","reason":"told so"}]}}`

// sh is a backend that is a script of the shell; the arguments are its $1, $2, ….
func sh(t *testing.T, lifecycle, script string, args ...string) ahp.TransportConfig {
	t.Helper()
	return ahp.TransportConfig{Type: ahp.TransportStdio, Command: require.Path(t, "sh"), Args: append([]string{"-c", script, "sh"}, args...), Lifecycle: lifecycle}
}

// outcomes asks the backend about the event "e" under both failure policies.
func outcomes(t *testing.T, cfg ahp.TransportConfig, input string) map[ahp.FailurePolicy]*harness.Outcome {
	t.Helper()
	out := map[ahp.FailurePolicy]*harness.Outcome{}
	for _, policy := range []ahp.FailurePolicy{ahp.FailOpen, ahp.FailClosed} {
		h, err := harness.New(&ahp.Registration{ProtocolVersion: ahp.Version, Hooks: []ahp.Backend{{
			ID: "test.case", Transport: cfg, Subscriptions: []ahp.Subscription{ahptest.Intercept(policy, 20*time.Second, "tool.before")},
		}}}, harness.Options{Manifest: ahptest.Manifest()})
		if err != nil {
			t.Fatal(err)
		}
		o, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", input), ahptest.FullCapabilities(ahp.ToolBefore), nil, harness.DispatchOptions{NoObservers: true})
		h.Close()
		if err != nil {
			t.Fatal(err)
		}
		out[policy] = o
	}
	return out
}

// wantFailure holds that the backend could not be asked, for a reason of the class:
// the policy decides, and no denial is taken for the backend's.
func wantFailure(t *testing.T, what string, cfg ahp.TransportConfig, class ahp.FailureClass) {
	t.Helper()
	for policy, o := range outcomes(t, cfg, `{"command":"ls"}`) {
		switch f := o.Trace[0].Failure; {
		case f == nil || f.Class != class:
			t.Errorf("%s, %s, %s: %v, want class %s", what, cfg.Lifecycle, policy, f, class)
		case policy == ahp.FailOpen && !o.MayExecute():
			t.Errorf("%s, %s: fail-open denies", what, cfg.Lifecycle)
		case policy == ahp.FailClosed && (o.Denial() == nil || !o.Denial().Synthetic || o.Denial().Reason != harness.SyntheticReason):
			t.Errorf("%s, %s: fail-closed gives %+v", what, cfg.Lifecycle, o.Denial())
		}
	}
}

// wantDenial holds that the backend's own denial counts.
func wantDenial(t *testing.T, what string, cfg ahp.TransportConfig, input string) {
	t.Helper()
	for policy, o := range outcomes(t, cfg, input) {
		if d := o.Denial(); d == nil || d.Synthetic || d.Reason != "told so" {
			t.Errorf("%s, %s, %s: %+v, %v", what, cfg.Lifecycle, policy, d, o.Trace[0].Failure)
		}
	}
}

// TestCaseI013: the same command in two places. Each subscription is asked by itself,
// and the trace names it; nothing is taken for a duplicate (§11, 14).
func TestCaseI013(t *testing.T) {
	counter := filepath.Join(t.TempDir(), "count")
	cfg := sh(t, ahp.LifecyclePerEvent, `echo run >> "$1"; cat > /dev/null; echo '{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[]}}'`, counter)
	twice := ahptest.Intercept(ahp.FailClosed, 20*time.Second, "tool.before")
	h, err := harness.New(&ahp.Registration{ProtocolVersion: ahp.Version, Hooks: []ahp.Backend{
		{ID: "test.one", Transport: cfg, Subscriptions: []ahp.Subscription{twice}},
		{ID: "test.two", Transport: cfg, Subscriptions: []ahp.Subscription{twice, twice}}, // the sibling: twice within one backend
	}}, harness.Options{Manifest: ahptest.Manifest()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	o, err := h.Dispatch(t.Context(), ahptest.ToolBefore("e", `{}`), ahptest.FullCapabilities(ahp.ToolBefore), nil, harness.DispatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var by []string
	for _, a := range o.Trace {
		by = append(by, fmt.Sprintf("%s/%d %s", a.By.Backend, a.By.Index, a.Kind))
	}
	if got := strings.Join(by, ", "); got != "test.one/0 effects, test.two/0 effects, test.two/1 effects" {
		t.Errorf("the trace is %s", got)
	}
	if data, _ := os.ReadFile(counter); strings.Count(string(data), "run\n") != 3 {
		t.Errorf("it ran %d times", strings.Count(string(data), "run\n"))
	}
}

// TestCaseI020: a missing script, whose interpreter exits with 2, and a missing
// program. Neither is a denial of the backend's, and the policy decides about both;
// only the missing program can be told to be one.
func TestCaseI020(t *testing.T) {
	python := require.Path(t, "python3")
	none := filepath.Join(t.TempDir(), "none")
	for _, lifecycle := range []string{ahp.LifecyclePersistent, ahp.LifecyclePerEvent} {
		stdio := ahp.TransportConfig{Type: ahp.TransportStdio, Lifecycle: lifecycle}
		stdio.Command, stdio.Args = python, []string{none + ".py"}
		wantFailure(t, "a missing script", stdio, ahp.FailExit)
		stdio.Command, stdio.Args = none, nil
		wantFailure(t, "a missing program", stdio, ahp.FailLaunch)
		// The sibling: a missing interpreter of a script that is there.
		script := filepath.Join(t.TempDir(), "hook")
		if err := os.WriteFile(script, []byte("#!"+none+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		stdio.Command = script
		wantFailure(t, "a missing interpreter", stdio, ahp.FailLaunch)
	}
}

// TestCaseI021: a file that can't be executed, and a denial on standard output
// together with an exit code. AHP's own binding has one reading (§16): the exit must be
// 0, so (b) is an operational failure here and not a denial.
func TestCaseI021(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(file, []byte("#!/bin/sh\necho '"+denies+"'\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, lifecycle := range []string{ahp.LifecyclePersistent, ahp.LifecyclePerEvent} {
		wantFailure(t, "(a) mode 0644", ahp.TransportConfig{Type: ahp.TransportStdio, Command: file, Lifecycle: lifecycle}, ahp.FailLaunch)
	}
	script := `cat > /dev/null; echo "$1"; exit "$2"`
	wantFailure(t, "(b) exit 1 with a denial", sh(t, ahp.LifecyclePerEvent, script, denies, "1"), ahp.FailExit)
	wantDenial(t, "(c) exit 0 with a denial", sh(t, ahp.LifecyclePerEvent, script, denies, "0"), `{}`)
	// The sibling: a process that stays and ends after its reply has replied.
	wantDenial(t, "a denial and then exit 1", sh(t, ahp.LifecyclePersistent, `read -r line; echo "$1"; exit 1`, denies), `{}`)
	wantFailure(t, "a denial and then a signal", sh(t, ahp.LifecyclePerEvent, `cat > /dev/null; echo "$1"; kill -9 $$`, denies), ahp.FailExit)
}

// TestCaseI023: a backend that doesn't read 5 MB of input. The broken pipe is nobody's
// failure: what the process says, and how it ends, decide.
func TestCaseI023(t *testing.T) {
	large := `{"text":"` + strings.Repeat("x", 5<<20) + `"}`
	for what, tt := range map[string]struct {
		script string
		class  ahp.FailureClass
	}{"exit 0": {"exit 0", ahp.FailExit}, "exit 2": {"exit 2", ahp.FailExit}} {
		for policy, o := range outcomes(t, sh(t, ahp.LifecyclePerEvent, tt.script), large) {
			if f := o.Trace[0].Failure; f == nil || f.Class != tt.class || (o.Denial() != nil) != (policy == ahp.FailClosed) {
				t.Errorf("%s, %s: %v, %+v", what, policy, f, o.Denial())
			}
		}
	}
	wantDenial(t, "a denial without reading", sh(t, ahp.LifecyclePerEvent, `echo "$1"`, denies), large)
	// The sibling: one that reads a little, closes its input and answers then.
	wantDenial(t, "closed input", sh(t, ahp.LifecyclePerEvent, `head -c 100 > /dev/null; exec 0< /dev/null; echo "$1"`, denies), large)
}

// TestCaseI035: elsewhere a status blocks, and drops what was said beside it. Here no
// status blocks, so nothing can be lost with it: the reason and the context both arrive
// with the reply, and a process that ends with 2 could not be asked, whatever it wrote
// where. Its standard error is for the diagnostic, and no reason.
func TestCaseI035(t *testing.T) {
	const both = `{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[{"type":"deny","reason":"told so"},` +
		`{"type":"inject","target":"context","operation":"append","deliverAt":"now","value":[{"id":"m","role":"system","parts":[{"id":"m:1","kind":"text","mediaType":"text/plain","selection":"body","text":"ask first"}]}]}]}}`
	for policy, o := range outcomes(t, sh(t, ahp.LifecyclePerEvent, `cat > /dev/null; echo "$1"`, both), `{}`) {
		if d := o.Denial(); d == nil || d.Synthetic || d.Reason != "told so" || len(o.Injections) != 1 {
			t.Errorf("%s: denial %+v, injections %+v, want both", policy, d, o.Injections)
		}
	}
	for where, script := range map[string]string{
		"standard output": `cat > /dev/null; echo "$1"; exit 2`,
		"standard error":  `cat > /dev/null; echo "$1" >&2; exit 2`,
		"plain text":      `cat > /dev/null; echo "told so" >&2; exit 2`,
	} {
		cfg := sh(t, ahp.LifecyclePerEvent, script, both)
		wantFailure(t, where, cfg, ahp.FailExit)
		for policy, o := range outcomes(t, cfg, `{}`) {
			if len(o.Injections) != 0 {
				t.Errorf("%s, %s: injected %+v", where, policy, o.Injections)
			}
		}
	}
}

// TestCaseI042: a banner before the reply. It is a failure and never a pass, and the
// diagnostic quotes what was met: the start of the output, or of its first line.
func TestCaseI042(t *testing.T) {
	banner := "[dotenv] loaded 3"
	for lifecycle, script := range map[string]string{
		ahp.LifecyclePerEvent:   `cat > /dev/null; echo "$2"; echo "$1"`,
		ahp.LifecyclePersistent: `read -r line; echo "$2"; echo "$1"; cat > /dev/null`,
	} {
		cfg := sh(t, lifecycle, script, denies, banner)
		wantFailure(t, "a banner", cfg, ahp.FailMalformed)
		for _, o := range outcomes(t, cfg, `{}`) {
			want := map[string]string{ahp.LifecyclePerEvent: `which starts with "[dotenv] loaded 3\n{`, ahp.LifecyclePersistent: `the reply is "[dotenv] loaded 3"`}[lifecycle]
			if detail := o.Trace[0].Failure.Detail; !strings.Contains(detail, want) {
				t.Errorf("%s: the diagnostic doesn't say what was printed: %s", lifecycle, detail)
			}
		}
	}
	// The sibling: the banner behind the reply, in one write.
	after := sh(t, ahp.LifecyclePerEvent, `cat > /dev/null; printf '%s\n%s\n' "$1" "$2"`, denies, banner)
	wantFailure(t, "a banner behind", after, ahp.FailMalformed)
}

// TestCaseI044: plain text that starts like a list. On a decision there is no text
// form, so it is a failure; no panic, no silent pass.
func TestCaseI044(t *testing.T) {
	for _, text := range []string{"[note] hi", "[", "{note}", `["note"]`, `"note"`, "null"} {
		wantFailure(t, text, sh(t, ahp.LifecyclePerEvent, `cat > /dev/null; echo "$1"`, text), ahp.FailMalformed)
		wantFailure(t, text, sh(t, ahp.LifecyclePersistent, `read -r line; echo "$1"; cat > /dev/null`, text), ahp.FailMalformed)
	}
}

// TestCaseI051: large messages arrive whole, to the byte, or are not sent at all. 16
// MiB are the bound; none is ever cut.
func TestCaseI051(t *testing.T) {
	require.Path(t, "sh")
	sum := require.Path(t, "sha256sum")
	for _, lifecycle := range []string{ahp.LifecyclePerEvent, ahp.LifecyclePersistent} {
		script := `"$1" | cut -c 1-64`
		if lifecycle == ahp.LifecyclePersistent {
			script = `head -n 1 | "$1" | cut -c 1-64; cat > /dev/null`
		}
		for _, size := range []int{1<<20 - 1, 1 << 20, 1<<20 + 1, ahp.MaxMessageBytes - 1, ahp.MaxMessageBytes} {
			msg := padded(size)
			link, err := transport.Stdio(sh(t, lifecycle, script, sum), transport.StdioOptions{Grace: 50 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			got, err := link.Exchange(t.Context(), msg)
			want := sha256.Sum256(append(msg, '\n'))
			if err != nil || string(got) != hex.EncodeToString(want[:]) {
				t.Errorf("%s, %d bytes: %q, %v", lifecycle, size, got, err)
			}
			link.Close()
		}
		started := filepath.Join(t.TempDir(), "started")
		link, err := transport.Stdio(sh(t, lifecycle, `touch "$1"; cat > /dev/null`, started), transport.StdioOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer link.Close()
		for _, size := range []int{ahp.MaxMessageBytes + 1, 20 << 20} {
			_, err := link.Exchange(t.Context(), padded(size))
			wantClass(t, err, ahp.FailMalformed)
		}
		if _, err := os.Stat(started); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: something was sent of what is too large: %v", lifecycle, err)
		}
	}
}

// padded returns a request of exactly size bytes.
func padded(size int) []byte {
	head, tail := `{"jsonrpc":"2.0","id":"e","pad":"`, `"}`
	return []byte(head + strings.Repeat("x", size-len(head)-len(tail)) + tail)
}

// TestCaseI054: a terminal sequence before the reply, on its line. The connection
// fails at once, with what was met; it never waits.
func TestCaseI054(t *testing.T) {
	for what, script := range map[string]string{
		"a title":            `read -r line; printf '\033]0;x\007%s\n' "$1"; cat > /dev/null`,
		"a colour":           `read -r line; printf '\033[0m%s\n' "$1"; cat > /dev/null`,
		"a byte order mark":  `read -r line; printf '\357\273\277%s\n' "$1"; cat > /dev/null`,
		"a carriage return":  `read -r line; printf 'x\r%s\n' "$1"; cat > /dev/null`,
		"only a title, once": `printf '\033]0;x\007\n'; read -r line; printf '\033]0;x\007\n'; cat > /dev/null`,
	} {
		began := time.Now()
		wantFailure(t, what, sh(t, ahp.LifecyclePersistent, script, denies), ahp.FailMalformed)
		wantFailure(t, what, sh(t, ahp.LifecyclePerEvent, script, denies), ahp.FailMalformed)
		if took := time.Since(began); took > 15*time.Second {
			t.Errorf("%s: it took %v", what, took)
		}
	}
}
