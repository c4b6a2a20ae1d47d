package proc

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"sync"
)

// tail reads standard error, keeps its end and hands out its lines.
type tail struct {
	file *os.File
	done chan struct{} // closed when pump has ended

	mu   sync.Mutex
	last []byte // the newest bytes; at most twice limit
	size int
}

func newTail(f *os.File, size int) *tail {
	return &tail{file: f, size: size, done: make(chan struct{})}
}

// pump reads until the end of the stream or until end is called.
func (t *tail) pump(onLine func(string)) {
	defer close(t.done)
	defer t.file.Close()
	lines := lineCutter{emit: onLine}
	buf := make([]byte, 8<<10)
	for {
		n, err := t.file.Read(buf)
		t.keep(buf[:n])
		lines.add(buf[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			rest := drain(t.file, maxDrain)
			t.keep(rest)
			lines.add(rest)
		}
		if err != nil {
			lines.flush()
			return
		}
	}
}

// end makes pump take what is there and return.
func (t *tail) end() { t.file.SetReadDeadline(past) }

func (t *tail) keep(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(p) > t.size {
		p = p[len(p)-t.size:]
	}
	if len(t.last)+len(p) > 2*t.size {
		t.last = append(t.last[:0], t.last[len(t.last)-t.size:]...)
	}
	t.last = append(t.last, p...)
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.ToValidUTF8(string(t.last[max(0, len(t.last)-t.size):]), "\uFFFD")
}

// lineCutter turns a stream into lines of at most maxLine bytes. What is longer
// is given out in its first maxLine bytes; the rest of the line is dropped.
type lineCutter struct {
	emit func(string)
	part []byte
	over bool
}

func (l *lineCutter) add(p []byte) {
	if l.emit == nil {
		return
	}
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte{'\n'})
		room := maxLine - len(l.part)
		l.over = l.over || len(line) > room
		l.part = append(l.part, line[:min(len(line), room)]...)
		if ended {
			l.out()
		}
		p = rest
	}
}

func (l *lineCutter) flush() {
	if l.emit != nil && len(l.part) > 0 {
		l.out()
	}
}

func (l *lineCutter) out() {
	line := strings.ToValidUTF8(string(bytes.TrimSuffix(l.part, []byte{'\r'})), "\uFFFD")
	if l.over {
		line += " …(cut)"
	}
	l.emit(line)
	l.part, l.over = l.part[:0], false
}
