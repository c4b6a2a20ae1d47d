package main

import (
	"runtime/debug"
	"strings"
)

// release is the version of the next release; a build from a tagged module says
// its own.
const release = "0.1.0-dev"

// version returns the module's version where the build knows one.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || strings.HasPrefix(info.Main.Version, "(") {
		return release
	}
	return info.Main.Version
}
