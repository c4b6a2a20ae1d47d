// Package require decides what a test does when something optional is missing:
// it skips with a reason, or fails where ABHED_REQUIRE names the thing.
//
// ABHED_REQUIRE is a comma-separated list of names from the closed set in Known.
// An unknown name fails every test that asks, so that a typing error in a CI
// script can't turn a requirement off.
package require

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Known returns the names that ABHED_REQUIRE may hold.
func Known() []string {
	return []string{
		"bwrap", "landlock", "postgres", "chromium", "rg", "shared", "python3", "node", "jq",
		"bash", "busybox", "dash", "git", "ipv6", "prlimit", "procsys", "setsid", "sh", "curl", "sha256sum", "unshare",
	}
}

// Path returns where the program is. If it is not installed the test is skipped,
// or fails if ABHED_REQUIRE names it.
func Path(t testing.TB, program string) string {
	t.Helper()
	p, err := exec.LookPath(program)
	if err != nil {
		Missing(t, program, err.Error())
	}
	return p
}

// Shared returns the folder of reference material beside the module. If it is
// absent the test is skipped, or fails if ABHED_REQUIRE names "shared".
func Shared(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(Root(t), "..", "shared")
	if _, err := os.Stat(filepath.Join(dir, "spec")); err != nil {
		Missing(t, "shared", err.Error())
	}
	return dir
}

// Root returns the module's root folder.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = parent
	}
}

// Missing ends the test because name is not to be had, for the given reason.
func Missing(t testing.TB, name, reason string) {
	t.Helper()
	known := Known()
	if !slices.Contains(known, name) && !strings.HasPrefix(name, "agent-") {
		t.Fatalf("%q is missing, and ABHED_REQUIRE can't name it; add it to require.Known", name)
	}
	for required := range strings.SplitSeq(os.Getenv("ABHED_REQUIRE"), ",") {
		required = strings.TrimSpace(required)
		if required != "" && !slices.Contains(known, required) && !strings.HasPrefix(required, "agent-") {
			t.Fatalf("ABHED_REQUIRE names %q; known are %s and agent-<host>", required, strings.Join(known, ", "))
		}
		if required == name {
			t.Fatalf("%s is required here and missing: %s", name, reason)
		}
	}
	t.Skipf("%s is missing: %s", name, reason)
}
