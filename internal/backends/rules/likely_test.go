package rules_test

import (
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
)

// TestUnknownWriters holds that a tool that isn't in the table is asked about where it
// seems to write what a rule forbids to write, and nowhere else (I009).
func TestUnknownWriters(t *testing.T) {
	b, _, root := newBackend(t, `{"rules":{"deny":["write(/etc/**)","edit(/etc/**)","write(secret/**)","edit(secret/**)","own_writer(/etc/hosts)"]}}`)
	others, _, _ := newBackend(t, `{"rules":{"deny":["bash(git push*)","read(/etc/**)"]}}`)
	everything, _, _ := newBackend(t, `{"rules":{"deny":["*","write(/etc/**)"]}}`)
	many := `["a"` + strings.Repeat(`,"a"`, 200) + `]`
	for _, tt := range []struct{ tool, input, want string }{
		{"scribble", `{"path":"/etc/x","content":"c"}`, "ask"},
		{"scribble", `{"content":"c","path":"/etc/x"}`, "ask"},
		{"scribble", `{"filePath":"/etc/x","newString":"c"}`, "ask"},
		{"scribble", `{"target_file":"/etc/x","code_edit":"c"}`, "ask"},
		{"scribble", `{"uri":"file:///etc/x","text":"c"}`, "ask"},
		{"scribble", `{"path":"secret/x","content":"c"}`, "ask"},
		{"scribble", `{"path":"a/../secret/x","content":"c"}`, "ask"},
		{"scribble", `{"files":[{"path":"a"},{"path":"/etc/x"}],"content":"c"}`, "ask"},
		{"scribble", `{"edits":[{"path":"/etc/x","old":"a"}]}`, "ask"},
		{"scribble", `{"command":"create","path":"/etc/x","file_text":"c"}`, "ask"},
		{"scribble", `{"paths":` + many + `,"content":"c"}`, "ask"},
		{"mcp__fs__write_file", `{"path":"/etc/x","content":"c"}`, "ask"},
		{"own_writer", `{"path":"/etc/hosts","content":"c"}`, "deny"},
		// Nothing that is forbidden, or nothing that is written.
		{"scribble", `{"path":"x","content":"c"}`, "none"},
		{"scribble", `{"path":"/etc/x"}`, "none"},
		{"scribble", `{"content":"/etc/x"}`, "none"},
		{"scribble", `{"path":{"a":1},"content":"c"}`, "none"},
	} {
		if got, reason := answer(t, b, call(root, tt.tool, tt.input)); got != tt.want {
			t.Errorf("%s %s: %s (%s), want %s", tt.tool, tt.input, got, reason, tt.want)
		}
		if got, reason := answer(t, others, call(root, tt.tool, tt.input)); tt.tool != "own_writer" && got != "none" {
			t.Errorf("without a rule about writing: %s: %s (%s)", tt.input, got, reason)
		}
		if got, _ := answer(t, everything, call(root, tt.tool, tt.input)); got != "deny" {
			t.Errorf("with everything denied: %s: %s", tt.input, got)
		}
	}
	e := call(root, "fs-write_file", `{"path":"/etc/x","content":"c"}`)
	e.Tool.Origin = ahp.OriginMCP
	e.Tool.MCP = &ahp.MCP{Server: ahp.MCPServer{ID: "fs"}, ToolName: "write_file", Provenance: "runtime",
		Connection: ahp.Connection{Transport: "stdio", Gaps: []ahp.Gap{{Path: "command", Reason: "x"}, {Path: "args", Reason: "x"}, {Path: "cwd", Reason: "x"}}}}
	if got, reason := answer(t, b, e); got != "ask" {
		t.Errorf("of an MCP server: %s (%s)", got, reason)
	}
	word, reason := answer(t, b, call(root, "scribble", `{"path":"/etc/x","content":"c"}`), ahp.EffectDeny)
	if word != "deny" || !strings.Contains(reason, "isn't known here and seems to write a file") || !strings.Contains(reason, "rules.json:1:19 rules.deny[0]") {
		t.Errorf("where nobody can be asked: %s (%s)", word, reason)
	}
}
