package elicitation

import (
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/abhed/abhed/ahp"
)

// maxWaitingBytes bounds the texts of all requests that wait in one table: what is
// kept of a form takes a few times the memory of its text.
const maxWaitingBytes = 4 << 20

// maxAge is how long a request waits for certain: one that is older gives up its
// place when another needs it. Somebody began it and forgot it.
const maxAge = time.Hour

// ErrFull is what Pending.Add returns where as many requests wait as may, or as
// much of them.
var ErrFull = errors.New("elicitation: too many requests wait for an answer")

// Pending holds the requests that wait for an answer, by the source and id of
// their events. Its methods may be called from any goroutine.
type Pending struct {
	max     int
	mu      sync.Mutex
	waiting map[key]*entry
	bytes   int // of the texts
}

type key struct{ source, id string }

// entry is one request that waits. It isn't changed.
type entry struct {
	session string // "" is none: the id of a session isn't empty
	server  string
	digest  [sha256.Size]byte // of the text
	size    int
	since   time.Time
	request *Request
}

// NewPending returns a table for at most max requests, whose texts have at most
// 4 MiB together; zero means 1024. Where that isn't enough, requests that have waited
// for more than an hour are dropped.
func NewPending(max int) *Pending {
	if max == 0 {
		max = 1024
	}
	return &Pending{max: max, waiting: map[key]*entry{}}
}

// Add reads the request of e, as OfRequest does, and lets it wait for its answer. It
// is no fault to add the same event again, as a retry does; another one with its
// identity is refused. The error is an *ahp.Error or ErrFull.
func (t *Pending) Add(e *ahp.Event) (*Request, error) {
	q, err := OfRequest(e)
	if err != nil {
		return nil, err
	}
	in := &entry{session: sessionOf(e), server: e.Elicitation.Server, since: time.Now(), request: q}
	if p := e.Elicitation.Request; p != nil && p.Text != nil {
		in.digest, in.size = sha256.Sum256([]byte(*p.Text)), len(*p.Text)
	}
	k := key{e.Source, e.ID}
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.waiting[k]; old != nil {
		if old.session != in.session || old.server != in.server || old.digest != in.digest || old.request.Mode != q.Mode {
			return nil, mismatch("/id", "the id of another request", "an id for each request")
		}
		return old.request, nil
	}
	if !t.fits(in) {
		t.expire(in.since)
	}
	if !t.fits(in) {
		return nil, ErrFull
	}
	t.waiting[k] = in
	t.bytes += in.size
	return q, nil
}

// fits wants t.mu to be held.
func (t *Pending) fits(in *entry) bool {
	return len(t.waiting) < t.max && t.bytes+in.size <= maxWaitingBytes
}

// expire wants t.mu to be held.
func (t *Pending) expire(now time.Time) {
	for k, in := range t.waiting {
		if now.Sub(in.since) > maxAge {
			t.remove(k)
		}
	}
}

// Drop forgets the request of the event with that source and id, as when it was
// refused: no answer will come.
func (t *Pending) Drop(source, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.remove(key{source, id})
}

// remove wants t.mu to be held.
func (t *Pending) remove(k key) {
	if in := t.waiting[k]; in != nil {
		t.bytes -= in.size
		delete(t.waiting, k)
	}
}

// Len returns how many requests wait.
func (t *Pending) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waiting)
}

// Take matches the result e with the request that waits for it, reads it as
// OfResult does, and lets that request wait no longer. The request is that of the
// event which e names as its parent, of the same source; session, server and mode
// are equal. All of that is checked before the content is read. An error leaves the
// request waiting. It is an *ahp.Error: of KindCorrelation if nothing that waits
// matches, or if another answer came first. The result is nil if e has no body.
func (t *Pending) Take(e *ahp.Event) (*Request, *Result, error) {
	if e == nil || e.Type != ahp.UserElicitationResult || e.Elicitation == nil {
		return nil, nil, envelope("/type", "another event", string(ahp.UserElicitationResult))
	}
	k := key{e.Source, e.ParentEventID}
	in, err := t.find(k, e)
	if err != nil {
		return nil, nil, err
	}
	r, err := OfResult(e, in.request)
	if err != nil {
		return nil, nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting[k] != in {
		return nil, nil, mismatch("/parentEventId", "a request that has been answered meanwhile", "one that waits for its answer")
	}
	t.remove(k)
	return in.request, r, nil
}

func (t *Pending) find(k key, e *ahp.Event) (*entry, error) {
	t.mu.Lock()
	in := t.waiting[k]
	t.mu.Unlock()
	switch {
	case k.id == "":
		return nil, mismatch("/parentEventId", "none", "the id of the request's event")
	case in == nil:
		return nil, mismatch("/parentEventId", quote(k.id), "the id of a request that waits for its answer, of the same source")
	case in.session != sessionOf(e):
		return nil, mismatch("/session", quote(sessionOf(e)), "the session of the request")
	case in.server != e.Elicitation.Server:
		return nil, mismatch("/elicitation/server", quote(e.Elicitation.Server), "the server of the request")
	case string(in.request.Mode) != e.Elicitation.Mode:
		return nil, mismatch("/elicitation/mode", quote(e.Elicitation.Mode), "the mode of the request")
	}
	return in, nil
}

func sessionOf(e *ahp.Event) string {
	if e.Session == nil {
		return ""
	}
	return e.Session.ID
}

func mismatch(pointer, found, expected string) *ahp.Error {
	return &ahp.Error{Kind: ahp.KindCorrelation, Pointer: pointer, Offset: -1, Found: found, Expected: expected}
}
