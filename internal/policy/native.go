package policy

import (
	"slices"
	"strings"
)

// Native is a tool of another agent in Abhed's words.
type Native struct {
	// Tool is Abhed's tool that does the same.
	Tool string
	// Kind is what its subject is.
	Kind SubjectKind
	// Patch says that the subject is a patch, whose headers name the files.
	Patch bool
	// Foreign says that a command is in another language than the shell's, or is
	// given to a program that runs already: rules may match it, and it can't be
	// judged beyond that.
	Foreign bool
	// Optional says that a call without a subject does nothing that rules are about.
	Optional bool
	// Verbs says that a member "command" says what the tool does with the file: to
	// "view" it is to read it.
	Verbs bool
	// Globs says that its paths may be patterns, which stand for files that aren't
	// known before it runs.
	Globs bool
}

// AbhedTools returns the canonical tools with the kind of their subject: what a rule
// may name whatever the host is (gate.md §1).
func AbhedTools() map[string]SubjectKind {
	return map[string]SubjectKind{
		toolBash: SubjectCommand, toolRead: SubjectPath, toolWrite: SubjectPath, toolEdit: SubjectPath,
		"glob": SubjectPath, "grep": SubjectPath, "fetch": SubjectURL,
		"task": SubjectText, "skill": SubjectText, "todo": SubjectNone, "ask_user": SubjectText,
		"jobs": SubjectText, "recall": SubjectText,
	}
}

// KindOf returns the word by which AHP events describe a tool of Abhed's, "" for one
// that has none. It is descriptive, and no ground for authority.
func KindOf(tool string) string {
	switch tool {
	case toolBash:
		return "shell"
	case toolRead:
		return "file_read"
	case toolWrite:
		return "file_write"
	case toolEdit:
		return "file_edit"
	case "glob", "grep":
		return "search"
	case "fetch", "task":
		return tool
	}
	return ""
}

// LookupNative returns what a tool's native name stands for, whatever host it comes
// from: none if the table doesn't have it, two if the tool does two things. Upper
// and lower case are one: hosts differ in nothing else for some tools. The result must
// not be changed.
func LookupNative(name string) []Native {
	name = strings.ToLower(name)
	from, is := slices.BinarySearch(nativeNames[:], name)
	if !is {
		return nil
	}
	to := from + 1
	for to < len(nativeNames) && nativeNames[to] == name {
		to++
	}
	return natives[from:to:to]
}

// NativeHosts returns the hosts of the table, sorted.
func NativeHosts() []string {
	var out []string
	for _, r := range nativeRows() {
		if r.host != "" && !slices.Contains(out, r.host) {
			out = append(out, r.host)
		}
	}
	slices.Sort(out)
	return out
}

// NativeNames returns the names that the table has for a host, in its order.
func NativeNames(host string) []string {
	var out []string
	for _, r := range nativeRows() {
		if r.host == host {
			out = append(out, strings.Fields(r.names)...)
		}
	}
	return out
}

// nativeTraits holds what is special about a name, in lower case.
func nativeTraits() map[string]Native {
	patch, foreign, verbs := Native{Patch: true}, Native{Foreign: true}, Native{Verbs: true}
	typed := Native{Foreign: true, Optional: true}
	return map[string]Native{
		"apply_patch": patch, "applypatch": patch, "patch": patch,
		"powershell": foreign, "execute_cmd": foreign, "cmd": foreign, "execute_ipython_cell": foreign,
		"computercontroller__automation_script": foreign, "automation_script": foreign,
		"write_stdin": typed, "write_bash": typed, "write_powershell": typed, "write-process": typed,
		"background_process": {Optional: true}, "browser_action": {Optional: true}, "browser": {Optional: true},
		"read_many_files":    {Globs: true},
		"str_replace_editor": verbs, "str_replace_based_edit_tool": verbs, "str-replace-editor": verbs, "text_editor": verbs,
		"developer__text_editor": verbs, "file_editor": verbs, "planning_file_editor": verbs, "fs_write": verbs, "editor": verbs,
	}
}

// nativeRow is the names under which a host has one of Abhed's tools.
type nativeRow struct{ host, tool, names string }

