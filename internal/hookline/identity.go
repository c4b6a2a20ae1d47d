package hookline

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Identity names a program file: two are equal only for the same one, unchanged. The
// time of its last change comes first, so that the newer of two can be told.
type Identity struct {
	Changed time.Time
	Size    int64
	Inode   uint64
	Path    string
}

// IdentityOf returns the identity of the program file at path.
func IdentityOf(path string) (Identity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Identity{}, err
	}
	return Identity{info.ModTime(), info.Size(), inode(info), path}, nil
}

// inode returns what tells a file from another at the same path.
func inode(info fs.FileInfo) uint64 {
	if s, is := info.Sys().(*syscall.Stat_t); is {
		return s.Ino
	}
	return 0
}

func (i *Identity) encode() []byte {
	b := make([]byte, 0, 64+len(i.Path))
	b = append(strconv.AppendInt(b, i.Changed.UnixNano(), 10), ' ')
	b = append(strconv.AppendInt(b, i.Size, 10), ' ')
	b = append(strconv.AppendUint(b, i.Inode, 10), ' ')
	return append(b, i.Path...)
}

var errNoIdentity = errors.New("found no identity of a program")

// decodeIdentity is the inverse of encode.
func decodeIdentity(b []byte) (i Identity, err error) {
	parts := strings.SplitN(string(b), " ", 4)
	if len(parts) != 4 {
		return i, errNoIdentity
	}
	changed, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return i, errNoIdentity
	}
	size, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return i, errNoIdentity
	}
	node, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil {
		return i, errNoIdentity
	}
	return Identity{time.Unix(0, changed), size, node, parts[3]}, nil
}
