package proc

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes puts the child in a session of its own, without a controlling terminal.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(sig))
}

// startMark is not needed here: what is found is a child of what lives.
func startMark(int) uint64 { return 0 }

// killTree kills the group and the tree of children below it. It is a best effort:
// a descendant that was orphaned and left the group is not found.
func killTree(c *Child) {
	c.signalGroup(syscall.SIGSTOP)
	tree := map[int]bool{c.pid: !c.reaped()}
	ours := !c.reaped() || syscall.Kill(c.pid, 0) == syscall.ESRCH
	if list, err := unix.SysctlKinfoProcSlice("kern.proc.all"); err == nil {
		for grown := true; grown; {
			grown = false
			for _, p := range list {
				pid := int(p.Proc.P_pid)
				if !tree[pid] && pid > 1 && (tree[int(p.Eproc.Ppid)] || ours && int(p.Eproc.Pgid) == c.pid) {
					tree[pid], grown = true, true
				}
			}
		}
	}
	c.signalGroup(syscall.SIGKILL)
	for pid, in := range tree {
		if in && pid != c.pid {
			syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
