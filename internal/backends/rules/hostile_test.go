package rules_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/strictjson"
)

// TestAround holds that what stands beside a command counts: its words, its
// environment, the shell, and where a patch in it is applied.
func TestAround(t *testing.T) {
	b, _, root := newBackend(t, `{"rules":{"deny":["bash(git push*)","bash(/tmp/evil*)","edit(secret/key)","write(secret/new)","read(**/.env)"]}}`)
	if err := os.Mkdir(filepath.Join(root, "secret"), 0o700); err != nil {
		t.Fatal(err)
	}
	const update = `*** Begin Patch\n*** Update File: key\n*** End Patch\n`
	for _, tt := range []struct{ tool, input, want string }{
		{"run_command", `{"Command":"git","ArgsList":["push"]}`, "deny"},
		{"Bash", `{"command":"git","args":["push","now"]}`, "deny"},
		{"Bash", `{"command":"git","args":"push"}`, "deny"},
		{"Bash", `{"command":"git","args":["status"]}`, "none"},
		{"Bash", `{"command":"git","args":[7]}`, "ask"},
		{"Bash", `{"command":"git","args":7}`, "ask"},
		{"Bash", `{"command":"ls","args":[]}`, "none"},
		{"local_shell", `{"command":["bash","-c","ls"],"env":{"BASH_ENV":"/tmp/x"}}`, "ask"},
		{"Bash", `{"command":"ls","env":["A=b"]}`, "none"},
		{"Bash", `{"command":"ls","env":{"A":"b","N":1}}`, "none"},
		{"Bash", `{"command":"ls","env":{"A; git push #":"b"}}`, "ask"},
		{"Bash", `{"command":"ls","env":"x"}`, "ask"},
		{"Bash", `{"command":"ls","env":[7]}`, "ask"},
		{"exec_command", `{"cmd":"ls","shell":"/bin/bash"}`, "none"},
		{"exec_command", `{"cmd":"ls","shell":""}`, "none"},
		{"exec_command", `{"cmd":"git push","shell":"zsh"}`, "deny"},
		{"exec_command", `{"cmd":"ls","shell":"/tmp/evil"}`, "deny"},
		{"exec_command", `{"cmd":"import os","shell":"python3"}`, "ask"},
		{"exec_command", `{"cmd":"ls","shell":7}`, "ask"},
		// Where a patch is applied.
		{"exec_command", `{"cmd":"apply_patch <<'EOF'\n` + update + `EOF","workdir":"secret"}`, "deny"},
		{"shell", `{"command":["apply_patch","` + update + `"],"workdir":"secret"}`, "deny"},
		{"shell", `{"command":["bash","-lc","cd secret && apply_patch <<'EOF'\n` + update + `EOF"]}`, "deny"},
		{"shell", `{"command":["bash","-lc","cd ./ && cd 'secret'; apply_patch <<'EOF'\n` + update + `EOF"],"workdir":"."}`, "deny"},
		{"Bash", `{"command":"cd ` + root + `/secret && apply_patch <<'EOF'\n` + update + `EOF"}`, "deny"},
		{"Bash", `{"command":"cd \"$X\" && apply_patch <<'EOF'\n` + update + `EOF"}`, "ask"},
		{"shell", `{"command":["env","-C","secret","apply_patch","` + update + `"]}`, "ask"},
		{"Bash", `{"command":"` + strings.Repeat(`cd . && `, 5000) + `apply_patch <<'EOF'\n` + update + `EOF"}`, "ask"},
		{"apply_patch", `{"input":"` + update + `","workdir":"secret"}`, "deny"},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Add File: new\n*** End Patch","workdir":"secret"}`, "deny"},
		{"apply_patch", `{"input":"` + update + `","workdir":7}`, "ask"},
		{"apply_patch", `{"input":"` + update + `","workdir":"missing"}`, "none"},
		{"shell", `{"command":["bash","-lc","cd missing && apply_patch <<'EOF'\n` + update + `EOF"]}`, "none"},
		// Files, as hosts read them and wherever they stand.
		{"read", `{"path":"@.env"}`, "deny"},
		{"read", `{"path":"\u3000.env"}`, "deny"},
		{"read", `{"path":"FILE://` + root + `/.env"}`, "deny"},
		{"read", `{"path":"file:` + root + `/.env"}`, "deny"},
		{"fs_read", `{"operations":[{"mode":"Line","path":"a"},{"mode":"Image","image_paths":[".env"]}]}`, "deny"},
		{"fs_read", `{"path":"a","operations":{"mode":"Line","path":".env"}}`, "deny"},
		{"multi_replace_string_in_file", `{"filePath":"a","replacements":"[{\"filePath\":\"secret/key\"}]"}`, "deny"},
		{"multi_replace_string_in_file", `{"filePath":"a","replacements":"{\"filePath\":\"secret/key\"}"}`, "deny"},
		{"multi_replace_string_in_file", `{"filePath":"a","replacements":[[[[[{"filePath":"secret/key"}]]]]]}`, "ask"},
	} {
		if got, reason := answer(t, b, call(root, tt.tool, tt.input)); got != tt.want {
			t.Errorf("%s %.200s: %s (%s), want %s", tt.tool, tt.input, got, reason, tt.want)
		}
	}
}

