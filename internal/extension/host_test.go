package extension_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/proc"
)

func TestWire(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	cfg := with(fakeExt(t, "a", nil), func(c *extension.Config) { c.Env = append(c.Env, fakeLog+"="+log) })
	h := start(t, nil, cfg)
	ctx := context.Background()
	h.SessionStart(ctx, extension.Session{Workspace: "/w", Model: "m", Mode: "auto"})
	c := call(t, "bash", `{"description":"d","command":"ls"}`)
	h.PolicyHook(ctx, extension.ToolCall{Call: c})
	h.PolicyHook(ctx, extension.ToolCall{Call: c, Round: 2, Original: []byte(`{"command": "rm"}`)})
	h.PolicyHook(ctx, extension.ToolCall{Call: c, Round: 2, Original: []byte(`{}`), Final: true})
	h.PermissionRequest(ctx, c, policy.Declaration{}, "because")
	h.ToolResult(ctx, c, policy.Declaration{}, "out\n", true)
	h.SessionEnd(ctx, "completed")

	const who = `"call_id":"c-1","turn":3,"agent":{"id":"main","depth":0},"tool":"bash","args":{"command":"ls","description":"d"}`
	want := []string{
		`{"event":"list_tools","session_id":"s-1","seq":1}`,
		`{"event":"session_start","session_id":"s-1","seq":2,"workspace":"/w","model":"m","mode":"auto"}`,
		`{"event":"tool_call","session_id":"s-1","seq":3,` + who + `,"round":1}`,
		`{"event":"tool_call","session_id":"s-1","seq":4,` + who + `,"round":2,"original":{"command":"rm"}}`,
		`{"event":"tool_call","session_id":"s-1","seq":5,` + who + `,"round":2,"original":{},"final":true}`,
		`{"event":"permission_request","session_id":"s-1","seq":6,` + who + `,"content":"because"}`,
		`{"event":"tool_result","session_id":"s-1","seq":7,` + who + `,"content":"out\n","is_error":true}`,
		`{"event":"session_end","session_id":"s-1","seq":8,"reason":"completed"}`,
	}
	got := strings.Split(strings.TrimSuffix(strings.Join(logLines(t, log), ""), "\n"), "\n")
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	const args = `{"command":"ls"}`
	tests := []struct {
		name, reply     string
		objection       string
		reason, newArgs string
		asked           string
	}{
		{"no opinion", `{}`, "none", "", "", "none"},
		{"block", `{"block":true,"reason":"no"}`, "deny", "no", "", "deny"},
		{"block without a reason", `{"block":true}`, "deny", `extension "a" blocked the call and gave no reason`, "", "deny"},
		{"ask", `{"ask":true,"reason":"look"}`, "ask", "look", "", "ask"},
		{"ask without a reason", `{"ask":true}`, "ask", `extension "a" wants a person to approve the call and gave no reason`, "", "ask"},
		{"block and ask", `{"ask":true,"block":true,"reason":"no"}`, "deny", "no", "", "deny"},
		{"block false", `{"block":false,"reason":"fine"}`, "none", "", "", "none"},
		{"null", `{"block":null,"args":null,"reason":null}`, "none", "", "", "none"},
		{"rewrite", `{"args":{"command":"ls -l"}}`, "none", "", `{"command":"ls -l"}`, "rewrite"},
		{"rewrite to the same", `{"args":{ "command" : "l\u0073" }}`, "none", "", "", "none"},
		{"removal", `{"args":{}}`, "none", "", `{}`, "rewrite"},
		{"ask and rewrite", `{"ask":true,"reason":"r","args":{"z":1,"a":2}}`, "ask", "r", `{"a":2,"z":1}`, "ask+rewrite"},
		{"block and rewrite", `{"block":true,"reason":"r","args":{}}`, "deny", "r", "", "deny"},
		{"right seq", "@seq 0", "none", "", "", "none"},
		{"several lines", `@raw "{\n\"block\"\r\n:true,\"reason\":\"r\"}\r\n"`, "deny", "r", "", "deny"},
		{"long reason", `{"block":true,"reason":"` + strings.Repeat("x", 20_000) + `"}`, "deny", strings.Repeat("x", 8<<10) + " …(11808 bytes cut)", "", "deny"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := start(t, nil, fakeExt(t, "a", actions{"tool_call": tt.reply}))
			got := one(t, h, "bash", args)
			if got.Objection.String() != tt.objection || got.Objection.Reason() != tt.reason {
				t.Errorf("objection %s %q, want %s %q", got.Objection, got.Objection.Reason(), tt.objection, tt.reason)
			}
			if string(got.Args) != tt.newArgs {
				t.Errorf("args %q, want %q", got.Args, tt.newArgs)
			}
			want := event.Asked{Kind: "extension", Name: "a", Version: got.Asked.Version, Step: "tool_call", Round: 1,
				Answer: tt.asked, Reason: tt.reason, MS: got.Asked.MS}
			if d := cmp.Diff(want, got.Asked); d != "" {
				t.Errorf("record (-want +got):\n%s", d)
			}
			if src := got.Objection.Source(); src != (policy.Source{Kind: "extension", Name: "a"}) {
				t.Errorf("source %v", src)
			}
			if s := state(t, h, "a"); s.State != extension.StateStarted || s.Calls != 2 {
				t.Errorf("state %+v, want started with 2 calls", s)
			}
		})
	}
}

