package trust

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/abhed/abhed/internal/ownfile"
)

// lock takes the lock of the store, which is a file beside it: the store itself is
// replaced.
func (s *Store) lock() (*os.File, error) {
	path := s.path + ".lock"
	f, err := ownfile.Open(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
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
