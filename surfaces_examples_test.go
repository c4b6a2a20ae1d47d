package abhed_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/model/modeltest"
	"github.com/abhed/abhed/internal/require"
)

// TestTheFoundingScripts runs block-secrets, redact and ticket together, as they stand in
// examples/extensions: the model never sees a secret file or a key, and reads a ticket.
func TestTheFoundingScripts(t *testing.T) {
	t.Parallel()
	require.Path(t, "jq")
	require.Path(t, "bash")
	example := func(name, more string) string {
		return `{"name":"` + name + `","command":"bash","args":["` + filepath.Join(require.Root(t), "examples", "extensions", name+".sh") + `"]` + more + `}`
	}
	everything := false // they are asked about all events
	key := "AKIA" + strings.Repeat("Q", 16)
	sc := scenario{
		turns: []modeltest.Turn{
			call("c1", "read", `{"path":"secret.txt"}`), call("c3", "ticket", `{"id":"T-1"}`), call("c4", "ticket", `{"id":"T-13"}`), call("c6", "task", `{"description":"part","prompt":"do it"}`),
			call("c7", "read", `{"path":"secret.txt"}`), call("c8", "read", `{"path":"open.txt"}`), done(),
			call("c5", "ticket", `{"event":"invoke_tool","id":"T-2","x\"event":"list_tools"}`), done(),
		},
		files: map[string]string{"ws/secret.txt": "SECRET", "ws/open.txt": "a key: " + key + "\nand a \"quote\"\n"},
		stage: func(s *stage) {
			program := filepath.Join(s.home, "bin", "fetch-ticket")
			s.put("home/bin/fetch-ticket", "#!/bin/sh\necho \"$1\" >>'"+s.home+"/fetched'\necho \"ticket $1 is open, see "+key+"\"\n")
			if err := os.Chmod(program, 0o700); err != nil {
				s.t.Fatal(err)
			}
			block, redact := `,"events":["tool_call"]`, `,"events":["tool_result"]`
			if everything {
				block, redact = "", ""
			}
			s.configured(`,"allow":["task"],"deny":["ticket(T-13)"]`, example("block-secrets", block), example("redact", redact),
				example("ticket", `,"env":{"PATH":"`+filepath.Dir(program)+`:`+os.Getenv("PATH")+`"}`))
		},
		sent: []string{
			"tool c1 && secrets are off limits", "tool c3 && ticket T-1 is open, see [redacted]", "tool c4 && deny rule ticket(T-13)",
			"tool c5 && ticket T-2 is open", "tool c7 && secrets are off limits", `tool c8 && a key: [redacted] && and a "quote"`,
		},
		unsent: []string{"SECRET", "AKIA"}, unrecorded: []string{"SECRET", "AKIA"},
		recorded: []string{`decision && "call_id":"c1" && "by":"extension block-secrets"`, `tool.ended && "call_id":"c8" && "rewritten_by":["redact"] && "original_hash"`, `decision && "call_id":"c7" && "agent_id":"a1" && "outcome":"deny"`},
		check: func(t *testing.T, s *stage, _ []string) {
			if got, err := os.ReadFile(filepath.Join(s.home, "fetched")); err != nil || string(got) != "T-1\nT-2\n" {
				t.Errorf("fetched %q (%v)", got, err)
			}
		},
	}
	sc.everywhere(t)
	everything, sc.on = true, surfaces()[:1] // they start jq for each event, which takes its time
	sc.everywhere(t)
}

