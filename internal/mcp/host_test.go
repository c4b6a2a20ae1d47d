package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/mcp"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/proc"
)

func TestToolsAreCalled(t *testing.T) {
	t.Parallel()
	s := server(t, "notes", script{Tools: named("add", "find"), PageSize: 1, OldSchool: true})
	s.ReadOnly = []string{"find", "nope"}
	r := start(t, mcp.Options{Version: "1.2"}, s)
	r.wantNames("mcp__notes__add", "mcp__notes__find")
	r.works("mcp__notes__add", `{"big":12345678901234567890,"x":1.50}`, `add {"big":12345678901234567890,"x":1.50}`)
	for _, tt := range r.Tools() {
		d := tt.Declare([]byte(`{}`))
		name := strings.TrimPrefix(tt.Spec().Name, "mcp__notes__")
		if want := (policy.Declaration{Kind: policy.SubjectText, Subject: "notes/" + name, Mutates: name != "find"}); d != want {
			t.Errorf("%s declares %+v, expected %+v", name, d, want)
		}
		if got := tt.Spec().Description; got != `[From MCP server "notes"] does `+name {
			t.Errorf("description %q", got)
		}
	}
	r.noticed(`read_only names "nope"`)
	st := r.States()[0]
	if st.State != mcp.StateReady || st.Transport != "stdio" || st.Pid == 0 || len(st.Tools) != 2 || st.Latency <= 0 || st.Error != "" {
		t.Errorf("state %+v", st)
	}
	r.Close()
	if st := r.States()[0]; st.State != mcp.StateClosed || st.Pid != 0 {
		t.Errorf("state after Close %+v", st)
	}
	r.fails("mcp__notes__find", `{}`, "ending")
}

func TestReadOnlyHintChangesNothing(t *testing.T) {
	t.Parallel()
	r := start(t, mcp.Options{}, server(t, "s", script{Tools: []string{`{"name":"wipe","annotations":{"readOnlyHint":true},` + open + `}`}}))
	if !r.Tools()[0].Declare(nil).Mutates {
		t.Error("the server's own hint made a tool read-only")
	}
}

func TestOneServerDoesNotCostAnother(t *testing.T) {
	t.Parallel()
	crash := server(t, "crash", script{Exit: 7})
	crash.Env = append(crash.Env, "FAKE_TOKEN=very-secret-token")
	slow := server(t, "slow", script{Silent: true, Stubborn: true})
	slow.StartTimeout = 300 * time.Millisecond
	missing := mcp.Server{Name: "missing", Command: "/no/such/program"}
	refused := server(t, "refused", script{Tools: named("x")})
	begin := time.Now()
	r := start(t, mcp.Options{Confine: func(name string, spec proc.Spec) (proc.Spec, error) {
		if name == "refused" {
			return spec, errors.New("no sandbox for it")
		}
		return spec, nil
	}}, crash, slow, missing, refused, server(t, "good", script{Tools: named("echo")}))
	if took := time.Since(begin); took > 8*time.Second {
		t.Errorf("the start took %v", took)
	}
	r.wantNames("mcp__good__echo")
	r.works("mcp__good__echo", `{"a":1}`, `echo {"a":1}`)
	r.noticed(`MCP server "crash"`, "exit code 7", "cannot read the file of settings, token [secret]", "did not answer within 300ms", "/no/such/program", "no sandbox for it")
	for i, want := range []string{"exit code 7", "300ms", "no such file", "no sandbox", ""} {
		if st := r.States()[i]; !strings.Contains(st.Error, want) || (st.State == mcp.StateFailed) != (want != "") {
			t.Errorf("state %+v, expected an error with %q", st, want)
		}
		if strings.Contains(r.States()[i].Error, "very-secret") {
			t.Errorf("a secret in %q", r.States()[i].Error)
		}
	}
	if strings.Contains(r.rec.text(), "very-secret") {
		t.Errorf("a secret is recorded: %s", r.rec.text())
	}
	if got := strings.Join(r.Servers(), " "); got != "crash slow missing refused good" {
		t.Errorf("servers %q", got)
	}
}

