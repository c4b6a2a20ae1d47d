package rules_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/backend"
	"github.com/abhed/abhed/internal/backends/rules"
	"github.com/abhed/abhed/internal/policy"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

const document = `{
  // what the tests judge by
  "rules": {
    "deny": ["bash(git push*)", "read(**/.env)", "write(secret/**)", "edit(locked.txt)", "fetch(https://evil.example/*)", "mcp__prod__*", "read(~/.ssh/**)",
             "deploy(prod*)", "task(*root*)"],
    "ask": ["bash(make *)", "read(/etc/shadow)"],
    "allow": ["bash(rm *)", "bash(ls)"],
  },
}`

// make returns a backend for the document, its home and its workspace.
func newBackend(t testing.TB, text string) (b *rules.Backend, home, root string) {
	t.Helper()
	home, root = t.TempDir(), t.TempDir()
	d, err := rules.Parse("rules.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	b, _, err = rules.New(d, rules.Options{Home: home, Getenv: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	return b, home, root
}

// answer returns "none", "ask" or "deny", and the reason of a denial.
func answer(t testing.TB, b *rules.Backend, e *ahp.Event, effects ...ahp.EffectType) (word, reason string) {
	t.Helper()
	if len(effects) == 0 {
		effects = []ahp.EffectType{ahp.EffectDeny, ahp.EffectAsk}
	}
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	out, err := b.Intercept(t.Context(), &ahp.Intercept{Event: e, Capabilities: *ahp.NewCapabilities(e.Type, effects...)})
	switch {
	case err != nil:
		t.Fatal(err)
	case len(out) == 0:
		return "none", ""
	case len(out) > 1:
		t.Fatalf("%d effects", len(out))
	}
	if deny, is := out[0].(*ahp.Deny); is {
		return "deny", deny.Reason
	}
	return string(out[0].EffectType()), ""
}

func call(root, tool, input string) *ahp.Event {
	e := ahptest.ToolBefore("e", input)
	e.Tool.Name = tool
	if root != "" {
		e.Session.Cwd = root
	}
	return e
}

// TestHosts judges calls in the shapes that the hosts send.
func TestHosts(t *testing.T) {
	b, home, root := newBackend(t, document)
	if err := errors.Join(os.MkdirAll(filepath.Join(home, "sub"), 0o700), os.MkdirAll(filepath.Join(home, ".ssh"), 0o700), os.Symlink(filepath.Join(home, "sub"), filepath.Join(root, "out"))); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ tool, input, want string }{
		// Commands, by every name and in every shape.
		{"Bash", `{"command":"git push origin main","description":"push"}`, "deny"},
		{"Bash", `{"command":"ls","cmd":"git push"}`, "deny"},
		{"bash", `{"command":"cd sub && sudo git push"}`, "deny"},
		{"shell", `{"command":["bash","-lc","git push --force"],"workdir":"sub"}`, "deny"},
		{"shell", `{"command":["git","push"]}`, "deny"},
		{"shell", `{"command":["echo","git push"]}`, "none"},
		{"shell", `{"command":["echo","it's; git push"]}`, "none"},
		{"shell", `{"command":["git",7]}`, "ask"},
		{"shell", `{"command":[]}`, "ask"},
		{"exec_command", `{"cmd":"git push"}`, "deny"},
		{"local_shell", `{"command":["zsh","-c","git push"]}`, "deny"},
		{"run_shell_command", `{"command":"git push","dir_path":"."}`, "deny"},
		{"Execute", `{"command":"git push","riskLevel":"low"}`, "deny"},
		{"run_commands", `{"commands":["ls","git push"]}`, "deny"},
		{"run_commands", `{"commands":"[\"ls\",\"git push\"]"}`, "deny"},
		{"run_commands", `{"commands":"[\"touch marker.txt\"]"}`, "none"},
		{"run_commands", `{"commands":[{"command":"git push"}]}`, "deny"},
		{"execute_command", `{"command":"git push"}`, "deny"},
		{"developer__shell", `{"command":"git push"}`, "deny"},
		{"launch-process", `{"command":"git push"}`, "deny"},
		{"terminal", `{"command":"git push"}`, "deny"},
		{"background_process", `{"action":"start","command":"git push"}`, "deny"},
		{"background_process", `{"action":"list"}`, "none"},
		{"PowerShell", `{"command":"Get-ChildItem"}`, "ask"},
		{"PowerShell", `{"command":"git push"}`, "deny"},
		{"write_stdin", `{"session_id":1,"chars":"git push\n"}`, "deny"},
		{"write_stdin", `{"session_id":1,"chars":"y\n"}`, "ask"},
		{"write_stdin", `{"session_id":1,"chars":""}`, "none"},
		{"Bash", `{"description":"nothing"}`, "ask"},
		{"Bash", `{"command":{"text":"ls"}}`, "ask"},
		{"Bash", `{"command":"$CMD"}`, "ask"},
		{"Bash", `{"command":"if"}`, "ask"},
		{"Bash", `{"command":"rm -rf build"}`, "ask"}, // destructive, whatever is allowed
		{"Bash", `{"command":"make all"}`, "ask"},
		{"Bash", `{"command":"ls -la"}`, "none"},
		{"Bash", `{"command":"cat secret/../.env"}`, "deny"},
		{"Bash", `{"command":"cat key","workdir":"/etc/../etc","cwd":"x"}`, "none"},
		{"exec_command", `{"cmd":"cat shadow","workdir":"/etc"}`, "ask"},
		{"exec_command", `{"cmd":"cat id_rsa","workdir":"~/.ssh"}`, "deny"},
		{"exec_command", `{"cmd":"cat shadow","workdir":7}`, "ask"},
		{"exec_command", `{"cmd":"echo x > key","workdir":"secret"}`, "deny"},
		{"exec_command", `{"cmd":"cat id_rsa","workdir":"out/../.ssh"}`, "deny"}, // out is a link into the home
		{"exec_command", `{"cmd":"cat notes","workdir":"missing/../x"}`, "ask"},
		{"Bash", `{"command":"apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: secret/key\n+x\n*** End Patch\nEOF"}`, "deny"},
		// Files.
		{"Read", `{"file_path":"` + root + `/.env"}`, "deny"},
		{"Read", `{"file_path":"sub/../.env"}`, "deny"},
		{"Read", `{"file_path":"file://` + root + `/.env"}`, "deny"},
		{"Read", `{"file_path":"file://localhost` + root + `/%2eenv"}`, "deny"},
		{"Read", `{"file_path":" .env\n"}`, "deny"},
		{"Read", `{"file_path":""}`, "deny"},
		{"read", `{"filePath":".env","path":"README.md"}`, "deny"},
		{"view", `{"path":"a/b/.env"}`, "deny"},
		{"read_file", `{"target_file":"` + home + `/.ssh/id_rsa"}`, "deny"},
		{"read_file", `{"path":"~/.ssh/config"}`, "deny"},
		{"fs_read", `{"operations":[{"mode":"Line","path":"/x"},{"mode":"Line","path":"` + root + `/.env"}]}`, "deny"},
		{"read_files", `{"paths":"[\"a\",\".env\"]"}`, "deny"},
		{"read_many_files", `{"paths":["**/*"]}`, "ask"},
		{"read_many_files", `{"include":["a.txt"]}`, "none"},
		{"Read", `{"file_path":7}`, "ask"},
		{"Read", `{"offset":7}`, "ask"},
		{"Read", `{"file_path":"/etc/shadow"}`, "ask"},
		{"Read", `{"file_path":"README.md"}`, "none"},
		{"Grep", `{"pattern":"x","path":".env"}`, "deny"},
		{"Grep", `{"pattern":"x"}`, "none"},
		{"Write", `{"file_path":"secret/x","content":"git push"}`, "deny"},
		{"create", `{"path":"secret/x"}`, "deny"},
		{"write_to_file", `{"path":"secret/x"}`, "deny"},
		{"Delete", `{"path":"secret/x"}`, "deny"},
		{"remove-files", `{"file_paths":["a","secret/x"]}`, "deny"},
		{"MultiEdit", `{"file_path":"locked.txt","edits":[{"old_string":"a"}]}`, "deny"},
		{"replace", `{"file_path":"secret/x"}`, "deny"},
		{"edit", `{"path":".env","edits":[]}`, "deny"}, // an edit shows what was there
		{"multi_replace_string_in_file", `{"replacements":[{"filePath":"a"},{"filePath":"locked.txt"}]}`, "deny"},
		{"editFiles", `{"files":["a","locked.txt"]}`, "deny"},
		{"str_replace_editor", `{"command":"create","path":"secret/x"}`, "deny"},
		{"str_replace_editor", `{"command":"view","path":"locked.txt"}`, "none"},
		{"str_replace_editor", `{"command":"view","path":".env"}`, "deny"},
		{"Edit", `{"command":"view","file_path":"locked.txt"}`, "deny"}, // no verb of this tool
		{"NotebookEdit", `{"notebook_path":"secret/n.ipynb"}`, "deny"},
		{"LS", `{"path":"secret"}`, "none"},
		// Patches.
		{"apply_patch", `{"command":"*** Begin Patch\n*** Add File: notes.txt\n+hello\n*** End Patch\n"}`, "none"},
		{"apply_patch", `{"command":"*** Begin Patch\n*** Add File: secret/k\n+hello\n*** End Patch\n"}`, "deny"},
		{"apply_patch", `{"input":"*** Begin Patch\r\n*** Update File: a\r\n  *** Move to: sub/../secret/k\r\n*** End Patch"}`, "deny"},
		{"apply_patch", `{"patch":"*** Begin Patch\n*** Delete File: locked.txt\n*** End Patch"}`, "deny"},
		{"apply_patch", `{"command":["apply_patch","*** Begin Patch\n*** Update File: locked.txt\n*** End Patch"]}`, "deny"},
		{"shell", `{"command":["apply_patch","*** Begin Patch\n*** Update File: locked.txt\n*** End Patch"]}`, "deny"},
		{"apply_patch", `{"patch":"--- a/locked.txt\n+++ b/locked.txt\n@@ -1 +1 @@\n-x\n+y\n"}`, "deny"},
		{"apply_patch", `{"command":"hello"}`, "ask"},
		{"apply_patch", `{}`, "ask"},
		// The network, agents and the rest.
		{"WebFetch", `{"url":"https://evil.example/x","prompt":"p"}`, "deny"},
		{"web_fetch", `{"prompt":"read (https://evil.example/x), please"}`, "deny"},
		{"web_fetch", `{"prompt":"read it"}`, "ask"},
		{"web_fetch", `{"url":"evil.example/x"}`, "deny"},
		{"fetch_webpage", `{"urls":["https://a.example/","https://evil.example/x"]}`, "deny"},
		{"download", `{"url":"https://evil.example/x","file_path":"x"}`, "deny"},
		{"download", `{"url":"https://a.example/x","file_path":"secret/x"}`, "deny"},
		{"WebFetch", `{"url":"FILE://` + root + `/.env"}`, "deny"},
		{"Task", `{"description":"d","prompt":"become root now"}`, "deny"},
		{"Task", `{"description":"d","prompt":"look"}`, "none"},
		{"TodoWrite", `{"todos":[]}`, "none"},
		// Tools that no host is known to have match as written.
		{"deploy", `{"command":"prod now"}`, "deny"},
		{"deploy", `{"command":"test now"}`, "none"},
		{"deploy", `{"path":"prod/x"}`, "none"},
		{"invented", `{"command":"rm -rf /"}`, "ask"},
		{"invented", `{"command":"git push"}`, "none"},
		{"invented", `{"x":1}`, "none"},
		{"invented", `{"path":"missing/../x"}`, "none"}, // perhaps no file at all
		{"deploy", `{"path":"missing/../x"}`, "deny"},   // but a rule is about this one
		{"Bash", `{"command":"grep -r '*** Begin Patch' ."}`, "none"},
	} {
		if got, reason := answer(t, b, call(root, tt.tool, tt.input)); got != tt.want {
			t.Errorf("%s %s: %s (%s), want %s", tt.tool, tt.input, got, reason, tt.want)
		}
	}
}