// nativeRows is the table. Names are those that the host's hooks are given; where
// that was measured or read in the host's own package they are its whole list of
// tools with such a subject, elsewhere what its documentation has. A name means the
// same in every host that has it: a test holds that, with the exceptions named
// there.
func nativeRows() []nativeRow {
	return []nativeRow{
		{"", toolBash, "bash"}, {"", toolRead, "read"}, {"", toolWrite, "write"}, {"", toolEdit, "edit"}, {"", "glob", "glob"},
		{"", "grep", "grep"}, {"", "fetch", "fetch"}, {"", "task", "task"}, {"", "skill", "skill"}, {"", "todo", "todo"}, {"", "ask_user", "ask_user"},

		{"claude-code", toolBash, "Bash Monitor PowerShell"}, {"claude-code", toolRead, "Read NotebookRead"}, {"claude-code", toolWrite, "Write"},
		{"claude-code", toolEdit, "Edit MultiEdit NotebookEdit str_replace_based_edit_tool"}, {"claude-code", "glob", "Glob LS"}, {"claude-code", "grep", "Grep"},
		{"claude-code", "fetch", "WebFetch"}, {"claude-code", "task", "Task Agent"}, {"claude-code", "skill", "Skill"},
		{"claude-code", "todo", "TodoWrite TodoRead TaskCreate TaskUpdate"}, {"claude-code", "ask_user", "AskUserQuestion"},

		{"codex", toolBash, "Bash shell local_shell shell_command exec_command unified_exec container.exec write_stdin"},
		{"codex", toolEdit, "apply_patch"}, {"codex", toolRead, "read_file view_image"}, {"codex", "glob", "list_dir"}, {"codex", "grep", "grep_files"},
		{"codex", "task", "spawn_agent"}, {"codex", "todo", "update_plan"}, {"codex", "ask_user", "request_user_input"},

		{"gemini", toolBash, "run_shell_command"}, {"gemini", toolRead, "read_file read_many_files"}, {"gemini", toolWrite, "write_file"},
		{"gemini", toolEdit, "replace"}, {"gemini", "glob", "glob list_directory"}, {"gemini", "grep", "grep_search search_file_content"},
		{"gemini", "fetch", "web_fetch"}, {"gemini", "task", "invoke_agent"}, {"gemini", "skill", "activate_skill"}, {"gemini", "todo", "write_todos"},

		{"qwen", toolBash, "run_shell_command"}, {"qwen", toolRead, "read_file read_many_files"}, {"qwen", toolWrite, "write_file"},
		{"qwen", toolEdit, "edit notebook_edit"}, {"qwen", "glob", "glob list_directory"}, {"qwen", "grep", "grep_search"},
		{"qwen", "fetch", "web_fetch"}, {"qwen", "task", "agent task"}, {"qwen", "skill", "skill"}, {"qwen", "todo", "todo_write"},

		{"opencode", toolBash, "bash"}, {"opencode", toolRead, "read"}, {"opencode", toolWrite, "write"}, {"opencode", toolEdit, "edit multiedit patch apply_patch"},
		{"opencode", "glob", "glob list"}, {"opencode", "grep", "grep"}, {"opencode", "fetch", "webfetch"}, {"opencode", "task", "task"},
		{"opencode", "skill", "skill"}, {"opencode", "todo", "todowrite todoread"}, {"opencode", "ask_user", "question"},

		{"kilo", toolBash, "bash background_process"}, {"kilo", toolRead, "read"}, {"kilo", toolWrite, "write"}, {"kilo", toolEdit, "edit multiedit patch apply_patch"},
		{"kilo", "glob", "glob list"}, {"kilo", "grep", "grep"}, {"kilo", "fetch", "webfetch"}, {"kilo", "task", "task"},
		{"kilo", "skill", "skill"}, {"kilo", "todo", "todowrite todoread"},

		{"pi", toolBash, "bash"}, {"pi", toolRead, "read"}, {"pi", toolWrite, "write"}, {"pi", toolEdit, "edit"}, {"pi", "glob", "find ls"}, {"pi", "grep", "grep"},

		{"crush", toolBash, "bash"}, {"crush", toolRead, "view"}, {"crush", toolWrite, "write download"}, {"crush", toolEdit, "edit multiedit"},
		{"crush", "glob", "glob ls"}, {"crush", "grep", "grep"}, {"crush", "fetch", "fetch agentic_fetch download"}, {"crush", "task", "agent"}, {"crush", "todo", "todos"},

		{"copilot", toolBash, "bash powershell write_bash write_powershell runInTerminal run_in_terminal"},
		{"copilot", toolRead, "view readFile read_file"}, {"copilot", toolWrite, "create createFile create_file"},
		{"copilot", toolEdit, "edit str_replace_editor editFiles insert_edit_into_file replace_string_in_file multi_replace_string_in_file apply_patch edit_notebook_file"},
		{"copilot", "glob", "glob list_dir file_search"}, {"copilot", "grep", "grep rg grep_search"}, {"copilot", "fetch", "web_fetch fetch_webpage"},
		{"copilot", "task", "task runSubagent"}, {"copilot", "skill", "skill"}, {"copilot", "todo", "update_todo manage_todo_list"},

		{"cursor", toolBash, "Shell run_terminal_cmd"}, {"cursor", toolRead, "Read read_file"}, {"cursor", toolWrite, "Write Delete delete_file"},
		{"cursor", toolEdit, "Edit StrReplace edit_file search_replace EditNotebook"}, {"cursor", "glob", "Glob LS list_dir file_search"},
		{"cursor", "grep", "Grep grep_search"}, {"cursor", "fetch", "WebFetch"}, {"cursor", "task", "Task"}, {"cursor", "todo", "TodoWrite"},

		{"droid", toolBash, "Execute"}, {"droid", toolRead, "Read"}, {"droid", toolWrite, "Create"}, {"droid", toolEdit, "Edit MultiEdit ApplyPatch"},
		{"droid", "glob", "LS Glob"}, {"droid", "grep", "Grep"}, {"droid", "fetch", "FetchUrl"}, {"droid", "task", "Task"}, {"droid", "skill", "Skill"}, {"droid", "todo", "TodoWrite"},

		{"goose", toolBash, "developer__shell shell computercontroller__automation_script automation_script"},
		{"goose", toolRead, "developer__image_processor developer__read_image"}, {"goose", toolWrite, "developer__write write"},
		{"goose", toolEdit, "developer__text_editor text_editor developer__edit edit"}, {"goose", "glob", "developer__tree tree developer__list_windows"},
		{"goose", "fetch", "computercontroller__web_scrape web_scrape"}, {"goose", "todo", "todo__todo_write"},

		{"cline", toolBash, "execute_command run_commands"}, {"cline", toolRead, "read_file read_files"}, {"cline", toolWrite, "write_to_file"},
		{"cline", toolEdit, "replace_in_file editor apply_patch"}, {"cline", "glob", "list_files list_code_definition_names"},
		{"cline", "grep", "search_files search_codebase"}, {"cline", "fetch", "web_fetch fetch_web_content browser_action"},
		{"cline", "task", "new_task"}, {"cline", "skill", "use_skill"}, {"cline", "ask_user", "ask_followup_question ask_question"},

		{"kiro", toolBash, "execute_bash execute_cmd executeBash shell"}, {"kiro", toolRead, "fs_read readFile readMultipleFiles read"},
		{"kiro", toolWrite, "fs_write fsWrite fsAppend deleteFile write"}, {"kiro", toolEdit, "strReplace"}, {"kiro", "glob", "glob listDirectory fileSearch"},
		{"kiro", "grep", "grep grepSearch"}, {"kiro", "fetch", "web_fetch webFetch"}, {"kiro", "task", "use_subagent invokeSubAgent"}, {"kiro", "todo", "todo_list"},

		{"windsurf", toolBash, "run_command pre_run_command"}, {"windsurf", toolRead, "view_file read_code pre_read_code"}, {"windsurf", toolWrite, "write_to_file"},
		{"windsurf", toolEdit, "write_code pre_write_code replace_file_content multi_replace_file_content"}, {"windsurf", "glob", "list_dir find_by_name"},
		{"windsurf", "grep", "grep_search"}, {"windsurf", "fetch", "read_url_content"},

		{"openhands", toolBash, "terminal execute_bash execute_ipython_cell"}, {"openhands", toolEdit, "file_editor str_replace_editor planning_file_editor apply_patch"},
		{"openhands", "glob", "glob"}, {"openhands", "grep", "grep"}, {"openhands", "fetch", "browser_navigate browser"},
		{"openhands", "task", "delegate"}, {"openhands", "todo", "task_tracker"},

		{"kimi", toolBash, "Shell Bash CMD"}, {"kimi", toolRead, "ReadFile ReadMediaFile Read"}, {"kimi", toolWrite, "WriteFile Write"}, {"kimi", toolEdit, "StrReplaceFile Edit"},
		{"kimi", "glob", "Glob"}, {"kimi", "grep", "Grep"}, {"kimi", "fetch", "FetchURL"}, {"kimi", "task", "Task Agent AgentSwarm"}, {"kimi", "skill", "Skill"}, {"kimi", "todo", "SetTodoList TodoList"}, {"kimi", "ask_user", "AskUserQuestion"},

		{"auggie", toolBash, "launch-process write-process"}, {"auggie", toolRead, "view"}, {"auggie", toolWrite, "save-file remove-files"},
		{"auggie", toolEdit, "str-replace-editor apply_patch"}, {"auggie", "grep", "grep-search"}, {"auggie", "fetch", "web-fetch open-browser"},
		{"auggie", "todo", "add_tasks update_tasks"},

		{"continue", toolBash, "Bash runTerminalCommand run_terminal_command"}, {"continue", toolRead, "Read readFile read_file read_file_range"},
		{"continue", toolWrite, "Write createNewFile create_new_file"}, {"continue", toolEdit, "Edit MultiEdit editFile edit_existing_file single_find_and_replace multi_edit"},
		{"continue", "glob", "List ls globSearch file_glob_search"}, {"continue", "grep", "Search grepSearch grep_search"},
		{"continue", "fetch", "Fetch fetchUrlContent fetch_url_content"}, {"continue", "task", "Subagent"}, {"continue", "skill", "Skills"},
	}
}