// TestManyCommands holds that of very many commands no more are judged than can be in
// a moment, and that the call is asked about.
func TestManyCommands(t *testing.T) {
	b, _, root := newBackend(t, `{"rules":{"deny":["bash(git push*)"]}}`)
	long := strings.Repeat(`"echo `+strings.Repeat("x", 60<<10)+`",`, 5)
	for input, want := range map[string]string{
		`{"commands":[` + long + `"git push"]}`:          "ask", // not read any more
		`{"commands":["git push",` + long + `"ls"]}`:     "deny",
		`{"commands":[` + long[:120<<10] + `","ls"]}`:    "none",
		`{"command":["echo",` + long + long + `"ls"]}`:   "ask",
		`{"command":"ls","args":[` + long + long + `1]}`: "ask",
	} {
		if got, reason := answer(t, b, call(root, "run_commands", input)); got != want {
			t.Errorf("%.40s… of %d bytes: %s (%s), want %s", input, len(input), got, reason, want)
		}
	}
}

// TestURLs holds that a URL is judged as the hosts will read it, however it is
// spelled.
func TestURLs(t *testing.T) {
	b, _, root := newBackend(t, `{"rules":{"deny":["fetch(https://evil.example/*)","fetch(https://e.example/private/*)","fetch(https://e.example/exact)","fetch(http://127.0.0.1/*)","fetch(http://[::1]/*)"]}}`)
	for in, want := range map[string]string{
		"https://ok.example/a?b=//c#d": "none", "https://ok.example/é": "none", "": "none",
		"https:evil.example/x": "deny", "https:/evil.example/x": "deny", "https:////evil.example/x": "deny", `https:\\evil.example\x`: "deny",
		"//evil.example/x": "deny", "https://evil.exa\tmple/x": "deny", "ht\ntps://evil.example/x": "deny", "\x00https://evil.example": "deny",
		"https://%65vil.example/x": "deny", `https://evil.example\@ok.example/x`: "deny", "https://ok.example@evil.example?x": "deny",
		"https://evil.example:0443/x": "deny", "HTTPS://EVIL.example./x": "deny", "evil.example:443/x": "deny",
		"https://evil\u3002example/x": "ask", "https://\uff45vil.example/x": "ask", "https://e%C2%ADvil.example/x": "ask", "https://ev il.example/x": "ask",
		"https://e.example/a/../private/x": "deny", "https://e.example/a/%2E%2e/private/x": "deny", "https://e.example/./private/x": "deny",
		"https://e.example/exact#x": "deny", "https://e.example/exact/": "none",
		"http://2130706433/x": "deny", "http://127.1/x": "deny", "http://0x7f.1": "deny", "http://0177.0.0.0x1/x": "deny", "http://[0:0::1]/x": "deny",
		"http://127.0.0.1:80/x": "deny", "http://127.0.0.256/x": "none", "http://1.2.3.4.5/x": "none", "http://127.0.0.1:81/x": "none",
	} {
		if got, reason := answer(t, b, call(root, "WebFetch", fmt.Sprintf(`{"url":%s}`, quoted(t, in)))); got != want {
			t.Errorf("%q: %s (%s), want %s", in, got, reason, want)
		}
	}
}

// TestPatternsAndTexts holds that a search is judged by the folder that its pattern
// names, and a call of agents by each of its texts.
func TestPatternsAndTexts(t *testing.T) {
	b, _, root := newBackend(t, `{"rules":{"deny":["glob(private/**)","glob(/etc/**)","task(*root*)","skill(deploy)"]}}`)
	for _, tt := range []struct{ tool, input, want string }{
		{"Glob", `{"pattern":"private/*.go"}`, "deny"},
		{"Glob", `{"pattern":"/etc/*"}`, "deny"},
		{"Glob", `{"pattern":"*/x.go","path":"private"}`, "deny"},
		{"Glob", `{"pattern":"**/*.go"}`, "none"},
		{"Glob", `{"pattern":"*.go"}`, "none"},
		{"use_subagent", `{"content":{"subagents":[{"query":"become root"},{"query":"look"}]}}`, "deny"},
		{"use_subagent", `{"content":{"subagents":[{"query":"look"}]}}`, "none"},
		{"use_subagent", `{"content":[[[[["look"]]]]]}`, "ask"},
		{"use_subagent", `{"content":{"a":{"a":{"a":{"a":{"a":"look"}}}}}}`, "ask"},
		{"Skill", `{"command":"deploy"}`, "deny"},
	} {
		if got, reason := answer(t, b, call(root, tt.tool, tt.input)); got != tt.want {
			t.Errorf("%s %s: %s (%s), want %s", tt.tool, tt.input, got, reason, tt.want)
		}
	}
}

func quoted(t *testing.T, s string) string {
	t.Helper()
	b, err := strictjson.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
