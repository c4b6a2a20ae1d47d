package hookd

import (
	"net"
	"os"
)

// ownPeer reports whether the other end is a process of this account.
func ownPeer(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	own := false
	err = raw.Control(func(fd uintptr) {
		uid, err := peerUID(int(fd))
		own = err == nil && uid == os.Getuid()
	})
	return err == nil && own
}
