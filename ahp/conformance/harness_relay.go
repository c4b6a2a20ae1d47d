package conformance

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/abhed/abhed/internal/strictjson"
)

// The suite plays a stdio backend by a small program that the harness starts, the
// relay: it joins its standard streams to the suite, which decides every byte and
// the exit code. Both ways the connection carries frames: a kind, four bytes of
// length, big endian, and so many bytes.
const (
	frameHello  = 'h' // to the suite, first: a hello as JSON
	frameInput  = 'i' // to the suite: what came on standard input
	frameEOF    = 'f' // to the suite: standard input has ended
	frameGo     = 'g' // to the relay: start reading
	frameOutput = 'o' // to the relay: write this to standard output
	frameStderr = 'e' // to the relay: write this to standard error
	frameExit   = 'x' // to the relay: end with this code, in decimal
)

// maxFrame bounds one frame; longer data goes in several.
const maxFrame = 1 << 20

// hello is how a relay says who it is.
type hello struct {
	Key string `json:"key"`
	// Names are those of its environment variables: a harness should give a backend
	// few.
	Names []string `json:"names"`
}

// Relay is the program that a harness under test starts as its stdio backend. args
// are the last two arguments of HarnessOptions.Relay as the registration has them:
// an address of the suite and a key. It returns the exit code when the suite says
// so or is gone.
func Relay(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) != 2 {
		fmt.Fprintln(stderr, "relay: usage: ADDRESS KEY; the conformance suite for harnesses starts this")
		return 2
	}
	conn, err := net.DialTimeout("tcp", args[0], 10*time.Second)
	if err != nil {
		fmt.Fprintln(stderr, "relay:", err)
		return 1
	}
	defer conn.Close()
	var names []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	first, err := strictjson.Marshal(hello{Key: args[1], Names: names})
	if err != nil {
		return 1
	}
	w := &frameWriter{w: conn}
	if err := w.write(frameHello, first); err != nil {
		return 1
	}
	return follow(conn, w, stdin, stdout, stderr)
}

// follow does what the suite says until it says the end, or nothing more.
func follow(conn io.Reader, w *frameWriter, stdin io.Reader, stdout, stderr io.Writer) int {
	r := bufio.NewReader(conn)
	for {
		kind, data, err := readFrame(r)
		if err != nil {
			return 0
		}
		switch kind {
		case frameGo:
			// It ends with standard input or the process, whichever comes first.
			go forward(stdin, w)
		case frameOutput:
			if _, err := stdout.Write(data); err != nil {
				return 1
			}
		case frameStderr:
			if _, err := stderr.Write(data); err != nil {
				return 1
			}
		case frameExit:
			code, err := strconv.Atoi(string(data))
			if err != nil {
				return 1
			}
			return code
		}
	}
}

// forward sends what comes on standard input.
func forward(stdin io.Reader, w *frameWriter) {
	buf := make([]byte, 64<<10)
	for {
		n, err := stdin.Read(buf)
		if n > 0 && w.write(frameInput, buf[:n]) != nil {
			return
		}
		if err != nil {
			_ = w.write(frameEOF, nil) // a suite that is gone needs no word
			return
		}
	}
}

// frameWriter writes frames; its methods may be called from any goroutine.
type frameWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// write sends data as one frame, or as several if it is long.
func (f *frameWriter) write(kind byte, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		part := data[:min(len(data), maxFrame)]
		data = data[len(part):]
		head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(part)))
		if _, err := f.w.Write(append(head, part...)); err != nil {
			return err
		}
		if len(data) == 0 {
			return nil
		}
	}
}

// as returns a writer whose data goes out in frames of a kind.
func (f *frameWriter) as(kind byte) io.Writer { return framed{f, kind} }

type framed struct {
	to   *frameWriter
	kind byte
}

func (f framed) Write(p []byte) (int, error) {
	if err := f.to.write(f.kind, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

func readFrame(r *bufio.Reader) (byte, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return 0, nil, errors.New("a frame is too long")
	}
	data := make([]byte, n)
	_, err := io.ReadFull(r, data)
	return head[0], data, err
}
