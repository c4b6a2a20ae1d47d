package bridge

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/kilo"
	"github.com/abhed/abhed/ahp/adapter/opencode"
	"github.com/abhed/abhed/ahp/adapter/pi"
	"github.com/abhed/abhed/internal/hostconf"
	"github.com/abhed/abhed/internal/strictjson"
)

func TestGate(t *testing.T) {
	t.Parallel()
	same := object{"a": 1.0, "b": 2.0}
	for _, c := range []struct {
		name, program string
		reason        string
		args          object
		noAnswer      bool
	}{
		{"pass", "cat >/dev/null; exit 40", "", same, false},
		{"pass, input not read", "exit 40", "", same, false},
		{"deny", `cat >/dev/null; echo '{"reason":"it is forbidden"}'; exit 42`, "it is forbidden", same, false},
		{"rewrite", `cat >/dev/null; echo '{"args":{"b":{"x":[3]},"__proto__":"own"}}'; exit 41`, "", object{"b": object{"x": []any{3.0}}, "__proto__": "own"}, false},
		{"rewrite to a list", `echo '{"args":[1]}'; exit 41`, "not applied", same, false},
		{"deliver what a gate can't", `echo '{"context":["x"]}'; exit 41`, "not applied", same, false},
		{"deliver nothing", "exit 41", "", same, true},
		{"deliver an empty document", "echo '{}'; exit 41", "", same, true},
		{"deliver garbage", "echo '{\"args\":'; exit 41", "", same, true},
		{"deny without a reason", "echo '{\"reason\":\" \"}'; exit 42", "", same, true},
		{"deny with garbage", "echo no; exit 42", "", same, true},
		{"exit 0", "exit 0", "", same, true},
		{"exit 1", `echo '{"reason":"x"}'; exit 1`, "", same, true},
		{"crash", "kill -9 $$", "", same, true},
		{"two documents", `echo '{"reason":"x"}{}'; exit 42`, "", same, true},
		{"deny, and a child holds the pipes", `echo '{"reason":"first"}'; sleep 5 & exit 42`, "first", same, false},
	} {
		for host, gate := range gates() {
			t.Run(c.name+"/"+host, func(t *testing.T) {
				t.Parallel()
				p := program(t, c.program)
				for _, policy := range []string{"deny", "allow"} {
					want := c.reason
					if c.noAnswer && policy == "deny" {
						want = "no answer"
					}
					p.OnMissing = policy
					reason, args := outcome(host, drive(t, host, p, gate).Results[0])
					if diff := cmp.Diff(any(c.args), args); reason != want || diff != "" {
						t.Errorf("on-missing %s: %q, want %q (-want +got)\n%s", policy, reason, want, diff)
					}
				}
			})
		}
	}
}

func TestGateWithoutProgram(t *testing.T) {
	t.Parallel()
	for host, gate := range gates() {
		for name, path := range map[string]string{"missing": "/nowhere/ahp", "folder": "/", "zero byte": "/a\x00b", "empty": ""} {
			p := program(t, "exit 40")
			p.Binary = path
			if reason, _ := outcome(host, drive(t, host, p, gate).Results[0]); reason != "no answer" {
				t.Errorf("%s, %s: %q", host, name, reason)
			}
		}
		frozen, circular := gate, gate
		frozen.Frozen, circular.Circular = true, true
		rewrite := program(t, `echo '{"args":{"c":1}}'; exit 41`)
		if reason, _ := outcome(host, drive(t, host, rewrite, frozen).Results[0]); reason != "not applied" {
			t.Errorf("%s: arguments that can't be changed: %q", host, reason)
		}
		if reason, _ := outcome(host, drive(t, host, program(t, "exit 40"), circular).Results[0]); reason != "no answer" {
			t.Errorf("%s: an event that can't be written: %q", host, reason)
		}
	}
}

// At the timer ahp and what it started are ended, and the call is refused.
func TestHang(t *testing.T) {
	t.Parallel()
	for host, gate := range gates() {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			pids := filepath.Join(t.TempDir(), "pids")
			p := program(t, `trap '' TERM; sleep 600 & echo $! $$ >"$1.tmp" && mv "$1.tmp" "$1"; wait`)
			p.Args = []string{pids}
			p.TimerMS = 1500
			r := drive(t, host, p, gate).Results[0]
			if reason, _ := outcome(host, r); reason != "no answer" || r.MS < 1400 {
				t.Errorf("%q after %v ms", reason, r.MS)
			}
			data, err := os.ReadFile(pids)
			if err != nil {
				t.Fatal(err)
			}
			for _, field := range strings.Fields(string(data)) {
				pid, err := strconv.Atoi(field)
				if err != nil {
					t.Fatal(err)
				}
				gone(t, pid)
			}
		})
	}
}

