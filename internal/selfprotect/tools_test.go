package selfprotect_test

import (
	"context"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/selfprotect"
)

type input = map[string]any

// call is one call of a tool of a host; server is set for an MCP server's.
type call struct {
	host, tool, server string
	input              input
}

const ownPatch = "*** Begin Patch\n*** Update File: src/a.go\n@@\n-a\n+b\n*** %s .claude/settings.json\n*** End Patch\n"

func deniedCalls() []call {
	patch := func(verb string) string { return strings.Replace(ownPatch, "%s", verb, 1) }
	return []call{
		{host: "claude-code", tool: "Write", input: input{"file_path": "@H/.claude/settings.json", "content": "{}"}},
		{host: "claude-code", tool: "Write", input: input{"file_path": "~/.claude/settings.json", "content": "{}"}},
		{host: "claude-code", tool: "Write", input: input{"file_path": ".claude/settings.local.json", "content": "{}"}},
		{host: "claude-code", tool: "Write", input: input{"file_path": "@P/../home/./.claude//settings.json", "content": "{}"}},
		{host: "claude-code", tool: "Write", input: input{"file_path": "file://@H/%2Eclaude/settings.json", "content": "{}"}},
		{host: "claude-code", tool: "Write", input: input{"file_path": "@P/link/settings.json", "content": "{}"}},
		{host: "claude-code", tool: "Write", input: input{"file_path": "file-link", "content": "{}"}},
		{host: "claude-code", tool: "Write", input: input{"file_path": "@H/.config/ahp/registration.json", "content": "{}"}},
		{host: "claude-code", tool: "Edit", input: input{"file_path": "@P/.claude/settings.json", "old_string": "a", "new_string": "b"}},
		{host: "claude-code", tool: "MultiEdit", input: input{"file_path": "@P/.claude/settings.json", "edits": []any{input{"old_string": "a", "new_string": "b"}}}},
		{host: "claude-code", tool: "NotebookEdit", input: input{"notebook_path": "@H/.claude/settings.json", "new_source": "x"}},
		{host: "claude-code", tool: "str_replace_based_edit_tool", input: input{"command": "create", "path": "@H/.claude/settings.json", "file_text": "x"}},
		{host: "claude-code", tool: "Bash", input: input{"command": "rm settings.json", "workdir": "@H/.claude"}},
		{host: "codex", tool: "apply_patch", input: input{"command": patch("Update File:")}},
		{host: "codex", tool: "apply_patch", input: input{"input": patch("Delete File:")}},
		{host: "codex", tool: "apply_patch", input: input{"patch": patch("Move to:")}},
		{host: "codex", tool: "shell", input: input{"command": []any{"apply_patch", patch("Add File:")}}},
		{host: "codex", tool: "shell", input: input{"command": []any{"bash", "-lc", "echo {} > ~/.codex/config.toml"}}},
		{host: "codex", tool: "shell", input: input{"command": []any{"rm", "config.toml"}, "workdir": "@H/.codex"}},
		{host: "codex", tool: "exec_command", input: input{"cmd": "rm hooks.json", "workdir": ".codex"}},
		{host: "codex", tool: "Bash", input: input{"command": "apply_patch <<'E'\n" + patch("Update File:") + "E"}},
		{host: "codex", tool: "write_stdin", input: input{"chars": "rm ~/.codex/config.toml\n", "session_id": 1}},
		{host: "gemini", tool: "write_file", input: input{"file_path": "@H/.gemini/settings.json", "content": "{}"}},
		{host: "gemini", tool: "replace", input: input{"file_path": ".gemini/settings.json", "old_string": "a", "new_string": "b"}},
		{host: "gemini", tool: "run_shell_command", input: input{"command": "rm settings.json", "directory": ".gemini"}},
		{host: "qwen", tool: "write_file", input: input{"file_path": "@P/.qwen/settings.json", "content": "{}"}},
		{host: "qwen", tool: "run_shell_command", input: input{"command": "echo {} > .qwen/settings.json"}},
		{host: "opencode", tool: "write", input: input{"filePath": "@H/.config/opencode/plugin/ahp.js", "content": ""}},
		{host: "opencode", tool: "edit", input: input{"filePath": ".opencode/plugin/ahp.ts", "oldString": "a", "newString": "b"}},
		{host: "opencode", tool: "patch", input: input{"patchText": patch("Update File:")}},
		{host: "kilo", tool: "write", input: input{"filePath": ".kilo/plugin/x.ts", "content": ""}},
		{host: "pi", tool: "write", input: input{"path": "@H/.pi/agent/extensions/ahp.ts", "content": ""}},
		{host: "pi", tool: "edit", input: input{"path": "~/.pi/agent/settings.json", "oldText": "a", "newText": "b"}},
		{host: "crush", tool: "write", input: input{"file_path": "@P/crush.json", "content": ""}},
		{host: "crush", tool: "download", input: input{"url": "https://example.com/x", "file_path": ".crush.json"}},
		{host: "copilot", tool: "create", input: input{"path": "@P/.github/hooks/ahp.json", "file_text": "{}"}},
		{host: "copilot", tool: "multi_replace_string_in_file", input: input{"replacements": []any{input{"filePath": "a.go"}, input{"filePath": "@P/.claude/settings.json"}}}},
		{host: "cursor", tool: "Delete", input: input{"path": ".cursor/hooks.json"}},
		{host: "cursor", tool: "edit_file", input: input{"target_file": "@H/.cursor/hooks.json", "code_edit": "x"}},
		{host: "cursor", tool: "Shell", input: input{"command": "rm hooks.json", "cwd": "@P/.cursor"}},
		{host: "droid", tool: "Create", input: input{"file_path": "@H/.factory/settings.json", "content": ""}},
		{host: "droid", tool: "Execute", input: input{"command": "rm ~/.factory/hooks.json"}},
		{host: "droid", tool: "ApplyPatch", input: input{"input": patch("Update File:")}},
		{host: "goose", tool: "developer__text_editor", input: input{"command": "write", "path": "@P/.claude/settings.json", "file_text": "x"}},
		{host: "goose", tool: "developer__shell", input: input{"command": "rm -rf ~/.agents/plugins/ahp"}},
		{host: "cline", tool: "write_to_file", input: input{"path": ".clinerules/hooks/PreToolUse", "content": "x"}},
		{host: "cline", tool: "replace_in_file", input: input{"path": "@H/Documents/Cline/Hooks/PreToolUse", "diff": "x"}},
		{host: "cline", tool: "run_commands", input: input{"commands": []any{"ls", "rm -r .cline/hooks"}}},
		{host: "kiro", tool: "fs_write", input: input{"command": "str_replace", "path": ".kiro/agents/default.json", "old_str": "a", "new_str": "b"}},
		{host: "kiro", tool: "execute_bash", input: input{"command": "rm -r .kiro/hooks"}},
		{host: "windsurf", tool: "write_code", input: input{"file_path": "@P/.windsurf/hooks.json", "edits": []any{}}},
		{host: "openhands", tool: "file_editor", input: input{"command": "create", "path": "@P/.openhands/hooks.json", "file_text": "x"}},
		{host: "openhands", tool: "execute_ipython_cell", input: input{"code": `open("@P/.openhands/hooks.json","w")`}},
		{host: "kimi", tool: "WriteFile", input: input{"path": "@H/.kimi/config.toml", "content": "x"}},
		{host: "auggie", tool: "remove-files", input: input{"file_paths": []any{"a", ".augment/settings.json"}}},
		{host: "auggie", tool: "launch-process", input: input{"command": "rm settings.json", "cwd": ".augment"}},
		{host: "continue", tool: "Write", input: input{"filepath": "@H/.continue/settings.json", "content": "x"}},
		{host: "copilot", tool: "powershell", input: input{"command": `Set-Content -Path "$HOME\.claude\settings.json" -Value "{}"`}},
		{host: "mcp", tool: "mcp__fs__write_file", server: "fs", input: input{"path": "@H/.claude/settings.json", "content": "{}"}},
		{host: "mcp", tool: "mcp__fs__move_file", server: "fs", input: input{"source": "x", "destination": "~/.claude/settings.json"}},
		{host: "mcp", tool: "mcp__fs__apply", server: "fs", input: input{"edits": []any{input{"uri": "file://@H/.claude/settings.json"}}}},
		{host: "mcp", tool: "mcp__sh__run", server: "sh", input: input{"command": "rm ~/.claude/settings.json"}},
		{host: "mcp", tool: "mcp__js__eval", server: "js", input: input{"code": `fs.unlinkSync(os.homedir()+"/.claude/settings.json")`}},
		{host: "mcp", tool: "mcp__fs__rename", server: "fs", input: input{"old": "a", "new": "@H/.claude/settings.json"}},
		{host: "unknown", tool: "SaveAs", input: input{"where": "@P/.ahp/registration.json"}},
		{host: "unknown", tool: "bulk", input: input{"files": input{"@P/.claude/settings.json": "{}"}}},
		{host: "unknown", tool: "bulk", input: input{"files": `["a", "@P/.claude/settings.json"]`}},
		{host: "claude-code", tool: "Bash", input: input{"command": "claude -p hi", "env": input{"CLAUDE_CODE_SIMPLE": "1"}}},
		{host: "claude-code", tool: "Bash", input: input{"command": "rm", "args": []any{"@H/.claude/settings.json"}}},
	}
}

