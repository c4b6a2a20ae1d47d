package hostconf

func copilot() Host {
	user := moved("COPILOT_HOME", "~/.copilot", files(User, JSON, "~/.copilot/hooks/ahp.json", "~/.copilot/hooks/*.json", "~/.copilot/settings.json"))
	project := files(Project, JSON, ".github/hooks/ahp.json", ".github/hooks/*.json", ".github/copilot/settings.json", ".github/copilot/settings.local.json")
	managed := files(Managed, JSON, "/etc/github-copilot/policy.d/ahp.json", "/etc/github-copilot/policy.d/*.json", "/etc/github-copilot/managed-settings.json")
	managed[2].Carries = false
	foreign := of("claude-code", files(Project, JSON, ".claude/settings.json", ".claude/settings.local.json"))
	like := Target{
		Shape: Flat, Command: "bash", Fields: command(), LimitKey: "timeoutSec", LimitUnit: 1000,
		Head: []Field{{Name: "version", Value: "1"}},
		Events: events(`sessionStart sessionEnd !userPromptSubmitted !+preToolUse +postToolUse +postToolUseFailure !+permissionRequest
			agentStop subagentStart subagentStop preCompact notification errorOccurred`),
	}
	targets := at(like, user[0], project[0], managed[0])
	targets[1].Remains = []string{"Copilot runs a repository's hooks only in a trusted folder; in print mode it skips them silently otherwise"}
	return Host{
		Name: "copilot", Files: joined(managed, user, project, foreign), Targets: targets, EventArgument: true,
		Switches: []Switch{
			{Kind: KeySwitch, Name: "disableAllHooks", Value: "true", Scopes: []Scope{Project}, Stops: []Scope{User, Project}, Effect: "no user or repository hook runs"},
			{Kind: KeySwitch, Name: "disableAllHooks", Value: "true", Scopes: []Scope{User}, Stops: []Scope{User}, Effect: "no user hook runs"},
			{Kind: KeySwitch, Name: "allowManagedHooksOnly", Value: "true", Scopes: []Scope{Managed}, Stops: []Scope{Project}, Effect: "repository hooks do not run"},
		},
		Unregistered: map[string]string{
			"preMcpToolCall": "preToolUse has fired for the same call", "userPromptTransformed": "userPromptSubmitted has fired for the same prompt",
			"postResult": unheard, "prePRDescription": unheard,
		},
		Traps: []string{
			"in this dialect the matchers * and \"\" are invalid and the hook is skipped: the key must be left out",
			"any exit code but 0 denies and loses the reason", "version 2 or bad JSON drops the file, which only the debug log says",
			"a broken policy file is skipped",
		},
	}
}

func cursor() Host {
	list := joined(
		of("claude-code", claudeFiles()),
		files(User, JSON, "~/.cursor/hooks.json"), files(Project, JSON, ".cursor/hooks.json"), files(Managed, JSON, "/etc/cursor/hooks.json"),
	)
	list[5].Mac = "/Library/Application Support/Cursor/hooks.json"
	like := Target{
		Shape: Flat, Command: "command", Fields: command(), LimitKey: "timeout", LimitUnit: 1000,
		Head:   []Field{{Name: "version", Value: "1"}},
		Closed: []Field{{Name: "failClosed", Value: "true"}}, ClosedFor: []string{"preToolUse", "beforeShellExecution", "beforeMCPExecution", "beforeReadFile", "subagentStart"},
		Events: events(`sessionStart sessionEnd !beforeSubmitPrompt !+preToolUse !+beforeShellExecution !+beforeMCPExecution !+beforeReadFile
			+postToolUse +postToolUseFailure +afterShellExecution +afterMCPExecution +afterFileEdit !subagentStart subagentStop preCompact stop afterAgentResponse`),
	}
	return Host{
		Name: "cursor", Files: list, Targets: at(like, list[3], list[4], list[5]),
		Unregistered: map[string]string{
			"beforeTabFileRead": "completion in the editor, no agent", "afterTabFileEdit": "completion in the editor, no agent",
			"afterAgentThought": "decides nothing and fires often", "workspaceOpen": unheard,
		},
		Traps: []string{"\"://\" in a command line makes the whole file be dropped silently", "prompt hooks do not fire in headless mode", "team hooks come from the vendor's service and are in no file"},
	}
}

func goose() Host {
	list := files(User, JSON, "~/.agents/plugins/ahp/hooks/hooks.json", "~/.agents/plugins/*/hooks/hooks.json")
	list = append(list, files(Project, JSON, ".agents/plugins/ahp/hooks/hooks.json", ".agents/plugins/*/hooks/hooks.json")...)
	like := Target{
		Shape: Nested, Command: "command", Fields: command(), LimitKey: "timeout", LimitUnit: 1000, ToolMatcher: ".*",
		Closed: []Field{{Name: "on_failure", Value: `"block"`}}, ClosedFor: []string{"PreToolUse"},
		Events: events(`SessionStart SessionEnd UserPromptSubmit !+PreToolUse +PostToolUse +PostToolUseFailure Stop`),
	}
	return Host{
		Name: "goose", Files: list, Targets: at(like, list[0], list[2]),
		Unregistered: map[string]string{
			"PreToolUseResult": "tells what was decided, after it", "BeforeReadFile": "PreToolUse has fired for the same call", "AfterFileEdit": "PostToolUse fires for the same call",
			"BeforeShellExecution": "PreToolUse has fired for the same call", "AfterShellExecution": "PostToolUse fires for the same call",
		},
		Traps: []string{"the matcher * is an invalid regular expression and its rule is skipped", "hooks need goose 1.38 or newer"},
	}
}

