package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// alone calls f on a thread that has a network of its own, with nothing in it but
// loopback, where the system allows that; else on a common thread. What f starts
// and listens on is in that network too. The thread ends with f. The argument of
// f is the network's name, empty for the common one.
func alone(f func(network string)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		// The thread is never unlocked, so it dies with this goroutine and no other
		// goroutine ever runs in its network.
		runtime.LockOSThread()
		f(ownNetwork())
	}()
	<-done
}

// ownNetwork gives the calling thread a network of its own and returns its name,
// or "" if it may not have one.
func ownNetwork() string {
	if unix.Unshare(unix.CLONE_NEWNET) != nil {
		return ""
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return ""
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req) != nil {
		return ""
	}
	name, err := os.Readlink(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
	if err != nil {
		return ""
	}
	return name
}

// strays returns the processes other than this one that are in the network, or
// whose environment names the folder.
func strays(network, dir string) []int {
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	var out []int
	for _, proc := range all {
		pid, err := strconv.Atoi(filepath.Base(proc))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if name, err := os.Readlink(filepath.Join(proc, "ns/net")); err == nil && network != "" && name == network {
			out = append(out, pid)
			continue
		}
		if env, err := os.ReadFile(filepath.Join(proc, "environ")); err == nil && bytes.Contains(env, []byte("="+dir+"/")) {
			out = append(out, pid)
		}
	}
	return out
}