func allowedCalls() []call {
	return []call{
		{host: "claude-code", tool: "Read", input: input{"file_path": "@H/.claude/settings.json"}},
		{host: "claude-code", tool: "Grep", input: input{"pattern": "hooks", "path": "@H/.claude"}},
		{host: "claude-code", tool: "Glob", input: input{"pattern": "~/.claude/*.json"}},
		{host: "claude-code", tool: "Write", input: input{"file_path": "@P/settings.json", "content": "see ~/.claude/settings.json"}},
		{host: "claude-code", tool: "Write", input: input{"file_path": "@P/docs/a.md", "content": "@H/.claude/settings.json"}},
		{host: "claude-code", tool: "Edit", input: input{"file_path": "@P/docs/a.md", "old_string": "x", "new_string": ".claude/settings.json"}},
		{host: "claude-code", tool: "Write", input: input{"file_path": "@P/.claude/commands/x.md", "content": "x"}},
		{host: "claude-code", tool: "Task", input: input{"prompt": "read ~/.claude/settings.json", "description": "x"}},
		{host: "claude-code", tool: "TodoWrite", input: input{"todos": []any{input{"content": ".claude/settings.json"}}}},
		{host: "claude-code", tool: "WebFetch", input: input{"url": "https://example.com/.claude/settings.json", "prompt": "x"}},
		{host: "claude-code", tool: "str_replace_based_edit_tool", input: input{"command": "view", "path": "@H/.claude/settings.json"}},
		{host: "codex", tool: "apply_patch", input: input{"command": "*** Begin Patch\n*** Update File: docs/a.md\n@@\n-a\n+.claude/settings.json\n*** End Patch"}},
		{host: "codex", tool: "shell", input: input{"command": []any{"cat", "@H/.codex/config.toml"}}},
		{host: "gemini", tool: "read_file", input: input{"absolute_path": "@H/.gemini/settings.json"}},
		{host: "gemini", tool: "run_shell_command", input: input{"command": "ls", "directory": ".gemini"}},
		{host: "opencode", tool: "write", input: input{"filePath": "@P/plugin/a.js", "content": ""}},
		{host: "cursor", tool: "edit_file", input: input{"target_file": "hooks.json", "code_edit": "x", "instructions": "like .cursor/hooks.json"}},
		{host: "goose", tool: "developer__text_editor", input: input{"command": "view", "path": "@P/.claude/settings.json"}},
		{host: "kiro", tool: "fs_read", input: input{"path": ".kiro/agents/default.json"}},
		{host: "copilot", tool: "powershell", input: input{"command": `Get-Content $HOME\.claude\settings.json`}},
		{host: "mcp", tool: "mcp__fs__read_file", server: "fs", input: input{"path": "@H/.claude/settings.json"}},
		{host: "mcp", tool: "mcp__fs__list_directory", server: "fs", input: input{"path": "@H/.claude"}},
		{host: "mcp", tool: "mcp__gh__create_issue", server: "gh", input: input{"title": "x", "body": "edit ~/.claude/settings.json"}},
		{host: "mcp", tool: "mcp__fs__write_file", server: "fs", input: input{"path": "@P/a.md", "content": ".claude/settings.json"}},
		{host: "unknown", tool: "deploy", input: input{"target": "prod", "force": true, "n": 1.5}},
	}
}

