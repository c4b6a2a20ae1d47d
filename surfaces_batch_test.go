package abhed_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed"
	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/require"
)

// TestCallsWithinACall: of three calls that one call makes each is asked about by
// itself; the second matches a rule and says so, the others run (I006). The one tool
// that makes calls is task; siblings are one below it, and one reply with three calls.
func TestCallsWithinACall(t *testing.T) {
	t.Parallel()
	inner := []modeltest.Call{{ID: "c1", Name: "write", Args: writeArgs("one")}, {ID: "c2", Name: "write", Args: writeArgs("barred")}, {ID: "c3", Name: "write", Args: writeArgs("three")}}
	for name, tt := range map[string]struct {
		turns []modeltest.Turn
		outer int // calls of task
		agent string
	}{
		"within a task":             {[]modeltest.Turn{call("t0", "task", `{"description":"part","prompt":"do it"}`), {Calls: inner}, done(), done()}, 1, "a1"},
		"within a task, one by one": {below(1)(inner), 1, "a1"},
		"within a task's task":      {below(2)(inner), 2, "a2"},
		"one reply":                 {[]modeltest.Turn{{Calls: inner}, done()}, 0, "main"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario{
				permissions: `,"allow":["task"],"deny":["write(barred)"]`, turns: tt.turns,
				extensions: []player{{name: "log", more: `,"events":["tool_call"]`}},
				has:        map[string]string{"one": "one", "three": "three"}, hasnt: []string{"barred"},
				sent: []string{"tool c1 Created", "tool c2 && deny rule write(barred)", "tool c3 Created"},
				check: func(t *testing.T, s *stage, _ []string) {
					heard := matching(s.heard("log"), `"event":"tool_call"`)
					for _, c := range inner {
						if n := len(matching(heard, `"call_id":"`+c.ID+`" && "agent":{"id":"`+tt.agent+`" && "tool":"write","args":`+c.Args)); n != 1 {
							t.Errorf("it was asked %d times about %s", n, c.ID)
						}
					}
					if n := len(matching(heard, `"tool":"task"`)); n != tt.outer || len(heard) != n+len(inner) {
						t.Errorf("it was asked %d times, %d of them about task, want %d and %d", len(heard), n, tt.outer+len(inner), tt.outer)
					}
				},
			}.everywhere(t)
		})
	}
}

// TestARefusedReadStaysUnread has an extension note the call of a sub-agent and refuse
// it: by its end with status 2 (I026), which on_failure makes a refusal, and, beside,
// by a reply, whose reason the model reads (I028). Nothing of the file gets out.
func TestARefusedReadStaysUnread(t *testing.T) {
	t.Parallel()
	require.Path(t, "bash")
	for name, tt := range map[string]struct{ answer, failure, says string }{
		"status 2":                     {"exit 2", "block", `extension "guard" is dead`},
		"status 2, nobody to be asked": {"exit 2", "ask", "Nobody can be asked"},
		"a reply":                      {`echo '{"block":true,"reason":"use make fmt"}'`, "skip", "use make fmt"},
	} {
		for depth := range 3 {
			t.Run(name+strings.Repeat(" below", depth), func(t *testing.T) {
				t.Parallel()
				scenario{
					turns:  below(depth)([]modeltest.Call{{ID: "c1", Name: "read", Args: `{"path":"key.txt"}`}}),
					files:  map[string]string{"ws/key.txt": "FORTY-TWO\n"},
					unsent: []string{"FORTY-TWO"}, unrecorded: []string{"FORTY-TWO"},
					stage: func(s *stage) {
						s.configured(`,"allow":["task"]`, s.shell("guard", `while IFS= read -r line; do
  case $line in *'"tool":"read"'*) echo "$line" >>"`+s.base+`/home/noted"; `+tt.answer+` ;; *) echo '{}' ;; esac
done`, `,"events":["tool_call"],"on_failure":"`+tt.failure+`"`))
					},
					check: func(t *testing.T, s *stage, _ []string) {
						noted, err := os.ReadFile(s.home + "/noted")
						if err != nil || strings.Count(string(noted), `"path":"key.txt"`) != 1 {
							t.Errorf("the extension noted %q (%v)", noted, err)
						}
						read := matching(s.sent(), "tool c1")
						if len(read) == 0 || len(matching(read, tt.says)) != len(read) {
							t.Errorf("the model read %q, want %q", read, tt.says)
						}
					},
				}.everywhere(t)
			})
		}
	}
}

