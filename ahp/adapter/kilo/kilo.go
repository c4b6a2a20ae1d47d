// Package kilo is the hook dialect of Kilo (measured with 7.7.7), a fork of opencode, as
// the bridge plugin hands it on.
//
// It guarantees what package opencode does.
//
// Do not assume that "bash" is the only shell: background_process runs commands too.
package kilo

import (
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/adapter/shape"
)

// Host returns the dialect.
func Host() *adapter.Host {
	return shape.OpenCode("kilo", "Kilo", "background_process is a second shell")
}