// allowing is every way that an extension can think of to say yes.
var allowing = []string{
	`{"allow":true}`, `{"block":false,"ask":false,"allow":true}`, `{"permit":true}`, `{"decision":"allow"}`,
	`{"permission":"allow","reason":"trust me"}`, `{"permissionDecision":"allow"}`, `{"verdict":"allow"}`, `{"approve":true}`,
	`{"hookSpecificOutput":{"permissionDecision":"allow"}}`, `{"effects":[{"type":"allow"}]}`, `{"block":false}`, `{"ask":false}`,
	`{"block":null}`, `{}`, `{"args":{"command":"true"}}`, `{"mode":"bypass"}`, `{"is_error":false,"content":"allowed"}`,
	`{"tools":[{"name":"bash","mutates":false}]}`, `"allow"`, `true`, `allow`, `{"allow":true`, `{"block":true,"block":false}`,
	`{"block":"allow"}`, `@exit 0`, `@raw "{}\n{\"allow\":true}\n"`, `@raw ""`,
}

// TestAllowLiftsNoDeny is the first of the two tests that hold the one rule.
func TestAllowLiftsNoDeny(t *testing.T) { holdsVerdict(t, policy.Deny) }

// TestAllowTurnsNoQuestionIntoAYes is the second.
func TestAllowTurnsNoQuestionIntoAYes(t *testing.T) { holdsVerdict(t, policy.Ask) }

func holdsVerdict(t *testing.T, v policy.Verdict) {
	t.Parallel()
	var configs []extension.Config
	for i, reply := range allowing {
		c := fakeExt(t, fmt.Sprintf("x%d", i), actions{"tool_call": reply, "permission_request": reply})
		c.Timeout = 4 * time.Second
		configs = append(configs, c)
	}
	h := start(t, nil, configs...)
	answers := append(hook(t, h, "bash", `{"command":"rm -rf /"}`),
		h.PermissionRequest(context.Background(), call(t, "bash", `{"command":"rm -rf /"}`), policy.Declaration{}, "why")...)
	if len(answers) != 2*len(allowing) {
		t.Fatalf("%d answers of %d extensions", len(answers), len(allowing))
	}
	for _, a := range answers {
		if got := policy.Join(v, []policy.Objection{a.Objection}); got < v {
			t.Errorf("%s turned %s into %s", a.Name, v, got)
		}
	}
	if got := policy.Join(v, objections(answers)); got < v {
		t.Errorf("together they turned %s into %s", v, got)
	}
}

// TestAnswerCannotAllow holds the structure: nothing that PolicyHook returns can
// hold a verdict.
func TestAnswerCannotAllow(t *testing.T) {
	t.Parallel()
	verdict := reflect.TypeFor[policy.Verdict]()
	seen := map[reflect.Type]bool{}
	var walk func(path string, typ reflect.Type)
	walk = func(path string, typ reflect.Type) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		if typ == verdict {
			t.Errorf("%s is a policy.Verdict", path)
		}
		switch typ.Kind() {
		case reflect.Struct:
			for i := range typ.NumField() {
				walk(path+"."+typ.Field(i).Name, typ.Field(i).Type)
			}
		case reflect.Slice, reflect.Array, reflect.Pointer, reflect.Map:
			walk(path+"[]", typ.Elem())
		case reflect.Interface, reflect.Func, reflect.Chan:
			t.Errorf("%s is a %s, which could hold anything", path, typ)
		}
	}
	method, ok := reflect.TypeFor[*extension.Host]().MethodByName("PolicyHook")
	if !ok {
		t.Fatal("there is no Host.PolicyHook")
	}
	for i := range method.Type.NumOut() {
		walk("PolicyHook", method.Type.Out(i))
	}
	if !seen[reflect.TypeFor[policy.Objection]()] {
		t.Error("PolicyHook returns no policy.Objection")
	}
}

