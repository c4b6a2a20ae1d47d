package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// file returns a settings file of a layer; project files are trusted.
func file(layer Layer, data string) Source {
	return Source{Layer: layer, File: "/f/" + layer.String() + ".json", Dir: "/f", Data: []byte(data), Trusted: true}
}

func untrustedFile(data string) Source {
	return Source{Layer: Project, File: "/w/.abhed/config.json", Dir: "/w", Data: []byte(data)}
}

func args(a ...Arg) Source { return Source{Layer: CommandLine, Dir: "/cwd", Args: a} }

func environ(vars ...string) Source { return Source{Layer: Environment, Environ: vars} }

func load(t *testing.T, sources ...Source) *Settings {
	t.Helper()
	s, err := Load(sources)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return s
}

// faultsOf returns the messages of a Load that must fail.
func faultsOf(t *testing.T, sources ...Source) []string {
	t.Helper()
	s, err := Load(sources)
	if err == nil {
		t.Fatalf("Load accepted it: %+v", s)
	}
	if s != nil {
		t.Error("Load returned settings beside an error")
	}
	var all *Errors
	if !errors.As(err, &all) || len(all.List) == 0 {
		t.Fatalf("error is %T: %v", err, err)
	}
	var out []string
	for _, e := range all.List {
		out = append(out, e.Error())
	}
	return out
}

// specExample is the example of abhed.md, Configuration, with the ignorable
// parts of JSON that we accept.
const specExample = `{"model": "internal-vllm/Qwen3-32B", // the house model
 "sampling": {"temperature": 0.2, "seed": 7},
 "custom_providers": [{"name": "internal-vllm", "api": "openai", "base_url": "https://llm.internal.example/v1", "sampling": ["temperature", "top_p", "top_k", "seed"]}],
 "permissions": {"mode": "default", "allow": ["bash(go test*)"], "ask": [], "deny": ["write(/etc/**)"],},
 "extensions": [], "ahp": {"registration": "ahp.json"}, "mcp": {}, "sandbox": {"min_tier": "process", "network": false},
 /* no limits but one */ "limits": {"max_turns": 100, "max_tokens": 0, "max_cost_usd": 0, "max_seconds": 0}}`

func TestSpecExample(t *testing.T) {
	s := load(t, file(User, specExample))
	e, err := s.Resolve("")
	if err != nil {
		t.Fatal(err)
	}
	want := Endpoint{Provider: "internal-vllm", Model: "Qwen3-32B", API: "openai", BaseURL: "https://llm.internal.example/v1", Sampling: []string{"temperature", "top_p", "top_k", "seed"}}
	if d := cmp.Diff(want, e, cmp.Comparer(func(a, b Secret) bool { return a.Reveal() == b.Reveal() })); d != "" {
		t.Errorf("endpoint (-want +got):\n%s", d)
	}
	if *s.Sampling.Temperature != 0.2 || *s.Sampling.Seed != 7 || s.Sampling.TopP != nil {
		t.Errorf("sampling = %+v", s.Sampling)
	}
	deny := Rule{Text: "write(/etc/**)", Origin: Origin{Layer: User, File: "/f/user.json", Line: 4, Column: 86, Key: "permissions.deny[0]"}}
	if d := cmp.Diff([]Rule{deny}, s.Permissions.Deny); d != "" {
		t.Errorf("deny (-want +got):\n%s", d)
	}
	if s.AHP.Registration != "/f/ahp.json" || s.Limits.MaxTurns != 100 || s.Sandbox.MinTier != "process" || s.Sandbox.Network {
		t.Errorf("settings = %+v", s)
	}
}

func TestNoSourcesGivesDefaults(t *testing.T) {
	s := load(t)
	if s.Permissions.Mode != "default" || s.Permissions.MaxMode != "bypass" || s.Sandbox.MinTier != "process" || s.Sandbox.Network || s.Limits.MaxTurns != 100 || s.Limits.MaxTokens != 0 {
		t.Errorf("defaults = %+v", s)
	}
	if _, err := s.Resolve(""); err == nil || !strings.Contains(err.Error(), "no model is configured") {
		t.Errorf("Resolve without a model: %v", err)
	}
}

