package proc

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
)

// Child is a started process. All methods may be called from any goroutine.
type Child struct {
	spec    Spec
	process *os.Process
	pid     int
	mark    uint64 // start mark of the process; see startMark

	stdin  *input
	stdout *output
	stderr *tail

	done chan struct{} // closed after exit is set
	exit Exit

	shutdown sync.Once
	killOnce sync.Once
	killNow  chan struct{}
	final    Exit // what Stop returns; set by shutdown
}

// Start runs the program of spec and returns it running. A failure is a
// *StartError, and then nothing is left behind.
func Start(spec Spec) (*Child, error) {
	file, reason := lookup(&spec)
	if reason == "" {
		reason = check(&spec)
	}
	if reason != "" {
		return nil, &StartError{Name: spec.name(), Path: spec.Path, Reason: reason}
	}
	if spec.Grace == 0 {
		spec.Grace = defaultGrace
	}
	if spec.StderrTail == 0 {
		spec.StderrTail = defaultTail
	}
	c := &Child{spec: spec, done: make(chan struct{}), killNow: make(chan struct{})}
	ends, err := c.openStreams()
	if err != nil {
		return nil, &StartError{Name: spec.name(), Path: spec.Path, Reason: "no pipe to be had", Err: err}
	}
	started := make(chan error)
	go c.runProcess(file, ends, started)
	if err := <-started; err != nil {
		return nil, &StartError{Name: spec.name(), Path: spec.Path, Reason: "the system refused", Err: err}
	}
	if c.stderr != nil {
		go c.stderr.pump(spec.OnStderr)
	}
	return c, nil
}

// check returns what is wrong with spec, or "".
func check(spec *Spec) string {
	if reason := checkEnv(spec.Env); reason != "" {
		return reason
	}
	for i, arg := range append([]string{spec.Path, spec.Dir}, spec.Args...) {
		if strings.IndexByte(arg, 0) >= 0 {
			return fmt.Sprintf("a NUL byte in %s", [...]string{"the path", "the working directory", "an argument"}[min(i, 2)])
		}
	}
	if spec.Dir == "" {
		return ""
	}
	// The system's own error would not say whether the folder or the program is missing.
	info, err := os.Stat(spec.Dir)
	if err != nil {
		return "working directory: " + err.Error()
	}
	if !info.IsDir() {
		return fmt.Sprintf("working directory %q is not a folder", spec.Dir)
	}
	return ""
}

// runProcess starts the process, reports that on started, and reaps it. Both
// happen on one locked thread: on Linux the death signal of a child follows the
// thread that made it, and threads of the runtime may end before the program.
func (c *Child) runProcess(file string, ends []*os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	env := c.spec.Env
	if env == nil {
		env = []string{} // nil would mean the environment of this process
	}
	process, err := os.StartProcess(file, append([]string{c.spec.Path}, c.spec.Args...),
		&os.ProcAttr{Dir: c.spec.Dir, Env: env, Files: append(ends[:3:3], c.spec.Extra...), Sys: attributes()})
	closed := map[*os.File]bool{}
	for _, f := range ends {
		if !closed[f] {
			f.Close()
		}
		closed[f] = true
	}
	if err != nil {
		c.closeStreams()
		started <- err
		return
	}
	c.process, c.pid, c.mark = process, process.Pid, startMark(process.Pid)
	started <- nil
	c.exit = exitOf(process.Wait())
	close(c.done)
}

// openStreams makes the pipes and returns the child's ends in the order of their
// descriptors. On an error nothing is open.
func (c *Child) openStreams() (ends []*os.File, err error) {
	var opened []*os.File
	defer func() {
		if err != nil {
			for _, f := range opened {
				f.Close()
			}
		}
	}()
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			opened = append(opened, r, w)
		}
		return r, w, err
	}
	var in *os.File
	if c.spec.NoInput {
		if in, err = os.Open(os.DevNull); err != nil {
			return nil, err
		}
		opened = append(opened, in)
		c.stdin = newInput(nil)
	} else {
		var ours *os.File
		if in, ours, err = pipe(); err != nil {
			return nil, err
		}
		c.stdin = newInput(ours)
	}
	ours, out, err := pipe()
	if err != nil {
		return nil, err
	}
	c.stdout = newOutput(ours)
	if c.spec.MergeStderr {
		return []*os.File{in, out, out}, nil
	}
	ours, errEnd, err := pipe()
	if err != nil {
		return nil, err
	}
	c.stderr = newTail(ours, c.spec.StderrTail)
	return []*os.File{in, out, errEnd}, nil
}

func (c *Child) closeStreams() {
	c.stdin.close()
	c.stdout.file.Close()
	if c.stderr != nil {
		c.stderr.file.Close()
	}
}

// Pid returns the process id, which is also the id of the child's process group
// and session. After Done it may belong to another process.
func (c *Child) Pid() int { return c.pid }

// Done returns a channel that is closed when the process itself has been reaped.
// Its descendants may still run, and output may still be unread.
func (c *Child) Done() <-chan struct{} { return c.done }

// Exit returns how the process ended. It is valid after Done is closed; before,
// it says that the process is still running.
func (c *Child) Exit() Exit {
	select {
	case <-c.done:
		return c.exit
	default:
		return Exit{Code: -1, Err: fmt.Errorf("process %d is still running", c.pid)}
	}
}

// StderrTail returns the last bytes of standard error so far, as valid UTF-8;
// "" with MergeStderr.
func (c *Child) StderrTail() string {
	if c.stderr == nil {
		return ""
	}
	return c.stderr.text()
}
