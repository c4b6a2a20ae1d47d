package inspect

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/abhed/abhed/internal/strictjson"
)

// Bounds of what is kept, where the options don't say, and of who reads it.
const (
	defaultEntries = 2000
	defaultBytes   = 64 << 20
	maxReaders     = 16
	maxBehind      = 512 // updates that wait for one reader
	maxSamples     = 1000
)

// journal keeps the latest entries, and tells readers of each change.
type journal struct {
	maxEntries, maxBytes int

	mu      sync.Mutex // guards what follows, and every Entry
	seq     int64
	entries []*kept // oldest first
	bytes   int
	readers map[*reader]bool
	closed  bool
	samples map[string]*samples // by backend
	order   []string            // of samples, by first use
}

// kept is an entry with the size that it was counted for.
type kept struct {
	*Entry
	bytes int
}

// reader gets the entries as they change, each encoded.
type reader struct {
	updates chan []byte
	// dropped tells that the reader was too slow, or that there is nothing more.
	dropped chan struct{}
}

func newJournal(entries, bytes int) *journal {
	if entries <= 0 {
		entries = defaultEntries
	}
	if bytes <= 0 {
		bytes = defaultBytes
	}
	return &journal{maxEntries: entries, maxBytes: bytes, readers: map[*reader]bool{}, samples: map[string]*samples{}}
}

// begin adds an entry for a message.
func (j *journal) begin(at time.Time, msg []byte) *Entry {
	e := newEntry(at, msg)
	j.add(e)
	return e
}

func (j *journal) add(e *Entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.seq++
	e.Seq = j.seq
	j.entries = append(j.entries, &kept{e, 0})
	j.changed(e)
}

// update changes an entry.
func (j *journal) update(e *Entry, change func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change()
	j.changed(e)
}

// note adds a problem to the entry of ctx.
func (j *journal) note(ctx context.Context, problem string) {
	if e := entryOf(ctx); e != nil {
		j.update(e, func() { e.Problem = plain(problem) })
	}
}

// changed counts e anew, drops the oldest entries beyond the bounds, and tells the
// readers. It never waits: who is behind is dropped. The caller holds j.mu.
func (j *journal) changed(e *Entry) {
	at := j.find(e.Seq)
	if at < 0 {
		return // it is gone
	}
	k := j.entries[at]
	j.bytes -= k.bytes
	k.bytes = e.size()
	j.bytes += k.bytes
	gone := 0
	for len(j.entries)-gone > j.maxEntries || j.bytes > j.maxBytes && len(j.entries)-gone > 1 {
		j.bytes -= j.entries[gone].bytes
		gone++
	}
	j.entries = slices.Delete(j.entries, 0, gone)
	if len(j.readers) == 0 {
		return
	}
	msg, err := strictjson.Marshal(e.listed())
	if err != nil {
		return // captured texts are valid UTF-8
	}
	for r := range j.readers {
		select {
		case r.updates <- msg:
		default:
			j.drop(r)
		}
	}
}

// find returns the place of an entry, -1 for one that is gone. The caller holds
// j.mu.
func (j *journal) find(seq int64) int {
	if len(j.entries) == 0 {
		return -1
	}
	// Entries are numbered without gaps, and go from the front.
	at := seq - j.entries[0].Seq
	if at < 0 || at >= int64(len(j.entries)) {
		return -1
	}
	return int(at)
}

// drop ends a reader. The caller holds j.mu.
func (j *journal) drop(r *reader) {
	if j.readers[r] {
		delete(j.readers, r)
		close(r.dropped)
	}
}

// read returns all entries, encoded, and a reader for what follows; nil if there
// are too many readers, or after close. leave ends it.
func (j *journal) read() (now [][]byte, r *reader, leave func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed || len(j.readers) >= maxReaders {
		return nil, nil, nil
	}
	for _, k := range j.entries {
		if msg, err := strictjson.Marshal(k.listed()); err == nil {
			now = append(now, msg)
		}
	}
	r = &reader{updates: make(chan []byte, maxBehind), dropped: make(chan struct{})}
	j.readers[r] = true
	return now, r, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.drop(r)
	}
}

// entry returns one entry with its messages, encoded, or nil.
func (j *journal) entry(seq int64) ([]byte, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := j.find(seq)
	if at < 0 {
		return nil, nil
	}
	return strictjson.Marshal(j.entries[at].Entry)
}

// close ends the readers.
func (j *journal) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	for r := range j.readers {
		j.drop(r)
	}
}

// samples are the latest latencies of one backend.
type samples struct {
	took          []float64 // a ring once it is full
	next          int
	count, failed int64
}

// Latency is what the page shows of one backend, in milliseconds over the latest
// 1000 requests.
type Latency struct {
	Backend string `json:"backend"`
	// Count is how often it was asked, and Failed how often in vain.
	Count  int64   `json:"count"`
	Failed int64   `json:"failed"`
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	Max    float64 `json:"max"`
}

// measure adds one request to a backend.
func (j *journal) measure(backend string, took time.Duration, failed bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.samples[backend]
	if s == nil {
		s = &samples{}
		j.samples[backend] = s
		j.order = append(j.order, backend)
	}
	s.count++
	if failed {
		s.failed++
	}
	if len(s.took) < maxSamples {
		s.took = append(s.took, milliseconds(took))
		return
	}
	s.took[s.next] = milliseconds(took)
	s.next = (s.next + 1) % maxSamples
}

// latencies returns the figures of every backend that was asked.
func (j *journal) latencies() []Latency {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := []Latency{}
	for _, name := range j.order {
		s := j.samples[name]
		sorted := slices.Sorted(slices.Values(s.took))
		out = append(out, Latency{Backend: name, Count: s.count, Failed: s.failed, Median: rank(sorted, 50), P95: rank(sorted, 95), Max: sorted[len(sorted)-1]})
	}
	return out
}

// rank returns the smallest sample that percent of them don't exceed.
func rank(sorted []float64, percent int) float64 {
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}