// TestNoReplyAllows is the property over real replies of a real process.
func TestNoReplyAllows(t *testing.T) {
	t.Parallel()
	cfg := fakeExt(t, "a", actions{"tool_call": "@given reply"})
	h := start(t, nil, cfg)
	rapid.Check(t, func(rt *rapid.T) {
		body := rapid.SampledFrom([]string{
			`{"block":%s}`, `{"ask":%s}`, `{"allow":%s}`, `{"args":%s}`, `{"reason":%s,"block":true}`, `{"x":%s,"ask":true}`, `{"log":%s}`,
		}).Draw(rt, "shape")
		value := rapid.SampledFrom([]string{"true", "false", "null", `"allow"`, "{}", `{"a":1}`, "[]", "1"}).Draw(rt, "value")
		text := fmt.Sprintf(body, value)
		quoted := strings.ReplaceAll(text, `"`, `\"`)
		a := one(t, h, "bash", `{"reply":"`+quoted+`"}`)
		for v := policy.Allow; v <= policy.Deny; v++ {
			if got := policy.Join(v, []policy.Objection{a.Objection}); got < v {
				rt.Fatalf("%s turned %s into %s", text, v, got)
			}
		}
		if a.Asked.Answer == "failed" {
			h.Close()
			h = start(t, nil, cfg)
		}
	})
}

// TestOrderDoesNotMatterProperty draws what three extensions answer and asks hosts
// that have them in every order.
func TestOrderDoesNotMatterProperty(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c"}
	var hosts []*extension.Host
	for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		var configs []extension.Config
		for _, i := range order {
			configs = append(configs, fakeExt(t, names[i], actions{"tool_call": "@given " + names[i]}))
		}
		hosts = append(hosts, start(t, nil, configs...))
	}
	answer := rapid.SampledFrom([]string{
		`{}`, `{"block":true}`, `{"ask":true}`, `{"allow":true}`, `{"block":true,"ask":true,"reason":"r"}`, `{"args":{}}`,
		`{"args":{"command":"x"},"ask":true}`, `{"args":{"command":"y"}}`, `{"reason":"only"}`,
	})
	rapid.Check(t, func(rt *rapid.T) {
		var members []string
		for _, n := range names {
			members = append(members, fmt.Sprintf("%q:%q", n, answer.Draw(rt, n)))
		}
		var first []extension.Answer
		for i, h := range hosts {
			got := hook(t, h, "bash", "{"+strings.Join(members, ",")+"}")
			for j := range got {
				got[j].Asked.MS = 0
				if got[j].Asked.Answer == "failed" {
					rt.Fatalf("%+v", got[j].Asked)
				}
			}
			if i == 0 {
				first = got
			} else if d := cmp.Diff(first, got, cmp.AllowUnexported(policy.Objection{})); d != "" {
				rt.Fatalf("host %d (-first +this):\n%s", i, d)
			}
		}
	})
}

func TestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	configs := []extension.Config{
		fakeExt(t, "none", nil),
		fakeExt(t, "ask", actions{"tool_call": `{"ask":true,"reason":"look"}`}),
		fakeExt(t, "block", actions{"tool_call": `{"block":true,"reason":"no"}`}),
		fakeExt(t, "rewrite", actions{"tool_call": `{"args":{"command":"x"}}`}),
		with(fakeExt(t, "dead", actions{"start": "@exit 1"}), func(c *extension.Config) { c.OnFailure = extension.AskPerson }),
	}
	var first []extension.Answer
	for _, order := range [][]int{{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}} {
		var shuffled []extension.Config
		for _, i := range order {
			shuffled = append(shuffled, configs[i])
		}
		h := start(t, nil, shuffled...)
		got := hook(t, h, "bash", `{"command":"ls"}`)
		h.Close()
		for i := range got {
			got[i].Asked.MS = 0
		}
		if first == nil {
			first = got
			if v := policy.Join(policy.Allow, objections(got)); v != policy.Deny {
				t.Errorf("together: %s, want deny", v)
			}
			continue
		}
		if d := cmp.Diff(first, got, cmp.AllowUnexported(policy.Objection{})); d != "" {
			t.Errorf("order %v (-first +this):\n%s", order, d)
		}
	}
}

