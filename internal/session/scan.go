package session

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/abhed/abhed/internal/chain"
	"github.com/abhed/abhed/internal/event"
)

// class says what a line of a record is to a reader.
type class int

const (
	// sound is the next event of the chain.
	sound class = iota
	// mended is the next event of the chain with something else on its line.
	mended
	// blank holds no event: zero bytes that a crash left, or nothing.
	blank
	// repeated is an event that was read before.
	repeated
	// torn is a last line that a crash cut.
	torn
	// broken is none of these: the chain does not go on here.
	broken
)

// item is one line as read. ev is set if class is sound or mended; what says
// what is wrong, "" if nothing is.
type item struct {
	line  chain.Line
	class class
	ev    event.Event
	what  string
}

func (it *item) accepted() bool { return it.class <= mended }

func (it *item) problem() chain.Problem {
	return chain.Problem{Line: it.line.Number, Offset: it.line.Offset, Seq: it.ev.Seq, What: it.what}
}

// scanner reads a record line by line and takes the events that are chained to
// the first one. It looks on behind a fault.
type scanner struct {
	lines   *chain.Reader
	chain   chain.Checker
	dec     event.Decoder
	session string
	hashes  [][32]byte // of the accepted events, to know them when they come again
}

func newScanner(r io.Reader, blob func(sum string, size int64) (string, error)) *scanner {
	return &scanner{lines: chain.NewReader(r), dec: event.Decoder{Blob: blob}}
}

// next returns the next line, or io.EOF.
func (s *scanner) next() (item, error) {
	l, err := s.lines.Next()
	if err != nil {
		return item{}, err
	}
	it := item{line: l}
	data := bytes.Trim(l.Data, "\x00")
	if l.TooLong {
		it.class, it.what = broken, chain.Form(l).Error()
		return it, nil
	}
	if len(data) == 0 && l.Whole {
		it.class, it.what = blank, fmt.Sprintf("%d zero bytes and no event", len(l.Data))
		return it, nil
	}
	it.ev, err = s.take(l.Data, &it)
	if err == nil {
		return it, nil
	}
	if s.recover(&it) {
		return it, nil
	}
	switch {
	case !l.Whole && it.ev.Seq == 0: // a whole event out of place is no torn one
		it.class, it.what = torn, "the last line was cut off while it was written"
	case s.seen(it.ev):
		it.class, it.what = repeated, "the event stands in the record already"
	default:
		it.class, it.what = broken, err.Error()
	}
	return it, nil
}

// take accepts data as the next event, or says why not. On error the event
// returned is what could be read of it.
func (s *scanner) take(data []byte, it *item) (event.Event, error) {
	e, err := s.dec.Decode(data)
	var pe *event.PayloadError
	if err != nil && !errors.As(err, &pe) {
		return e, err
	}
	if s.session != "" && e.SessionID != s.session {
		return e, fmt.Errorf("it belongs to the session %s, this is the record of %s", e.SessionID, s.session)
	}
	if err := s.chain.Check(data, chain.Link{Seq: e.Seq, Prev: e.Prev, Hash: e.Hash}); err != nil {
		return e, err
	}
	s.session = e.SessionID
	var h [32]byte
	hex.Decode(h[:], []byte(e.Hash)) // Check has seen to its form
	s.hashes = append(s.hashes, h)
	if pe != nil {
		it.what = "what the event holds can't be read: " + pe.Error()
	}
	return e, nil
}

// recover looks for the next event behind something else on its line: zero
// bytes, or the start of an event that was written again in full.
func (s *scanner) recover(it *item) bool {
	data := it.line.Data
	rest := bytes.TrimRight(data, "\x00")
	for range 8 {
		at := bytes.LastIndex(rest, []byte(`{"actor":`))
		if at < 0 {
			return false
		}
		candidate := bytes.TrimRight(data[at:], "\x00")
		if len(candidate) < len(data) {
			if e, err := s.take(candidate, it); err == nil {
				it.class, it.ev = mended, e
				it.what = fmt.Sprintf("%d bytes beside the event, which are passed over", len(data)-len(candidate))
				return true
			}
		}
		rest = rest[:at]
	}
	return false
}

// seen reports whether e, which was decoded but is not the next event, is one of
// those accepted.
func (s *scanner) seen(e event.Event) bool {
	if e.Seq < 1 || e.Seq > int64(len(s.hashes)) {
		return false
	}
	h, err := hex.DecodeString(e.Hash)
	return err == nil && bytes.Equal(h, s.hashes[e.Seq-1][:])
}

// signature is a head.signed event that names the head before it.
type signature struct {
	at   int64 // the event's number
	head chain.Head
	key  string
	sig  string
	item chain.Problem // the place, without what
}

// signatureOf reads a head.signed event that follows prev. what says why it is
// none that can be verified.
func signatureOf(it *item, prev chain.Head) (sig signature, what string) {
	p, ok := it.ev.Payload.(*event.HeadSigned)
	if !ok {
		return signature{}, ""
	}
	if p.Seq != prev.Seq || p.Head != prev.Hash {
		return signature{}, fmt.Sprintf("the signature names event %d with the hash %s, the event before it is %d with %s", p.Seq, p.Head, prev.Seq, prev.Hash)
	}
	place := it.problem()
	place.What = ""
	return signature{at: it.ev.Seq, head: prev, key: p.KeyID, sig: p.Signature, item: place}, ""
}

// Read calls visit with every event of the record at path that is chained to the
// first, in order, while reading; long texts are loaded. It returns what was
// left out or wrong. It needs no lock: of a record that is being written it sees
// the events written so far. The error is visit's, or that of reading.
func Read(path string, visit func(event.Event) error) ([]chain.Problem, error) {
	f, err := openRecord(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	dir := blobDir(path)
	var problems []chain.Problem
	s := newScanner(f, func(sum string, size int64) (string, error) { return readBlob(dir, sum, size) })
	for {
		it, err := s.next()
		if err == io.EOF {
			return problems, nil
		}
		if err != nil {
			return problems, fmt.Errorf("%s: %w", path, err)
		}
		if it.what != "" {
			problems = append(problems, it.problem())
		}
		if it.accepted() {
			if err := visit(it.ev); err != nil {
				return slices.Clip(problems), err
			}
		}
	}
}
