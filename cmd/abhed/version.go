package main

import (
	"runtime/debug"
	"strings"

	"github.com/abhed/abhed"
)

// version returns the module's version where the build knows one, which is that of a
// tag, else that of the next release.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || strings.HasPrefix(info.Main.Version, "(") {
		return abhed.Version
	}
	return info.Main.Version
}