func TestSubscriptionAndMatch(t *testing.T) {
	t.Parallel()
	onlyLs := func(c policy.Call, d policy.Declaration) bool { return d.Subject == "ls" }
	block := actions{"tool_call": `{"block":true}`, "permission_request": `{"block":true}`}
	h := start(t, nil,
		with(fakeExt(t, "results", block), func(c *extension.Config) { c.Events = []string{"tool_result"} }),
		with(fakeExt(t, "narrow", block), func(c *extension.Config) { c.Match = onlyLs }),
		with(fakeExt(t, "deadnarrow", actions{"start": "@exit 1"}), func(c *extension.Config) {
			c.Match, c.OnFailure = onlyLs, extension.Block
		}),
		with(fakeExt(t, "deadresults", actions{"start": "@exit 1"}), func(c *extension.Config) {
			c.Events, c.OnFailure = []string{"tool_result"}, extension.Block
		}),
	)
	names := func(answers []extension.Answer) string {
		var out []string
		for _, a := range answers {
			out = append(out, a.Name+"="+a.Objection.String())
		}
		return strings.Join(out, " ")
	}
	ctx, c := context.Background(), call(t, "bash", `{"command":"ls"}`)
	if got := names(h.PolicyHook(ctx, extension.ToolCall{Call: c, Decl: policy.Declaration{Subject: "ls"}})); got != "deadnarrow=deny narrow=deny" {
		t.Errorf("a call that matches: %q", got)
	}
	if got := names(h.PermissionRequest(ctx, c, policy.Declaration{Subject: "ls"}, "")); got != "deadnarrow=deny narrow=deny" {
		t.Errorf("a question that matches: %q", got)
	}
	if got := names(h.PolicyHook(ctx, extension.ToolCall{Call: c, Decl: policy.Declaration{Subject: "rm"}})); got != "" {
		t.Errorf("a call that doesn't match: %q", got)
	}
	sticky := extension.ToolCall{Call: c, Decl: policy.Declaration{Subject: "rm"}, Round: 2, Sticky: map[string]bool{"narrow": true, "results": true}}
	if got := names(h.PolicyHook(ctx, sticky)); got != "narrow=deny" {
		t.Errorf("a call that matched in an earlier round: %q", got)
	}
	if !h.WatchesResults() {
		t.Error("an extension subscribes to tool_result, WatchesResults says no")
	}
	if quiet := start(t, nil, with(fakeExt(t, "a", nil), func(c *extension.Config) { c.Events = []string{"tool_call"} })); quiet.WatchesResults() {
		t.Error("no extension subscribes to tool_result, WatchesResults says yes")
	}
}

func TestPermissionRequestOnlyBlocks(t *testing.T) {
	t.Parallel()
	rec := &record{}
	h := start(t, rec, fakeExt(t, "a", actions{"permission_request": `{"ask":true,"args":{"command":"x"}}`}))
	got := h.PermissionRequest(context.Background(), call(t, "bash", `{}`), policy.Declaration{}, "why")
	if len(got) != 1 || got[0].Objection.String() != "none" || got[0].Args != nil || got[0].Asked.Answer != "none" || got[0].Asked.Step != "permission_request" {
		t.Errorf("got %+v", got)
	}
	want := []string{`a reply to permission_request has "args", "ask", which has no effect there`}
	if d := cmp.Diff(want, rec.lines("a", "warning")); d != "" {
		t.Errorf("warnings (-want +got):\n%s", d)
	}
}

func TestLogsAndWarnings(t *testing.T) {
	t.Parallel()
	rec := &record{}
	h := start(t, rec, fakeExt(t, "a", actions{
		"tool_call": `@stderr to the log && {"blok":true,"allow":true,"x":1,"log":"seen"}`, "tool_result": `{"blok":true,"block":true}`,
	}))
	for range 3 {
		one(t, h, "bash", `{}`)
		h.ToolResult(context.Background(), call(t, "bash", `{}`), policy.Declaration{}, "", false)
	}
	h.Close()
	want := []string{
		`unknown fields in its replies are ignored: "allow", "blok", "x"; an extension may veto, never permit, so there is no "allow"; "blok" is one edit away from "block"`,
		`a reply to tool_result has "block", which has no effect there`,
	}
	if d := cmp.Diff(want, rec.lines("a", "warning")); d != "" {
		t.Errorf("warnings (-want +got):\n%s", d)
	}
	lines := rec.lines("a", "log")
	slices.Sort(lines)
	if d := cmp.Diff([]string{"seen", "seen", "seen", "to the log", "to the log", "to the log"}, lines); d != "" {
		t.Errorf("log (-want +got):\n%s", d)
	}
}

