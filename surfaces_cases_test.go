package abhed_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/require"
)

// shell makes an extension of a script, whose name is that of a file in BASE/home.
func (s *stage) shell(name, script, more string) string {
	s.put("home/"+name, script)
	return `{"name":"` + name + `","command":"bash","args":["` + s.base + `/home/` + name + `"]` + more + `}`
}

// configured sets the settings of a stage to the given extensions.
func (s *stage) configured(permissions string, extensions ...string) {
	s.put("home/.config/abhed/config.json", `{"permissions":{"mode":"accept-edits"`+permissions+`},"sandbox":{"min_tier":"none"},"extensions":[`+strings.Join(extensions, ",")+`]}`)
}

// TestOneHookEach has one extension before a call, one after it, and one at the end,
// each of which appends its name to one file: once each, in that order (I001). A second
// one after the call changes nothing of that.
func TestOneHookEach(t *testing.T) {
	t.Parallel()
	require.Path(t, "bash")
	hook := func(s *stage, name, event string) string {
		return s.shell(name, `while IFS= read -r line; do
  case $line in '{"event":"`+event+`",'*) echo `+name+` >>"`+s.base+`/home/ran" ;; esac
  echo '{}'
done`, `,"events":["`+event+`"]`)
	}
	for _, tt := range []struct {
		hooks [][2]string
		want  string
	}{
		{[][2]string{{"pre", "tool_call"}, {"post", "tool_result"}, {"stop", "turn_end"}}, "pre\npost\nstop\n"},
		{[][2]string{{"stop", "turn_end"}, {"post", "tool_result"}, {"also", "tool_result"}, {"pre", "tool_call"}}, "pre\npost\nalso\nstop\n"},
	} {
		scenario{
			turns: []modeltest.Turn{write("c1", "one"), done()}, has: map[string]string{"one": "one"},
			stage: func(s *stage) {
				var all []string
				for _, h := range tt.hooks {
					all = append(all, hook(s, h[0], h[1]))
				}
				s.configured("", all...)
			},
			check: func(t *testing.T, s *stage, _ []string) {
				got, err := os.ReadFile(filepath.Join(s.home, "ran"))
				if err != nil || string(got) != tt.want {
					t.Errorf("they ran %q (%v), want %q", got, err, tt.want)
				}
			},
		}.everywhere(t)
	}
}

// everyTool calls each built-in tool, one of an MCP server and one of an extension.
func everyTool(url string) []modeltest.Call {
	out := []modeltest.Call{
		{Name: "write", Args: `{"path":"f","content":"old\n"}`}, {Name: "read", Args: `{"path":"f"}`}, {Name: "edit", Args: `{"path":"f","old_string":"old","new_string":"new"}`},
		{Name: "glob", Args: `{"pattern":"*"}`}, {Name: "grep", Args: `{"pattern":"new"}`}, {Name: "bash", Args: `{"command":"true","description":"not write, not edit"}`},
		{Name: "jobs", Args: `{"action":"list"}`}, {Name: "fetch", Args: `{"url":"` + url + `"}`}, {Name: "todo", Args: `{"items":[{"content":"a","status":"pending"}]}`},
		{Name: "ask_user", Args: `{"question":"why?"}`}, {Name: "skill", Args: `{"name":"tidy"}`}, {Name: "recall", Args: `{"call_id":"c0"}`},
		{Name: "mcp__box__put", Args: textArgs("one")}, {Name: "put", Args: textArgs("one")}, {Name: "task", Args: `{"description":"part","prompt":"do it"}`},
	}
	for i := range out {
		out[i].ID = "c-" + out[i].Name
	}
	return out
}