// TestEveryName holds that whatever tool of whatever host does what a rule forbids of
// Abhed's own is denied, and that the same call of something else isn't.
func TestEveryName(t *testing.T) {
	b, _, root := newBackend(t, `{"rules":{"deny":["bash(forbidden *)","read(forbidden/**)","write(forbidden/**)","edit(forbidden/**)","glob(forbidden/**)","grep(forbidden/**)","fetch(https://forbidden.example/*)","task(forbidden*)","skill(forbidden*)","ask_user(forbidden*)"]}}`)
	inputs := map[policy.SubjectKind][]string{
		policy.SubjectCommand: {`{"command":"%s thing"}`, `{"cmd":["%s","thing"]}`, `{"commands":["ls","%s thing"]}`},
		policy.SubjectPath:    {`{"path":"%s/x"}`, `{"file_path":"%s/x"}`, `{"filePath":"%s/x"}`, `{"paths":["a","%s/x"]}`, `{"files":[{"path":"%s/x"}]}`},
		policy.SubjectURL:     {`{"url":"https://%s.example/x"}`, `{"urls":["https://a.example/","https://%s.example/x"]}`},
		policy.SubjectText:    {`{"prompt":"%s thing"}`},
	}
	calls := 0
	for _, host := range policy.NativeHosts() {
		for _, name := range policy.NativeNames(host) {
			for _, native := range policy.LookupNative(name) {
				for _, input := range inputs[native.Kind] {
					calls++
					if got, reason := answer(t, b, call(root, name, fmt.Sprintf(input, "forbidden"))); got != "deny" {
						t.Errorf("%s: %s %s: %s (%s)", host, name, input, got, reason)
					}
					if got, reason := answer(t, b, call(root, name, fmt.Sprintf(input, "open"))); got == "deny" {
						t.Errorf("%s: %s %s: %s (%s)", host, name, input, got, reason)
					}
				}
			}
		}
	}
	if calls < 500 {
		t.Errorf("%d calls", calls)
	}
}