func TestEveryKey(t *testing.T) {
	s := load(t, file(User, `{
	"$schema": "https://example.org/abhed.json",
	"model": "openrouter/anthropic/claude",
	"sampling": {"temperature": 1, "top_p": 0.5, "top_k": 40, "min_p": 0.1, "seed": -1, "frequency_penalty": -2, "presence_penalty": 2,
		"repetition_penalty": 1.1, "max_tokens": 5, "stop": ["\n\n"]},
	"custom_providers": [{"name": "p", "api": "script", "base_url": "scripts/one.json", "api_key_env": "P_KEY", "headers_env": {"X-Team": "TEAM"},
		"sampling": ["temperature", "top_p", "top_k", "min_p", "seed", "frequency_penalty", "presence_penalty", "repetition_penalty", "max_tokens", "stop"], "models": {"m": {"context_window": 100, "output_limit": 10, "price": {"input": 1.5, "output": 2, "cache_read": 0, "cache_write": 3}}}, "description": "d"}],
	"permissions": {"mode": "auto", "max_mode": "auto", "allow": ["read"], "ask": ["*"], "deny": ["bash(rm*)"], "runners": ["fleet ssh"], "env_harmless": ["GOFLAGS"]},
	"extensions": [{"name": "g", "command": "./g.sh", "args": ["./a"], "env": {"K": "v"}, "cwd": "sub", "events": ["tool_call", "notification"], "match": ["bash(x*)"],
		"timeout_ms": 10, "invoke_timeout_ms": 20, "sandbox": true, "on_failure": "block"}, {"name": "h", "command": "bash"}],
	"ahp": {"registration": "~/r.json"},
	"sandbox": {"min_tier": "container", "network": true, "home_paths": ["~/.cache"]},
	"limits": {"max_turns": 1, "max_tokens": 2, "max_cost_usd": 0.5, "max_seconds": 4},
	"secrets": {"env": ["TOKEN"], "files": ["/run/secret", "s"]},
	"record": {"anchor": "bin/anchor"},
	"models": {"p/m2": {"output_limit": 7, "images": false}},
	"context": {"compaction": "off", "threshold": 0.5, "keep_results": 0, "stub_bytes": 0},
	"tools": {"disabled": ["bash", "mcp__s__t"]}, "skills": {"paths": ["~/skills", "more"]}, "mcp_budget_tokens": 0,
	"mcp": {"s": {"command": "./srv", "args": ["-x"], "env": {"A": "b"}, "cwd": "d", "read_only": ["t"], "tools": ["t", "u"], "timeout_ms": 5, "start_timeout_ms": 6, "network": true, "disabled": true},
		"h": {"url": "https://h.example/mcp", "headers_env": {"X-Key": "MCP_KEY"}}},
	"http": {"ca_file": "ca.pem", "stall_seconds": 1, "retries": 0},
	"telemetry": {"otlp_endpoint": "http://127.0.0.1:4318", "headers_env": {"X-Key": "OTLP_KEY"}}
	}`))
	f := func(v float64) *float64 { return &v }
	i := func(v int64) *int64 { return &v }
	at := func(line, column int, key string) Origin {
		return Origin{Layer: User, File: "/f/user.json", Line: line, Column: column, Key: key}
	}
	want := &Settings{
		Model: "openrouter/anthropic/claude",
		Sampling: Sampling{Temperature: f(1), TopP: f(0.5), TopK: i(40), MinP: f(0.1), Seed: i(-1), FrequencyPenalty: f(-2), PresencePenalty: f(2),
			RepetitionPenalty: f(1.1), MaxTokens: i(5), Stop: []string{"\n\n"}},
		Providers: []Provider{{Name: "p", API: "script", BaseURL: "/f/scripts/one.json", APIKeyEnv: "P_KEY", HeadersEnv: map[string]string{"X-Team": "TEAM"}, Sampling: []string{"temperature", "top_p", "top_k", "min_p", "seed", "frequency_penalty", "presence_penalty", "repetition_penalty", "max_tokens", "stop"},
			Models: map[string]ModelInfo{"m": {ContextWindow: 100, OutputLimit: 10, Price: &Price{f(1.5), f(2), f(0), f(3)}}}, Description: "d"}},
		Permissions: Permissions{Mode: "auto", MaxMode: "auto",
			Allow: []Rule{{"read", at(8, 64, "permissions.allow[0]")}}, Ask: []Rule{{"*", at(8, 81, "permissions.ask[0]")}}, Deny: []Rule{{"bash(rm*)", at(8, 96, "permissions.deny[0]")}},
			Runners: []string{"fleet ssh"}, EnvHarmless: []string{"GOFLAGS"}},
		Extensions: []Extension{
			{Name: "g", Command: "/f/g.sh", Args: []string{"./a"}, Env: map[string]string{"K": "v"}, Cwd: "/f/sub", Events: []string{"tool_call", "notification"},
				Match: []Rule{{"bash(x*)", at(9, 153, "extensions[0].match[0]")}}, TimeoutMS: 10, InvokeTimeoutMS: 20, Sandbox: true, OnFailure: "block"},
			{Name: "h", Command: "bash", TimeoutMS: 5000, InvokeTimeoutMS: 120000, OnFailure: "skip"}},
		AHP:     AHP{Registration: "~/r.json"},
		Sandbox: Sandbox{MinTier: "container", Network: true, HomePaths: []string{"~/.cache"}},
		Limits:  Limits{MaxTurns: 1, MaxTokens: 2, MaxCostUSD: 0.5, MaxSeconds: 4},
		Secrets: Secrets{Env: []string{"TOKEN"}, Files: []string{"/run/secret", "/f/s"}},
		Record:  Record{Anchor: "/f/bin/anchor"},
		Models:  map[string]ModelInfo{"p/m2": {OutputLimit: 7, Images: new(bool)}},
		Context: Context{Compaction: "off", Threshold: 0.5},
		Tools:   Tools{Disabled: []string{"bash", "mcp__s__t"}},
		Skills:  Skills{Paths: []string{"~/skills", "/f/more"}},
		MCP: map[string]MCPServer{
			"s": {Command: "/f/srv", Args: []string{"-x"}, Env: map[string]string{"A": "b"}, Cwd: "/f/d", ReadOnly: []string{"t"}, Tools: []string{"t", "u"},
				TimeoutMS: 5, StartTimeoutMS: 6, Network: true, Disabled: true},
			"h": {URL: "https://h.example/mcp", HeadersEnv: map[string]string{"X-Key": "MCP_KEY"}, TimeoutMS: 60000, StartTimeoutMS: 10000},
		},
		HTTP:      HTTP{CAFile: "/f/ca.pem", StallSeconds: 1},
		Telemetry: Telemetry{OTLPEndpoint: "http://127.0.0.1:4318", HeadersEnv: map[string]string{"X-Key": "OTLP_KEY"}},
	}
	opt := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".merged" }, cmp.Ignore())
	if d := cmp.Diff(want, s, opt, cmp.Comparer(func(a, b Secret) bool { return a.Reveal() == b.Reveal() })); d != "" {
		t.Errorf("settings (-want +got):\n%s", d)
	}
	if e := &s.Extensions[1]; !e.Subscribes("tool_call") || s.Extensions[0].Subscribes("context") || e.Timeout().Seconds() != 5 || e.InvokeTimeout().Minutes() != 2 {
		t.Error("the methods of Extension disagree with its fields")
	}
	if m := s.MCP["h"]; m.Timeout().Seconds() != 60 || m.StartTimeout().Seconds() != 10 || s.HTTP.StallTimeout().Seconds() != 1 {
		t.Error("the methods of MCPServer and HTTP disagree with their fields")
	}
	if e, err := s.Resolve("p/m2"); err != nil || e.Info.OutputLimit != 7 || e.APIKeyEnv != "P_KEY" || e.HeadersEnv["X-Team"] != "TEAM" {
		t.Errorf("Resolve(p/m2) = %+v, %v", e, err)
	}
	if e, err := s.Resolve("p/m"); err != nil || e.Info.ContextWindow != 100 {
		t.Errorf("Resolve(p/m) = %+v, %v", e, err)
	}
}