// gone waits until a process has ended, or is nothing but an entry in the table.
func gone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		_, state, _ := strings.Cut(string(stat), ") ")
		if err != nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || strings.HasPrefix(state, "Z") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("process %d lives on: %s", pid, stat)
		}
	}
}

// What ahp is given, and with which arguments.
func TestDocuments(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("é\u2028\"", 500_000)
	input := object{"tool": "write", "sessionID": "s", "callID": "c"}
	for _, c := range []struct {
		host string
		call call
		want object
	}{
		{"opencode", call{Hook: "tool.execute.before", Args: []any{input, object{"args": object{"content": big}}}}, object{"hook": "tool.execute.before", "input": input, "output": object{"args": object{"content": big}}}},
		{"opencode", call{Hook: "chat.message", Args: []any{input, object{"parts": []any{}}}}, object{"hook": "chat.message", "input": input, "output": object{"parts": []any{}}}},
		{"kilo", call{Hook: "event", Args: []any{object{"event": object{"type": "session.idle"}}}}, object{"hook": "event", "input": object{"event": object{"type": "session.idle"}}}},
		{"pi", call{Hook: "tool_call", Args: []any{object{"type": "tool_call", "input": object{}}}}, object{"hook": "tool_call", "event": object{"type": "tool_call", "input": object{}}}},
		{"pi", call{Hook: "before_agent_start", Args: []any{object{"type": "before_agent_start", "prompt": "p", "systemPrompt": "long"}}}, object{"hook": "before_agent_start", "event": object{"type": "before_agent_start", "prompt": "p"}}},
	} {
		file := filepath.Join(t.TempDir(), "document")
		p := program(t, `cat >"$1" && printf '%s|' "$@" >"$1.args"; exit 40`)
		p.Args = []string{file, "x y", "$z;'\"\\"}
		drive(t, c.host, p, c.call)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var got object
		if err := strictjson.Unmarshal(data, &got, strictjson.Options{MaxBytes: 64 << 20}); err != nil {
			t.Fatal(err)
		}
		c.want["bridge"] = Version
		if c.host == "pi" {
			c.want["ctx"] = object{"cwd": "/cwd", "sessionId": "s1", "sessionFile": "/s1.json"}
		} else {
			c.want["directory"], c.want["worktree"] = "/dir", "/tree"
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s %s: (-want +got)\n%.2000s", c.host, c.call.Hook, diff)
		}
		if args, err := os.ReadFile(file + ".args"); err != nil || string(args) != file+"|x y|$z;'\"\\|" {
			t.Errorf("%s: arguments %q, %v", c.host, args, err)
		}
	}
	// Of the many events of opencode only two start a program.
	p := program(t, `echo >"$1"; exit 40`)
	p.Args = []string{filepath.Join(t.TempDir(), "started")}
	drive(t, "opencode", p, call{Hook: "event", Args: []any{object{"event": object{"type": "message.part.updated"}}}})
	if _, err := os.Stat(p.Args[0]); err == nil {
		t.Error("message.part.updated started ahp")
	}
}

func TestAfter(t *testing.T) {
	t.Parallel()
	input := object{"tool": "bash", "sessionID": "s", "callID": "c", "args": object{}}
	content := func(text string) []any { return []any{object{"type": "text", "text": text}} }
	for _, c := range []struct {
		name, program string
		text          string // of the result "old"
	}{
		{"pass", "exit 40", "old"},
		{"no answer", "exit 1", "old"},
		{"replace", `echo '{"output":"new"}'; exit 41`, "new"},
		{"replace by nothing", `echo '{"output":""}'; exit 41`, ""},
		{"add", `echo '{"context":["one","two"]}'; exit 41`, "old\n\none\n\ntwo"},
		{"replace and add", `echo '{"output":"new","context":["one"]}'; exit 41`, "new\n\none"},
		{"refuse", `echo '{"reason":"withheld"}'; exit 42`, "withheld"},
	} {
		p := program(t, c.program)
		r := drive(t, "opencode", p,
			call{Hook: "tool.execute.after", Args: []any{input, object{"title": "t", "output": "old"}}},
			call{Hook: "tool.execute.after", Args: []any{input, object{"content": content("x"), "isError": false}}})
		if got := r.Results[0].Args[1].(object)["output"]; got != c.text || r.Results[0].Threw != "" {
			t.Errorf("%s: %q, want %q", c.name, got, c.text)
		}
		if got := r.Results[1].Args[1].(object)["content"].([]any)[0].(object)["text"]; c.text != "old" && !strings.HasPrefix(c.text, "old") && got != c.text {
			t.Errorf("%s, MCP: %q, want %q", c.name, got, c.text)
		}
		r = drive(t, "pi", p, call{Hook: "tool_result", Args: []any{object{"type": "tool_result", "content": content("old")}}})
		var want any
		if c.text != "old" {
			want = object{"content": content(c.text)}
		}
		if diff := cmp.Diff(want, r.Results[0].Returned); diff != "" {
			t.Errorf("%s, pi: (-want +got)\n%s", c.name, diff)
		}
	}
	p := program(t, `echo '{"context":["one","two"]}'; exit 41`)
	r := drive(t, "pi", p, call{Hook: "before_agent_start", Args: []any{object{"type": "before_agent_start"}}})
	if diff := cmp.Diff(any(object{"message": object{"customType": "ahp", "content": "one\n\ntwo", "display": true}}), r.Results[0].Returned); diff != "" {
		t.Errorf("before_agent_start: (-want +got)\n%s", diff)
	}
}

