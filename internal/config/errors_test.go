package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFaults holds one line per kind of fault: the settings file and every
// message it must give, whole.
func TestFaults(t *testing.T) {
	top := "one of $schema, model, sampling, custom_providers, permissions, extensions, ahp, mcp, sandbox, limits, secrets, record, models, context, tools, skills, mcp_budget_tokens, http, telemetry"
	modes := "one of plan, default, accept-edits, auto, bypass"
	cases := []struct {
		name, data string
		want       []string
	}{
		{"unknown key", "{\n  \"pemissions\": {}\n}", []string{`2:3: pemissions: unknown key "pemissions", expected ` + top + ` (did you mean "permissions"?)`}},
		{"key of another object", `{"deny": ["bash"]}`, []string{`1:2: deny: unknown key "deny", expected ` + top + ` ("deny" belongs under permissions)`}},
		{"key in another case", `{"Model": "a/b"}`, []string{`1:2: Model: unknown key "Model", expected ` + top + ` (did you mean "model"?)`}},
		{"odd key", "{\"a b\\u202e\": 1}", []string{`1:2: ["a b\u202e"]: unknown key "a b\u202e", expected ` + top}},
		{"a key itself", `{"custom_providers": [{"name": "x", "api": "openai", "base_url": "http://h", "api_key": "sk-123"}]}`,
			[]string{`1:78: custom_providers[0].api_key: unknown key "api_key", expected one of name, api, base_url, api_key_env, headers_env, sampling, models, description (put the key in a variable and name it in api_key_env)`}},
		{"backends", `{"hooks": []}`, []string{`1:2: hooks: unknown key "hooks", expected ` + top + ` (AHP backends are registered in the file that ahp.registration names, other hooks are extensions)`}},
		{"string for object", `{"permissions": "plan"}`, []string{`1:17: permissions: found "plan", expected an object`}},
		{"object for list", `{"permissions": {"deny": {}}}`, []string{`1:26: permissions.deny: found an object, expected a list`}},
		{"number in a list of strings", `{"permissions": {"deny": ["bash", 7]}}`, []string{`1:35: permissions.deny[1]: found 7, expected a string`}},
		{"list for string", `{"model": []}`, []string{`1:11: model: found a list, expected a string`}},
		{"null", `{"model": null}`, []string{`1:11: model: found null, expected a string`}},
		{"string for boolean", `{"sandbox": {"network": "false"}}`, []string{`1:25: sandbox.network: found "false", expected true or false`}},
		{"boolean for enum", `{"permissions": {"mode": true}}`, []string{`1:26: permissions.mode: found true, expected ` + modes}},
		{"mis-cased enum", `{"permissions": {"mode": "Plan"}}`, []string{`1:26: permissions.mode: found "Plan", expected ` + modes + ` (did you mean "plan"?)`}},
		{"bad enum", `{"permissions": {"mode": "yolo"}}`, []string{`1:26: permissions.mode: found "yolo", expected ` + modes}},
		{"fraction", `{"limits": {"max_turns": 1.5}}`, []string{`1:26: limits.max_turns: found 1.5, expected an integer from 0 to 1000000000000`}},
		{"exponent", `{"limits": {"max_turns": 1e2}}`, []string{`1:26: limits.max_turns: found 1e2, expected an integer from 0 to 1000000000000`}},
		{"negative", `{"limits": {"max_cost_usd": -1}}`, []string{`1:29: limits.max_cost_usd: found -1, expected a number from 0 to 1000000000000`}},
		{"out of range", `{"sampling": {"top_p": 1.1}}`, []string{`1:24: sampling.top_p: found 1.1, expected a number from 0 to 1`}},
		{"huge number", `{"sampling": {"temperature": 1e999}}`, []string{`1:30: sampling.temperature: found 1e999, expected a number from 0 to 10`}},
		{"zero time-out", `{"extensions": [{"name": "a", "command": "b", "timeout_ms": 0}]}`, []string{`1:61: extensions[0].timeout_ms: found 0, expected an integer from 1 to 86400000`}},
		{"repeated key", "{\"permissions\": {\"mode\": \"plan\",\n \"mode\": \"auto\"}, \"model\": \"a/b\",\n\"model\": \"c/d\"}", []string{
			`2:2: permissions.mode: the key "mode" a second time (first in line 1), expected each key once`,
			`3:1: model: the key "model" a second time (first in line 2), expected each key once`}},
		{"repeated by escape", `{"model": "a/b", "m\u006fdel": "c/d"}`, []string{`1:18: model: the key "model" a second time (first in line 1), expected each key once`}},
		{"not an object", `[1]`, []string{`1:1: found a list, expected an object`}},
		{"empty", "", []string{`1:1: an empty file, expected a JSON object (write {} for no settings)`}},
		{"only a comment", "// nothing\n", []string{`2:1: an empty file, expected a JSON object (write {} for no settings)`}},
		{"comment never ends", "{\n /* x }", []string{`2:2: a comment that never ends, expected */`}},
		{"UTF-16", "\xff\xfe{\x00}\x00", []string{`UTF-16, expected UTF-8 (save the file as UTF-8)`}},
		{"bad byte in a comment", "{ // \x82\xa0\n}", []string{`1:6: the byte 0x82, expected UTF-8 (save the file as UTF-8)`}},
		{"missing required", `{"extensions": [{"name": "a"}, {"command": "b"}]}`, []string{
			`1:17: extensions[0]: no "command", expected "command", which is required`,
			`1:32: extensions[1]: no "name", expected "name", which is required`}},
		{"unknown event", `{"extensions": [{"name": "a", "command": "b", "events": ["toolcall"]}]}`, []string{
			`1:58: extensions[0].events[0]: found "toolcall", expected one of list_tools, session_start, session_end, user_prompt_submit, before_agent_start, context, tool_call, permission_request, tool_result, before_compact, invoke_tool, turn_end, subagent_end, notification (did you mean "tool_call"?)`}},
		{"name twice", `{"extensions": [{"name": "a", "command": "b"}, {"name": "a", "command": "c"}]}`, []string{
			`1:57: extensions[1].name: the name "a", which extensions[0].name in FILE:1:26 has, expected a name of its own`}},
		{"odd name", `{"extensions": [{"name": "a b", "command": "b"}]}`, []string{
			`1:26: extensions[0].name: found "a b", expected a name of letters, digits, '.', '_' and '-', at most 64 characters`}},
		{"on_failure", `{"extensions": [{"name": "a", "command": "b", "on_failure": "BLOCK"}]}`, []string{
			`1:61: extensions[0].on_failure: found "BLOCK", expected one of skip, ask, block (did you mean "block"?)`}},
		{"rule not closed", `{"permissions": {"deny": ["bash(cp*"]}}`, []string{`1:27: permissions.deny[0]: found "bash(cp*", expected a rule whose pattern ends with ")"`}},
		{"rule without tool", `{"permissions": {"ask": ["(x)", "", "my tool"]}}`, []string{
			`1:26: permissions.ask[0]: found "(x)", expected a rule: tool or tool(pattern)`,
			`1:33: permissions.ask[1]: found "", expected a rule: tool or tool(pattern)`,
			`1:37: permissions.ask[2]: found "my tool", expected a rule: tool or tool(pattern)`}},
		{"match rule", `{"extensions": [{"name": "a", "command": "b", "match": ["bash(x"]}]}`, []string{
			`1:57: extensions[0].match[0]: found "bash(x", expected a rule whose pattern ends with ")"`}},
		{"built-in provider", `{"custom_providers": [{"name": "openai", "api": "openai", "base_url": "http://h"}]}`, []string{
			`1:32: custom_providers[0].name: found "openai", expected a name that no built-in provider has`}},
		{"api unknown", `{"custom_providers": [{"name": "x", "api": "OpenAI", "base_url": "http://h"}]}`, []string{
			`1:44: custom_providers[0].api: found "OpenAI", expected one of openai, openai-responses, anthropic, gemini, script (did you mean "openai"?)`}},
		{"parameter of another api", `{"custom_providers": [{"name": "x", "api": "anthropic", "base_url": "http://h", "sampling": ["top_k", "min_p"]}]}`, []string{
			`1:103: custom_providers[0].sampling[1]: the parameter "min_p", which the API "anthropic" of the provider "x" can't send, expected one of temperature, top_p, top_k, max_tokens, stop, effort, thinking_budget`}},
		{"no base_url for gemini", `{"custom_providers": [{"name": "x", "api": "gemini"}]}`, []string{`1:23: custom_providers[0]: no "base_url", expected "base_url", which the API "gemini" needs`}},
		{"base_url for gemini", `{"custom_providers": [{"name": "x", "api": "gemini", "base_url": "h?key=1"}]}`, []string{
			`1:66: custom_providers[0].base_url: found "h?key=1", expected an absolute http or https URL`}},
		{"context", `{"context": {"threshold": 1, "compaction": "never", "keep_results": -1, "stubbytes": 0}}`, []string{
			`1:27: context.threshold: found 1, expected a number from 0.1 to 0.99`,
			`1:44: context.compaction: found "never", expected one of auto, off`,
			`1:69: context.keep_results: found -1, expected an integer from 0 to 1000000`,
			`1:73: context.stubbytes: unknown key "stubbytes", expected one of compaction, threshold, keep_results, stub_bytes (did you mean "stub_bytes"?)`}},
		{"tool names", `{"tools": {"disabled": ["bash(rm*)", ""]}}`, []string{
			`1:25: tools.disabled[0]: found "bash(rm*)", expected the name of a tool, without a pattern`,
			`1:38: tools.disabled[1]: found "", expected the name of a tool, without a pattern`}},
		{"http", `{"http": {"stall_seconds": 0, "retries": 101, "ca_file": ""}}`, []string{
			`1:28: http.stall_seconds: found 0, expected an integer from 1 to 86400`,
			`1:42: http.retries: found 101, expected an integer from 0 to 100`,
			`1:58: http.ca_file: found "", expected a path`}},
		{"no base_url", `{"custom_providers": [{"name": "x", "api": "openai"}]}`, []string{`1:23: custom_providers[0]: no "base_url", expected "base_url", which the API "openai" needs`}},
		{"relative base_url", `{"custom_providers": [{"name": "x", "api": "openai", "base_url": "h/v1"}]}`, []string{
			`1:66: custom_providers[0].base_url: found "h/v1", expected an absolute http or https URL`}},
		{"sampling name", `{"custom_providers": [{"name": "x", "api": "openai", "base_url": "http://h", "sampling": ["temprature"]}]}`, []string{
			`1:91: custom_providers[0].sampling[0]: found "temprature", expected one of temperature, top_p, top_k, min_p, seed, frequency_penalty, presence_penalty, repetition_penalty, max_tokens, stop, effort, thinking_budget (did you mean "temperature"?)`}},
		{"parameter not honoured", `{"model": "groq/llama", "sampling": {"top_k": 4}}`, []string{
			`1:47: sampling.top_k: the parameter "top_k", which the provider "groq" doesn't honour, expected one of temperature, top_p, max_tokens, stop, seed, effort`}},
		{"provider unknown", `{"model": "opnai/gpt"}`, []string{
			`1:11: model: the provider "opnai", which isn't known, expected one of openai, anthropic, gemini, openrouter, mistral, groq, together, deepseek, xai, azure-openai, ollama, vllm, sglang, llamacpp, lmstudio (did you mean "openai"?)`}},
		{"model alone", `{"model": "gpt"}`, []string{`1:11: model: found "gpt", expected provider/model (name the provider: nothing is guessed from a model's name)`}},
		{"provider without an address", `{"model": "azure-openai/gpt"}`, []string{`1:11: model: the provider "azure-openai", which can't be used (its address differs by resource: name it in custom_providers with api openai and the resource's /openai/v1 URL)`}},
		{"MCP", `{"mcp": {"a": {"command": "x", "url": "https://h"}, "b": {"timeout_ms": 1}}}`, []string{
			`1:15: mcp.a: both "command" and "url", expected one of the two`,
			`1:58: mcp.b: neither "command" nor "url", expected one of the two`}},
		{"MCP, idle settings", `{"mcp": {"a": {"command": "x", "headers_env": {}}, "b": {"url": "https://h", "network": false}}}`, []string{
			`1:47: mcp.a.headers_env: "headers_env" beside "command", expected nothing: it has no meaning there`,
			`1:89: mcp.b.network: "network" beside "url", expected nothing: it has no meaning there`}},
		{"MCP name", `{"mcp": {"a__b": {}}}`, []string{`1:10: mcp.a__b: the name "a__b", expected a name without "__", which separates server and tool in a rule`}},
		{"several", "{\n\"model\": 1,\n\"limits\": {\"max_turns\": \"x\", \"max_tuns\": 1}}", []string{
			`2:10: model: found 1, expected a string`,
			`3:25: limits.max_turns: found "x", expected an integer from 0 to 1000000000000`,
			`3:30: limits.max_tuns: unknown key "max_tuns", expected one of max_turns, max_tokens, max_cost_usd, max_seconds (did you mean "max_turns"?)`}},
		{"column counts characters", "\xef\xbb\xbf{/* Ärger 日本 */ \"x\": 1}", []string{`1:17: x: unknown key "x", expected ` + top}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := faultsOf(t, Source{Layer: Managed, File: "FILE", Data: []byte(c.data)})
			want := make([]string, len(c.want))
			for i, w := range c.want {
				if w[0] >= '0' && w[0] <= '9' {
					want[i] = "FILE:" + w
				} else {
					want[i] = "FILE: " + w
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("messages (-want +got):\n%s", d)
			}
		})
	}
}

