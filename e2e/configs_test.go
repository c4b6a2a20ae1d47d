package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/abhed/abhed/internal/strictjson"
)

type object = map[string]any

// set adds to the agent's environment.
func (s *stage) set(env map[string]string) { maps.Copy(s.env, env) }

// hooks is the form in which Claude Code and those who follow it write a hook for
// all tools; nil without a hook.
func (s *stage) hooks(event string, more object) object {
	if s.hook == "" {
		return nil
	}
	entry := object{"type": "command", "command": s.hook}
	maps.Copy(entry, more)
	return object{event: []any{object{"matcher": "*", "hooks": []any{entry}}}}
}

func claudeCode(s *stage) [][]string {
	if s.hook != "" {
		s.write(s.home+"/.claude/settings.json", object{"hooks": s.hooks("PreToolUse", nil)})
	}
	s.set(map[string]string{
		"ANTHROPIC_BASE_URL": s.url, "ANTHROPIC_API_KEY": "test-key", "IS_SANDBOX": "1", // without that it runs no command unasked as root
		"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1",
	})
	return [][]string{{s.program("@anthropic-ai", "claude-code-linux-x64", "claude"), "-p", prompt, "--model", "claude-sonnet-4-5", "--dangerously-skip-permissions"}}
}

func codex(s *stage) [][]string {
	file := s.home + "/.codex/hooks.json"
	config := fmt.Sprintf(`model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "%s/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
[projects."%s"]
trust_level = "trusted"
`, s.url, s.repo)
	if s.hook != "" {
		s.write(file, object{"hooks": s.hooks("PreToolUse", nil)})
		// A hook that the user has not trusted by its hash is skipped without a word.
		normal, err := strictjson.Canonical([]byte(s.json(object{"event_name": "pre_tool_use", "matcher": "*",
			"hooks": []any{object{"type": "command", "command": s.hook, "timeout": 600, "async": false}}})))
		if err != nil {
			s.t.Error(err)
		}
		sum := sha256.Sum256(normal)
		config += fmt.Sprintf("[hooks.state.%q]\ntrusted_hash = %q\n", file+":pre_tool_use:0:0", "sha256:"+hex.EncodeToString(sum[:]))
	}
	s.write(s.home+"/.codex/config.toml", config)
	s.set(map[string]string{"SCRIPTED_KEY": "test-key"})
	return [][]string{{s.program(".bin", "codex"), "exec", "--skip-git-repo-check", "--disable", "plugins", "--dangerously-bypass-approvals-and-sandbox", prompt}}
}

func gemini(s *stage) [][]string {
	settings := object{
		"security":  object{"auth": object{"selectedType": "gemini-api-key"}},
		"privacy":   object{"usageStatisticsEnabled": false},
		"telemetry": object{"enabled": false},
		"general":   object{"enableAutoUpdate": false, "enableAutoUpdateNotification": false},
	}
	if s.hook != "" {
		settings["hooks"] = s.hooks("BeforeTool", object{"name": "e2e", "timeout": 30000})
	}
	s.write(s.home+"/.gemini/settings.json", settings)
	s.set(map[string]string{"GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": s.url, "GEMINI_CLI_TRUST_WORKSPACE": "true"})
	return [][]string{{s.program(".bin", "gemini"), "--yolo", "-m", "gemini-2.5-pro", "-p", prompt}}
}

func qwen(s *stage) [][]string {
	settings := object{
		"security":  object{"auth": object{"selectedType": "openai"}},
		"privacy":   object{"usageStatisticsEnabled": false},
		"telemetry": object{"enabled": false},
		"general":   object{"enableAutoUpdate": false},
	}
	if s.hook != "" {
		settings["hooks"] = s.hooks("PreToolUse", object{"name": "e2e", "timeout": 30})
	}
	s.write(s.home+"/.qwen/settings.json", settings)
	s.set(map[string]string{"OPENAI_API_KEY": "test-key", "OPENAI_BASE_URL": s.url + "/v1", "OPENAI_MODEL": "mock-model"})
	return [][]string{{s.program(".bin", "qwen"), "--yolo", "-p", prompt}}
}

// opencode prepares opencode or its fork of the given name.
func opencode(name string) func(*stage) [][]string {
	return func(s *stage) [][]string {
		dir := filepath.Join(s.home, ".config", name)
		if s.hook != "" {
			s.write(dir+"/plugin/e2e.js", s.plugin(`export const Guard = async () => ({ "tool.execute.before": async () => judge() })`))
		}
		s.write(filepath.Join(dir, name+".json"), object{
			"model": "scripted/mock-model", "small_model": "scripted/mock-model", "autoupdate": false, "share": "disabled", "snapshot": false,
			"provider": object{"scripted": object{"npm": "@ai-sdk/openai-compatible", "name": "scripted",
				"options": object{"baseURL": s.url + "/v1", "apiKey": "test-key"},
				"models":  object{"mock-model": object{"name": "mock", "limit": object{"context": 200000, "output": 4096}}}}},
		})
		// It waits for npm to install this into each folder of configuration, more
		// than a minute where there is no network. The plugins here don't use it.
		dependency := object{"@" + scopeOf(name) + "/plugin": s.version()}
		s.write(dir+"/package.json", object{"dependencies": dependency})
		s.write(dir+"/package-lock.json", object{"lockfileVersion": 3, "requires": true, "packages": object{
			"": object{"dependencies": dependency}, "node_modules/@" + scopeOf(name) + "/plugin": object{"version": s.version()}}})
		s.write(dir+"/node_modules/@"+scopeOf(name)+"/plugin/package.json", object{"name": "@" + scopeOf(name) + "/plugin", "version": s.version()})
		s.set(map[string]string{"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"})
		argv := []string{s.program(".bin", name), "run"}
		if name == "kilo" {
			argv = append(argv, "--auto")
		}
		return [][]string{append(argv, prompt)}
	}
}

