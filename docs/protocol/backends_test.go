package protocol_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/conformance"
	"github.com/abhed/abhed/internal/require"
)

// TestPythonBackend runs the suite over the backend of backends.md: it fails what the
// page says, and nothing else.
func TestPythonBackend(t *testing.T) {
	python := require.Path(t, "python3")
	page, err := os.ReadFile("backends.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(lang string) string {
		m := regexp.MustCompile("(?ms)^```" + lang + "\n(.*?)^```$").FindSubmatch(page)
		if m == nil {
			t.Fatalf("backends.md has no block of %s", lang)
		}
		return string(m[1])
	}
	file := filepath.Join(t.TempDir(), "backend.py")
	if err := os.WriteFile(file, []byte(block("python")), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := conformance.Backend(t.Context(), conformance.Target{Command: []string{python, file}}, conformance.Options{
		DenyInput: ahp.Raw(`{"command":"git push"}`), Sequence: 20, Timeout: 20 * time.Second, Grace: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	var failed []string
	for _, result := range r.Results {
		if result.Failed() {
			failed = append(failed, result.ID)
		}
	}
	if diff := cmp.Diff(strings.Fields(block("failures")), failed); diff != "" {
		t.Errorf("what fails (-page +run):\n%s", diff)
	}
	if deny := r.Find("deny"); deny == nil || deny.Verdict != conformance.Pass {
		t.Errorf("deny: %+v", deny)
	}
}
