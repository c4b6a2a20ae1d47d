package transport

import (
	"context"
	"crypto/sha256"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/proc"
)

// conn is one running process and the goroutine that reads it.
type conn struct {
	child  *proc.Child
	ctx    context.Context // ends when the conn is over
	cancel context.CancelFunc
	over   chan struct{} // closed when the reader has left and the process is reaped

	mu      sync.Mutex
	pending *pending
	// owed holds the replies that nobody waits for any more, by id; debts is how
	// many they are.
	owed  map[ahp.ID]*debt
	debts int
	// settled holds the ids of the last replies that were handed over, as a ring.
	settled [maxSettled]ahp.ID
	at      int
	strays  int
	invalid int // replies in a row that whoever asked found to be no valid messages
	// ignored counts the lines that went to nobody; it outlives the conn.
	ignored *atomic.Int64
	failure error // why the conn ended, once it has
}

// pending is a request that waits for its reply.
type pending struct {
	id   ahp.ID
	msg  []byte
	done chan answer // has room for one
	// skip counts the replies to come that are to earlier requests of this id.
	skip int
}

// debt is the replies that may still come to abandoned requests of one id.
type debt struct {
	replies int
	sum     [sha256.Size]byte // of the message that was abandoned
	mixed   bool              // several messages were
}

func newConn(child *proc.Child, ignored *atomic.Int64) *conn {
	c := &conn{child: child, over: make(chan struct{}), owed: map[ahp.ID]*debt{}, ignored: ignored}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	go c.read()
	return c
}

// watch ends the output when the process has exited: something that it left
// behind may hold the pipe open. What is in the pipe stays readable.
func (c *conn) watch() {
	select {
	case <-c.child.Done():
		c.child.Stop()
	case <-c.ctx.Done():
	}
}

// read delivers lines until the process or the conn ends.
func (c *conn) read() {
	defer close(c.over)
	var watcher sync.WaitGroup
	watcher.Go(c.watch)
	defer watcher.Wait()
	defer c.cancel()
	var in splitter
	for {
		chunk, err := c.child.Read(c.ctx)
		if err != nil {
			c.lost(err, len(in.held) > 0)
			return
		}
		if err = c.chunk(&in, chunk); err != nil {
			c.fail(err)
			c.child.Kill()
			return
		}
	}
}

// chunk delivers the lines that a chunk of output completes.
func (c *conn) chunk(in *splitter, chunk []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return in.feed(chunk, func(line []byte) error {
		c.deliver(line)
		if c.strays > maxStrays {
			return &ahp.Failure{Class: ahp.FailMalformed, Detail: "the backend was ended: too many lines of output that answer nothing, the last " + excerpt(line)}
		}
		return nil
	})
}

// deliver hands a line to whoever it is for; the caller holds c.mu. Replies that
// are late, or repeat one that was handed over, are ignored and counted (§16). Any
// other line that is no reply to the pending request fails it (spec §29, stdio
// extra output): it is handed over as it is, and decoding says what is wrong with
// it.
func (c *conn) deliver(line []byte) {
	id, ok := ahp.MessageID(line)
	p := c.pending
	mine := ok && p != nil && p.id == id
	switch {
	case mine && p.skip > 0:
		p.skip--
		c.paid(id)
		c.ignored.Add(1)
		return
	case ok && !mine && c.owed[id] != nil:
		c.paid(id)
		c.ignored.Add(1)
		return
	case p == nil, ok && !mine && slices.Contains(c.settled[:], id):
		c.strays++
		c.ignored.Add(1)
		return
	case mine:
		c.strays = 0
		c.settled[c.at%maxSettled] = id
		c.at++
	default:
		c.strays++
		c.owe(p)
	}
	c.pending = nil
	// What follows in the chunk is no business of the reply's owner.
	p.done <- answer{reply: line[:len(line):len(line)], own: mine}
}

// owe notes that the reply to p is to be dropped; the caller holds c.mu.
func (c *conn) owe(p *pending) {
	c.debts++
	sum := sha256.Sum256(p.msg)
	d := c.owed[p.id]
	if d == nil {
		c.owed[p.id] = &debt{replies: 1, sum: sum}
		return
	}
	d.replies++
	d.mixed = d.mixed || d.sum != sum
}

// paid notes that a reply was dropped; the caller holds c.mu.
func (c *conn) paid(id ahp.ID) {
	d := c.owed[id]
	if d == nil {
		return
	}
	c.debts--
	if d.replies--; d.replies == 0 {
		delete(c.owed, id)
	}
}

// expect registers the request that is about to be sent. msg must not change while
// the request is pending.
func (c *conn) expect(id ahp.ID, msg []byte) *pending {
	p := &pending{id: id, msg: msg, done: make(chan answer, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure != nil {
		p.done <- answer{err: c.failure}
		return p
	}
	// A retry is the same message, and an answer to either is an answer to both
	// (§14). But two subscriptions of a backend are asked about one event with the
	// same id and other content: an answer to one is none to the other. They are
	// told apart by their order.
	if d := c.owed[id]; d != nil && (d.mixed || d.sum != sha256.Sum256(msg)) {
		p.skip = d.replies
	}
	c.pending = p
	return p
}

// forget withdraws a request that was not sent.
func (c *conn) forget(p *pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pending == p {
		c.pending = nil
	}
}

// abandon gives up a request whose reply may still come.
func (c *conn) abandon(p *pending) {
	c.mu.Lock()
	hung := false
	if c.pending == p {
		c.pending = nil
		c.owe(p)
		hung = c.debts > maxAbandoned
	}
	c.mu.Unlock()
	if hung {
		c.end(&ahp.Failure{Class: ahp.FailDeadline, Detail: "the backend was ended: it left too many requests unanswered"})
	}
}

// judged takes note of whether a reply was a valid message.
func (c *conn) judged(valid bool) {
	c.mu.Lock()
	c.invalid++
	if valid {
		c.invalid = 0
	}
	broken := c.invalid >= maxInvalid
	c.mu.Unlock()
	if broken {
		c.end(&ahp.Failure{Class: ahp.FailMalformed, Detail: "the backend was ended: too many replies in a row were no valid messages"})
	}
}

// lost ends a conn whose process closed its output, died or was told to end.
func (c *conn) lost(err error, midLine bool) {
	if err == io.EOF {
		// How it exited is known a moment after its output ended, if it exits.
		exit := c.child.Stop()
		what := "the backend ended"
		if exit != (proc.Exit{}) || midLine {
			what = "the backend ended before it replied"
		}
		if midLine {
			what += ", in the middle of a line"
		}
		c.fail(exitFailure(c.child, what))
		return
	}
	c.child.Kill()
	c.fail(closedFailure())
}

// fail records the first reason and gives it to whoever waits.
func (c *conn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.failure == nil {
		c.failure = err
	}
	if c.pending != nil {
		c.pending.done <- answer{err: c.failure}
		c.pending = nil
	}
}

// end kills the process and waits until it is gone. A nil reason leaves it to the
// reader to say why.
func (c *conn) end(reason error) {
	if reason != nil {
		c.fail(reason)
	}
	c.child.Kill()
	<-c.over
}

// close ends the process politely and waits until it is gone.
func (c *conn) close() {
	c.fail(closedFailure())
	c.child.Stop()
	c.cancel()
	<-c.over
}

func (c *conn) dead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure != nil
}

// why returns the reason why the conn ended.
func (c *conn) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failure
}
