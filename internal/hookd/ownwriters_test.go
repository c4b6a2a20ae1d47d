package hookd_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/internal/backends/rules"
	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

// noWriting is a rules document in Abhed's words.
const noWriting = `{"rules":{"deny":["write(/etc/**)","edit(/etc/**)"]}}`

// rulesBackend is the backend for the rules in file.
func rulesBackend(file string) (*rules.Backend, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	d, err := rules.Parse(file, text)
	if err != nil {
		return nil, err
	}
	b, _, err := rules.New(d, rules.Options{})
	return b, err
}

// newRuled is a home in which noWriting counts.
func newRuled(t *testing.T) *world {
	w := newWorld(t, hookd.Options{})
	w.notes = filepath.Join(w.home, "rules.json") // what the backend is told to take
	write(t, w.notes, noWriting)
	w.register(w.document(hook{mode: "rules", policy: "fail-closed"}))
	return w
}

// TestOwnWriters holds that a rule about writing in Abhed's words is a rule about every
// tool by which a host writes, whatever that is called, and about one that nobody knows
// (I009). Its siblings pass: the same tools elsewhere, tools that read there, and an
// unknown tool that writes elsewhere or doesn't seem to write.
func TestOwnWriters(t *testing.T) {
	known := slices.Concat(strings.Fields("Write Edit write edit write_file replace Create WriteFile StrReplaceFile developer__write write_code fsWrite fsAppend search_replace StrReplace"), slices.Collect(maps.Keys(ownInputs())))
	for _, tool := range known {
		if !writes(tool) {
			t.Errorf("%s isn't known as a tool that writes", tool)
		}
	}
	for _, host := range hostconf.Names() {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			try := tryNative(t, host)
			writers := 0
			for _, tool := range policy.NativeNames(host) {
				switch {
				case writes(tool):
					writers++
					try(tool, ownInput(tool, "/etc/x"), "deny")
					try(tool, ownInput(tool, "/repo/x"), "pass")
				case slices.ContainsFunc(policy.LookupNative(tool), func(n policy.Native) bool { return n.Tool == "read" }):
					try(tool, `{"path":"/etc/x"}`, "pass")
				}
			}
			if writers == 0 {
				t.Error("no tool of this host writes")
			}
			try("tomorrows_writer", `{"path":"/etc/x","content":"c"}`, "ask")
			try("tomorrows_writer", `{"path":"/repo/x","content":"c"}`, "pass")
			try("tomorrows_reader", `{"path":"/etc/x"}`, "pass")
		})
	}
}

// writes reports whether the table has a tool as one that writes.
func writes(tool string) bool {
	return slices.ContainsFunc(policy.LookupNative(tool), func(n policy.Native) bool { return n.Tool == "write" || n.Tool == "edit" })
}

// tryNative returns what puts a call to the rules as the host does, and holds what comes
// of it to want: a "deny", a "pass", or an "ask", in the place of which a denial will do.
func tryNative(t *testing.T, host string) func(tool, input, want string) {
	w, n := newRuled(t), 0
	form, native := envelope(host)
	if form == "" { // this host's events don't name its tools
		return tryCanonical(t, w.notes)
	}
	return func(tool, input, want string) {
		t.Helper()
		n++
		data := strings.NewReplacer("TOOL", fmt.Sprintf("%q", tool), "INPUT", input, "NUMBER", fmt.Sprint(n)).Replace(form)
		a := w.do(hookd.Call{Host: host, Native: native, Data: []byte(data)})
		e := w.last()
		passed := a.Code == hookd.ExitPass
		right := map[string]bool{"deny": e.Decision == hooklog.Deny && !passed, "ask": (e.Decision == hooklog.Ask || e.Decision == hooklog.Deny) && !passed, "pass": passed}[want]
		if !right || e.Tool != tool || e.Problem != "" {
			t.Errorf("%s: %s: exit code %d, in the log %q for %q (%s), expected a %s", tool, input, a.Code, e.Decision, e.Tool, e.Problem, want)
		}
	}
}

// tryCanonical is tryNative with events of the protocol.
func tryCanonical(t *testing.T, file string) func(tool, input, want string) {
	b, err := rulesBackend(file)
	if err != nil {
		t.Fatal(err)
	}
	return func(tool, input, want string) {
		t.Helper()
		e := ahptest.ToolBefore("e", input)
		e.Tool.Name, e.Session.Cwd = tool, "/repo"
		out, err := b.Intercept(t.Context(), &ahp.Intercept{Event: e, Capabilities: *ahp.NewCapabilities(e.Type, ahp.EffectDeny, ahp.EffectAsk)})
		got := "pass"
		if len(out) > 0 {
			got = string(out[0].EffectType())
		}
		if err != nil || got != want {
			t.Errorf("%s: %s: %s, %v, expected a %s", tool, input, got, err, want)
		}
	}
}

