package rules_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
)

// TestMCP holds that MCP tools are judged under their canonical name, and never as
// the host's own tool of the same name.
func TestMCP(t *testing.T) {
	b, _, root := newBackend(t, document)
	tool := func(name, id, display, toolName, input string) *ahp.Event {
		e := call(root, name, input)
		e.Tool.Origin = ahp.OriginMCP
		e.Tool.MCP = &ahp.MCP{Server: ahp.MCPServer{ID: id, Name: display}, ToolName: toolName, Provenance: "runtime",
			Connection: ahp.Connection{Transport: "stdio", Gaps: []ahp.Gap{{Path: "command", Reason: "x"}, {Path: "args", Reason: "x"}, {Path: "cwd", Reason: "x"}}}}
		return e
	}
	for _, tt := range []struct {
		event *ahp.Event
		want  string
	}{
		{tool("prod___drop", "prod", "", "drop", `{}`), "deny"},
		{tool("prod-drop", "s1", "prod", "drop", `{}`), "deny"},
		{tool("test-drop", "test", "", "drop", `{}`), "none"},
		{tool("read", "fs", "", "read", `{"note":"no path"}`), "none"},
		{call(root, "mcp__prod__drop", `{}`), "deny"},
		{call(root, "mcp__test__drop", `{"path":"/x"}`), "none"},
	} {
		if got, reason := answer(t, b, tt.event); got != tt.want {
			t.Errorf("%s: %s (%s), want %s", tt.event.Tool.Name, got, reason, tt.want)
		}
	}
}

// TestPlaces holds what follows from the roots and the working directory of an
// event, and from their absence.
func TestPlaces(t *testing.T) {
	b, _, root := newBackend(t, document)
	other := t.TempDir()
	for name, tt := range map[string]struct {
		session     *ahp.Session
		tool, input string
		want        string
	}{
		"the roots count":                  {&ahp.Session{ID: "s", Cwd: other, WorkspaceRoots: []string{root}}, "Write", `{"file_path":"` + root + `/secret/x"}`, "deny"},
		"and not the working directory":    {&ahp.Session{ID: "s", Cwd: other, WorkspaceRoots: []string{root}}, "Write", `{"file_path":"` + other + `/secret/x"}`, "none"},
		"no root: the working directory":   {&ahp.Session{ID: "s", Cwd: other}, "Write", `{"file_path":"secret/x"}`, "deny"},
		"a relative root is none":          {&ahp.Session{ID: "s", Cwd: other, WorkspaceRoots: []string{"."}}, "Write", `{"file_path":"secret/x"}`, "deny"},
		"nothing: a relative path":         {nil, "Read", `{"file_path":"a.txt"}`, "ask"},
		"nothing: an absolute path":        {nil, "Read", `{"file_path":"/a.txt"}`, "ask"},
		"nothing: still denied":            {nil, "Read", `{"file_path":"/x/.env"}`, "deny"},
		"nothing: a command":               {nil, "Bash", `{"command":"ls"}`, "ask"},
		"nothing: a denied command":        {nil, "Bash", `{"command":"git push"}`, "deny"},
		"nothing: no subject":              {nil, "TodoWrite", `{}`, "none"},
		"roots alone: a command":           {&ahp.Session{ID: "s", WorkspaceRoots: []string{root}}, "Bash", `{"command":"ls"}`, "none"},
		"roots alone: it may be the file":  {&ahp.Session{ID: "s", WorkspaceRoots: []string{root}}, "Bash", `{"command":"cat x > key"}`, "ask"},
		"roots alone: a relative path":     {&ahp.Session{ID: "s", WorkspaceRoots: []string{root}}, "Read", `{"file_path":"a.txt"}`, "ask"},
		"roots alone: denied in a root":    {&ahp.Session{ID: "s", WorkspaceRoots: []string{other, root}}, "Write", `{"file_path":"secret/x"}`, "deny"},
		"a relative working directory":     {&ahp.Session{ID: "s", Cwd: "work"}, "Read", `{"file_path":"a.txt"}`, "ask"},
		"a path that leads nowhere":        {&ahp.Session{ID: "s", Cwd: root}, "Read", `{"file_path":"missing/../x"}`, "deny"},
		"a link out of the folder":         {&ahp.Session{ID: "s", Cwd: root}, "Write", `{"file_path":"link/x"}`, "deny"},
		"a NUL in a command":               {&ahp.Session{ID: "s", Cwd: root}, "Bash", `{"command":"ls\u0000"}`, "ask"},
		"a command beyond the bound":       {&ahp.Session{ID: "s", Cwd: root}, "Bash", `{"command":"echo ` + strings.Repeat("x", 70<<10) + `"}`, "ask"},
		"more files than are judged":       {&ahp.Session{ID: "s", Cwd: root}, "read_files", `{"paths":[` + strings.Repeat(`"a",`, 200) + `"b"]}`, "ask"},
		"an input that is nested too deep": {&ahp.Session{ID: "s", Cwd: root}, "read_files", `{"paths":[[[[[["a"]]]]]]}`, "ask"},
	} {
		if err := os.Symlink("secret", filepath.Join(root, "link")); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
		e := call("", tt.tool, tt.input)
		e.Session = tt.session
		if got, reason := answer(t, b, e); got != tt.want {
			t.Errorf("%s: %s (%s), want %s", name, got, reason, tt.want)
		}
	}
}

// TestPlaceThatNoRuleNeeds holds that nothing is asked about for the lack of a place
// that no rule looks at, and that a relative name may be any file.
func TestPlaceThatNoRuleNeeds(t *testing.T) {
	b, _, _ := newBackend(t, `{"rules":{"deny":["bash(git push*)","read(**/.env)","write(/etc/**)"]}}`)
	for input, want := range map[string]string{
		`{"command":"ls"}`: "none", `{"command":"cat notes"}`: "ask", `{"command":"cat .env"}`: "deny", `{"command":"cat /x/.env"}`: "deny",
		`{"command":"echo x > passwd"}`: "ask", `{"command":"echo x > /etc/passwd"}`: "deny",
	} {
		if got, reason := answer(t, b, call("", "Bash", input)); got != want {
			t.Errorf("%s: %s (%s), want %s", input, got, reason, want)
		}
	}
}