// fill returns v with the marks of the tables replaced.
func (w *world) fill(v any) any {
	switch v := v.(type) {
	case string:
		return w.fillIn(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = w.fill(v[i])
		}
		return out
	case input:
		out := input{}
		for k, each := range v {
			out[w.fillIn(k)] = w.fill(each)
		}
		return out
	}
	return v
}

func (w *world) call(t testing.TB, c call) string {
	t.Helper()
	e := w.event(t, c.tool, w.fill(c.input))
	if c.server != "" {
		parts := strings.Split(c.tool, "__")
		e.Tool.Origin = ahp.OriginMCP
		e.Tool.MCP = &ahp.MCP{Server: ahp.MCPServer{ID: c.server}, ToolName: parts[len(parts)-1]}
	}
	return w.judge(t, e)
}

func TestDeniedCalls(t *testing.T) {
	w := makeWorld(t)
	hosts := map[string]bool{}
	for _, c := range deniedCalls() {
		hosts[c.host] = true
		if w.call(t, c) == "" {
			t.Errorf("not denied: %s %s %v", c.host, c.tool, c.input)
		}
	}
	if len(hosts) < 10 {
		t.Errorf("tools of %d hosts, want at least 8 and MCP and unknown ones", len(hosts))
	}
}

func TestAllowedCalls(t *testing.T) {
	w := makeWorld(t)
	for _, c := range allowedCalls() {
		if why := w.call(t, c); why != "" {
			t.Errorf("denied: %s %s %v\n\t%s", c.host, c.tool, c.input, why)
		}
	}
}