// overHTTP serves MCP, with a tool put, over HTTP; answer gives what each message is
// answered with, "" is nothing.
func overHTTP(s *stage, answer func(request string) string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		text := ""
		if r.Method == http.MethodPost {
			text = answer(string(body))
		}
		if text == "" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, text)
	}))
	s.t.Cleanup(server.Close)
	return server.URL
}

// putOverHTTP gives a stage a server over HTTP that writes into ws/order.
func putOverHTTP(s *stage) {
	p := part{Tools: []string{putTool}}
	p.log, _ = os.OpenFile(s.dir+"/order", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	s.t.Cleanup(func() { p.log.Close() })
	s.serves(overHTTP(s, p.server))
}

// serves puts the server box at an address into the settings.
func (s *stage) serves(url string) {
	text, err := os.ReadFile(s.home + "/.config/abhed/config.json")
	if err != nil {
		s.t.Fatal(err)
	}
	s.put("home/.config/abhed/config.json", strings.Replace(string(text), `"mcp":{}`, `"mcp":{"box":{"url":"`+url+`"}}`, 1))
}

// putCompiledIn gives a stage a compiled-in tool that writes into ws/order.
func putCompiledIn(s *stage) {
	s.tools = []abhed.Tool{{
		Name: "put", Version: "1", Description: "keeps a text", Subject: "text", Schema: []byte(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`),
		Run: func(_ context.Context, c abhed.Call) (string, error) {
			f, err := os.OpenFile(s.dir+"/order", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err == nil {
				_, err = f.Write(append(c.Args, '\n'))
				f.Close()
			}
			return "kept", err
		},
	}}
}

// judgesSlowly adds an extension that takes its time, notes in a file when it is done,
// and refuses what is barred.
func judgesSlowly(s *stage, file string) {
	slow := s.shell("slow", `while IFS= read -r line; do
  case $line in *'"event":"tool_call"'*barred*) word=barred answer='{"block":true,"reason":"not this one"}' ;; *'"event":"tool_call"'*) word=free answer='{}' ;; *) echo '{}'; continue ;; esac
  sleep 0.2
  echo "judged $word" >>"`+s.base+file+`"
  echo "$answer"
done`, `,"events":["tool_call"]`)
	text, err := os.ReadFile(s.home + "/.config/abhed/config.json")
	if err != nil {
		s.t.Fatal(err)
	}
	with := strings.Replace(string(text), `"extensions":[`, `"extensions":[`+slow+`,`, 1)
	s.put("home/.config/abhed/config.json", strings.Replace(with, ",]", "]", 1))
}

// TestNothingRunsBeforeItIsJudged: an extension takes its time and refuses, or doesn't;
// it and the tool write into one file. What is refused never starts, and what isn't
// starts after the answer, wherever the tool is (I015).
func TestNothingRunsBeforeItIsJudged(t *testing.T) {
	t.Parallel()
	require.Path(t, "bash")
	box := player{name: "box", more: `,"events":["session_start"]`, lines: []line{{On: "list_tools", Do: boxTools}, {On: "invoke_tool", Do: `{"result":"kept"}`}}}
	builtIn := func(word string) string { return `{"command":"echo ` + word + ` >>order"}` }
	for name, tt := range map[string]struct {
		tool, file, settings string
		args                 func(word string) string
		stage                func(s *stage)
		extensions           []player
		servers              map[string][]string
		on                   []surface
	}{
		"built in":                 {tool: "bash", file: "/ws/order", args: builtIn},
		"an MCP server over stdio": {tool: "mcp__box__put", file: "/ws/heard-box", args: textArgs, servers: map[string][]string{"box": {putTool}}},
		"an MCP server over HTTP":  {tool: "mcp__box__put", file: "/ws/order", args: textArgs, stage: putOverHTTP},
		"an extension":             {tool: "put", file: "/home/heard-box", args: textArgs, extensions: []player{box}},
		"compiled in":              {tool: "put", file: "/ws/order", args: textArgs, on: []surface{{"embedded", ".", embedded}}, stage: putCompiledIn},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario{
				mode: "bypass", extensions: tt.extensions, servers: tt.servers, on: tt.on,
				turns: each([]modeltest.Call{{ID: "c1", Name: tt.tool, Args: tt.args("barred")}, {ID: "c2", Name: tt.tool, Args: tt.args("free")}}),
				stage: func(s *stage) {
					if tt.stage != nil {
						tt.stage(s)
					}
					judgesSlowly(s, tt.file)
				},
				sent: []string{"tool c1 && not this one"},
				check: func(t *testing.T, s *stage, _ []string) {
					data, err := os.ReadFile(s.base + tt.file)
					var order []string
					for l := range strings.Lines(string(data)) {
						switch {
						case strings.HasPrefix(l, "judged "):
							order = append(order, strings.TrimSpace(l))
						case strings.Contains(l, "barred"), strings.Contains(l, "free"):
							order = append(order, "ran")
						}
					}
					if want := []string{"judged barred", "judged free", "ran"}; err != nil || !slices.Equal(order, want) {
						t.Errorf("%q (%v), want %q", order, err, want)
					}
				},
			}.everywhere(t)
		})
	}
}

// TestChangesInOneReply has several calls of one reply change one file: they run in the
// order of the reply, each result says what is on disk, and nothing is lost. Two edits
// (I213), an edit after a command that changed the file, and before one (I214); beside,
// an edit after a write of the whole.
func TestChangesInOneReply(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("a line that nobody edits\n", 200)
	edit := func(id, from, to string) modeltest.Call {
		return modeltest.Call{ID: id, Name: "edit", Args: `{"path":"f","old_string":"` + from + `","new_string":"` + to + `"}`}
	}
	bash := func(id, command string) modeltest.Call {
		return modeltest.Call{ID: id, Name: "bash", Args: `{"command":"` + command + `"}`}
	}
	const stale = "changed on disk"
	for name, tt := range map[string]struct {
		calls []modeltest.Call
		want  string
		sent  []string
	}{
		"two edits":                 {[]modeltest.Call{edit("c1", "first", "1st"), edit("c2", "second", "2nd")}, "1st\n" + filler + "2nd\n", []string{"tool c1 Edited", "tool c2 Edited"}},
		"edits of one place":        {[]modeltest.Call{edit("c1", "first", "1st"), edit("c2", "first", "uno")}, "1st\n" + filler + "second\n", []string{"tool c1 Edited", "tool c2 && not found"}},
		"a command before the edit": {[]modeltest.Call{bash("c1", "sleep 0.1; echo third >>f"), edit("c2", "first", "1st")}, "first\n" + filler + "second\nthird\n", []string{"tool c2 && " + stale}},
		"a command that touches":    {[]modeltest.Call{bash("c1", "touch f; sleep 0.1"), edit("c2", "first", "1st")}, "1st\n" + filler + "second\n", []string{"tool c2 Edited"}},
		"the edit before a command": {[]modeltest.Call{edit("c1", "first", "1st"), bash("c2", "head -n 1 f; echo third >>f")}, "1st\n" + filler + "second\nthird\n", []string{"tool c1 Edited", "tool c2 1st"}},
		"a write before the edit":   {[]modeltest.Call{{ID: "c1", Name: "write", Args: `{"path":"f","content":"first of all"}`}, edit("c2", "first", "1st")}, "1st of all", []string{"tool c2 Edited"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario{
				mode: "bypass", files: map[string]string{"ws/f": "first\n" + filler + "second\n"}, has: map[string]string{"f": tt.want}, sent: tt.sent,
				turns: []modeltest.Turn{call("c0", "read", `{"path":"f"}`), {Calls: tt.calls}, done()},
			}.everywhere(t)
		})
	}
}
