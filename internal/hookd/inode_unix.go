package hookd

import (
	"io/fs"
	"syscall"
)

// inode returns what tells a file from another at the same path, and whose it is.
func inode(info fs.FileInfo) (number uint64, owner uint32) {
	if s, is := info.Sys().(*syscall.Stat_t); is {
		return s.Ino, s.Uid
	}
	return 0, 0
}
