package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/hookline"
	"github.com/abhed/abhed/internal/require"
)

// account is a home of its own with the program, a file of rules and a registration:
// what a test of the service needs. Its service ends with the test.
type account struct {
	t                             *testing.T
	dir, home, state, socket, ahp string
	rules, registration           string
}

// program makes this test binary the command at path, as a file of its own. Another
// process writes it: what this one has open for writing, a child that another test starts
// at that moment has open too, and then it can't be run.
func program(t *testing.T, path string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(require.Path(t, "sh"), "-c", `cp "$1" "$2"`, "sh", self, path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

func newAccount(t *testing.T) *account {
	t.Helper()
	dir, err := os.MkdirTemp("", "ahp") // short: a socket's path has a bound
	if err != nil {
		t.Fatal(err)
	}
	a := &account{t: t, dir: dir, home: filepath.Join(dir, "home")}
	a.state = filepath.Join(a.home, ".local", "state", "ahp")
	a.socket = hookline.Socket(a.state)
	t.Cleanup(func() {
		a.stop()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.MkdirAll(a.home, 0o700); err != nil {
		t.Fatal(err)
	}
	a.ahp = filepath.Join(dir, "bin", "ahp")
	if self, err := os.Executable(); err != nil || os.MkdirAll(filepath.Dir(a.ahp), 0o700) != nil || os.Link(self, a.ahp) != nil {
		program(t, a.ahp) // on another file system
	}
	a.rules = a.file("rules.json", `{"rules":{"deny":["bash(git push*)"]}}`)
	a.registration = a.register("rules", a.ahp, "per_event", "backend", "rules", "--rules", a.rules)
	return a
}

func (a *account) file(name, text string) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// register writes a registration of one backend for what happens before a call.
func (a *account) register(name, command, lifecycle string, args ...string) string {
	a.t.Helper()
	list := []string{}
	for _, arg := range args {
		list = append(list, fmt.Sprintf("%q", arg))
	}
	return a.file(name+".registration.json", fmt.Sprintf(`{"protocolVersion":"draft","hooks":[{"id":"com.example.%s",
"transport":{"type":"stdio","command":%q,"args":[%s],"lifecycle":%q},
"subscriptions":[{"events":["tool.before"],"mode":"intercept","timeoutMs":20000,"failurePolicy":"fail-closed","content":{"default":"body"}}]}]}`,
		name, command, strings.Join(list, ","), lifecycle))
}

// script registers a backend that is a script of the shell with $1, the folder. It has
// a function answer, for a request in $line. A persistent one reads line after line.
func (a *account) script(name, lifecycle, text string) string {
	a.t.Helper()
	file := a.file(name+".sh", `dir=$1
answer() {
	id=${line#*\"id\":\"}
	printf '{"jsonrpc":"2.0","id":"%s","result":{"protocolVersion":"draft","effects":[%s]}}\n' "${id%%\"*}" "$1"
}
`+text)
	return a.register(name, require.Path(a.t, "sh"), lifecycle, file, a.dir)
}

// stop ends the account's service, whoever started it, and waits for its end.
func (a *account) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		lock, err := os.OpenFile(filepath.Join(a.state, "hook.lock"), os.O_RDWR, 0)
		if err != nil {
			return
		}
		err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		lock.Close()
		if err == nil {
			return
		}
		_ = exec.CommandContext(ctx, a.ahp, "daemon", "stop", "--home", a.home).Run()
		time.Sleep(10 * time.Millisecond)
	}
	a.t.Error("the service didn't end")
}

// daemon starts the service and waits until it can be called.
func (a *account) daemon(program string, more ...string) *exec.Cmd {
	a.t.Helper()
	cmd := exec.Command(program, append([]string{"daemon", "run", "--home", a.home}, more...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	a.until("the service", func() bool { st := a.status(); return st != nil && st.PID == cmd.Process.Pid })
	return cmd
}

// until waits for a condition with a deadline.
func (a *account) until(what string, is func() bool) {
	a.t.Helper()
	for end := time.Now().Add(40 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			a.t.Fatalf("%s: not within 40 s", what)
		}
	}
}

// bashCall is the native event of a shell command, the nth.
func bashCall(session, command string, n int) string {
	return fmt.Sprintf(`{"session_id":%q,"transcript_path":"/x.jsonl","cwd":"/tmp","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":%q},"tool_use_id":"toolu_%d"}`, session, command, n)
}

// hookRun is one run of "ahp hook".
type hookRun struct {
	program, host, registration string
	stdin                       io.Reader
	args, env                   []string
}

// command returns the process of a hook, not started.
func (a *account) command(h hookRun) *exec.Cmd {
	if h.program == "" {
		h.program = a.ahp
	}
	if h.host == "" {
		h.host = "claude-code"
	}
	if h.registration == "" {
		h.registration = a.registration
	}
	args := append([]string{"hook", h.host, "--home", a.home, "--registration", h.registration}, h.args...)
	cmd := exec.Command(h.program, args...)
	cmd.Stdin, cmd.Env, cmd.Dir = h.stdin, append(os.Environ(), h.env...), a.dir
	return cmd
}

// hook runs a hook to its end.
func (a *account) hook(h hookRun) result {
	a.t.Helper()
	cmd := a.command(h)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState == nil {
		a.t.Fatal(err)
	}
	if strings.Contains(errs.String(), "goroutine ") {
		a.t.Errorf("a stack is on standard error:\n%s", &errs)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// judge runs a hook for a shell command.
func (a *account) judge(command string, args ...string) result {
	a.t.Helper()
	return a.hook(hookRun{stdin: strings.NewReader(bashCall("s", command, time.Now().Nanosecond())), args: args})
}

// wantVerdicts holds that a pass passes and a refusal is one, with its reason.
func (a *account) wantVerdicts(args ...string) {
	a.t.Helper()
	if got := a.judge("ls -la", args...); got.code != hookline.ExitPass || got.said() != "" {
		a.t.Errorf("ls: found %+v, expected a silent pass", got)
	}
	if got := a.judge(fmt.Sprint("git push number-", time.Now().UnixNano()), args...); got.code != hookline.ExitDeny || !strings.Contains(got.said(), "Refused by com.example.rules: ") || !strings.Contains(got.stdout, "git push") {
		a.t.Errorf("git push: found %+v, expected a refusal with its reason", got)
	}
}

// said is what the host is told, on either stream.
func (r result) said() string { return r.stdout + r.stderr }
