package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/hookline"
)

// ways are the two ways to a verdict: every test of what comes in takes both.
func ways(t *testing.T, f func(t *testing.T, a *account, args ...string)) {
	t.Parallel()
	t.Run("service", func(t *testing.T) {
		t.Parallel()
		a := newAccount(t)
		a.daemon(a.ahp)
		f(t, a)
		if st := a.status(); st == nil || st.Calls == 0 && !strings.Contains(t.Name(), "NoEnd") {
			t.Errorf("the service was not asked: %+v", st)
		}
	})
	t.Run("own-process", func(t *testing.T) {
		t.Parallel()
		f(t, newAccount(t), "--no-service")
	})
}

// TestEmptyEvents is case I048: what holds no event is answered by policy, at once.
func TestEmptyEvents(t *testing.T) {
	ways(t, func(t *testing.T, a *account, args ...string) {
		for _, in := range []string{"", "\ufeff", "\n\n\r\n", "\ufeff\n", " ", "{}", "null", "[]", `"x"`, `{"hook_event_name":"PreToolUse"`, "{\"a\":\xff}", "\x00"} {
			began := time.Now()
			got := a.hook(hookRun{stdin: strings.NewReader(in), args: args})
			if got.code != hookline.ExitDeny || !strings.Contains(got.said(), "could not be checked") {
				t.Errorf("%q: found %+v, expected a refusal by policy", in, got)
			}
			if took := time.Since(began); took > hookline.DefaultLimit*8/10 {
				t.Errorf("%q: it took %v", in, took)
			}
			if got := a.hook(hookRun{stdin: strings.NewReader(in), args: append([]string{"--on-missing", "allow"}, args...)}); got.code != hookline.ExitPass || got.said() != "" {
				t.Errorf("%q: found %+v, expected a pass by policy", in, got)
			}
		}
	})
}

// TestCutEvents holds that no beginning of an event is taken for it.
func TestCutEvents(t *testing.T) {
	ways(t, func(t *testing.T, a *account, args ...string) {
		whole := bashCall("s", "ls", 1)
		for n := 1; n < len(whole); n += 17 {
			if got := a.hook(hookRun{stdin: strings.NewReader(whole[:n]), args: args}); got.code != hookline.ExitDeny {
				t.Errorf("%q: found %+v, expected a refusal", whole[:n], got)
			}
		}
	})
}

// TestEventsAsHostsWriteThem holds that a mark of the byte order and ends of lines of
// another system are no part of the event.
func TestEventsAsHostsWriteThem(t *testing.T) {
	ways(t, func(t *testing.T, a *account, args ...string) {
		for n, form := range []func(string) string{
			func(s string) string { return "\ufeff" + s },
			func(s string) string { return s + "\r\n" },
			func(s string) string { return "\r\n" + strings.ReplaceAll(s, ",", ",\r\n") + "\r\n\r\n" },
			func(s string) string { return "\ufeff" + s + "\n" },
		} {
			if got := a.hook(hookRun{stdin: strings.NewReader(form(bashCall("s", "ls", n))), args: args}); got.code != hookline.ExitPass {
				t.Errorf("form %d: found %+v, expected a pass", n, got)
			}
			if got := a.hook(hookRun{stdin: strings.NewReader(form(bashCall("s", fmt.Sprint("git push ", n), n+100))), args: args}); got.code != hookline.ExitDeny || !strings.Contains(got.said(), "git push") {
				t.Errorf("form %d: found %+v, expected a refusal by the rule", n, got)
			}
		}
	})
}

// writeCall is the native event of a file that is written.
func writeCall(size int) io.Reader {
	return io.MultiReader(
		strings.NewReader(`{"session_id":"s","transcript_path":"/x.jsonl","cwd":"/tmp","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Write","tool_use_id":"w`+fmt.Sprint(size)+`","tool_input":{"file_path":"/tmp/x","content":"`),
		io.LimitReader(repeated("0123456789abcde\\n"), int64(size/17*17)), strings.NewReader(`"}}`))
}

// repeated is a text without end.
type repeated string

func (r repeated) Read(b []byte) (int, error) {
	n := 0
	for n+len(r) <= len(b) {
		n += copy(b[n:], r)
	}
	if n == 0 {
		return 0, io.ErrShortBuffer
	}
	return n, nil
}

