package hostconf

func claudeCode() Host {
	own := claudeFiles()
	managed := File{Path: "/etc/claude-code/managed-settings.json", Mac: "/Library/Application Support/ClaudeCode/managed-settings.json", Scope: Managed, Format: JSON, Carries: true}
	like := Target{
		Shape: Nested, Command: "command", Fields: command(), LimitKey: "timeout", LimitUnit: 1000,
		Closed: []Field{{Name: "onFailure", Value: `"block"`}}, ClosedFor: []string{"PreToolUse"},
		Events: events(`SessionStart SessionEnd !UserPromptSubmit !+PreToolUse !+PermissionRequest +PostToolUse +PostToolUseFailure
			PostToolBatch !PreSkillShellCommand Stop SubagentStart SubagentStop PreCompact PostCompact Notification TaskCreated TaskCompleted`),
	}
	targets := at(like, own[0], own[1], managed)
	targets[1].Remains = []string{"in an interactive session Claude Code runs no hook before a person trusts the folder"}
	return Host{
		Name:    "claude-code",
		Files:   append(own, managed),
		Targets: targets,
		Switches: []Switch{
			{Kind: KeySwitch, Name: "disableAllHooks", Value: "true", Scopes: []Scope{User, Project}, Stops: []Scope{User, Project}, Effect: "no user or project hook runs; a project's value beats the user's"},
			{Kind: KeySwitch, Name: "disableAllHooks", Value: "true", Scopes: []Scope{Managed}, Stops: Scopes(), Effect: "no hook runs"},
			{Kind: KeySwitch, Name: "allowManagedHooksOnly", Value: "true", Scopes: []Scope{Managed}, Stops: []Scope{User, Project}, Effect: "only managed hooks run"},
			{Kind: KeySwitch, Name: "env.LD_PRELOAD", Scopes: []Scope{User, Project}, Stops: []Scope{User, Project}, Effect: "the shell that runs a user's or a project's hook loads this library first; a managed hook's shell does not get it (measured with 2.1.332)"},
			{Kind: KeySwitch, Name: "env.BASH_ENV", Scopes: []Scope{User, Project}, Stops: []Scope{User, Project}, Effect: "where sh is bash, the shell that runs a user's or a project's hook may read this file first"},
			{Kind: VariableSwitch, Name: "CLAUDE_CODE_SIMPLE", Value: "1", Stops: []Scope{User, Project}, Effect: "no user or project hook runs"},
			{Kind: ArgumentSwitch, Name: "--bare", Stops: []Scope{User, Project}, Effect: "no user or project hook runs"},
			{Kind: ArgumentSwitch, Name: "--safe-mode", Stops: []Scope{User, Project}, Effect: "no user or project hook runs"},
			{Kind: ArgumentSwitch, Name: "--setting-sources", Value: "user", Stops: []Scope{Project}, Effect: "project hooks are not read"},
		},
		Unregistered: map[string]string{
			"UserPromptExpansion": unheard, "PermissionDenied": unheard, "StopFailure": unheard, "PreModelSwitch": unheard, "PostModelSwitch": unheard,
			"Elicitation": unheard, "ElicitationResult": unheard, "ConfigChange": unheard, "InstructionsLoaded": unheard, "CwdChanged": unheard,
			"DirectoryAdded": unheard, "TeammateIdle": unheard,
			"WorktreeCreate": "a hook there has to make the worktree itself", "WorktreeRemove": "likewise",
			"FileChanged": "fires for files that a matcher names, and for none without one", "MessageDisplay": "fires while text is shown, and decides nothing", "Setup": "runs outside a session",
		},
		Traps: []string{
			"a wrong type or value in one entry voids the event's list in that file",
			"another invalid setting makes the hooks of the file vanish",
			"a malformed managed file keeps the client from starting",
			"until a folder is trusted no hook runs in an interactive session",
		},
	}
}