// TestReason holds that a denial says what is protected and who may change it.
func TestReason(t *testing.T) {
	w := makeWorld(t)
	why := w.command(t, "rm ~/.claude/settings.json")
	for _, want := range []string{"~/.claude/settings.json", "claude-code", "A person may", "ahp install", "ahp uninstall", "ahp trust"} {
		if !strings.Contains(why, want) {
			t.Errorf("reason %q doesn't say %q", why, want)
		}
	}
	if why := w.command(t, "ahp uninstall pi"); !strings.Contains(why, "ahp uninstall") || !strings.Contains(why, "A person may") {
		t.Errorf("reason = %q", why)
	}
}

// TestOtherEvents holds that only what comes before a tool is judged.
func TestOtherEvents(t *testing.T) {
	w := makeWorld(t)
	e := w.event(t, "Bash", input{"command": "rm ~/.claude/settings.json"})
	e.Type = ahp.ToolAfter
	if why := w.judge(t, e); why != "" {
		t.Errorf("after a tool: %s", why)
	}
	e.Type, e.Tool = ahp.ToolBefore, nil
	if why := w.judge(t, e); why != "" {
		t.Errorf("without a tool: %s", why)
	}
	if m := w.set.Manifest(); m == nil || len(m.Events) != 1 {
		t.Errorf("manifest = %+v", m)
	}
}

