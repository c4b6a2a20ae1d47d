package main

import (
	"runtime/debug"
	"strings"

	"github.com/abhed/abhed/ahp"
)

// release is the version of the next release; a build from a tagged module says
// its own.
const release = "0.1.0-dev"

// version returns the module's version where the build knows one, and the
// protocol's revision.
func version() string {
	v := release
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && !strings.HasPrefix(info.Main.Version, "(") {
		v = info.Main.Version
	}
	return v + " (protocol " + ahp.Version + ")"
}
