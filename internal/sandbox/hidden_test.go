package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/require"
)

// TestHiddenFileCantBeMovedIntoSight moves the folders above a hidden file in one
// command and looks for it in the next.
func TestHiddenFileCantBeMovedIntoSight(t *testing.T) {
	b := newBox(t)
	hidden := b.write("a/b/.env", "hunter2")
	b.write("a/b/open", "open\n")
	b.policy.Hidden = []string{hidden}
	out, _ := b.run(`mv a c; mv a/b d; mv a/b/.env e; mv a/b/open a/b/moved; cat a/b/moved`)
	if !strings.Contains(out, "open\n") {
		t.Errorf("what isn't hidden can't be used: %q", out)
	}
	out, _ = b.run(`cat c/b/.env d/.env e a/b/.env; find . -name .env -exec cat {} +`)
	if strings.Contains(out, "hunter2") {
		t.Errorf("output %q", out)
	}
	if got := b.read("a/b/.env"); got != "hunter2" {
		t.Errorf("the hidden file is now %q", got)
	}
}

// TestKernelSettingsAreReadOnly holds for root too, to whom the files in /proc/sys
// belong.
func TestKernelSettingsAreReadOnly(t *testing.T) {
	b := newBox(t)
	setting := "/proc/sys/kernel/core_pattern"
	before, err := os.ReadFile(setting)
	if err != nil {
		require.Missing(t, "procsys", err.Error())
	}
	out, _ := b.run(`for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sys/vm/swappiness /proc/sysrq-trigger /proc/sys/kernel/modprobe; do
		if [ -e "$f" ] && (exec 3>"$f") 2>/dev/null; then echo "opened $f"; fi; done; echo checked`)
	if out != "checked\n" {
		t.Errorf("output %q", out)
	}
	if after, _ := os.ReadFile(setting); string(after) != string(before) {
		t.Errorf("%s was %q and is %q", setting, before, after)
	}
}

// TestFoldersAboveHiddenFilesStayWritable holds that hiding a file takes nothing
// else away.
func TestFoldersAboveHiddenFilesStayWritable(t *testing.T) {
	b := newBox(t)
	b.policy.Hidden = []string{b.write("x/y/key", "hunter2"), b.write("x/key", "hunter2")}
	out, _ := b.run(`echo new > x/y/new && echo new > x/new && mkdir x/z && cat x/y/new x/new && ls x/y x`)
	if !strings.HasPrefix(out, "new\nnew\n") || strings.Contains(out, "hunter2") {
		t.Errorf("output %q", out)
	}
	if _, err := os.Stat(filepath.Join(b.policy.Roots[0], "x", "z")); err != nil {
		t.Error(err)
	}
}