func TestSyntaxFaults(t *testing.T) {
	for name, c := range map[string]struct{ data, at string }{
		"missing comma":       {"{\"model\": \"a/b\"\n \"limits\": {}}", "FILE:2:2: "},
		"never closed":        {"{\"limits\": {", "FILE:1:13: "},
		"two commas":          {`{"permissions": {"deny": ["a",,]}}`, "FILE:1:31: "},
		"only a comma":        {`{"permissions": {"deny": [,]}}`, "FILE:1:27: "},
		"comma as an object":  {`{,}`, "FILE:1:2: "},
		"single quotes":       {`{'model': 1}`, "FILE:1:2: "},
		"bare key":            {`{model: 1}`, "FILE:1:2: "},
		"something after":     {"{}\n{}", "FILE:2:1: "},
		"slash":               {"{\n/ }", "FILE:2:1: "},
		"string never closed": {`{"a`, "FILE:1:4: "},
		"comment in a string": {`{"model": "a/*b"*/}`, "FILE:1:17: "},
		"lone surrogate":      {`{"model": "\ud800"}`, "FILE:1:"},
		"too deep":            {strings.Repeat(`{"a":`, 40), "FILE:1:"},
		"too long":            {`{"model": "` + strings.Repeat("x", maxFile) + `"}`, "FILE: 1048589 bytes, expected at most 1048576"},
	} {
		got := faultsOf(t, Source{Layer: User, File: "FILE", Data: []byte(c.data)})
		if len(got) != 1 || !strings.HasPrefix(got[0], c.at) || strings.Contains(got[0], "jsontext") {
			t.Errorf("%s: %q, want one message that starts with %q", name, got, c.at)
		}
	}
}

