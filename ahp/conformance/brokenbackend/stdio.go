package brokenbackend

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// stdio is how a process misbehaves as one.
type stdio struct {
	banner string
	// twice answers discovery twice.
	twice bool
	// pieces takes what arrives for a message, even without a newline.
	pieces bool
	// firstOfThree drops all but the first of three lines that arrive at once.
	firstOfThree bool
	// failAt makes the message with that number fail.
	failAt        int
	ignoresEnd    bool
	ignoresSignal bool
	// status and observeStatus are exit codes after requests and after an
	// observation.
	status, observeStatus int
	unbounded             bool
	// noise writes to standard error, and each answer in two parts.
	noise bool
}

// errBroken ends the process, or cuts the connection.
var errBroken = errors.New("brokenbackend: broken on purpose")

// Main serves the backend with the mutation on standard input and output, and ends
// the program.
func Main(m Mutation) {
	if m.stdio.ignoresSignal {
		signal.Ignore(syscall.SIGTERM)
	}
	os.Exit(newPeer(m).serve(os.Stdin, os.Stdout))
}

// serve answers line after line and returns the exit code.
func (b *peer) serve(in io.Reader, out io.Writer) (code int) {
	defer func() {
		if v := recover(); v != nil {
			if v != any(errBroken) {
				panic(v)
			}
			code = 2
		}
	}()
	io.WriteString(out, b.stdio.banner)
	var buf []byte
	chunk := make([]byte, 64<<10)
	last := []byte(nil)
	for {
		n, err := in.Read(chunk)
		buf = append(buf, chunk[:n]...)
		if b.stdio.pieces && n > 0 && n < 4096 && chunk[n-1] != '\n' {
			buf = nil
		}
		if end := bytes.LastIndexByte(buf, '\n'); end >= 0 {
			lines := bytes.Split(buf[:end], []byte("\n"))
			buf = bytes.Clone(buf[end+1:])
			if b.stdio.firstOfThree && len(lines) >= 3 {
				lines = lines[:1]
			}
			for _, line := range lines {
				b.line(line, out)
				last = line
			}
		}
		if err != nil {
			return b.ended(last)
		}
	}
}

// line answers one line.
func (b *peer) line(line []byte, out io.Writer) {
	if len(line) > MaxBytes && !b.stdio.unbounded {
		out.Write(append(failure(nil, -32600), '\n'))
		return
	}
	o := parse(line)
	if b.stdio.failAt > 0 && o != nil && intercepts(o) && b.counted("lines") == b.stdio.failAt {
		out.Write(append(failure(o["id"], -32004), '\n'))
		return
	}
	reply, _ := b.Handle(context.Background(), line)
	if reply == nil {
		return
	}
	reply = append(bytes.Clone(reply), '\n')
	if b.stdio.noise {
		os.Stderr.WriteString(strings.Repeat("{\"jsonrpc\":\"2.0\"} is what I am thinking of\n", 50))
		out.Write(reply[:len(reply)/2])
		time.Sleep(time.Millisecond)
		reply = reply[len(reply)/2:]
	}
	out.Write(reply)
	if b.stdio.twice && o["method"] == "hooks/capabilities" {
		out.Write(reply)
	}
}

// ended returns the exit code after the end of the input.
func (b *peer) ended(last []byte) int {
	if b.stdio.ignoresEnd {
		time.Sleep(time.Hour)
	}
	if o := parse(last); o != nil && observes(o) {
		return b.stdio.observeStatus
	}
	return b.stdio.status
}

func stdioMutations() []Mutation {
	return []Mutation{
		{Check: "stdio.output", About: "says on standard output that it is there", stdio: stdio{banner: "listening\n"}},
		{Check: "stdio.once", About: "answers discovery twice", stdio: stdio{twice: true}},
		{Check: "stdio.sequence", About: "fails at its hundredth request", stdio: stdio{failAt: 100}},
		{Check: "stdio.split", About: "takes each read for a message", stdio: stdio{pieces: true}},
		{Check: "stdio.joined", About: "drops lines that arrive together", stdio: stdio{firstOfThree: true}},
		{Check: "stdio.end", About: "outlives its input", stdio: stdio{ignoresEnd: true}},
		{Check: "stdio.end-status", About: "ends with 3", stdio: stdio{status: 3}},
		{Check: "stdio.signal", About: "ignores SIGTERM", stdio: stdio{ignoresSignal: true}},
		{Check: "per-event.end", About: "outlives its message", stdio: stdio{ignoresEnd: true}},
		{Check: "per-event.status", About: "ends with 3 after an answer", stdio: stdio{status: 3}},
		{Check: "per-event.observe", About: "ends with 3 after an observation", stdio: stdio{observeStatus: 3}},
	}
}
