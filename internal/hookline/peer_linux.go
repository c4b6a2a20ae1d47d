package hookline

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// ownProgram refuses a service that is another program than this one: whoever can make
// the socket could answer in its place, and nothing would be in the log. It raises the
// bar and is no proof, since a process of this account can do more than that.
func ownProgram(fd int, id *Identity) error {
	cred, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return fmt.Errorf("who serves can't be told: %w", err)
	}
	if int(cred.Uid) != syscall.Getuid() {
		return errors.New("another account serves")
	}
	info, err := os.Stat("/proc/" + strconv.Itoa(int(cred.Pid)) + "/exe")
	if err != nil {
		return fmt.Errorf("what serves can't be told: %w", err)
	}
	if inode(info) != id.Inode || info.Size() != id.Size || !info.ModTime().Equal(id.Changed) {
		return errors.New("another program serves")
	}
	return nil
}
