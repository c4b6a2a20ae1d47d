package opencode_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/opencode"
	"github.com/abhed/abhed/internal/require"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestHost(t *testing.T) {
	t.Parallel()
	adaptertest.RunOpenCode(t, opencode.Host(), *update, filepath.Join(require.Shared(t), "samples", "opencode"), "1.18.33")
}

func TestShapesOfTheBridgeThatAreUnknown(t *testing.T) {
	t.Parallel()
	adaptertest.RefusesOpenCode(t, opencode.Host())
}
