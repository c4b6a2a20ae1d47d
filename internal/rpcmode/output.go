package rpcmode

import (
	"io"
	"sync"
	"time"
)

const (
	// maxWaiting bounds the bytes that wait to be written, in each of the two rows:
	// 64 MiB, and one line more.
	maxWaiting = 64 << 20
	// maxUrgent bounds the lines of the urgent row.
	maxUrgent = 4096
	// pieceSize is how much is written at once, so that a reader that takes little at
	// a time is seen to take something.
	pieceSize = 64 << 10
)

// output writes lines in the background. There are two rows: what is ordered keeps
// its order, what is urgent overtakes it. It is safe for concurrent use.
type output struct {
	w        io.Writer
	maxLines int
	// broken ends when a line could not be written; from then on lines are dropped.
	broken chan struct{}
	// calm has a token when the ordered row has been full and is half empty again.
	calm chan struct{}
	// written ends when nothing more is written.
	written chan struct{}

	mu      sync.Mutex
	changed *sync.Cond
	ordered row
	urgent  row
	free    bool // no bound holds any more
	closed  bool // no line comes any more
	full    bool // somebody had to wait, and it isn't half empty yet
	taken   int64
	err     error
}

// row is a queue of lines.
type row struct {
	lines [][]byte
	head  int
	bytes int
}

func (r *row) len() int { return len(r.lines) - r.head }

func (r *row) push(line []byte) {
	r.lines = append(r.lines, line)
	r.bytes += len(line)
}

func (r *row) pop() []byte {
	line := r.lines[r.head]
	r.lines[r.head] = nil
	r.head++
	r.bytes -= len(line)
	if r.head == len(r.lines) {
		r.lines, r.head = r.lines[:0], 0
	} else if r.head > 1024 && r.head > len(r.lines)/2 {
		n := copy(r.lines, r.lines[r.head:])
		clear(r.lines[n:])
		r.lines, r.head = r.lines[:n], 0
	}
	return line
}

func newOutput(w io.Writer, maxLines int) *output {
	o := &output{w: w, maxLines: maxLines, broken: make(chan struct{}), calm: make(chan struct{}, 1), written: make(chan struct{})}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// inOrder appends a line behind all that is ordered, once there is room for it, and
// returns how long that took.
func (o *output) inOrder(line []byte) time.Duration { return o.put(&o.ordered, o.maxLines, line) }

// atOnce sends a line ahead of all that is ordered.
func (o *output) atOnce(line []byte) { o.put(&o.urgent, maxUrgent, line) }

func (o *output) put(r *row, maxLines int, line []byte) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	var waited time.Duration
	if o.noRoom(r, maxLines, line) {
		start := time.Now()
		o.full = o.full || r == &o.ordered
		for o.noRoom(r, maxLines, line) {
			o.changed.Wait()
		}
		waited = time.Since(start)
	}
	if o.err == nil && !o.closed {
		r.push(line)
		o.changed.Broadcast()
	}
	return waited
}

func (o *output) noRoom(r *row, maxLines int, line []byte) bool {
	return !o.free && r.len() > 0 && (r.len() >= maxLines || r.bytes+len(line) > maxWaiting)
}

// release lifts the bounds: what is left to be said is little, and nobody may be held
// up by the reader any more.
func (o *output) release() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.free = true
	o.changed.Broadcast()
}

// write writes lines until the end.
func (o *output) write() {
	defer close(o.written)
	for {
		line := o.take()
		if line == nil {
			return
		}
		for len(line) > 0 {
			n, err := o.w.Write(line[:min(len(line), pieceSize)])
			if err != nil {
				o.fail(err)
				return
			}
			line = line[n:]
			o.mu.Lock()
			o.taken += int64(n)
			o.mu.Unlock()
		}
	}
}

// take returns the next line, nil when there will be none.
func (o *output) take() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.urgent.len() == 0 && o.ordered.len() == 0 {
		if o.closed {
			return nil
		}
		o.changed.Wait()
	}
	defer o.changed.Broadcast()
	if o.urgent.len() > 0 {
		return o.urgent.pop()
	}
	line := o.ordered.pop()
	if o.full && o.ordered.len() <= o.maxLines/2 && o.ordered.bytes <= maxWaiting/2 {
		o.full = false
		select {
		case o.calm <- struct{}{}:
		default:
		}
	}
	return line
}

// fail drops all that waits, and all that comes.
func (o *output) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err, o.free = err, true
	o.ordered, o.urgent = row{}, row{}
	o.changed.Broadcast()
	close(o.broken)
}

// finish waits until all lines are written, and gives up when the reader has taken
// nothing for the time of patience. It reports whether all was written.
func (o *output) finish(patience time.Duration) bool {
	o.mu.Lock()
	o.closed = true
	before := o.taken
	o.changed.Broadcast()
	o.mu.Unlock()
	for {
		select {
		case <-o.written:
			return o.fault() == nil
		case <-time.After(patience):
		}
		o.mu.Lock()
		now := o.taken
		o.mu.Unlock()
		if now == before {
			return false
		}
		before = now
	}
}

// fault returns why nothing is written any more, or nil.
func (o *output) fault() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