// TestNothingSecretIsRepeated puts a key where its variable's name belongs.
func TestNothingSecretIsRepeated(t *testing.T) {
	const key = "sk-live-0123456789"
	for _, data := range []string{
		`{"custom_providers": [{"name": "x", "api": "openai", "base_url": "http://h", "api_key_env": "` + key + `"}]}`,
		`{"custom_providers": [{"name": "x", "api": "openai", "base_url": "http://h", "headers_env": {"Authorization": "Bearer ` + key + `"}}]}`,
		`{"custom_providers": [{"name": "x", "api": "openai", "base_url": "http://u:` + key + `@h"}]}`,
		`{"custom_providers": [{"name": "x", "api": "openai", "base_url": "http://h", "api_key": "` + key + `"}]}`,
		`{"secrets": {"env": ["` + key + `"]}}`,
		`{"mcp": {"s": {"url": "http://u:` + key + `@h", "env": "` + key + `"}}}`,
		`{"extensions": [{"name": "a", "command": "b", "env": "` + key + `"}]}`,
	} {
		for _, m := range faultsOf(t, file(User, data)) {
			if strings.Contains(m, "0123456789") {
				t.Errorf("the message repeats the key: %s", m)
			}
		}
	}
	if m := faultsOf(t, environ("ABHED_BASE_URL=http://u:"+key+"@h")); strings.Contains(m[0], "0123456789") {
		t.Errorf("the message repeats the key: %s", m)
	}
}

