//go:build unix

package policy

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// lstat looks at p without following a link.
func lstat(p string) entry {
	var st unix.Stat_t
	for {
		err := unix.Lstat(p, &st)
		if err == unix.EINTR {
			continue
		}
		if err == unix.ENOENT {
			return entry{kind: entryMissing}
		}
		if err != nil {
			return entry{kind: entryError, err: err}
		}
		break
	}
	e := entry{kind: entryOther, dev: uint64(st.Dev), ino: uint64(st.Ino)}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		e.kind = entryDir
	case unix.S_IFLNK:
		target, err := os.Readlink(p)
		if err != nil {
			return entry{kind: entryError, err: err}
		}
		e.kind, e.target = entryLink, target
	}
	return e
}

// foldsCase reports whether names in dir are compared without case: whether the
// directory is found under a spelling of other case, as the same directory. A
// directory without letters says nothing and counts as folding where the system
// usually does.
func foldsCase(dir string) bool {
	if !programFold {
		return false
	}
	other := strings.ToUpper(dir)
	if other == dir {
		other = strings.ToLower(dir)
	}
	if other == dir {
		return true
	}
	a, b := lstat(dir), lstat(other)
	return b.kind != entryMissing && a.dev == b.dev && a.ino == b.ino
}
