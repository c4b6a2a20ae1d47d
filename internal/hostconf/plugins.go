package hostconf

// pluginEvents are what the bridge of opencode and Kilo takes; the last two come by
// its event hook.
func pluginEvents() []Event {
	return events(`!+tool.execute.before +tool.execute.after !chat.message session.created session.idle`)
}

func opencode() Host {
	list := joined(
		moved("XDG_CONFIG_HOME", "~/.config", files(User, Plugin, "~/.config/opencode/plugin", "~/.config/opencode/plugins")),
		moved("XDG_CONFIG_HOME", "~/.config", files(User, JSONC, "~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc")),
		files(Project, Plugin, ".opencode/plugin", ".opencode/plugins"),
		files(Project, JSONC, "opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"),
		files(Managed, JSONC, "/etc/opencode/opencode.json", "/etc/opencode/opencode.jsonc"),
	)
	return Host{
		Name: "opencode", Files: list,
		Targets: at(Target{Shape: Bridge, Events: pluginEvents()}, list[0], list[4]),
		Switches: []Switch{
			{Kind: VariableSwitch, Name: "OPENCODE_PURE", Value: "1", Stops: []Scope{User, Project}, Effect: "no plugin is loaded"},
		},
		Traps: []string{
			"a plugin that does not load is skipped silently",
			"a configuration folder without node_modules/@opencode-ai/plugin is filled in the background, and plugins load only after that",
			"the files of one folder run in reverse order of their names",
			"OPENCODE_CONFIG_DIR names one more folder of configuration",
		},
	}
}

func kilo() Host {
	list := joined(
		moved("XDG_CONFIG_HOME", "~/.config", files(User, Plugin, "~/.config/kilo/plugin", "~/.config/kilo/plugins")),
		moved("XDG_CONFIG_HOME", "~/.config", files(User, JSONC, "~/.config/kilo/kilo.json", "~/.config/kilo/kilo.jsonc")),
		files(Project, Plugin, ".kilo/plugin", ".kilo/plugins"),
		files(Project, JSONC, "kilo.json", "kilo.jsonc", ".kilo/kilo.json", ".kilo/kilo.jsonc"),
		files(Managed, JSONC, "/etc/kilo/kilo.json", "/etc/kilo/kilo.jsonc"),
	)
	return Host{
		Name: "kilo", Files: list,
		Targets: at(Target{Shape: Bridge, Events: pluginEvents()}, list[0], list[4]),
		Traps:   []string{"a plugin that does not load is skipped silently", "the files of one folder run in reverse order of their names"},
	}
}

func pi() Host {
	list := joined(files(User, Plugin, "~/.pi/agent/extensions"), files(User, JSON, "~/.pi/agent/settings.json"), files(Project, Plugin, ".pi/extensions"), files(Project, JSON, ".pi/settings.json"))
	for i := range list[:2] {
		list[i].Variable, list[i].Moves = "PI_CODING_AGENT_DIR", "~/.pi/agent"
	}
	targets := at(Target{Shape: Bridge, Events: events(`!+tool_call +tool_result !input before_agent_start session_start session_shutdown`)}, list[0], list[2])
	targets[1].Remains = []string{"pi 1.x in print mode skips a project's extensions silently unless the project is trusted: install in the user scope"}
	return Host{
		Name: "pi", Files: list, Targets: targets,
		Switches: []Switch{{Kind: ArgumentSwitch, Name: "--no-extensions", Stops: []Scope{User, Project}, Effect: "no extension is loaded"}},
		Traps:    []string{"an extension that does not load keeps pi from starting"},
	}
}

func cline() Host {
	list := joined(files(User, Script, "~/.cline/hooks", "~/Documents/Cline/Hooks"), files(Project, Script, ".cline/hooks", ".clinerules/hooks"))
	like := Target{Shape: Scripts, Events: events(`TaskStart TaskResume TaskCancel TaskComplete TaskError !UserPromptSubmit !+PreToolUse +PostToolUse SessionShutdown`)}
	return Host{
		Name: "cline", Files: list, EventArgument: true,
		Targets:      at(like, list[0], list[2]),
		Unregistered: map[string]string{"PreCompact": "a file of that name is found, and no event is behind it"},
		Traps:        []string{"one executable per event; exit codes are ignored", "a cancel ends the whole run and the model is told nothing", "the host's own limit is 120 s and can't be set"},
	}
}