func TestManyFaultsAreCut(t *testing.T) {
	_, err := Load([]Source{file(User, `{"permissions": {"deny": [`+strings.Repeat("1,", 50)+`]}}`)})
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != maxShown+1 || lines[maxShown] != "and 30 more" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

// TestNonsenseIsBounded feeds files of the largest size that are wrong
// everywhere.
func TestNonsenseIsBounded(t *testing.T) {
	unknown := strings.Builder{}
	for i := 0; unknown.Len() < maxFile-20; i++ {
		fmt.Fprintf(&unknown, ",\"k%d\":1", i)
	}
	for name, data := range map[string]string{
		"unknown keys": "{" + unknown.String()[1:] + "}",
		"wrong types":  `{"secrets": {"env": [1` + strings.Repeat(",1", maxFile/2-50) + "]}}",
		"repeats":      `{"a":1` + strings.Repeat(`,"a":1`, maxFile/6-10) + "}",
	} {
		_, err := Load([]Source{file(User, data), file(Managed, `{"x": 1}`), file(Project, `{"y": 1}`)})
		var all *Errors
		if !errors.As(err, &all) || len(all.List) != maxFaults || all.List[0].Origin.Layer != Managed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFaultsOfSeveralSources expects the managed file's faults first.
func TestFaultsOfSeveralSources(t *testing.T) {
	got := faultsOf(t, file(User, `{"x": 1}`), args(Arg{"--max-turns", "limits.max_turns", []string{"many"}}, Arg{"--mode", "permissions.mode", []string{"plann"}}), file(Managed, `{`))
	if len(got) != 4 || !strings.HasPrefix(got[0], "/f/managed.json:1:2: ") || !strings.HasPrefix(got[3], "/f/user.json:1:2: x: ") {
		t.Fatalf("messages = %q", got)
	}
	if got[1] != `--max-turns: limits.max_turns: found "many", expected an integer from 0 to 1000000000000` {
		t.Errorf("flag's message = %q", got[1])
	}
	if got[2] != `--mode: permissions.mode: found "plann", expected one of plan, default, accept-edits, auto, bypass (did you mean "plan"?)` {
		t.Errorf("flag's message = %q", got[2])
	}
}