// TestLargeEvents holds that a large event is judged, that one beyond the bound is
// answered by policy, and that the host can write either to its end.
func TestLargeEvents(t *testing.T) {
	ways(t, func(t *testing.T, a *account, args ...string) {
		args = append([]string{"--limit", "120000"}, args...)
		for size, want := range map[int]string{12 << 20: "", 20 << 20: "the limit is 16777216", 70 << 20: "more than 67108864 bytes"} {
			cmd := a.command(hookRun{args: args})
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			var errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &errs, &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(in, writeCall(size))
			if err != nil || n < int64(size)-20 {
				t.Errorf("%d MB: the host wrote %d bytes, %v", size>>20, n, err)
			}
			in.Close()
			_ = cmd.Wait()
			code := hookline.ExitPass
			if want != "" {
				code = hookline.ExitDeny
			}
			if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(errs.String(), want) {
				t.Errorf("%d MB: found exit %d, expected %d\n%.300s", size>>20, got, code, errs.String())
			}
		}
	})
}

// TestEventsReachBackendsWhole is the cases I052 and I053: a large event comes on a
// backend's standard input and in no argument and no variable, so that the backend
// starts, and can start others.
func TestEventsReachBackendsWhole(t *testing.T) {
	ways(t, func(t *testing.T, a *account, args ...string) {
		reg := a.script("measures", "per_event", `tr '\0' '\n' </proc/$$/environ | sort >"$dir/env"
cat >"$dir/line"
line=$(head -c 200 "$dir/line")
date >"$dir/date" && answer`)
		const size = 3_000_000
		for n, in := range []io.Reader{writeCall(size), strings.NewReader(`{"session_id":"s","transcript_path":"/x.jsonl","cwd":"/tmp","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_use_id":"b","tool_input":{"command":"echo ` + strings.Repeat("x", 2_000_000) + `"}}`)} {
			if got := a.hook(hookRun{registration: reg, stdin: in, args: append([]string{"--limit", "60000"}, args...)}); got.code != hookline.ExitPass {
				t.Fatalf("found %.300v, expected a pass", got)
			}
			line, err := os.ReadFile(filepath.Join(a.dir, "line"))
			if err != nil || len(line) < 2_000_000 {
				t.Errorf("event %d: the backend got %d bytes, %v", n, len(line), err)
			}
			env, err := os.ReadFile(filepath.Join(a.dir, "env"))
			if err != nil {
				t.Fatal(err)
			}
			added := 0
			for v := range strings.Lines(string(env)) {
				v = strings.TrimSuffix(v, "\n")
				if name, _, _ := strings.Cut(v, "="); os.Getenv(name) == "" && name != "_" && name != "PWD" {
					added += len(v)
				}
			}
			if added >= 4<<10 || len(env) >= 128<<10 {
				t.Errorf("event %d: %d bytes were added to an environment of %d", n, added, len(env))
			}
		}
		if date, err := os.ReadFile(filepath.Join(a.dir, "date")); err != nil || len(date) == 0 {
			t.Errorf("the backend could not start another program: %v", err)
		}
	})
}

// inTime runs a hook with a limit and holds that its answer comes after the budget, 80 %
// of the limit, and before the limit.
func (a *account) inTime(limit time.Duration, want int, h hookRun) {
	a.t.Helper()
	h.args = append([]string{"--limit", fmt.Sprint(limit.Milliseconds())}, h.args...)
	began := time.Now()
	got := a.hook(h)
	took := time.Since(began)
	if got.code != want {
		a.t.Errorf("found %+v, expected exit %d", got, want)
	}
	if want == hookline.ExitDeny && !strings.Contains(got.said(), "in time") {
		a.t.Errorf("found %q, expected what didn't come in time", got.stdout)
	}
	if took < limit*79/100 || took > limit {
		a.t.Errorf("it took %v of %v, expected a little over 80 %%", took, limit)
	}
}

// TestServiceThatHangs holds that a service which takes no calls is not waited for: the
// verdict is the same, before the limit.
func TestServiceThatHangs(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	service := a.daemon(a.ahp)
	if err := service.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer service.Process.Signal(syscall.SIGCONT)
	for command, want := range map[string]int{"ls": hookline.ExitPass, "git push": hookline.ExitDeny} {
		began := time.Now()
		got := a.judge(command, "--limit", "8000")
		if got.code != want || want == hookline.ExitDeny && !strings.Contains(got.said(), "Refused by com.example.rules") {
			t.Errorf("%s: found %+v, expected exit %d", command, got, want)
		}
		if took := time.Since(began); took < time.Second || took > 8*time.Second {
			t.Errorf("%s: it took %v, expected a wait for the service and an answer before the limit", command, took)
		}
	}
	large := a.hook(hookRun{stdin: writeCall(5 << 20), args: []string{"--limit", "20000"}}) // more than the socket takes
	if large.code != hookline.ExitPass {
		t.Errorf("a large event: %+v", large)
	}
	if err := service.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	a.wantVerdicts()
	if got := a.calls(); got != 2 {
		t.Errorf("the service judged %d calls, expected none of those that were given up", got)
	}
}