func TestStartRefuses(t *testing.T) {
	t.Parallel()
	lists := func(t *testing.T, name, tools string) extension.Config {
		return fakeExt(t, name, actions{"list_tools": `{"tools":` + tools + `}`})
	}
	const tick = `[{"name":"ticket","schema":{"type":"object"}}]`
	tests := []struct {
		name    string
		configs func(t *testing.T) []extension.Config
		want    string
	}{
		{"no name", func(t *testing.T) []extension.Config { return []extension.Config{fakeExt(t, "", nil)} }, "it has no name"},
		{"no command", func(t *testing.T) []extension.Config { return []extension.Config{{Name: "a"}} }, "it has no command"},
		{"same name", func(t *testing.T) []extension.Config {
			return []extension.Config{fakeExt(t, "a", nil), fakeExt(t, "a", nil)}
		}, "two extensions have this name"},
		{"unknown event", func(t *testing.T) []extension.Config {
			return []extension.Config{with(fakeExt(t, "a", nil), func(c *extension.Config) { c.Events = []string{"tool_cal"} })}
		}, `unknown event "tool_cal" (did you mean "tool_call"?). The events are list_tools,`},
		{"I228 an event in other case", func(t *testing.T) []extension.Config {
			return []extension.Config{with(fakeExt(t, "a", nil), func(c *extension.Config) { c.Events = []string{"TOOL_CALL"} })}
		}, `unknown event "TOOL_CALL" (did you mean "tool_call"?)`},
		{"I228 on_failure in other case", func(t *testing.T) []extension.Config {
			return []extension.Config{with(fakeExt(t, "a", nil), func(c *extension.Config) { c.OnFailure = "Block" })}
		}, `on_failure is "Block", expected "skip", "ask" or "block"`},
		{"on_failure", func(t *testing.T) []extension.Config {
			return []extension.Config{with(fakeExt(t, "a", nil), func(c *extension.Config) { c.OnFailure = "allow" })}
		}, `on_failure is "allow"`},
		{"built-in name", func(t *testing.T) []extension.Config {
			return []extension.Config{lists(t, "a", `[{"name":"bash","schema":{"type":"object"}}]`)}
		}, `extension "a": its tool "bash" has the name of a tool that exists already`},
		{"MCP name", func(t *testing.T) []extension.Config {
			return []extension.Config{lists(t, "a", `[{"name":"mcp__x__y"}]`)}
		}, `its tool "mcp__x__y" has a name that is kept for MCP servers`},
		{"two extensions", func(t *testing.T) []extension.Config {
			return []extension.Config{lists(t, "a", tick), lists(t, "b", tick)}
		}, `extension "b": its tool "ticket" is also provided by extension "a"`},
		{"twice in a list", func(t *testing.T) []extension.Config {
			return []extension.Config{lists(t, "a", `[{"name":"t","schema":{"type":"object"}},{"name":"t","schema":{"type":"object"}}]`)}
		}, "offered twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h, err := extension.Start(context.Background(), tt.configs(t), extension.Options{Taken: []string{"read", "bash"}})
			var fault *extension.StartError
			if h != nil || !errors.As(err, &fault) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("host %v, error %v, want a StartError with %q", h, err, tt.want)
			}
		})
	}
}

func TestStartInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	path, release := fifo(t)
	cfg := fakeExt(t, "a", actions{"list_tools": "@wait " + path + " && @hang"})
	done := make(chan error)
	go func() {
		_, err := extension.Start(ctx, []extension.Config{cfg}, extension.Options{})
		done <- err
	}()
	release() // it has read the request now
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

