package hookstate

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// folder makes dir, or refuses one that isn't this account's alone.
func folder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s: found %s, expected a folder", dir, info.Mode().Type())
	}
	return checkOwner(dir, info, "0700")
}

// checkFile refuses an open file that isn't a regular one of this account alone.
func checkFile(path string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: found %s, expected a regular file", path, info.Mode().Type())
	}
	return checkOwner(path, info, "0600")
}

func checkOwner(path string, info fs.FileInfo, mode string) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return fmt.Errorf("%s: found no owner on this system, expected one", path)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s: found it owned by account %d, expected account %d: move it away", path, st.Uid, os.Geteuid())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s: found mode %04o, expected %s: chmod %[3]s %[1]s once you have looked at it", path, info.Mode().Perm(), mode)
	}
	return nil
}