// TestAConfinedExtension covers sandbox: such an extension writes in its cwd alone, has
// no network, and judges as any other does.
func TestAConfinedExtension(t *testing.T) {
	t.Parallel()
	require.Path(t, "bwrap")
	require.Path(t, "bash")
	script := `try() { if ( eval "$2" ) 2>/dev/null; then said="$said $1:yes"; else said="$said $1:no"; fi; }
while IFS= read -r line; do
  case $line in
  '{"event":"tool_call",'*)
    said=
    echo x 2>/dev/null >BASE/home/planted # where it lands is looked at from outside
    try cwd 'echo x >cwd-file'; try workspace "echo x >BASE/ws/planted"; try network "exec 3<>/dev/tcp/HOST/PORT"
    echo '{"block":true,"reason":"tried:'"$said"'"}' ;;
  *) echo '{}' ;;
  esac
done`
	for name, tt := range map[string]struct{ more, want string }{
		"confined": {`,"sandbox":true`, "tried: cwd:yes workspace:no network:no"},
		"free":     {"", "tried: cwd:yes workspace:yes network:yes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario{
				turns: []modeltest.Turn{write("c1", "one"), done()}, hasnt: []string{"one"}, sent: []string{"tool c1 && " + tt.want},
				stage: func(s *stage) {
					host, port, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(s.server.URL, "http://"), "/v1"), ":")
					s.put("home/own/.keep", "")
					s.configured("", s.shell("jailed", strings.NewReplacer("BASE", s.base, "HOST", host, "PORT", port).Replace(script), `,"events":["tool_call"],"cwd":"`+s.base+`/home/own"`+tt.more))
				},
				check: func(t *testing.T, s *stage, _ []string) {
					_, inside := os.Stat(filepath.Join(s.home, "own", "cwd-file"))
					_, outside := os.Stat(filepath.Join(s.home, "planted"))
					if inside != nil || (outside == nil) != (name == "free") {
						t.Errorf("in its cwd: %v; in the home: %v", inside, outside)
					}
				},
			}.everywhere(t)
		})
	}
}

// TestMatchNarrows covers match: it fits any part of a command, and one that can't be
// judged; and it narrows tool_call and permission_request alone.
func TestMatchNarrows(t *testing.T) {
	t.Parallel()
	x := player{name: "x", more: `,"match":["bash(rm *)","write(**/*.env)"]`, lines: []line{{On: "tool_call", Do: `{"block":true,"reason":"matched"}`}}}
	run := func(id, command string) modeltest.Turn { return call(id, "bash", `{"command":`+quoted(command)+`}`) }
	matched := func(id string) string { return "tool " + id + " && matched" }
	scenario{
		mode: "bypass", extensions: []player{x}, files: map[string]string{"ws/keep": "here"},
		turns: []modeltest.Turn{
			run("c1", "true && (cd / ; env A=1 rm keep)"), run("c2", "echo rm keep"), run("c3", `$PROGRAM keep`), run("c4", "sh -c 'rm keep'"),
			call("c5", "write", `{"path":"sub/a.env","content":""}`), write("c6", "a.txt"), done(),
		},
		sent: []string{matched("c1"), matched("c3"), matched("c4"), matched("c5"), "tool c2 && rm keep"}, unsent: []string{matched("c2"), matched("c6")},
		has:     map[string]string{"keep": "here", "a.txt": "a.txt"},
		heard:   []string{`"event":"tool_result" && "call_id":"c2"`, `"event":"tool_result" && "call_id":"c6"`, `"event":"tool_call" && "call_id":"c1"`},
		unheard: []string{`"event":"tool_call" && "call_id":"c2"`, `"event":"tool_call" && "call_id":"c6"`},
	}.everywhere(t)
}

// TestAMatchSticks: an extension whose match fitted what the model asked for judges what
// others made of it, too, where its match fits no more.
func TestAMatchSticks(t *testing.T) {
	t.Parallel()
	scenario{
		extensions: []player{
			{name: "narrow", more: `,"events":["tool_call"],"match":["write(old)"]`, lines: []line{{On: "tool_call", Has: writeArgs("new") + `,"round":2`, Do: `{"block":true,"reason":"seen to the end"}`}}},
			{name: "moves", more: `,"events":["tool_call"]`, lines: []line{{On: "tool_call", Has: `"args":` + writeArgs("old"), Do: `{"args":` + writeArgs("new") + `}`}}},
		},
		turns: []modeltest.Turn{write("c1", "old"), write("c2", "new"), done()}, sent: []string{"tool c1 && seen to the end", "tool c2 Created new"},
		has: map[string]string{"new": "new"}, unheard: []string{`narrow: && "call_id":"c2"`},
	}.everywhere(t)
}

// quoted returns a text without control characters as JSON.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}
