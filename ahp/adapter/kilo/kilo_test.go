package kilo_test

import (
	"flag"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/ahp/adapter/adaptertest"
	"github.com/abhed/abhed/ahp/adapter/kilo"
	"github.com/abhed/abhed/internal/require"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

func TestHost(t *testing.T) {
	t.Parallel()
	adaptertest.RunOpenCode(t, kilo.Host(), *update, filepath.Join(require.Shared(t), "samples", "kilo"), "7.7.7")
}

func TestShapesOfTheBridgeThatAreUnknown(t *testing.T) {
	t.Parallel()
	adaptertest.RefusesOpenCode(t, kilo.Host())
}