// envelope returns a host's event before a tool, in which TOOL, INPUT and NUMBER are put
// in, and its name where the event doesn't have it.
func envelope(host string) (form, native string) {
	const call = `"tool_name":TOOL,"tool_input":INPUT}`
	forms := map[string]string{
		"gemini":    `{"session_id":"s","transcript_path":"","cwd":"/repo","hook_event_name":"BeforeTool","timestamp":"2026-11-30T12:00:00.000Z",` + call,
		"crush":     `{"event":"PreToolUse","session_id":"s","cwd":"/repo",` + call,
		"copilot":   `{"sessionId":"s","timestamp":1796039805732,"cwd":"/repo","toolName":TOOL,"toolArgs":INPUT}`,
		"cursor":    `{"conversation_id":"c","generation_id":"g","model":"m","cursor_version":"2.6.0","workspace_roots":["/repo"],"hook_event_name":"preToolUse","tool_use_id":"t-NUMBER","cwd":"/repo",` + call,
		"goose":     `{"event":"PreToolUse","session_id":"s","working_dir":"/repo","tool_call_id":"t-NUMBER",` + call,
		"cline":     `{"clineVersion":"","timestamp":"2026-11-30T12:37:45.255Z","taskId":"t","workspaceRoots":["/repo"],"hookName":"tool_call","tool_call":{"id":"t-NUMBER","name":TOOL,"input":INPUT},"preToolUse":{"toolName":TOOL,"parameters":{}}}`,
		"kiro":      `{"hook_event_name":"preToolUse","cwd":"/repo",` + call,
		"openhands": `{"event_type":"PreToolUse","session_id":"s","working_dir":"/repo",` + call,
		"auggie":    `{"hook_event_name":"PreToolUse","conversation_id":"c","workspace_roots":["/repo"],"is_mcp_tool":false,` + call,
		"opencode":  `{"bridge":"1","hook":"tool.execute.before","input":{"tool":TOOL,"sessionID":"s","callID":"t-NUMBER"},"output":{"args":INPUT},"directory":"/repo","worktree":"/repo"}`,
		"pi":        `{"bridge":"1","hook":"tool_call","event":{"type":"tool_call","toolName":TOOL,"toolCallId":"t-NUMBER","input":INPUT},"ctx":{"cwd":"/repo","sessionId":"s"}}`,
		"windsurf":  "",
	}
	forms["kilo"] = forms["opencode"]
	if host == "copilot" {
		native = "preToolUse"
	}
	if form, is := forms[host]; is {
		return form, native
	}
	return `{"session_id":"s","turn_id":"u","cwd":"/repo","hook_event_name":"PreToolUse","model":"m","permission_mode":"default","tool_use_id":"t-NUMBER","tool_call_id":"t-NUMBER",` + call, native
}

// ownInput is what a tool that writes is called with, as its host documents it.
func ownInput(tool, path string) string {
	input := ownInputs()[tool]
	if input == "" {
		input = `{"file_path":"PATH","content":"c"}`
	}
	return strings.ReplaceAll(input, "PATH", path)
}

