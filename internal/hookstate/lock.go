package hookstate

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/abhed/abhed/internal/ownfile"
)

// open opens the file at path, made if it isn't there, and locks it. A file that was
// removed in the meantime is opened anew.
func open(path string, end time.Time) (*os.File, error) {
	for tries := 0; ; tries++ {
		if tries > 0 && !time.Now().Before(end) {
			return nil, fmt.Errorf("%s: %w", path, errBusy)
		}
		f, err := ownfile.Open(path, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return nil, err
		}
		if err := lock(f, end); err != nil {
			f.Close()
			return nil, err
		}
		mine, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, err
		}
		if there, err := os.Lstat(path); err == nil && os.SameFile(mine, there) {
			return f, nil
		}
		f.Close()
	}
}

// errBusy is what lock gives for a file that another process holds to the end.
var errBusy = errors.New("another process holds it")

func lock(f *os.File, end time.Time) error {
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 500*time.Microsecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return err
		case !time.Now().Before(end):
			return fmt.Errorf("%s: %w", f.Name(), errBusy)
		}
		time.Sleep(pause)
	}
}