func codex() Host {
	home := func(name string, carries bool, f Format) File {
		return File{Path: "~/.codex/" + name, Scope: User, Format: f, Variable: "CODEX_HOME", Moves: "~/.codex", Carries: carries}
	}
	like := Target{
		Shape: Nested, Command: "command", Fields: command(), LimitKey: "timeout", LimitUnit: 1000,
		Events: events(`SessionStart SessionEnd !UserPromptSubmit PreModelRequest PostModelRequest !+PreToolUse !+PermissionRequest +PostToolUse
			PreCompact PostCompact SubagentStart SubagentStop Stop Interrupt`),
	}
	user := at(like, home("hooks.json", true, JSON))
	user[0].Remains = []string{"Codex skips an untrusted hook without a word: run ahp install codex --trust, or start Codex once and accept the hooks in its review"}
	project := at(like, File{Path: ".codex/hooks.json", Scope: Project, Format: JSON, Carries: true})
	project[0].Remains = []string{"Codex reads a project's hooks only in a trusted project, and runs them only once they are trusted in its review"}
	managed := at(like, File{Path: "/etc/codex/hooks.json", Scope: Managed, Format: JSON, Carries: true})
	etc := files(Managed, TOML, "/etc/codex/config.toml", "/etc/codex/managed_config.toml", "/etc/codex/requirements.toml")
	return Host{
		Name:    "codex",
		Files:   joined([]File{project[0].File}, files(Project, TOML, ".codex/config.toml"), []File{user[0].File, home("config.toml", true, TOML)}, []File{managed[0].File}, etc),
		Targets: append(append(user, project...), managed...),
		Switches: []Switch{
			{Kind: KeySwitch, Name: "features.hooks", Value: "false", Scopes: []Scope{User, Project}, Stops: Scopes(), Pinned: []Scope{Managed}, Effect: "no hook runs, managed ones neither, unless requirements.toml holds [features] hooks = true, as an installation for the machine writes it; a project's value counts once the project is trusted"},
			{Kind: KeySwitch, Name: "allow_managed_hooks_only", Value: "true", Scopes: []Scope{Managed}, Stops: []Scope{User, Project}, Effect: "only managed hooks run"},
			{Kind: KeySwitch, Name: "hooks.state.*.enabled", Value: "false", Scopes: []Scope{User}, Stops: []Scope{User, Project}, Effect: "the hook of that key does not run"},
			{Kind: ArgumentSwitch, Name: "--disable", Value: "hooks", Stops: Scopes(), Pinned: []Scope{Managed}, Effect: "no hook runs, unless requirements.toml holds [features] hooks = true"},
			{Kind: ArgumentSwitch, Name: "-c", Value: "features.hooks=false", Stops: Scopes(), Pinned: []Scope{Managed}, Effect: "likewise"},
		},
		Traps: []string{
			"a malformed entry drops the whole file",
			"the trust of a hook covers its place in the file (group and index) and its command line",
			"a broken requirements.toml keeps the client from starting",
		},
	}
}

func gemini() Host {
	list := joined(files(User, JSONC, "~/.gemini/settings.json"), files(Project, JSONC, ".gemini/settings.json"), files(Managed, JSONC, "/etc/gemini-cli/settings.json"))
	list[2].Variable, list[2].Moves = "GEMINI_CLI_SYSTEM_SETTINGS_PATH", "/etc/gemini-cli/settings.json"
	list[2].Mac = "/Library/Application Support/GeminiCli/settings.json"
	like := Target{
		Shape: Nested, Command: "command", Fields: append(command(), Field{Name: "name", Value: `"ahp"`}), LimitKey: "timeout", LimitUnit: 1,
		Events: events(`SessionStart SessionEnd !BeforeAgent AfterAgent !BeforeModel AfterModel !+BeforeTool +AfterTool PreCompress Notification`),
	}
	targets := at(like, list...)
	targets[1].Remains = []string{"Gemini CLI runs no hook in a folder that a person has not trusted"}
	return Host{
		Name: "gemini", Files: list, Targets: targets,
		Switches: []Switch{
			{Kind: KeySwitch, Name: "hooksConfig.enabled", Value: "false", Scopes: Scopes(), Stops: Scopes(), Effect: "no hook runs; a project's value counts in a trusted folder"},
			{Kind: KeySwitch, Name: "hooksConfig.disabled", Scopes: Scopes(), Stops: Scopes(), Effect: "hooks whose name or command is in this list do not run"},
		},
		Unregistered: map[string]string{"BeforeToolSelection": unheard},
		Traps: []string{
			"limits are milliseconds", "a matcher that is no regular expression never matches, silently",
			"in an untrusted folder the user's own hooks are dropped too", "an unknown event name is skipped with a warning",
		},
	}
}