func kiro() Host {
	user := files(User, JSON, "~/.kiro/hooks/ahp.json", "~/.kiro/hooks/*.json", "~/.kiro/agents/*.json")
	project := files(Project, JSON, ".kiro/hooks/ahp.json", ".kiro/hooks/*.json", ".kiro/agents/*.json")
	list := Target{
		Shape: List, Command: "command", LimitKey: "timeout", LimitUnit: 1000, ToolMatcher: ".*",
		Head:    []Field{{Name: "version", Value: `"v1"`}},
		Events:  events(`SessionStart SessionEnd !UserPromptSubmit !+PreToolUse +PostToolUse !PreTaskExec PostTaskExec Stop`),
		Remains: []string{"Kiro CLI 2.x reads hooks only from agent files: an agent without a file of its own, the default one included, is not covered there"},
	}
	agents := Target{
		Shape: Flat, Command: "command", LimitKey: "timeout_ms", LimitUnit: 1, ToolMatcher: "*", Existing: true,
		Events: events(`agentSpawn userPromptSubmit !+preToolUse +postToolUse stop`),
	}
	return Host{
		Name: "kiro", Files: joined(user, project),
		Targets: append(at(list, user[0], project[0]), at(agents, user[2], project[2])...),
		Unregistered: map[string]string{
			"PostFileCreate": "PostToolUse fires for the agent's own files", "PostFileSave": "likewise", "PostFileDelete": "likewise", "Manual": "a person starts it",
		},
		Traps: []string{"answers of agent files are cached for cache_ttl_seconds: AHP's entries must not have the key", "the files of Kiro IDE 0.x give a hook no payload"},
	}
}

func windsurf() Host {
	list := joined(
		files(Managed, JSON, "/etc/windsurf/hooks.json"), files(User, JSON, "~/.codeium/windsurf/hooks.json", "~/.codeium/hooks.json"),
		files(Project, JSON, ".windsurf/hooks.json", ".devin/hooks.json"),
	)
	list[0].Mac = "/Library/Application Support/Windsurf/hooks.json"
	like := Target{
		Shape: Flat, Command: "command",
		Events: events(`!+pre_read_code !+pre_write_code !+pre_run_command !+pre_mcp_tool_use !pre_user_prompt
			+post_read_code +post_write_code +post_run_command +post_mcp_tool_use post_cascade_response`),
	}
	jetbrains := like
	jetbrains.Existing = true
	return Host{
		Name: "windsurf", Files: list,
		Targets:      append(at(like, list[1], list[3], list[0]), at(jetbrains, list[2])...),
		Unregistered: map[string]string{"post_cascade_response_with_transcript": "post_cascade_response fires for the same answer", "post_setup_worktree": unheard},
		Traps:        []string{"there is no documented time limit and no key for one"},
	}
}

func openhands() Host {
	list := files(Project, JSON, ".openhands/hooks.json")
	like := Target{
		Shape: Nested, Command: "command", Fields: command(), LimitKey: "timeout", LimitUnit: 1000, ToolMatcher: "*",
		Events: events(`SessionStart SessionEnd !UserPromptSubmit !+PreToolUse +PostToolUse Stop`),
	}
	return Host{
		Name: "openhands", Files: list, Targets: at(like, list[0]),
		Traps: []string{"a decision on standard output beats the exit code: exit 2 with allow runs", "hooks are read from the repository alone"},
	}
}

func kimi() Host {
	list := files(User, TOML, "~/.kimi/config.toml", "~/.kimi-code/config.toml")
	like := Target{
		Shape: Tables, Command: "command", LimitKey: "timeout", LimitUnit: 1000,
		Events: events(`SessionStart SessionEnd !UserPromptSubmit !+PreToolUse +PostToolUse +PostToolUseFailure Stop StopFailure
			SubagentStart SubagentStop PreCompact PostCompact Notification +PermissionRequest +PermissionResult Interrupt`),
	}
	targets := at(like, list...)
	targets[1].Existing = true
	return Host{
		Name: "kimi", Files: list, Targets: targets,
		Traps: []string{"limits are 1 to 600 seconds", "prompt hooks of Kimi Code do not fire in headless mode"},
	}
}

func auggie() Host {
	list := joined(files(User, JSON, "~/.augment/settings.json"), files(Project, JSON, ".augment/settings.json", ".augment/settings.local.json"), files(Managed, JSON, "/etc/augment/settings.json"))
	like := Target{
		Shape: Nested, Command: "command", Fields: command(), LimitKey: "timeout", LimitUnit: 1, ToolMatcher: ".*",
		Events: events(`SessionStart SessionEnd PromptSubmit !+PreToolUse +PostToolUse Stop Notification`),
	}
	return Host{
		Name: "auggie", Files: list, Targets: at(like, list[0], list[1], list[3]),
		Traps: []string{"limits are milliseconds", "a plain regular expression never matches an MCP tool, .* does"},
	}
}

func continueCLI() Host {
	list := joined(
		of("claude-code", claudeFiles()),
		files(User, JSON, "~/.continue/settings.json", "~/.continue/settings.local.json"),
		files(Project, JSON, ".continue/settings.json", ".continue/settings.local.json"),
	)
	like := Target{
		Shape: Nested, Command: "command", Fields: command(), LimitKey: "timeout", LimitUnit: 1000,
		Events:  events(`SessionStart SessionEnd !UserPromptSubmit !+PreToolUse +PostToolUse +PostToolUseFailure Stop Notification PreCompact`),
		Remains: []string{"cn 1.5.47 reads hooks and runs none, so AHP guards nothing there until a later version does: do not rely on it"},
	}
	return Host{
		Name: "continue", Files: list, Targets: at(like, list[3], list[5]),
		Traps: []string{"it reads Claude Code's files as well: with AHP in both, one call fires two lines"},
	}
}