// TestACatchAllHearsEveryTool has an extension without events and match hear every tool,
// one call each, by the name of the tool that ran (I004), before and after it.
func TestACatchAllHearsEveryTool(t *testing.T) {
	t.Parallel()
	all := everyTool("http://127.0.0.1:9/")
	turns := each(all) // the last is task, whose sub-agent answers at once
	scenario{
		mode: "bypass", extensions: []player{{name: "all"}, {name: "shelf", more: `,"events":["session_start"]`, lines: []line{{On: "list_tools", Do: boxTools}, {On: "invoke_tool", Do: `{"result":"kept"}`}}}},
		servers: map[string][]string{"box": {putTool}}, turns: append(turns, done()),
		files: map[string]string{"home/.config/abhed/skills/tidy/SKILL.md": "---\nname: tidy\ndescription: how to tidy up\n---\nPut things away.\n"},
		check: func(t *testing.T, s *stage, record []string) {
			var before, after, ran []string
			for _, c := range all {
				for _, found := range []struct {
					lines   []string
					pattern string
					into    *[]string
				}{
					{s.heard("all"), `"event":"tool_call" && "call_id":"` + c.ID + `" && "tool":"` + c.Name + `","args":`, &before},
					{s.heard("all"), `"event":"tool_result" && "call_id":"` + c.ID + `" && "tool":"` + c.Name + `","args":`, &after},
					{record, `tool.started && "call_id":"` + c.ID + `" && "tool":"` + c.Name + `"`, &ran},
				} {
					if n := len(matching(found.lines, found.pattern)); n != 1 {
						t.Errorf("%d lines have %s", n, found.pattern)
					}
					*found.into = append(*found.into, c.Name)
				}
			}
			if n := len(matching(s.heard("all"), `"event":"tool_call"`)); n != len(all) {
				t.Errorf("it was asked %d times, there were %d calls", n, len(all))
			}
			started := s.server.Requests()[0].Tools
			for _, raw := range started { // whoever adds a tool adds it to the list above
				text := string(raw)
				if !slices.ContainsFunc(all, func(c modeltest.Call) bool { return strings.Contains(text, `"name":"`+c.Name+`"`) }) && !strings.Contains(text, `"peek"`) {
					t.Errorf("this tool was not called: %.80s", text)
				}
			}
		},
	}.everywhere(t)
}

// TestAServersToolIsRefused: the server hears of no call that an extension denies, and
// the extension saw its full arguments (I007); a sub-agent's is refused just so.
func TestAServersToolIsRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	args := `{"deep":{"list":[1,2.50,{"event":"tool_call"}]},"path":"/","text":"` + long + `"}`
	wipe := `{"name":"wipe","description":"takes all away","inputSchema":{"type":"object"}}`
	guard := player{name: "guard", more: `,"events":["tool_call"],"match":["mcp__box__*"]`, lines: []line{{On: "tool_call", Do: `{"block":true,"reason":"nothing is wiped"}`}}}
	scenario{
		permissions: `,"allow":["mcp__box__*","task"]`, extensions: []player{guard}, servers: map[string][]string{"box": {wipe, putTool}},
		turns: []modeltest.Turn{call("c1", "mcp__box__wipe", args), write("c2", "one"), call("c3", "task", `{"description":"part","prompt":"do it"}`), call("c4", "mcp__box__wipe", `{}`), done(), done()},
		sent:  []string{"[2] tool c1 && nothing is wiped", "tool c4 && nothing is wiped"}, has: map[string]string{"one": "one"},
		recorded: []string{`decision && "tool":"mcp__box__wipe" && "call_id":"c1" && "step":"extension" && "by":"extension guard" && "outcome":"deny"`, `decision && "call_id":"c4" && "agent_id":"a1" && "outcome":"deny"`},
		heard:    []string{`"event":"tool_call" && "tool":"mcp__box__wipe","args":{"deep":{"list":[1,2.50,{"\u0065vent":"tool_call"}]},"path":"/","text":"` + long + `"},"round":1}`, `"agent":{"id":"a1","depth":1} && "args":{}`},
		unheard:  []string{`"tool":"write"`, `"tool":"task"`},
		check: func(t *testing.T, s *stage, _ []string) {
			if got := s.heard("box"); len(got) > 0 {
				t.Errorf("the server got %v", got)
			}
		},
	}.everywhere(t)
}
