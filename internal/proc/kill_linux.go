package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// freezeRounds bounds how often the descendants are looked for before the kill.
const freezeRounds = 8

// attributes puts the child in a session of its own, without a controlling
// terminal, and ties its life to this process. See runProcess for the thread.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

func signalName(sig syscall.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(sig))
}

// process is what /proc says of one process.
type process struct {
	pid, parent, group, session int
	start                       uint64 // clock ticks since boot
}

// startMark returns what tells this process from a later one of the same number.
func startMark(pid int) uint64 {
	p, _ := readProcess(pid)
	return p.start
}

// killTree kills the child, its group and every descendant that can be found.
// They are stopped first and looked for again until no new one turns up, since a
// tree that is killed from the top down forks and hides while it dies.
func killTree(c *Child) {
	c.signalGroup(syscall.SIGSTOP)
	found := map[int]process{}
	for range freezeRounds {
		fresh := 0
		for _, p := range family(c, found) {
			if _, known := found[p.pid]; !known {
				found[p.pid] = p
				syscall.Kill(p.pid, syscall.SIGSTOP)
				fresh++
			}
		}
		if fresh == 0 {
			break
		}
	}
	c.signalGroup(syscall.SIGKILL)
	for _, p := range found {
		// Between the look and the kill the number could have changed hands.
		if now, ok := readProcess(p.pid); ok && now.start == p.start {
			syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
}

// family returns the running processes that belong to the child, those in known
// included: its group and session, the children of any of them, the sessions that
// those made, and who holds the write end of its output.
func family(c *Child, known map[int]process) []process {
	all := processes(c.mark)
	ids, sessions := map[int]bool{}, map[int]bool{}
	rootReused := false
	if c.reaped() {
		for _, p := range all {
			rootReused = rootReused || p.pid == c.pid
		}
	} else {
		ids[c.pid] = true
	}
	if !rootReused {
		sessions[c.pid] = true
	}
	for pid, p := range known {
		ids[pid], sessions[p.session] = true, true
	}
	holders := pipeHolders(c, all)
	in := map[int]process{}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if _, ok := in[p.pid]; ok {
				continue
			}
			if ids[p.pid] || ids[p.parent] || sessions[p.session] || holders[p.pid] {
				in[p.pid], ids[p.pid], sessions[p.session] = p, true, true
				grown = true
			}
		}
	}
	list := make([]process, 0, len(in))
	for _, p := range in {
		list = append(list, p)
	}
	return list
}

// processes lists what runs, but for this process, its own session and what is
// older than mark: none of those can be a descendant of the child.
func processes(mark uint64) []process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	self, ownSession := os.Getpid(), 0
	if p, ok := readProcess(self); ok {
		ownSession = p.session
	}
	var all []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == self || pid == 1 {
			continue
		}
		// The threads of the kernel are in no session, and are most of what runs on a
		// small machine: to ask for one takes a hundredth of reading what a process is.
		if session, err := unix.Getsid(pid); err == nil && (session == 0 || session == ownSession) {
			continue
		}
		if p, ok := readProcess(pid); ok && p.start >= mark && p.session != ownSession {
			all = append(all, p)
		}
	}
	return all
}

// readProcess reads /proc/<pid>/stat; false if the process is gone or a zombie.
func readProcess(pid int) (process, bool) {
	data := readStat(pid)
	// The name in parentheses may hold anything, so count fields after its end.
	end := bytes.LastIndexByte(data, ')')
	fields := strings.Fields(string(data[end+1:]))
	if end < 0 || len(fields) < 20 {
		return process{}, false
	}
	number := func(i int) int { n, _ := strconv.Atoi(fields[i]); return n }
	start, _ := strconv.ParseUint(fields[19], 10, 64)
	p := process{pid: pid, parent: number(1), group: number(2), session: number(3), start: start}
	return p, fields[0] != "Z" && fields[0] != "X"
}

// readStat returns the one line of /proc/<pid>/stat, or nil. It goes past package
// os, whose bookkeeping costs more than the read, and Stop reads one per process.
func readStat(pid int) []byte {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var line [1024]byte
	n, err := unix.Read(fd, line[:])
	if err != nil {
		return nil
	}
	return line[:n]
}

// pipeHolders returns which of all hold the write end of the child's output. A
// process that was orphaned and left the session is found by nothing else.
func pipeHolders(c *Child, all []process) map[int]bool {
	names := map[string]bool{}
	for _, f := range c.openOutputs() {
		if name := pipeName(f); name != "" {
			names[name] = true
		}
	}
	holders := map[int]bool{}
	if len(names) == 0 {
		return holders
	}
	// A child that is just being started by this process holds copies of our
	// descriptors until its exec; the lock keeps such children away.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	for _, p := range all {
		folder := "/proc/" + strconv.Itoa(p.pid) + "/fd/"
		dir, err := os.Open(folder)
		if err != nil {
			continue
		}
		fds, _ := dir.Readdirnames(-1)
		dir.Close()
		for _, fd := range fds {
			target, err := os.Readlink(folder + fd)
			if err != nil || !names[target] {
				continue
			}
			if info, err := os.Lstat(folder + fd); err == nil && info.Mode().Perm()&0o200 != 0 {
				holders[p.pid] = true
				break
			}
		}
	}
	return holders
}

// pipeName returns how /proc names the pipe, or "" once nobody holds its other end.
func pipeName(f *os.File) string {
	raw, err := f.SyscallConn()
	if err != nil {
		return ""
	}
	name := ""
	raw.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, 0); err != nil || poll[0].Revents&unix.POLLHUP != 0 {
			return
		}
		var st unix.Stat_t
		if unix.Fstat(int(fd), &st) == nil {
			name = fmt.Sprintf("pipe:[%d]", st.Ino)
		}
	})
	return name
}

func (c *Child) openOutputs() []*os.File {
	if c.stderr == nil {
		return []*os.File{c.stdout.file}
	}
	return []*os.File{c.stdout.file, c.stderr.file}
}
