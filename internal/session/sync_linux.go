package session

import (
	"os"
	"syscall"
)

// datasync leaves out the metadata that reading the file back doesn't need.
func datasync(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if err != syscall.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
