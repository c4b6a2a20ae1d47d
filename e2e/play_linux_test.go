package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/require"
)

// TestPlayEnds has it go on for ever, with a child in its process group, one that
// has left it, and one that has forgotten where it came from as well, which only a
// network of its own gives away.
func TestPlayEnds(t *testing.T) {
	t.Parallel()
	require.Path(t, "setsid")
	s := scripted(t, time.Second, `
sleep 600 & echo $! >>../pids
setsid sleep 600 & echo $! >>../pids
if [ "$OWN" ]; then setsid env -i PATH="$PATH" sleep 600 & echo $! >>../pids; fi
wait`)
	children := 2
	alone(func(network string) {
		if network != "" {
			s.env["OWN"] = "yes"
			children++
		}
	})
	begun := time.Now()
	res := s.play(nil)
	if !res.timedOut || res.code != -1 || res.left < children-1 || time.Since(begun) > 30*time.Second {
		t.Error(res)
	}
	pids, err := os.ReadFile(filepath.Join(s.root, "pids"))
	if err != nil || len(strings.Fields(string(pids))) != children {
		t.Fatalf("%q, %v", pids, err)
	}
	for _, pid := range strings.Fields(string(pids)) {
		if stat, err := os.ReadFile("/proc/" + pid + "/stat"); err == nil && !strings.Contains(string(stat), ") Z") {
			t.Errorf("process %s lives: %s", pid, stat)
		}
	}
}
