package crush_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/crush"
	"github.com/abhed/abhed/internal/require"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestHost(t *testing.T) {
	t.Parallel()
	adaptertest.Run(t, crush.Host(), adaptertest.Options{
		Update: *update, Samples: filepath.Join(require.Shared(t), "samples", "crush"),
		Event: []string{"event"}, Tool: []string{"tool_name"}, Input: []string{"tool_input"}, Needed: []string{"session_id"}, CallNeeded: []string{"tool_input"},
		Unread: map[string]string{"env-*": "variables, no event"},
		Keys:   map[string][]string{"PreToolUse": {"decision", "reason", "halt", "context", "updated_input.*"}},
		Call:   adapter.Call{Name: "bash", Input: ahp.Raw(`{"command":"rm -rf build","timeout":5}`)},
	})
}