// TestWithoutPlaces holds that little need be known: no session, no home.
func TestWithoutPlaces(t *testing.T) {
	w := makeWorld(t)
	w.set = selfprotect.New(selfprotect.Options{})
	for _, command := range []string{"rm ~/.claude/settings.json", "rm /home/any/.claude/settings.json", "rm .claude/settings.json", "cd; rm .codex/config.toml", "rm -r /etc/ahp"} {
		e := w.event(t, "Bash", input{"command": command})
		e.Session = nil
		if w.judge(t, e) == "" {
			t.Errorf("not denied: %s", command)
		}
	}
	e := w.event(t, "Bash", input{"command": "rm -rf build && go build ./..."})
	e.Session = nil
	if why := w.judge(t, e); why != "" {
		t.Error(why)
	}
}

// TestUnreadableInput holds that an input that can't be read is denied where it
// mentions what is protected.
func TestUnreadableInput(t *testing.T) {
	w := makeWorld(t)
	e := w.event(t, "Bash", input{})
	e.Tool.Input = ahp.Raw(`{"command":"ls","command":"rm ~/.claude/settings.json"}`)
	if w.judge(t, e) == "" {
		t.Error("not denied: a repeated member with a protected name")
	}
	e.Tool.Input = ahp.Raw(`{"command":"ls","command":"ls"}`)
	if why := w.judge(t, e); why != "" {
		t.Error(why)
	}
}

// TestCancelled holds that a judgement ends with its context, and says so.
func TestCancelled(t *testing.T) {
	w := makeWorld(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	e := w.event(t, "Bash", input{"command": "ls"})
	if _, err := w.set.Judge(ctx, e); err == nil {
		t.Error("no error from a context that has ended")
	}
}

// TestLinkedConfiguration holds that what a link in a home leads to is protected
// under its own name.
func TestLinkedConfiguration(t *testing.T) {
	w := makeWorld(t)
	link(t, w)
	for _, command := range []string{"rm ~/dotfiles/claude/settings.json", "echo > @P/hooks/claude.json", "sed -i s/a/b/ ../home/dotfiles/claude/settings.json"} {
		if w.command(t, w.fillIn(command)) == "" {
			t.Errorf("not denied: %s", command)
		}
	}
	if why := w.command(t, "rm ~/dotfiles/vimrc"); why != "" {
		t.Error(why)
	}
}

// TestMovedConfiguration holds that configuration which a variable puts elsewhere is
// protected there too.
func TestMovedConfiguration(t *testing.T) {
	w := makeWorld(t)
	if why := w.command(t, "rm /srv/codex/hooks.json"); why != "" {
		t.Error(why)
	}
	w.set = selfprotect.New(selfprotect.Options{Home: w.home, Getenv: func(name string) string {
		return map[string]string{"CODEX_HOME": "/srv/codex"}[name]
	}})
	for _, command := range []string{"rm /srv/codex/hooks.json", "rm ~/.codex/hooks.json", "cd /srv/codex; rm config.toml"} {
		if w.command(t, command) == "" {
			t.Errorf("not denied: %s", command)
		}
	}
}

// TestMore holds that places of the caller's own are protected like all others, and
// that case is ignored where it is told so.
func TestMore(t *testing.T) {
	w := makeWorld(t)
	w.set = selfprotect.New(selfprotect.Options{Home: w.home, Fold: true, More: []selfprotect.Place{{Path: "~/vault", Folder: true, What: "keys"}, {Path: "/srv/policy.json", What: "a policy"}}})
	for _, command := range []string{"rm ~/vault/x", "echo > /srv/policy.json", "rm ~/.CLAUDE/Settings.JSON", "rm -r ~/VAULT"} {
		if w.command(t, command) == "" {
			t.Errorf("not denied: %s", command)
		}
	}
	if why := w.command(t, "rm /srv/other.json"); why != "" {
		t.Error(why)
	}
}