func qwen() Host {
	list := joined(files(User, JSONC, "~/.qwen/settings.json"), files(Project, JSONC, ".qwen/settings.json"), files(Managed, JSONC, "/etc/qwen-code/settings.json"))
	list[2].Variable, list[2].Moves = "QWEN_CODE_SYSTEM_SETTINGS_PATH", "/etc/qwen-code/settings.json"
	list[2].Mac = "/Library/Application Support/QwenCode/settings.json"
	like := Target{
		Shape: Nested, Command: "command", Fields: append(command(), Field{Name: "name", Value: `"ahp"`}), LimitKey: "timeout", LimitUnit: 1000, ToolMatcher: "*",
		Events: events(`SessionStart SessionEnd !UserPromptSubmit !+PreToolUse !+PermissionRequest +PostToolUse +PostToolUseFailure PostToolBatch
			Stop SubagentStart SubagentStop PreCompact PostCompact Notification TodoCreated TodoCompleted`),
	}
	return Host{
		Name: "qwen", Files: list, Targets: at(like, list...),
		Switches: []Switch{
			{Kind: KeySwitch, Name: "disableAllHooks", Value: "true", Scopes: Scopes(), Stops: Scopes(), Effect: "no hook runs; a project's value counts in a trusted folder"},
		},
		Unregistered: map[string]string{"StopFailure": unheard, "InstructionsLoaded": unheard, "MessageDisplay": "fires while text is shown, and decides nothing"},
		Traps: []string{
			"limits are seconds up to 999; from 1000 on they are milliseconds",
			"a later hook's permissionDecision allow cancels an earlier deny unless that says continue:false",
			"unknown event names are ignored without a word",
		},
	}
}

func droid() Host {
	list := joined(
		files(User, JSON, "~/.factory/hooks.json", "~/.factory/settings.json"),
		files(Project, JSON, ".factory/hooks.json", ".factory/settings.json"),
	)
	for i := range list[:2] {
		list[i].Variable, list[i].Moves = "FACTORY_HOME_OVERRIDE", "~"
	}
	managed := File{Path: "/etc/factory/settings.json", Mac: "/Library/Application Support/Factory/settings.json", Scope: Managed, Format: JSON, Carries: true}
	like := Target{
		Shape: Nested, Command: "command", Fields: command(), LimitKey: "timeout", LimitUnit: 1000, ToolMatcher: "*",
		Events: events(`SessionStart SessionEnd !UserPromptSubmit !+PreToolUse +PostToolUse Stop SubagentStop PreCompact Notification`),
	}
	return Host{
		Name: "droid", Files: append(list, managed), Targets: at(like, list[1], list[3], managed),
		Switches: []Switch{
			{Kind: KeySwitch, Name: "hooksDisabled", Value: "true", Scopes: []Scope{User, Project}, Stops: []Scope{User, Project}, Effect: "documented to turn hooks off; measured to do nothing in droid exec"},
		},
		Traps: []string{"hooks.json beside settings.json has no outer hooks key", "a malformed entry drops all", "a JSON allow of an earlier hook beats a JSON deny; exit 2 beats both"},
	}
}

func crush() Host {
	list := joined(files(User, JSON, "~/.config/crush/crush.json"), files(Project, JSON, "crush.json", ".crush.json"), files(Managed, JSON, "/etc/crush/crush.json"))
	list[0].Variable, list[0].Moves = "XDG_CONFIG_HOME", "~/.config"
	like := Target{
		Shape: Flat, Command: "command", Fields: []Field{{Name: "name", Value: `"ahp"`}}, LimitKey: "timeout", LimitUnit: 1000,
		Events: events(`!+PreToolUse`),
	}
	return Host{
		Name: "crush", Files: list, Targets: at(like, list[0], list[1], list[3]),
		Traps: []string{
			"the matcher * and the nested form keep the client from starting", "other event names are accepted and never fire",
			"a project's file is looked for in every folder up to the git root", "the tools of sub-agents fire no hook",
		},
	}
}