func TestConfigurationFaults(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	tests := map[string][]mcp.Server{
		`holds "__"`:             {{Name: "a__b", Command: "x"}},
		`ends in "_"`:            {{Name: "a_", Command: "x"}},
		"no name":                {{Command: "x"}},
		"neither command nor":    {{Name: "a"}},
		"both command and url":   {{Name: "a", Command: "x", URL: "http://h"}},
		"not one of http":        {{Name: "a", URL: "ftp://u:" + secret + "@h"}},
		"can't be read":          {{Name: "a", URL: "http://h:" + secret}},
		"has the same name":      {{Name: "a", Command: "x"}, {Name: "a", Command: "y"}},
		"negative":               {{Name: "a", Command: "x", CallTimeout: -1}},
		"which no server gets":   {{Name: "a", URL: "http://h/#" + secret}},
		"ca_file: open /no/such": {{Name: "a", URL: "https://h"}},
	}
	for want, servers := range tests {
		opts := mcp.Options{}
		if strings.HasPrefix(want, "ca_file") {
			opts.CAFile = "/no/such"
		}
		_, err := mcp.Start(t.Context(), servers, opts)
		var se *mcp.StartError
		if !errors.As(err, &se) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("error %v, expected a *StartError with %q", err, want)
		}
	}
}

func TestStartIsInterrupted(t *testing.T) {
	t.Parallel()
	log := logFile(t)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		logHas(t, log, "initialize")
		cancel()
	}()
	begin := time.Now()
	_, err := mcp.Start(ctx, []mcp.Server{server(t, "s", script{Silent: true, Stubborn: true, Log: log})}, mcp.Options{})
	if !errors.Is(err, context.Canceled) || time.Since(begin) > 8*time.Second {
		t.Errorf("got %v after %v", err, time.Since(begin))
	}
	gone(t, pids(t, log)...)
}

func TestNoise(t *testing.T) {
	t.Parallel()
	r := start(t, mcp.Options{}, server(t, "s", script{Tools: named("echo"), Noise: true}))
	for range 3 {
		r.works("mcp__s__echo", `{"a":"b"}`, `echo {"a":"b"}`)
	}
	r.noticed("starting up ...", "passed over", "JSON-RPC 2.0")
}

// TestOtherProtocol is a server that refuses the handshake of the version that is
// tried first.
func TestOtherProtocol(t *testing.T) {
	t.Parallel()
	log := logFile(t)
	r := start(t, mcp.Options{}, server(t, "s", script{Tools: named("echo"), Refuse: -32601, Log: log}))
	r.works("mcp__s__echo", `{}`, "echo {}")
	logHas(t, log, "server/discover")
}

func TestOnly(t *testing.T) {
	t.Parallel()
	s := server(t, "s", script{Tools: named("a", "b", "c")})
	s.Only = []string{"b", "z"}
	r := start(t, mcp.Options{}, s)
	r.wantNames("mcp__s__b")
	r.noticed(`only names "z"`)
}

func TestTakenName(t *testing.T) {
	t.Parallel()
	r := start(t, mcp.Options{Taken: []string{"mcp__s__a"}}, server(t, "s", script{Tools: named("a", "b")}))
	if got := r.names(); len(got) != 2 || got[1] != "mcp__s__b" || !strings.HasPrefix(got[0], "mcp__s__a_") {
		t.Errorf("tools are %q", got)
	}
	r.works(r.names()[0], `{}`, "a {}")
}

func TestRootsAndSampling(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a b")
	r := start(t, mcp.Options{Roots: []string{dir}}, server(t, "s", script{Tools: named("roots", "sample", "askpanic")}))
	r.works("mcp__s__roots", `{}`, "file://"+strings.ReplaceAll(dir, " ", "%20"))
	r.works("mcp__s__sample", `{}`, "asked") // answered with an error, which the fake doesn't mind
	r.works("mcp__s__askpanic", `{}`, "empty")
}

// TestManyNotices holds that a server can't fill the record.
func TestManyNotices(t *testing.T) {
	t.Parallel()
	var tools []string
	for i := range 400 {
		tools = append(tools, fmt.Sprintf(`{"name":"t%d","inputSchema":7}`, i))
	}
	r := start(t, mcp.Options{}, server(t, "s", script{Tools: append(tools, named("ok")...)}))
	r.wantNames("mcp__s__ok")
	if n := strings.Count(r.rec.text(), "\n"); n > 250 {
		t.Errorf("%d notices", n)
	}
	r.noticed("the last remark")
	if n := len(r.States()[0].LeftOut); n != 400 {
		t.Errorf("%d tools are said to be left out", n)
	}
}

func TestEnvironmentIsSmall(t *testing.T) {
	t.Setenv("ABHED_API_KEY", "k")
	file := filepath.Join(t.TempDir(), "env")
	self := server(t, "s", script{Tools: named("x")})
	self.Args = []string{"-c", `env > "$1"; exec "$2" "$3" "$4"`, "sh", file, self.Command, self.Args[0], self.Args[1]}
	self.Command, self.Env = "/bin/sh", []string{raceEnv, "WANTED=yes"}
	start(t, mcp.Options{}, self)
	env, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(env), "ABHED_API_KEY") || !strings.Contains(string(env), "WANTED=yes") {
		t.Errorf("environment %s, %v", env, err)
	}
}