// TestServiceThatStops holds that a service which has taken a call and doesn't answer
// costs no more than the budget.
func TestServiceThatStops(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"deny", "allow"} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			reg, _ := a.script("waits", "persistent", waits), a.gate()
			service := a.daemon(a.ahp)
			defer service.Process.Signal(syscall.SIGCONT)
			go func() {
				for end := time.Now().Add(40 * time.Second); !a.asked() && time.Now().Before(end); {
					time.Sleep(5 * time.Millisecond)
				}
				_ = service.Process.Signal(syscall.SIGSTOP)
			}()
			want := map[string]int{"deny": hookline.ExitDeny, "allow": hookline.ExitPass}[policy]
			a.inTime(6*time.Second, want, hookRun{registration: reg, stdin: strings.NewReader(bashCall("s", "slow", 1)), args: []string{"--on-missing", policy}})
			if !a.asked() {
				t.Error("the backend wasn't asked")
			}
		})
	}
}

// TestInputWithNoEnd holds that a host which keeps standard input open gets an answer.
func TestInputWithNoEnd(t *testing.T) {
	ways(t, func(t *testing.T, a *account, args ...string) {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		a.inTime(4*time.Second, hookline.ExitDeny, hookRun{stdin: r, args: args})
		if _, err := w.WriteString(bashCall("s", "ls", 1)); err != nil {
			t.Fatal(err)
		}
		a.inTime(4*time.Second, hookline.ExitDeny, hookRun{stdin: r, args: args})
		a.inTime(4*time.Second, hookline.ExitPass, hookRun{stdin: r, args: append([]string{"--on-missing", "allow"}, args...)})
	})
}

// TestOutputThatFails holds that an answer which can't be written is none.
func TestOutputThatFails(t *testing.T) {
	ways(t, func(t *testing.T, a *account, args ...string) {
		for _, host := range []string{"claude-code", "copilot"} { // by standard error, and by standard output
			in := bashCall("s", "git push", time.Now().Nanosecond())
			if host == "copilot" {
				in = `{"sessionId":"s","timestamp":1760000000000,"cwd":"/tmp","toolName":"bash","toolArgs":"{\"command\":\"git push\"}"}`
			}
			extra := append([]string{"--event", map[string]string{"claude-code": "PreToolUse", "copilot": "preToolUse"}[host]}, args...)
			if got := a.hook(hookRun{host: host, stdin: strings.NewReader(in), args: extra}); got.code != hookline.ExitDeny {
				t.Fatalf("%s: found %+v, expected a refusal", host, got)
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			cmd := a.command(hookRun{host: host, stdin: strings.NewReader(in), args: extra})
			cmd.Stdout, cmd.Stderr = w, w
			_ = cmd.Run()
			w.Close()
			if got := cmd.ProcessState.ExitCode(); got != hookline.ExitNone {
				t.Errorf("%s: found exit %d (%v), expected %d", host, got, cmd.ProcessState, hookline.ExitNone)
			}
		}
	})
}

// TestHookLineAtFault holds that a line which can't be read is answered by its policy,
// and that an unknown host gets no answer, and a person the reason.
func TestHookLineAtFault(t *testing.T) {
	t.Parallel()
	a := newAccount(t)
	in := func() io.Reader { return strings.NewReader(bashCall("s", "ls", 1)) }
	if got := a.hook(hookRun{stdin: in(), args: []string{"--no-such-flag"}}); got.code != hookline.ExitDeny || !strings.Contains(got.said(), "--no-such-flag") {
		t.Errorf("found %+v, expected a refusal", got)
	}
	if got := a.hook(hookRun{stdin: in(), args: []string{"--on-missing", "allow", "--no-such-flag"}}); got.code != hookline.ExitPass {
		t.Errorf("found %+v, expected a pass", got)
	}
	if got := a.hook(hookRun{host: "nonesuch", stdin: in(), args: []string{"--no-service"}}); got.code != hookline.ExitNone || !strings.Contains(got.said(), "nonesuch") {
		t.Errorf("found %+v, expected no answer", got)
	}
}
