package hookd

import (
	"os"
	"strconv"
	"syscall"
)

// closeListed has the descriptors that a folder lists, from 3 on, closed in children.
func closeListed(folder string) error {
	list, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range list {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
	return nil
}