// ownInputs are those of the tools that take something of their own.
func ownInputs() map[string]string {
	patch := `"*** Begin Patch\n*** Add File: PATH\n+c\n*** End Patch\n"`
	verb := `{"command":"create","path":"PATH","file_text":"c"}`
	return map[string]string{
		"NotebookEdit": `{"notebook_path":"PATH","new_source":"c"}`, "notebook_edit": `{"notebook_path":"PATH","new_source":"c"}`,
		"EditNotebook": `{"target_notebook":"PATH","new_string":"c"}`, "edit_notebook_file": `{"filePath":"PATH","newCode":"c"}`,
		"str_replace_based_edit_tool": verb, "str_replace_editor": verb, "str-replace-editor": verb, "text_editor": verb, "developer__text_editor": verb,
		"file_editor": verb, "planning_file_editor": verb, "editor": verb, "fs_write": verb,
		"apply_patch": `{"input":` + patch + `}`, "ApplyPatch": `{"input":` + patch + `}`, "patch": `{"patchText":` + patch + `}`,
		"multiedit": `{"filePath":"PATH","edits":[{"oldString":"a","newString":"c"}]}`, "MultiEdit": `{"file_path":"PATH","edits":[{"old_string":"a","new_string":"c"}]}`,
		"download": `{"url":"https://example.com/","file_path":"PATH"}`, "create": `{"path":"PATH","file_text":"c"}`,
		"createFile": `{"filePath":"PATH","content":"c"}`, "create_file": `{"filePath":"PATH","content":"c"}`, "editFiles": `{"files":["PATH"],"explanation":"e"}`,
		"insert_edit_into_file": `{"explanation":"e","filePath":"PATH","code":"c"}`, "replace_string_in_file": `{"filePath":"PATH","oldString":"a","newString":"c"}`,
		"multi_replace_string_in_file": `{"explanation":"e","replacements":[{"filePath":"/repo/y","oldString":"a","newString":"c"},{"filePath":"PATH","oldString":"a","newString":"c"}]}`,
		"edit_file":                    `{"target_file":"PATH","code_edit":"c"}`, "delete_file": `{"target_file":"PATH"}`, "deleteFile": `{"targetFile":"PATH"}`, "Delete": `{"path":"PATH"}`,
		"developer__edit": `{"path":"PATH","before":"a","after":"c"}`, "replace_in_file": `{"path":"PATH","diff":"c"}`, "strReplace": `{"path":"PATH","oldStr":"a","newStr":"c"}`,
		"write_to_file": `{"TargetFile":"PATH","CodeContent":"c"}`, "replace_file_content": `{"TargetFile":"PATH","ReplacementChunks":[]}`,
		"multi_replace_file_content": `{"TargetFile":"PATH","ReplacementChunks":[]}`, "save-file": `{"path":"PATH","file_content":"c"}`, "remove-files": `{"file_paths":["/repo/y","PATH"]}`,
		"createNewFile": `{"filepath":"PATH","contents":"c"}`, "editFile": `{"filepath":"PATH","changes":"c"}`,
	}
}

// TestRecordedWriters is the same with the calls that hosts were seen to make.
func TestRecordedWriters(t *testing.T) {
	samples, tried := filepath.Join(require.Shared(t), "samples"), map[string]int{}
	files, err := filepath.Glob(filepath.Join(samples, "*", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	worlds := map[string]*world{}
	for _, file := range files {
		host := filepath.Base(filepath.Dir(file))
		if host == "claude" {
			host = "claude-code"
		}
		native, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".json"), ".")
		native, _, _ = strings.Cut(native, "-")
		h := hosts.Lookup(host)
		if h == nil || h.Row(native) == nil || h.Row(native).Type != ahp.ToolBefore {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		if host == "pi" {
			text = `{"bridge":"1","hook":"tool_call","event":` + text + `,"ctx":{"cwd":"/repo","sessionId":"s"}}`
		}
		path := writtenPath(t, data)
		if path == "" {
			continue
		}
		if worlds[host] == nil {
			worlds[host] = newRuled(t)
		}
		tried[host]++
		w := worlds[host]
		if a := w.do(hookd.Call{Host: host, Native: native, Data: []byte(text)}); a.Code != hookd.ExitPass {
			t.Errorf("%s as it was recorded: %d %s", file, a.Code, said(a))
		}
		text = strings.ReplaceAll(text, path, "/etc/x")
		if a := w.do(hookd.Call{Host: host, Native: native, Data: []byte(text)}); a.Code == hookd.ExitPass || w.last().Decision != hooklog.Deny {
			t.Errorf("%s with /etc/x: %d %s", file, a.Code, w.last().Decision)
		}
	}
	if len(tried) < 9 {
		t.Errorf("recorded calls that write: %v, expected some of nine hosts", tried)
	}
}

// writtenPath returns the path that a recorded event's call writes, "" if it isn't one
// that writes.
func writtenPath(t *testing.T, data []byte) string {
	t.Helper()
	var e struct {
		Name  string         `json:"tool_name"`
		Camel string         `json:"toolName"`
		Input map[string]any `json:"tool_input"`
		Args  map[string]any `json:"toolArgs"`
		Pi    map[string]any `json:"input"`
		Info  map[string]any `json:"tool_info"`
	}
	if strictjson.Unmarshal(data, &e, strictjson.Options{}) != nil {
		return ""
	}
	is := e.Info != nil && e.Info["edits"] != nil || writes(e.Name+e.Camel)
	for _, input := range []map[string]any{e.Input, e.Args, e.Pi, e.Info} {
		for _, name := range []string{"file_path", "filePath", "path", "command"} {
			s, _ := input[name].(string)
			if _, after, patch := strings.Cut(s, "*** Add File: "); patch {
				s, _, _ = strings.Cut(after, "\n")
			}
			if is && s != "" {
				return s
			}
		}
	}
	return ""
}

// serveRules is the backend of newRuled.
func serveRules(file string) {
	b, err := rulesBackend(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	backend.Main(b, backend.Options{})
}