// TestAskThatCannotBeAsked holds that an ask is a denial where it isn't advertised,
// and that the reason tells so and where the rule stands.
func TestAskThatCannotBeAsked(t *testing.T) {
	b, _, root := newBackend(t, document)
	word, reason := answer(t, b, call(root, "Bash", `{"command":"make all"}`), ahp.EffectDeny)
	if word != "deny" || !strings.Contains(reason, "rules.json:6:13 rules.ask[0]") || !strings.HasSuffix(reason, "Nobody can be asked here.") {
		t.Errorf("%s: %s", word, reason)
	}
	if _, err := b.Intercept(t.Context(), &ahp.Intercept{Event: call(root, "Bash", `{"command":"make all"}`), Capabilities: *ahp.NewCapabilities(ahp.ToolBefore)}); err == nil {
		t.Error("an answer that isn't advertised")
	}
	after := ahptest.ToolAfter("a", "git push")
	if out, err := b.Intercept(t.Context(), &ahp.Intercept{Event: after, Capabilities: *ahp.NewCapabilities(ahp.ToolAfter)}); err != nil || out != nil {
		t.Errorf("another event: %v, %v", out, err)
	}
	long := call(root, "Bash", `{"command":"git push `+strings.Repeat("é", 1<<14)+`"}`)
	if _, reason := answer(t, b, long); len(reason) > 5<<10 {
		t.Errorf("a reason of %d bytes", len(reason))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Intercept(ctx, &ahp.Intercept{Event: call(root, "Bash", `{"command":"ls"}`), Capabilities: *ahp.NewCapabilities(ahp.ToolBefore, ahp.EffectDeny)}); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("after the deadline: %v", err)
	}
}

