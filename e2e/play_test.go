package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/e2e/modelserver"
	"github.com/abhed/abhed/internal/require"
)

// scripted is an agent that is a shell script, so that the stage can be tested
// where no agent is installed. MODEL in the script is the model's URL.
func scripted(t *testing.T, limit time.Duration, script string) *stage {
	t.Helper()
	sh := require.Path(t, "sh")
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "script", "node_modules"), 0o755); err != nil {
		t.Fatal(err)
	}
	return stageIn(t, dir, agent{name: "script", host: "script", limit: limit, call: modelserver.Call{Name: "sh", Args: `{}`},
		prepare: func(s *stage) [][]string { return [][]string{{sh, "-c", "MODEL=" + s.url + "\n" + script}} }})
}

// TestPlay has a script play the agent: it asks, acts, tells, and fails.
func TestPlay(t *testing.T) {
	t.Parallel()
	require.Path(t, "curl")
	res := scripted(t, time.Minute, `
ask() { curl -sS --noproxy '*' "$MODEL/v1/chat/completions" -d "{\"tools\":[{\"function\":{\"name\":\"sh\"}}],\"messages\":[$1]}"; }
ask ""
touch marker.txt
ask '{"role":"tool","content":"made-it"}'
echo oops >&2
exit 7`).play(nil)
	if !res.ran || !res.called || len(res.told) != 1 || res.told[0] != "made-it" || res.code != 7 || res.timedOut || res.stderr != "oops\n" || !strings.Contains(res.out, "All is done.") {
		t.Error(res)
	}
}

// TestPlayNothing has it do nothing at all.
func TestPlayNothing(t *testing.T) {
	t.Parallel()
	if res := scripted(t, time.Minute, "exit 0").play(nil); res.ran || res.called || len(res.told) != 0 || res.code != 0 || res.left != 0 {
		t.Error(res)
	}
}
