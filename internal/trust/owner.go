package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// lock takes the lock of the store, which is a file beside it: the store itself is
// replaced.
func (s *Store) lock() (*os.File, error) {
	path := s.path + ".lock"
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if err := checkFile(path, f); err != nil {
		f.Close()
		return nil, err
	}
	end := time.Now().Add(lockWait)
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) || !time.Now().Before(end) {
			f.Close()
			return nil, fmt.Errorf("%s: lock: %w: another process changes the store", path, err)
		}
		time.Sleep(time.Millisecond)
	}
}

// checkFolder refuses a folder that isn't this account's alone.
func checkFolder(dir string) error {
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
