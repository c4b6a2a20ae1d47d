package hookd

import (
	"io/fs"
	"syscall"
)

// inode returns what tells a file from another at the same path.
func inode(info fs.FileInfo) uint64 {
	if s, is := info.Sys().(*syscall.Stat_t); is {
		return s.Ino
	}
	return 0
}