func TestSandbox(t *testing.T) {
	t.Parallel()
	cfg := with(fakeExt(t, "a", nil), func(c *extension.Config) { c.Sandbox, c.OnFailure = true, extension.Block })
	rec := &record{}
	h := start(t, rec, cfg)
	if got := one(t, h, "bash", `{}`); !got.Objection.Denies() || got.Asked.Failure != "start" {
		t.Errorf("without a sandbox it answered %+v; it must not have been run", got)
	}
	if dead := rec.changes("a", "dead"); len(dead) != 1 || !strings.Contains(dead[0].Cause, "no sandbox here") {
		t.Errorf("recorded %+v", dead)
	}
	var confined []string
	h2, err := extension.Start(context.Background(), []extension.Config{cfg}, extension.Options{
		Confine: func(s proc.Spec) (proc.Spec, error) {
			confined = append(confined, s.Name)
			s.Args = append([]string{s.Path}, s.Args...)
			s.Path = "env"
			return s, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer h2.Close()
	if got := one(t, h2, "bash", `{}`); got.Objection.String() != "none" || fmt.Sprint(confined) != "[a]" {
		t.Errorf("answer %+v, confined %v", got, confined)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("SECRET_API_KEY", "s3cret")
	out := filepath.Join(t.TempDir(), "env")
	h := start(t, nil, extension.Config{
		Name: "a", Command: "sh", Args: []string{"-c", `env >"$OUT"; while read -r l; do echo '{}'; done`}, Env: []string{"OUT=" + out},
	})
	one(t, h, "bash", `{}`)
	b, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "SECRET_API_KEY") || !strings.Contains(string(b), "PATH=") {
		t.Errorf("environment of the extension:\n%s", b)
	}
}

func TestCloseReapsEverything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	child := filepath.Join(dir, "child")
	rec := &record{}
	h := start(t, rec,
		extension.Config{Name: "polite", Command: "sh", Args: []string{"-c", `while read -r l; do echo '{}'; done`}},
		// It ignores the end of its input and has a child of its own.
		extension.Config{Name: "stubborn", Command: "sh", Args: []string{"-c",
			`trap '' TERM; sleep 1000 & echo $! >"$0"; read -r l; echo '{}'; while :; do sleep 1000; done`, child}},
	)
	pids := []int{state(t, h, "polite").Pid, state(t, h, "stubborn").Pid}
	var sleeper int
	eventually(t, "the stubborn one's child", func() bool {
		b, _ := os.ReadFile(child)
		n, _ := fmt.Sscan(string(b), &sleeper)
		return n == 1
	})
	begin := time.Now()
	h.Close()
	h.Close()
	if took := time.Since(begin); took < 900*time.Millisecond || took > 15*time.Second {
		t.Errorf("Close took %v, expected a grace of about one second", took)
	}
	for _, pid := range pids {
		if !gone(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
	// It has been killed, but it isn't ours to reap.
	eventually(t, "the end of the stubborn one's child", func() bool { return gone(sleeper) })
	if e := rec.changes("polite", "ended"); len(e) != 1 || e[0].Cause != "exit code 0" {
		t.Errorf("the polite one's end was recorded as %+v", e)
	}
	if e := rec.changes("stubborn", "ended"); len(e) != 1 {
		t.Errorf("the stubborn one's end was recorded as %+v", e)
	}
	for _, a := range hook(t, h, "bash", `{}`) {
		if !a.Objection.Denies() {
			t.Errorf("after Close %s answers %s, want deny", a.Name, a.Objection)
		}
	}
	if s := state(t, h, "polite"); s.State != extension.StateEnded || s.Pid != 0 {
		t.Errorf("state after Close: %+v", s)
	}
}

// TestMatchThatPanics: a Match that fails narrows nothing.
func TestMatchThatPanics(t *testing.T) {
	t.Parallel()
	h := start(t, nil, with(fakeExt(t, "a", actions{"tool_call": `{"block":true}`}), func(c *extension.Config) {
		c.Match = func(policy.Call, policy.Declaration) bool { panic("bug") }
	}))
	if a := one(t, h, "bash", `{}`); !a.Objection.Denies() {
		t.Errorf("got %+v", a)
	}
}

// BenchmarkPolicyHook measures the round trip to processes that answer at once.
func BenchmarkPolicyHook(b *testing.B) {
	for _, n := range []int{1, 4} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var configs []extension.Config
			for i := range n {
				configs = append(configs, fakeExt(b, fmt.Sprintf("x%d", i), nil))
			}
			h := start(b, nil, configs...)
			q := extension.ToolCall{Call: call(b, "bash", `{"command":"go test ./...","description":"run the tests"}`)}
			b.ReportAllocs()
			for b.Loop() {
				for _, a := range h.PolicyHook(context.Background(), q) {
					if a.Asked.Answer != "none" {
						b.Fatal(a)
					}
				}
			}
		})
	}
}
