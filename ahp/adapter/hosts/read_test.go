package hosts_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/hosts"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

// folders names the samples of hosts whose folders have other names, or more than one.
func folders(host string) []string {
	switch host {
	case "claude-code":
		return []string{"claude"}
	case "copilot":
		return []string{"copilot", "copilot-cli", "copilot-pascal", "vscode-copilot"}
	case "droid":
		return []string{"droid", "factory-droid"}
	case "kiro":
		return []string{"kiro-cli", "kiro-v1", "amazon-q"}
	}
	return []string{host}
}

// recorded returns native events that h reads as they are.
func recorded(t *testing.T, h *adapter.Host) []adapter.Input {
	t.Helper()
	var out []adapter.Input
	for _, doc := range bridged(h.Name) {
		in := adapter.Input{Data: []byte(doc)}
		if _, err := hosts.Read(h, in); err != nil {
			t.Errorf("%s isn't read: %v", doc, err)
		}
		out = append(out, in)
	}
	for _, dir := range folders(h.Name) {
		files, err := filepath.Glob(filepath.Join(require.Shared(t), "samples", dir, "*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			data, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for i := -1; i < len(h.Rows); i++ { // some hosts say the event on the line alone
				in := adapter.Input{Data: data}
				if i >= 0 {
					in.Native = h.Rows[i].Native
				}
				if _, err := hosts.Read(h, in); err == nil {
					out = append(out, in)
					break
				}
			}
		}
	}
	return out
}

// bridged are documents of the bridge plugins, which carry the hooks of the hosts that
// have no commands.
func bridged(host string) []string {
	const where = `,"directory":"/repo","worktree":"/repo"}`
	switch host {
	case "opencode", "kilo":
		return []string{
			`{"bridge":"1","hook":"tool.execute.before","input":{"tool":"bash","sessionID":"s","callID":"c"},"output":{"args":{"command":"true"}}` + where,
			`{"bridge":"1","hook":"tool.execute.after","input":{"tool":"bash","sessionID":"s","callID":"c","args":{"command":"true"}},"output":{"title":"t","output":"hi","metadata":{}}` + where,
			`{"bridge":"1","hook":"tool.execute.after","input":{"tool":"d_e","sessionID":"s","callID":"c","args":{}},"output":{"content":[{"type":"text","text":"hi"}],"isError":false}` + where,
			`{"bridge":"1","hook":"chat.message","input":{"sessionID":"s"},"output":{"message":{"id":"m","role":"user","model":{"modelID":"x"}},"parts":[{"type":"text","text":"do"}]}` + where,
			`{"bridge":"1","hook":"event","input":{"event":{"type":"session.created","properties":{"sessionID":"s","info":{"id":"s","version":"1","directory":"/repo"}}}}` + where,
			`{"bridge":"1","hook":"event","input":{"event":{"type":"session.idle","properties":{"sessionID":"s"}}}` + where,
		}
	case "pi":
		const ctx = `,"ctx":{"cwd":"/repo","sessionId":"s","sessionFile":"/s.jsonl"}}`
		return []string{
			`{"bridge":"1","hook":"tool_call","event":{"type":"tool_call","toolName":"bash","toolCallId":"c","input":{"command":"true"}}` + ctx,
			`{"bridge":"1","hook":"tool_result","event":{"type":"tool_result","toolName":"bash","toolCallId":"c","input":{"command":"true"},"content":[{"type":"text","text":"hi"}],"isError":false}` + ctx,
			`{"bridge":"1","hook":"session_start","event":{"type":"session_start","reason":"startup"}` + ctx,
		}
	}
	return nil
}

// values are what a member may become.
func values() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{
		`null`, `true`, `false`, `0`, `-1`, `1.5`, `1e300`, `99999999999999999999`, `""`, `" "`, `"x"`, `"\u0000"`, `"\u202e"`, `"/etc/passwd"`, `"default"`, `{}`, `[]`,
		`{"a":1}`, `[1]`, `["x"]`, `[{}]`, `[null]`, `[""]`, `"{}"`, `"[]"`, `"{\"a\":1}"`, `{"type":"text","text":7}`, `[{"type":"text"}]`, `{"":""}`,
	})
}

// damage changes one member of a document, however deep it is.
func damage(t *rapid.T, doc ahp.Raw) ahp.Raw {
	var members map[string]ahp.Raw
	if !doc.IsObject() || strictjson.Unmarshal(doc, &members, strictjson.Options{}) != nil || len(members) == 0 {
		return ahp.Raw(values().Draw(t, "value"))
	}
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(members))).Draw(t, "member")
	switch rapid.IntRange(0, 3).Draw(t, "damage") {
	case 0:
		delete(members, name)
	case 1:
		members[name] = ahp.Raw(values().Draw(t, "value"))
	default:
		members[name] = damage(t, members[name])
	}
	out, err := strictjson.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// What is read is a valid event, whatever was sent: an event that no backend could be
// asked about must be an unknown shape instead.
func TestDamagedEventsAreValidOrRefused(t *testing.T) {
	t.Parallel()
	for _, h := range hosts.All() {
		t.Run(h.Name, func(t *testing.T) {
			t.Parallel()
			all := recorded(t, h)
			if len(all) == 0 {
				t.Fatal("no recorded event is read")
			}
			rapid.Check(t, func(t *rapid.T) {
				in := all[rapid.IntRange(0, len(all)-1).Draw(t, "sample")]
				in.Data = damage(t, in.Data)
				if rapid.Bool().Draw(t, "twice") {
					in.Data = damage(t, in.Data)
				}
				e, err := hosts.Read(h, in)
				if err != nil {
					return
				}
				if e.Row == nil || h.Row(e.Row.Native) != e.Row || e.AHP.Type != e.Row.Type {
					t.Fatalf("%s: read as %+v", in.Data, e)
				}
				if tool := e.AHP.Tool; tool != nil && (tool.Name == "" || !tool.Input.IsObject()) {
					t.Errorf("%s: a call of the tool %q with %s", in.Data, tool.Name, tool.Input)
				}
				adaptertest.Complete(e.AHP)
				if err := e.AHP.Validate(); err != nil {
					t.Errorf("%s\nis read as an event that is not valid: %v", in.Data, err)
				}
			})
		})
	}
}
