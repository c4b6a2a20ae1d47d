package brokenharness

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Mangle runs a backend's command between the harness and the suite, spoils what
// goes through as args[0] says, and returns the exit code.
func Mangle(args []string) int {
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return 1
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 1
	}
	if err := cmd.Start(); err != nil {
		return 1
	}
	m := &mangler{mode: args[0]}
	killed := make(chan struct{})
	m.enough = time.AfterFunc(time.Hour, func() { close(killed); _ = cmd.Process.Kill() })
	go m.forth(in)
	if m.mode == "open" {
		// The child doesn't learn that its input has ended, so somebody else ends it.
		m.back(out)
		_ = cmd.Wait()
		select {
		case <-killed:
			return 0
		default:
			return cmd.ProcessState.ExitCode()
		}
	}
	m.back(out)
	if err := cmd.Wait(); err != nil {
		return max(1, cmd.ProcessState.ExitCode())
	}
	return 0
}

type mangler struct {
	mode string
	mu   sync.Mutex
	ids  []string
	// enough ends the child.
	enough *time.Timer
}

// patience is how long a child may still say something.
const patience = 150 * time.Millisecond

// forth passes messages on.
func (m *mangler) forth(in io.WriteCloser) {
	r := bufio.NewReader(os.Stdin)
	open := false
	for {
		line, err := r.ReadString('\n')
		if line != "" {
			m.mu.Lock()
			if id, is := parsed([]byte(line))["id"].(string); is {
				m.ids = append(m.ids, id)
			}
			m.mu.Unlock()
			// Nobody could tell when a notification has been taken, so that its process
			// couldn't be ended.
			open = m.mode == "open" && parsed([]byte(line))["id"] != nil
			if m.mode == "blank" {
				line += "\n"
			}
			fmt.Fprint(in, line)
		}
		if err != nil {
			if !open {
				in.Close()
			}
			return
		}
	}
}

// back passes answers on.
func (m *mangler) back(out io.Reader) {
	r := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := r.ReadString('\n')
		if m.mode == "latest" {
			m.mu.Lock()
			last := m.ids[max(0, len(m.ids)-1):]
			for _, id := range m.ids {
				if len(last) > 0 {
					line = strings.ReplaceAll(line, id, last[0])
				}
			}
			m.mu.Unlock()
		}
		if _, werr := os.Stdout.WriteString(line); werr != nil || err != nil {
			return
		}
		if m.mode == "open" {
			m.enough.Reset(patience)
		}
	}
}
