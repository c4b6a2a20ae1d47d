// Command harness is a whole harness in one file. It reads an AHP registration and
// a file of tool calls, one a line as {"name": "bash", "input": {"command": "ls"}},
// runs each shell command that no backend has anything against, and prints a line
// per call: {"call": 0, "status": "ran", "reason": ""}.
//
//	go run ./examples/harness registration.json calls.jsonl
//
// It exits with 0 when every call has its line, 1 when it could not go on, and 2
// for wrong use or a registration that it can't hold itself to. Nobody is there to
// approve, so a call that a backend wants approved is refused.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/boundary"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/ahp/transport/httptransport"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := play(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "harness:", err)
	}
	os.Exit(code)
}

// play makes the calls of one session and returns the exit code.
func play(ctx context.Context, args []string) (code int, err error) {
	if len(args) != 2 {
		return 2, errors.New("usage: harness REGISTRATION CALLS")
	}
	doc, err := os.ReadFile(args[0])
	if err != nil {
		return 2, err
	}
	calls, err := os.ReadFile(args[1])
	if err != nil {
		return 2, err
	}
	reg, err := ahp.DecodeRegistration(doc)
	if err != nil {
		return 2, fmt.Errorf("%s: %w", args[0], err)
	}
	h, err := harness.New(reg, harness.Options{Manifest: boundary.Manifest(), Open: open})
	if err != nil {
		return 2, err
	}
	// Close delivers what the observers are still to be told.
	defer func() { err = errors.Join(err, h.Close()) }()
	dir, err := os.Getwd()
	if err != nil {
		return 1, err
	}
	session := &ahp.Session{ID: fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano()), Cwd: dir}
	b, err := boundary.New(h, boundary.Options{Source: "urn:abhed:example-harness", Session: session,
		OnMessage: func(text string) { fmt.Fprintln(os.Stderr, "backend:", text) }})
	if err != nil {
		return 1, err
	}
	begun, err := b.Start(ctx, boundary.SessionStart{Harness: ahp.HarnessInfo{Name: "example-harness", Version: "1"}, PermissionMode: "backends"})
	if err != nil {
		return 1, err
	}
	ended, why := "error", begun.Reason
	if begun.OK() {
		ended, why, err = run(ctx, b, calls)
	}
	if err == nil && ended == "error" {
		err = errors.New(why)
	}
	if err = errors.Join(err, b.End(ctx, ended, why, nil)); err != nil {
		return 1, err
	}
	return 0, nil
}

// run makes the calls in order, and returns the outcome of the session and why it
// ended. After a stop or an interruption the calls that are left only get their
// lines.
func run(ctx context.Context, b *boundary.Boundary, calls []byte) (outcome, why string, err error) {
	outcome, why = "completed", "no more calls"
	n := 0
	var over *boundary.ToolResult
	for line := range bytes.Lines(calls) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		call, err := boundary.ParseCall(line)
		if err != nil {
			return "error", "a call can't be read", fmt.Errorf("call %d: %w", n, err)
		}
		call.Kind = "shell"
		r := over
		if r == nil {
			made, err := b.Tool(ctx, call, shell)
			if err != nil {
				return "error", "a bug", fmt.Errorf("call %d: %w", n, err)
			}
			r = &made
		}
		if err := report(n, r); err != nil {
			return "error", "no output", err
		}
		n++
		switch {
		case over != nil:
		case r.Status == boundary.Interrupted:
			over, outcome, why = r, "cancelled", "interrupted"
		case r.Stop:
			over = &boundary.ToolResult{Verdict: boundary.Verdict{Status: boundary.Stopped, Reason: r.StopReason}}
			outcome, why = "cancelled", r.StopReason
		}
	}
	return outcome, why, nil
}

// report prints what came of a call.
func report(n int, r *boundary.ToolResult) error {
	line, err := json.Marshal(struct {
		Call   int    `json:"call"`
		Status string `json:"status"`
		Reason string `json:"reason"`
	}{n, r.Status.String(), r.Reason})
	if err == nil {
		_, err = fmt.Printf("%s\n", line)
	}
	return err
}

// shell is the only tool. The input is what is in effect, and may be a backend's: it
// is read as strictly as the model's.
func shell(ctx context.Context, input ahp.Raw) (boundary.ToolOutput, error) {
	var in struct {
		Command string `json:"command"`
	}
	if err := json.Unmarshal(input, &in, json.RejectUnknownMembers(true)); err != nil || in.Command == "" {
		return boundary.ToolOutput{}, &boundary.Refusal{Reason: `The input must be {"command": "..."}.`}
	}
	out := &head{}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", in.Command)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = out, out, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // with its children
	err := cmd.Run()
	return boundary.ToolOutput{Text: out.String()}, err
}

// head keeps the first megabyte of a command's output and drops the rest.
type head struct{ bytes.Buffer }

// Write never fails.
func (h *head) Write(p []byte) (int, error) {
	h.Buffer.Write(p[:min(len(p), max(0, 1<<20-h.Len()))])
	return len(p), nil
}

// open connects to a backend, over its standard streams or HTTP.
func open(b *ahp.Backend) (transport.Transport, error) {
	if b.Transport.Type == ahp.TransportHTTP {
		return httptransport.New(b, httptransport.Options{})
	}
	return transport.Stdio(b.Transport, transport.StdioOptions{Name: b.ID,
		OnStderr: func(line string) { fmt.Fprintln(os.Stderr, b.ID+":", line) }})
}
