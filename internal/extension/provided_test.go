package extension_test

import (
	"context"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/tool"
)

// invoke runs a provided tool the way the loop does: by a permit.
func invoke(t testing.TB, ctx context.Context, h *extension.Host, name, args string) tool.Result {
	t.Helper()
	reg, err := tool.NewRegistry(h.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	minter, verifier := tool.NewAuthority()
	res, err := tool.NewExecutor(reg, verifier).Run(ctx, minter.Mint(call(t, name, args), nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

const oneTool = `{"tools":[{"name":"t","description":"d","schema":{"type":"object","properties":{"n":{"type":"integer"},"id":{"type":"string"}}}}]}`

func TestTools(t *testing.T) {
	t.Parallel()
	rec := &record{}
	h := start(t, rec,
		fakeExt(t, "z", actions{"list_tools": `{"tools":[
			{"name":"second","schema":{"type":"object"},"mutates":false},
			{"name":"broken","schema":{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}},
			{"name":"list","schema":{"type":"array"}},
			{"name":"endless","schema":{"type":"object","$ref":"#"}},
			{"name":"bare"},
			{"description":"nameless","schema":{"type":"object"}},
			{"name":"a(b)","schema":{"type":"object"}},
			{"name":"third","schema":{"type":"object","properties":{"x":{"type":["null","string"]}}},"mutate":false}]}`}),
		with(fakeExt(t, "a", actions{"list_tools": oneTool}), func(c *extension.Config) { c.Events = []string{"tool_call"} }),
	)
	type row struct {
		Name string
		Decl policy.Declaration
	}
	var got []row
	for _, tl := range h.Tools() {
		got = append(got, row{tl.Spec().Name, tl.Declare([]byte(`{"id":"7","n":1,"x":"y"}`))})
	}
	want := []row{
		{"second", policy.Declaration{}},
		{"third", policy.Declaration{Kind: policy.SubjectText, Subject: "y", Mutates: true}},
		{"t", policy.Declaration{Kind: policy.SubjectText, Subject: "7", Mutates: true}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("tools (-want +got):\n%s", d)
	}
	warnings := strings.Join(rec.lines("z", "warning"), "\n")
	for _, part := range []string{`"broken"`, `"list"`, `"endless"`, `"bare"`, `its tool "" (entry 5`, `"a(b)"`, `"tools/mutate" is one edit away from "mutates"`} {
		if !strings.Contains(warnings, part) {
			t.Errorf("no warning about %s in:\n%s", part, warnings)
		}
	}
	if c := rec.changes("a", "started"); len(c) != 1 || strings.Join(c[0].Tools, ",") != "t" || len(c[0].Hash) != 64 || c[0].Pid == 0 {
		t.Errorf("recorded %+v", c)
	}
	spec := h.Tools()[len(h.Tools())-1].Spec()
	if spec.Description != "d" || spec.Version == "" || !strings.Contains(string(spec.Schema), `"id"`) {
		t.Errorf("spec %+v", spec)
	}
}

func TestInvoke(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, reply string
		want        tool.Result
	}{
		{"result", `{"result":"out"}`, tool.OK("out")},
		{"empty result", `{"result":""}`, tool.OK("")},
		{"content", `{"content":"out","is_error":true}`, tool.Fail("out")},
		{"result before content", `{"content":"c","result":"r","is_error":false}`, tool.OK("r")},
		{"no result", `{}`, tool.Fail(`The tool t of extension "a" answered without a result.`)},
		{"null result", `{"result":null}`, tool.Fail(`The tool t of extension "a" answered without a result.`)},
		{"crash", `@exit 9`, tool.Fail(`The tool t of extension "a" gave no result: the process ended: exit code 9`)},
		{"garbage", `{"result":1}`, tool.Fail(`The tool t of extension "a" gave no result: the reply's "result" can't be used: found a number, expected a string (at the top level, byte 0)`)},
		{"NUL", `{"result":"a\u0000b"}`, tool.OK(`a\x00b`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := start(t, nil, fakeExt(t, "a", actions{"list_tools": oneTool, "invoke_tool": tt.reply}))
			if d := cmp.Diff(tt.want, invoke(t, context.Background(), h, "t", `{"id":"7"}`)); d != "" {
				t.Errorf("result (-want +got):\n%s", d)
			}
			if s := state(t, h, "a"); s.State != extension.StateStarted {
				t.Errorf("a tool touched the judging: %+v", s)
			}
		})
	}
}

func TestInvokeWire(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	h := start(t, nil, with(fakeExt(t, "a", actions{"list_tools": oneTool, "invoke_tool": `{"result":"x"}`}),
		func(c *extension.Config) { c.Env = append(c.Env, fakeLog+"="+log) }))
	invoke(t, context.Background(), h, "t", `{"id":"7","event":"e"}`)
	want := `{"event":"invoke_tool","session_id":"s-1","seq":1,"call_id":"c-1","turn":3,"agent":{"id":"main","depth":0},"tool":"t","args":{"\u0065vent":"e","id":"7"}}`
	if lines := logLines(t, log); len(lines) != 2 || lines[1] != want {
		t.Errorf("requests %q, want the second to be %s", lines, want)
	}
}

// TestInvokeHasItsOwnProcess: started at the first call, kept, and started anew
// after a failure.
func TestInvokeHasItsOwnProcess(t *testing.T) {
	t.Parallel()
	rec := &record{}
	h := start(t, rec, with(fakeExt(t, "a", actions{"list_tools": oneTool, "invoke_tool": "@pid"}),
		func(c *extension.Config) { c.InvokeTimeout = 10 * time.Second }))
	if s := state(t, h, "a"); s.ToolPid != 0 {
		t.Errorf("a tool process before the first call: %+v", s)
	}
	first := invoke(t, context.Background(), h, "t", `{}`).Content
	s := state(t, h, "a")
	if first != strconv.Itoa(s.ToolPid) || s.ToolPid == s.Pid {
		t.Errorf("the tool ran in process %s; state %+v", first, s)
	}
	if again := invoke(t, context.Background(), h, "t", `{}`).Content; again != first {
		t.Errorf("the second call ran in process %s, the first in %s", again, first)
	}
}

func TestInvokeTimeout(t *testing.T) {
	t.Parallel()
	rec := &record{}
	flag := filepath.Join(t.TempDir(), "flag")
	// The first call hangs, later ones answer.
	h := start(t, rec, extension.Config{
		Name: "a", Command: "sh", InvokeTimeout: 2 * time.Second,
		Args: []string{"-c", `while IFS= read -r l; do case "$l" in
			*'"event":"list_tools"'*) printf '%s\n' "$TOOLS";;
			*'"event":"invoke_tool"'*) if [ -e "$FLAG" ]; then echo '{"result":"second"}'; else : >"$FLAG"; echo slow >&2; sleep 1000; fi;;
			*) echo '{}';; esac; done`},
		Env: []string{"TOOLS=" + oneTool, "FLAG=" + flag},
	})
	res := invoke(t, context.Background(), h, "t", `{}`)
	if !res.TimedOut || !res.IsError || !strings.Contains(res.Content, "no reply to invoke_tool within 2s") {
		t.Errorf("result %+v", res)
	}
	if s := state(t, h, "a"); s.ToolPid != 0 || s.State != extension.StateStarted || s.ToolCalls != 1 || !strings.Contains(s.LastError, "no reply to invoke_tool") {
		t.Errorf("state %+v", s)
	}
	if res := invoke(t, context.Background(), h, "t", `{}`); res.Content != "second" || res.IsError {
		t.Errorf("the next call: %+v", res)
	}
	if w := rec.lines("a", "warning"); len(w) != 1 || !strings.Contains(w[0], "timeout: no reply") || !strings.Contains(w[0], "slow") {
		t.Errorf("warnings %q", w)
	}
	if got := one(t, h, "bash", `{}`); got.Asked.Answer != "none" {
		t.Errorf("the judging process: %+v", got.Asked)
	}
}

// TestInvokeInterrupted: nothing of an interrupted call goes on.
func TestInvokeInterrupted(t *testing.T) {
	t.Parallel()
	path, release := fifo(t)
	h := start(t, nil, fakeExt(t, "a", actions{"list_tools": oneTool, "invoke_tool": "@wait " + path + " && @hang"}))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan tool.Result)
	go func() { done <- invoke(t, ctx, h, "t", `{}`) }()
	release() // the call has begun
	pid := state(t, h, "a").ToolPid
	begin := time.Now()
	cancel()
	res := <-done
	if took := time.Since(begin); took > time.Second {
		t.Errorf("it took %v to interrupt", took)
	}
	if !res.IsError || !strings.Contains(res.Content, "interrupted") || pid == 0 || !gone(pid) {
		t.Errorf("result %+v, process %d gone: %v", res, pid, gone(pid))
	}
}

func TestInvokeAtClose(t *testing.T) {
	t.Parallel()
	path, release := fifo(t)
	h := start(t, nil, fakeExt(t, "a", actions{"list_tools": oneTool, "invoke_tool": "@wait " + path + " && @hang"}))
	done := make(chan tool.Result)
	go func() { done <- invoke(t, context.Background(), h, "t", `{}`) }()
	release()
	pid := state(t, h, "a").ToolPid
	h.Close()
	if res := <-done; !res.IsError {
		t.Errorf("result %+v", res)
	}
	if !gone(pid) {
		t.Errorf("tool process %d is left", pid)
	}
	if res := invoke(t, context.Background(), h, "t", `{}`); !res.IsError || state(t, h, "a").ToolPid != 0 {
		t.Errorf("a tool ran after Close: %+v", res)
	}
}