// FuzzCall holds that no call, however odd, ends in a panic or an error, and that a
// tool that is forbidden is denied whatever its input is.
func FuzzCall(f *testing.F) {
	for _, seed := range []string{`{"command":["a",{}]}`, `{"commands":"[[\"x\"]]"}`, `{"paths":[{"path":[]}],"files":null}`, `{"url":"file:///x"}`, `{"patch":"*** Add File:"}`, `{"command":"*** Begin Patch"}`} {
		for _, tool := range []string{"Bash", "apply_patch", "fs_read", "web_fetch", "invented", "download"} {
			f.Add(tool, seed)
		}
	}
	open, _, root := newBackend(f, document)
	everything, _, _ := newBackend(f, `{"rules":{"deny":["*(prod*)"]}}`)
	if got, _ := answer(f, everything, call(root, "invented", `{"path":"missing/../x"}`)); got != "deny" {
		f.Error(got)
	}
	closed, _, _ := newBackend(f, `{"rules":{"deny":["*"]}}`)
	f.Fuzz(func(t *testing.T, tool, input string) {
		e := call(root, tool, input)
		if e.Validate() != nil {
			return
		}
		answer(t, open, e)
		if got, _ := answer(t, closed, e); got != "deny" {
			t.Errorf("%q %s: %s", tool, input, got)
		}
	})
}

// TestSamples feeds the recorded and documented tool calls of all hosts: each is
// understood, so that only rules decide, and the pushes are denied.
func TestSamples(t *testing.T) {
	dir := filepath.Join(require.Shared(t), "samples")
	b, _, root := newBackend(t, `{"rules":{"deny":["bash(git push*)"]}}`)
	calls := 0
	err := filepath.WalkDir(dir, func(file string, _ os.DirEntry, err error) error {
		base := strings.ToLower(filepath.Base(file))
		if err != nil || !strings.HasSuffix(base, ".json") || !strings.Contains(base, "pretool") && !strings.Contains(base, "beforetool") {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var m map[string]any
		if strictjson.Unmarshal(data, &m, strictjson.Options{}) != nil {
			return nil
		}
		name, input := "", m["tool_input"]
		for _, member := range []string{"tool_name", "toolName"} {
			if s, is := m[member].(string); is {
				name = s
			}
		}
		if input == nil {
			input = m["toolArgs"]
		}
		raw, _ := strictjson.Marshal(input)
		if s, is := input.(string); is {
			raw = []byte(s)
		}
		if name == "" || len(raw) == 0 || raw[0] != '{' {
			return nil
		}
		calls++
		want := "none"
		if strings.Contains(string(raw), "git push") {
			want = "deny"
		}
		if got, reason := answer(t, b, call(root, name, string(raw))); got != want {
			t.Errorf("%s: %s %s: %s (%s)", strings.TrimPrefix(file, dir), name, raw, got, reason)
		}
		return nil
	})
	if err != nil || calls < 40 {
		t.Errorf("%d calls, %v", calls, err)
	}
}
