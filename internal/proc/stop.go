package proc

import (
	"fmt"
	"syscall"
	"time"
)

// Stop ends the child politely and returns how the process ended. Standard input
// is closed; after Grace a process that still runs gets SIGTERM, and after a
// quarter of Grace more its group and every descendant that can be found are
// killed (spec/extensions.md, Behaviour). A child that was started with NoInput
// gets SIGTERM at once and the whole Grace. Descendants are killed also when the
// process ended by itself.
//
// Output that is in the pipe stays readable, up to 1 MiB. Stop may be called any
// number of times and by several goroutines: all return when the first is done.
func (c *Child) Stop() Exit {
	c.shutdown.Do(c.end)
	return c.final
}

// Kill is Stop without any waiting: the group and every descendant that can be
// found get SIGKILL at once. It also cuts short a Stop in progress.
func (c *Child) Kill() Exit {
	c.killOnce.Do(func() { close(c.killNow) })
	return c.Stop()
}

func (c *Child) end() {
	c.stdin.close()
	if c.spec.NoInput {
		c.terminate(c.spec.Grace)
	} else if !c.endsWithin(c.spec.Grace) {
		c.terminate(c.spec.Grace / 4)
	}
	killTree(c)
	select {
	case <-c.done:
		c.final = c.exit
	case <-time.After(reapLimit):
		// The process is stuck in the kernel; its reaper goroutine stays with it.
		c.final = Exit{Code: -1, Err: fmt.Errorf("process %d did not die within %v of SIGKILL", c.pid, reapLimit)}
	}
	c.stdout.end()
	if c.stderr != nil {
		c.stderr.end()
		select {
		case <-c.stderr.done:
		case <-time.After(defaultGrace): // OnStderr does not return: not ours to wait for
		}
	}
}

// terminate asks the group to end and waits for the process.
func (c *Child) terminate(wait time.Duration) {
	select {
	case <-c.done:
		return
	case <-c.killNow:
		return
	default:
	}
	c.signalGroup(syscall.SIGTERM)
	c.endsWithin(wait)
}

// endsWithin reports whether the process has ended in time or is to be killed now.
func (c *Child) endsWithin(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-c.killNow:
	case <-timer.C:
		return false
	}
	return true
}

// signalGroup sends a signal to the child's process group. Once the process has
// been reaped its number could come to name another group, but not while members
// of ours live; a process of that very number proves that none does.
func (c *Child) signalGroup(sig syscall.Signal) {
	if c.reaped() && syscall.Kill(c.pid, 0) != syscall.ESRCH {
		return
	}
	syscall.Kill(-c.pid, sig)
}

func (c *Child) reaped() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}