func TestPaths(t *testing.T) {
	src := file(Project, `{"ahp": {"registration": "~/r.json"}, "secrets": {"files": ["a/../b", "/c", "~"]}, "record": {"anchor": "https://a.example/x"},
		"extensions": [{"name": "a", "command": "~/bin/a"}, {"name": "b", "command": "bare"}]}`)
	src.Dir, src.Home = "/w", "/home/u"
	s := load(t, src)
	got := []string{s.AHP.Registration, s.Secrets.Files[0], s.Secrets.Files[1], s.Secrets.Files[2], s.Record.Anchor, s.Extensions[0].Command, s.Extensions[1].Command}
	want := []string{"/home/u/r.json", "/w/b", "/c", "/home/u", "https://a.example/x", "/home/u/bin/a", "bare"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("paths (-want +got):\n%s", d)
	}
	if !s.Record.IsURL() || (Record{Anchor: "/bin/x"}).IsURL() {
		t.Error("IsURL is wrong")
	}
	// The command line starts at its working directory.
	if s := load(t, args(Arg{"--ahp", "ahp.registration", []string{"r.json"}})); s.AHP.Registration != "/cwd/r.json" {
		t.Errorf("--ahp r.json is %q", s.AHP.Registration)
	}
}

func TestSourceBuiltWrongly(t *testing.T) {
	for name, src := range map[string]Source{
		"data on the command line": {Layer: CommandLine, Data: []byte("{}")},
		"arguments in a file":      {Layer: User, Args: []Arg{{"--mode", "permissions.mode", []string{"plan"}}}},
		"a file as environment":    {Layer: Environment, Data: []byte("{}")},
		"defaults as a source":     {Layer: Default, Data: []byte("{}")},
		"no such layer":            {Layer: 99},
		"no such key":              args(Arg{"--x", "permissions.nothing", []string{"1"}}),
		"no such object":           args(Arg{"--x", "nothing.mode", []string{"1"}}),
		"two values for a scalar":  args(Arg{"--x", "permissions.mode", []string{"plan", "auto"}}),
		"an object":                args(Arg{"--x", "permissions", []string{"1"}}),
	} {
		s, err := Load([]Source{src})
		var faults *Errors
		if err == nil || s != nil || errors.As(err, &faults) {
			t.Errorf("%s: %v, %v; want an error that isn't the reader's fault", name, s, err)
		}
	}
}