// scopeOf is the npm scope of the packages of opencode or its fork.
func scopeOf(name string) string {
	if name == "kilo" {
		return "kilocode"
	}
	return "opencode-ai"
}

func pi(s *stage) [][]string {
	if s.hook != "" {
		s.write(s.home+"/.pi/agent/extensions/e2e.js", s.plugin(`export default (pi) => pi.on("tool_call", async () => judge())`))
	}
	s.write(s.home+"/.pi/agent/models.json", object{"providers": object{"scripted": object{
		"baseUrl": s.url + "/v1", "api": "openai-completions", "apiKey": "test-key",
		"models": []any{object{"id": "mock-model", "name": "mock", "reasoning": false, "input": []any{"text"}, "contextWindow": 200000, "maxTokens": 4096,
			"cost": object{"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}}}}}})
	s.set(map[string]string{"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"})
	return [][]string{{s.program(".bin", "pi"), "--provider", "scripted", "--model", "mock-model", "-p", prompt}}
}

// plugin is a module for hosts whose hooks are programs: it runs the hook's
// command and throws what that says on stderr unless it succeeds.
func (s *stage) plugin(register string) string {
	return fmt.Sprintf(`import { spawnSync } from "node:child_process"
const judge = () => {
  const verdict = spawnSync("/bin/sh", ["-c", %s], { input: "{}", encoding: "utf8" })
  if (verdict.status !== 0) throw new Error(verdict.stderr)
}
%s
`, s.json(s.hook), register)
}

func copilot(s *stage) [][]string {
	if s.hook != "" {
		s.write(s.home+"/.copilot/hooks/e2e.json", object{"version": 1, "hooks": object{"preToolUse": []any{object{"type": "command", "bash": s.hook}}}})
	}
	s.set(map[string]string{
		"COPILOT_PROVIDER_BASE_URL": s.url + "/v1", "COPILOT_PROVIDER_API_KEY": "test-key", "COPILOT_MODEL": "gpt-4.1",
		"COPILOT_AUTO_UPDATE": "false", "COPILOT_OFFLINE": "true", "XDG_CACHE_HOME": unpacked(s),
	})
	return [][]string{{s.program(".bin", "copilot-linux-x64"), "-p", prompt, "--no-color", "--disable-builtin-mcps", "--no-auto-update", "--allow-all-tools"}}
}

func droid(s *stage) [][]string {
	settings := object{
		"customModels": []any{object{"displayName": "Mock", "model": "mock-model", "baseUrl": s.url + "/v1", "apiKey": "test-key",
			"provider": "generic-chat-completion-api", "maxOutputTokens": 4096}},
		"model": "custom:Mock-0", "cloudSessionSync": false,
	}
	if s.hook != "" {
		settings["hooks"] = s.hooks("PreToolUse", nil)
	}
	s.write(s.home+"/.factory/settings.json", settings)
	s.set(map[string]string{"FACTORY_API_KEY": "fk-test-key", "FACTORY_HOME_OVERRIDE": s.home, "DROID_DISABLE_AUTO_UPDATE": "1", "FACTORY_AIRGAP_ENABLED": "true"})
	// With "low", which lets this call pass as the model writes it, a call that a hook
	// has rewritten ends the run: "insufficient permission to proceed".
	return [][]string{{s.program("@factory", "cli-linux-x64", "bin", "droid"), "exec", "-m", "custom:Mock-0", "--auto", "high", prompt}}
}

func cline(s *stage) [][]string {
	if s.hook != "" {
		s.write(s.home+"/.cline/hooks/PreToolUse", "#!/bin/sh\n"+s.hook+"\n")
	}
	s.set(map[string]string{"CLINE_TELEMETRY_DISABLED": "1", "CLINE_NO_AUTO_UPDATE": "1"})
	program := s.program(".bin", "cline")
	return [][]string{
		{program, "auth", "-p", "openai-compatible", "-k", "test-key", "-m", "mock-model", "-b", s.url + "/v1"},
		{program, "--json", "-P", "openai-compatible", "-m", "mock-model", prompt},
	}
}

// json returns v as JSON.
func (s *stage) json(v any) string {
	b, err := strictjson.Marshal(v)
	if err != nil {
		s.t.Error(err)
	}
	return string(b)
}
