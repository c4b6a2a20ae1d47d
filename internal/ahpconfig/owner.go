package ahpconfig

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// writableByOthers are the permissions that nobody but the owner may have.
const writableByOthers fs.FileMode = 0o022

// checkOwner refuses a managed or a user's registration that somebody else can
// write: it decides which programs run, and what is asked before an agent acts. The
// file and its folder must belong to root or to this account, and be writable by
// nobody else; what a symbolic link leads to, as well. A file that was named is its
// user's business, and a project's counts only if its bytes are trusted. A file that
// isn't there is no error here.
func checkOwner(p Source) error {
	if p.Scope != Managed && p.Scope != User {
		return nil
	}
	real, err := filepath.EvalSymlinks(p.Path)
	if err != nil {
		return nil // reading it says why
	}
	places := []string{real, filepath.Dir(real)}
	if dir := filepath.Dir(p.Path); dir != places[1] {
		places = append(places, dir)
	}
	for _, path := range places {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("the registration can't be trusted: %w", err)
		}
		if err := ownedAndClosed(path, info, os.Geteuid()); err != nil {
			return fmt.Errorf("the registration can't be trusted: %w", err)
		}
	}
	return nil
}

// ownedAndClosed refuses a file or a folder that somebody but root and account uid
// can write.
func ownedAndClosed(path string, info fs.FileInfo, uid int) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return fmt.Errorf("%s: found no owner on this system, expected one", path)
	case st.Uid != 0 && int(st.Uid) != uid:
		return fmt.Errorf("%s: found it owned by account %d, expected root or account %d: chown it once you have read it", path, st.Uid, uid)
	case info.Mode().Perm()&writableByOthers != 0:
		return fmt.Errorf("%s: found mode %04o, expected nobody but the owner to write it: chmod go-w %s", path, info.Mode().Perm(), path)
	}
	return nil
}
