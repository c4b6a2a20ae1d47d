package claudecode_test

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/claudecode"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestHost(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, claudecode.Host(), adaptertest.Options{
		Update: *update, Samples: filepath.Join(require.Shared(t), "samples", "claude"),
		Event: []string{"hook_event_name"}, Tool: []string{"tool_name"}, Input: []string{"tool_input"}, Needed: []string{"session_id"}, CallNeeded: []string{"tool_input"},
		Unread: map[string]string{
			"InstructionsLoaded": "no event of the protocol stands for it", "MessageDisplay": "likewise",
			"UserPromptExpansion": "likewise: the prompt itself comes with UserPromptSubmit",
		},
		Keys: keys(),
	})
}

// keys are the members that the host knows, from its package's schemas.
func keys() map[string][]string {
	common := []string{"continue", "stopReason", "systemMessage"}
	with := func(more ...string) []string {
		out := append([]string{"hookSpecificOutput.hookEventName"}, common...)
		for _, m := range more {
			out = append(out, "hookSpecificOutput."+m)
		}
		return out
	}
	return map[string][]string{
		"PreToolUse":         with("permissionDecision", "permissionDecisionReason", "updatedInput.*", "additionalContext"),
		"PermissionRequest":  with("decision.behavior", "decision.message"),
		"PostToolUse":        with("additionalContext", "updatedToolOutput.*"),
		"PostToolUseFailure": with("additionalContext"),
		"PostToolBatch":      common,
		"UserPromptSubmit":   append([]string{"decision", "reason"}, with("additionalContext")...),
		"SessionStart":       with("additionalContext"),
		"Stop":               append([]string{"decision", "reason"}, common...),
		"SubagentStop":       append([]string{"decision", "reason"}, common...),
	}
}

// A result in another form than the tool's is dropped by the host, and the model sees
// the original. So a text that stands for it has the form of each recorded result, and
// nothing of what it held.
func TestReplacedResultsKeepTheirForm(t *testing.T) {
	t.Parallel()
	h := claudecode.Host()
	files, err := filepath.Glob(filepath.Join(require.Shared(t), "samples", "claude", "PostToolUse.*.json"))
	if err != nil || len(files) < 6 {
		t.Fatalf("%d samples of results, %v", len(files), err)
	}
	for _, file := range files {
		data := adaptertest.File(t, file)
		e, err := h.Read(adapter.Input{Data: data})
		if err != nil {
			t.Fatal(err)
		}
		text := "policy X keeps this back"
		written, err := h.Write(e, &adapter.Verdict{Output: &text})
		if err != nil {
			t.Fatal(err)
		}
		var native struct {
			Response any `json:"tool_response"`
		}
		var answer struct {
			Specific struct {
				Output any `json:"updatedToolOutput"`
			} `json:"hookSpecificOutput"`
		}
		decode(t, data, &native)
		decode(t, written, &answer)
		said := 0
		same(t, filepath.Base(file), e.AHP.Tool, native.Response, answer.Specific.Output, text, &said)
		if said != 1 {
			t.Errorf("%s: the text is there %d times: %s", filepath.Base(file), said, written)
		}
	}
}

// decode fills in what a test looks at, and leaves the rest.
func decode(t *testing.T, data []byte, v any) {
	t.Helper()
	if err := strictjson.Unmarshal(data, v, strictjson.Options{}); err != nil {
		t.Fatal(err)
	}
}

// same compares forms: kinds of values and names of members.
func same(t *testing.T, at string, tool *ahp.Tool, was, is any, text string, said *int) {
	t.Helper()
	if is == text {
		*said++
	}
	switch was := was.(type) {
	case map[string]any:
		is, ok := is.(map[string]any)
		if !ok {
			t.Errorf("%s: %v stands for an object", at, is)
		}
		for name, inner := range is {
			if _, there := was[name]; !there {
				t.Errorf("%s/%s is new", at, name)
				continue
			}
			same(t, at+"/"+name, tool, was[name], inner, text, said)
		}
		for name := range was {
			if _, there := is[name]; !there && tool.Name != "Bash" {
				t.Errorf("%s/%s is missing", at, name)
			}
		}
	case []any:
		if tool.MCP != nil {
			return // a string may stand for a server's list
		}
		is, ok := is.([]any)
		if !ok || len(is) != len(was) {
			t.Errorf("%s: %v stands for a list", at, is)
			return
		}
		for i := range was {
			same(t, at, tool, was[i], is[i], text, said)
		}
	case string:
		if is, ok := is.(string); !ok || is != "" && is != text && !(is == was && strings.Contains("type status", at[strings.LastIndex(at, "/")+1:])) {
			t.Errorf("%s: %v stands for %q", at, is, was)
		}
	default:
		if is != was {
			t.Errorf("%s: %v stands for %v", at, is, was)
		}
	}
}

// A policy that edits a shown form gets its edit, and no text of it.
func TestAnEditedFormStaysOne(t *testing.T) {
	t.Parallel()
	h := claudecode.Host()
	e, err := h.Read(adapter.Input{Data: adaptertest.File(t, filepath.Join(require.Shared(t), "samples", "claude", "PostToolUse.Read.json"))})
	if err != nil {
		t.Fatal(err)
	}
	edited := strings.ReplaceAll(*e.AHP.Items.Messages[0].Parts[0].Text, "two", "***")
	data, err := h.Write(e, &adapter.Verdict{Output: &edited})
	if err != nil || !strings.Contains(string(data), `"updatedToolOutput":{`) || !strings.Contains(string(data), `"content":"one\n***\n"`) {
		t.Errorf("the answer is %s, %v", data, err)
	}
}
