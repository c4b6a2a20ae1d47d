package session

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/abhed/abhed/internal/chain"
	"github.com/abhed/abhed/internal/event"
)

const (
	// maxPending is how much is kept in memory before a batch is written, in
	// bytes.
	maxPending = 256 << 10
	// blobOver is the length above which text is kept beside the file, in bytes.
	blobOver = 64 << 10
)

// ErrClosed is what a closed session answers.
var ErrClosed = errors.New("the session is closed")

// FailedError says that a record could not be written. It is the answer to every
// append from then on.
type FailedError struct {
	Path string
	Err  error
}

// Error names the file, the cause and what to do.
func (e *FailedError) Error() string {
	return fmt.Sprintf("the record %s can't be written (%v): nothing more is accepted in this run; mend the cause, then resume the session", e.Path, e.Err)
}

// Unwrap returns the cause.
func (e *FailedError) Unwrap() error { return e.Err }

// Session is the record of one session, open for writing. It is safe for
// concurrent use; Close ends it.
type Session struct {
	id    string
	path  string
	store *Store
	f     file
	lock  *lock

	mu   sync.Mutex
	cond sync.Cond // a write ended; guards nothing but waiting
	enc  event.Encoder
	buf  []byte // encoded, not yet handed to a write
	free []byte // the buffer of the last write, to be used again
	head chain.Head
	// synced is the number of the last event that is on disk, signed that of the
	// last head.signed event.
	synced, signed int64
	signNext       bool // the next event is followed by a signature
	writing        bool // one goroutine is writing, without mu
	failed         error
	closed         bool
	timer          *time.Timer
	armed          bool
	timers         sync.WaitGroup

	queue      []delivery
	delivering bool
	subs       []*subscriber
}

type delivery struct {
	ev      event.Event
	durable bool
}

type subscriber struct{ f func(event.Event) }

func newSession(s *Store, id, path string, f file, l *lock) *Session {
	ses := &Session{id: id, path: path, store: s, f: f, lock: l, head: chain.Head{Log: id}, signNext: true}
	ses.cond.L = &ses.mu
	ses.enc.BlobOver = blobOver
	if s.secrets != nil {
		ses.enc.Check = func(text string) bool { return !s.secrets.has(text) }
	}
	return ses
}

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// Path returns the record's file.
func (s *Session) Path() string { return s.path }

// Head returns where the record stands, events that are not yet on disk included.
func (s *Session) Head() chain.Head {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.head
}

// Append records d and returns the event as it is recorded. The event is on disk
// after the next AppendDurable, Sign or Close, and in the file after
// Options.FlushEvery at the latest; a reply of the model and the outcome of a call are
// in the file at once, so that the end of this process doesn't lose what was shown. The first event of a session, and the first
// after a resume, is durable and signed whichever method appends it.
//
// The payload must not be changed afterwards. An error means that d is not
// recorded: a *FailedError if writing failed, now or before, ErrClosed, or the
// encoder's if d can't be an event, after which the session can be used on.
func (s *Session) Append(d event.Draft) (event.Event, error) { return s.append(d, false) }

// AppendDurable records d like Append and returns when it is on disk, with every
// event before it. Concurrent calls share one fdatasync.
func (s *Session) AppendDurable(d event.Draft) (event.Event, error) { return s.append(d, true) }

func (s *Session) append(d event.Draft, durable bool) (event.Event, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return event.Event{}, ErrClosed
	}
	durable = durable || s.signNext
	e, err := s.add(d, durable)
	if err == nil && s.signNext {
		s.signNext = false
		err = s.addSignature()
	}
	switch {
	case err != nil:
	case durable:
		err = s.commit(s.head.Seq)
	case len(s.buf) > maxPending || acknowledged(d.Payload):
		err = s.flush()
	default:
		s.arm()
	}
	s.mu.Unlock()
	s.deliver()
	if err != nil {
		return event.Event{}, err
	}
	return e, nil
}

// acknowledged reports whether an event is in the file before anybody hears of it.
func acknowledged(p event.Payload) bool {
	_, reply := p.(*event.ModelResponded)
	_, outcome := p.(*event.ToolEnded)
	return reply || outcome
}

// Sign signs the head with the installation's key and returns when the signature
// is on disk. It does nothing but wait for the disk if nothing was recorded since
// the last signature.
func (s *Session) Sign() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrClosed
	}
	err := s.addSignature()
	if err == nil {
		err = s.commit(s.head.Seq)
	}
	s.mu.Unlock()
	s.deliver()
	return err
}

// Subscribe calls f with every event from now on, one at a time and in the order
// of the record: after the event is accepted and, if it is durable, after it is
// on disk. f runs in the goroutine of an append and may itself append; what it
// appends is delivered after it returns. An append that finds another goroutine
// delivering leaves its event to that one. cancel ends the subscription; a call
// under way is not waited for.
func (s *Session) Subscribe(f func(event.Event)) (cancel func()) {
	sub := &subscriber{f}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subs = append(s.subs, sub)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.subs = slices.DeleteFunc(slices.Clone(s.subs), func(o *subscriber) bool { return o == sub })
	}
}

// Close signs what is unsigned, puts everything on disk, and lets go of file and
// lock. A second call does nothing. A session without an event leaves no file.
// After a failed write Close reports that failure.
func (s *Session) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true // from here on only what is accepted already is written
	err := s.failed
	if err == nil && s.head.Seq > 0 {
		if err = s.addSignature(); err == nil {
			err = s.commit(s.head.Seq)
		}
	}
	for s.writing {
		s.cond.Wait()
	}
	if s.armed && s.timer.Stop() {
		s.timers.Done()
	}
	s.armed = false
	s.mu.Unlock()
	s.timers.Wait()
	s.deliver()
	if s.head.Seq == 0 && s.failed == nil {
		err = errors.Join(err, os.Remove(s.path))
	}
	return errors.Join(err, s.f.Close(), s.lock.release())
}

