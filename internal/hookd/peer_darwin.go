package hookd

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// ownPeer reports whether the other end is a process of this account.
func ownPeer(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	own := false
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptXucred(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
		own = err == nil && int(cred.Uid) == os.Getuid()
	})
	return err == nil && own
}
