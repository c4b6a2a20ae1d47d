package bridge

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

// call is one call that the driver makes as the host.
type call struct {
	Hook     string `json:"hook"`
	Args     []any  `json:"args"`
	Frozen   bool   `json:"frozen"`
	Circular bool   `json:"circular"`
}

type result struct {
	Returned any     `json:"returned"`
	Threw    string  `json:"threw"`
	MS       float64 `json:"ms"`
	Args     []any   `json:"args"`
}

type report struct {
	Hooks   []string `json:"hooks"`
	Results []result `json:"results"`
	Stray   []string `json:"stray"`
	Left    []string `json:"left"`
}

type object = map[string]any

// drive loads the bridge of a host into node and makes calls.
func drive(t *testing.T, host string, p Parameters, calls ...call) report {
	t.Helper()
	source, err := Source(host, p)
	if err != nil {
		t.Fatal(err)
	}
	// The hosts load TypeScript; ours is written so that it is JavaScript as well.
	plugin := filepath.Join(t.TempDir(), "ahp.mjs")
	if err := os.WriteFile(plugin, source, 0o600); err != nil {
		t.Fatal(err)
	}
	in, err := strictjson.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(require.Path(t, "node"), filepath.Join("testdata", "driver.mjs"), plugin)
	cmd.Stdin = bytes.NewReader(in)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs.String())
	}
	var r report
	if err := strictjson.Unmarshal(bytes.TrimSpace(out), &r, strictjson.Options{MaxBytes: 64 << 20}); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(r.Stray) > 0 || len(r.Left) > 0 {
		t.Errorf("outside of the promises: %q, left over: %q", r.Stray, r.Left)
	}
	return r
}

// program writes a stand-in for ahp. A child writes it, so that no other child holds
// it open for writing while it is started.
func program(t *testing.T, text string) Parameters {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a'h p")
	cmd := exec.Command(require.Path(t, "sh"), "-c", `cat >"$1" && chmod 755 "$1"`, "sh", path)
	cmd.Stdin = strings.NewReader("#!/bin/sh\n" + text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return Parameters{Binary: path, Args: []string{"hook", "x y", "$z"}, OnMissing: "deny", TimerMS: 30_000, NoAnswer: "no answer", NotApplied: "not applied"}
}

// gates returns one call of each bridge's gate with the arguments {"a":1,"b":2}. Kilo
// has that of opencode.
func gates() map[string]call {
	plugin := call{Hook: "tool.execute.before", Args: []any{object{"tool": "bash", "sessionID": "s", "callID": "c"}, object{"args": object{"a": 1, "b": 2}}}}
	return map[string]call{
		"opencode": plugin,
		"pi":       {Hook: "tool_call", Args: []any{object{"type": "tool_call", "toolName": "bash", "toolCallId": "c", "input": object{"a": 1, "b": 2}}}},
	}
}

// outcome is what became of a gate's call: the reason if it was refused, else the
// arguments.
func outcome(host string, r result) (reason string, args any) {
	if host != "pi" {
		return r.Threw, r.Args[1].(object)["args"]
	}
	args = r.Args[0].(object)["input"]
	if block, is := r.Returned.(object); is && block["block"] == true {
		return block["reason"].(string), args
	}
	return "", args
}