// add encodes d as the next event. The caller holds mu.
func (s *Session) add(d event.Draft, durable bool) (event.Event, error) {
	if s.failed != nil {
		return event.Event{}, s.failed
	}
	id, err := uuid.NewV7()
	if err != nil {
		return event.Event{}, fmt.Errorf("no event id can be made: %w", err)
	}
	e := event.Event{
		ID: id.String(), SessionID: s.id, Seq: s.head.Seq + 1, Time: time.Now().UTC(), Actor: d.Actor, Trust: d.Trust, Payload: d.Payload, Prev: s.head.Hash,
	}
	start := len(s.buf)
	line, err := s.encode(&e)
	if err != nil {
		return event.Event{}, err
	}
	for _, b := range line.Blobs {
		if err := s.store.writeBlob(s.path, b); err != nil {
			return event.Event{}, s.fail(err)
		}
	}
	e.Hash = chain.Stamp(line.Bytes[start:], line.HashAt-start)
	s.buf = append(line.Bytes, '\n')
	s.head.Seq, s.head.Hash = e.Seq, e.Hash
	if len(s.subs) > 0 {
		s.queue = append(s.queue, delivery{e, durable})
	}
	return e, nil
}

// encode appends e to the buffer's bytes. Text that may not be recorded as it is
// gets replaced, and e then holds what was recorded.
func (s *Session) encode(e *event.Event) (event.Line, error) {
	line, err := s.enc.Append(s.buf, e)
	if !errors.Is(err, event.ErrUnclean) {
		return line, err
	}
	e.Payload = event.MapStrings(e.Payload, func(text string) string { return s.store.secrets.replace(validText(text)) })
	// The replacement itself is no secret, whatever was registered.
	enc := event.Encoder{BlobOver: s.enc.BlobOver}
	return enc.Append(s.buf, e)
}

// addSignature appends a signature over the head unless the head is one.
func (s *Session) addSignature() error {
	switch {
	case s.failed != nil:
		return s.failed
	case s.head.Seq == s.signed:
		return nil
	}
	key := s.store.key
	_, err := s.add(event.Draft{Actor: event.ActorSystem, Trust: event.TrustHarness, Payload: &event.HeadSigned{
		Seq: s.head.Seq, Head: s.head.Hash, KeyID: key.ID(), Signature: key.Sign(s.head),
	}}, true)
	if err == nil {
		s.signed = s.head.Seq
	}
	return err
}

// commit returns when event seq is on disk. The first caller writes for all whose
// events are in the buffer by then; the others wait, and one of them writes for
// those that came meanwhile. The caller holds mu.
func (s *Session) commit(seq int64) error {
	for s.synced < seq && s.failed == nil {
		if s.writing {
			s.cond.Wait()
			continue
		}
		s.write(true)
	}
	if s.synced >= seq {
		return nil
	}
	return s.failed
}

// flush hands the buffer to the operating system. The caller holds mu.
func (s *Session) flush() error {
	for s.writing && s.failed == nil {
		s.cond.Wait()
	}
	if s.failed == nil && len(s.buf) > 0 {
		s.write(false)
	}
	return s.failed
}

// write writes the buffer, without mu meanwhile. The caller holds mu, and nobody
// is writing.
func (s *Session) write(sync bool) {
	batch, upTo := s.buf, s.head.Seq
	s.buf, s.free = s.free[:0], nil
	s.writing = true
	s.mu.Unlock()
	_, err := s.f.Write(batch)
	if err == nil && sync && !s.store.opts.NoSync {
		err = s.f.Datasync()
	}
	s.mu.Lock()
	s.writing = false
	if cap(batch) <= 4*maxPending {
		s.free = batch
	}
	switch {
	case err != nil:
		s.fail(err)
	case sync:
		s.synced = upTo
	}
	s.cond.Broadcast()
}

// fail makes err the answer to everything that follows.
func (s *Session) fail(err error) error {
	if s.failed == nil {
		s.failed = &FailedError{Path: s.path, Err: err}
	}
	return s.failed
}

// arm sees to it that the buffer is written within Options.FlushEvery.
func (s *Session) arm() {
	if s.armed || len(s.buf) == 0 {
		return
	}
	s.armed = true
	s.timers.Add(1)
	if s.timer == nil {
		s.timer = time.AfterFunc(s.store.opts.FlushEvery, s.onTimer)
	} else {
		s.timer.Reset(s.store.opts.FlushEvery)
	}
}

func (s *Session) onTimer() {
	defer s.timers.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.armed = false
	_ = s.flush() // a failure is kept, and the next append reports it
}

// deliver hands the subscribers what is due, unless another goroutine is at it.
func (s *Session) deliver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.delivering {
		return
	}
	s.delivering = true
	defer func() { s.delivering = false }()
	for len(s.queue) > 0 && (!s.queue[0].durable || s.queue[0].ev.Seq <= s.synced) {
		e := s.queue[0].ev
		s.queue[0] = delivery{}
		s.queue = s.queue[1:]
		s.call(s.subs, e)
	}
}

// call runs the subscribers without mu, which it holds again even if one of them
// panics.
func (s *Session) call(subs []*subscriber, e event.Event) {
	s.mu.Unlock()
	defer s.mu.Lock()
	for _, sub := range subs {
		sub.f(e)
	}
}

var _ io.Closer = (*Session)(nil)
