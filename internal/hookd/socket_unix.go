package hookd

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// checkSocket refuses a socket that isn't this account's alone: whoever listens there
// decides.
func checkSocket(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s: found %s, expected a socket", path, info.Mode().Type())
	}
	folder, err := os.Lstat(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, i := range []fs.FileInfo{info, folder} {
		s, is := i.Sys().(*syscall.Stat_t)
		if !is || int(s.Uid) != os.Getuid() || i.Mode().Perm()&0o077 != 0 {
			return fmt.Errorf("%s: found it owned or open to others (mode %v), expected it to be this account's alone", path, i.Mode().Perm())
		}
	}
	return nil
}