// A prompt is a gate as well, and context is added to it.
func TestPrompt(t *testing.T) {
	t.Parallel()
	part := object{"id": "prt_1", "sessionID": "s", "messageID": "m", "type": "text", "text": "do it"}
	plugin := call{Hook: "chat.message", Args: []any{object{"sessionID": "s"}, object{"message": object{}, "parts": []any{part}}}}
	extension := call{Hook: "input", Args: []any{object{"type": "input", "text": "do it"}}}
	for _, c := range []struct {
		name, program string
		reason        string
		parts         []any
	}{
		{"pass", "exit 40", "", []any{part}},
		{"deny", `echo '{"reason":"no"}'; exit 42`, "no", []any{part}},
		{"no answer", "exit 0", "no answer", []any{part}},
		{"context", `echo '{"context":["one"]}'; exit 41`, "", []any{part, object{"id": "prt_1ahp0", "sessionID": "s", "messageID": "m", "type": "text", "text": "one", "synthetic": true}}},
		{"what can't be done", `echo '{"args":{}}'; exit 41`, "not applied", []any{part}},
	} {
		p := program(t, c.program)
		r := drive(t, "opencode", p, plugin).Results[0]
		if diff := cmp.Diff(any(c.parts), r.Args[1].(object)["parts"]); diff != "" || r.Threw != c.reason {
			t.Errorf("%s: %q, want %q (-want +got)\n%s", c.name, r.Threw, c.reason, diff)
		}
		var want any
		if c.reason != "" || c.name == "context" {
			want = object{"action": "handled"}
		}
		if diff := cmp.Diff(want, drive(t, "pi", p, extension).Results[0].Returned); diff != "" {
			t.Errorf("%s, pi: (-want +got)\n%s", c.name, diff)
		}
	}
}

// The bridge, the table of places and the adapter speak of the same events.
func TestEvents(t *testing.T) {
	t.Parallel()
	dialects := map[string]*adapter.Host{"opencode": opencode.Host(), "kilo": kilo.Host(), "pi": pi.Host()}
	for host := range dialects {
		h, _ := hostconf.Lookup(host)
		loaded := drive(t, host, program(t, "exit 40")).Hooks
		dialect := dialects[host]
		for _, e := range h.Targets[0].Events {
			hook := e.Name
			if strings.HasPrefix(hook, "session.") {
				hook = "event"
			}
			if !slices.Contains(loaded, hook) {
				t.Errorf("%s: the bridge has no %s", host, hook)
			}
			row := dialect.Row(e.Name)
			if row == nil || row.Denies() != e.Gate {
				t.Errorf("%s: %s is %+v for the adapter, and a gate here: %v", host, e.Name, row, e.Gate)
			}
		}
	}
}

func TestRead(t *testing.T) {
	want := Parameters{Version: Version, Binary: "/a b", Args: []string{"hook", "pi"}, OnMissing: "allow", TimerMS: 7, MaxBytes: maxBytes, NoAnswer: "n", NotApplied: "m"}
	source, err := Source("pi", want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(source)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if _, err := Read([]byte("export default 1")); err == nil {
		t.Error("Read took a file of somebody else")
	}
	for _, host := range []string{"opencode", "kilo"} {
		source, err := Source(host, want)
		if err != nil || !bytes.HasSuffix(source, []byte(plugin)) {
			t.Errorf("%s: %v\n%s", host, err, source)
		}
	}
	if _, err := Source("codex", want); err == nil {
		t.Error("Source made a bridge for a host that takes none")
	}
}
