package hookstate

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// ErrBusy tells that another process judges the same delivery and takes too long.
var ErrBusy = errors.New("another process is judging the same delivery and has not answered in time")

// A file of a delivery holds the time of the answer in nanoseconds, a hash over that
// and the answer, and the answer. One that is empty, or doesn't fit, has none: it is
// being judged, or who judged it died.
const (
	timeSize   = 8
	headerSize = timeSize + sha256.Size
)

// Once is OnceUntil with the time that Options.Wait gives.
func (x *Session) Once(key string, judge func() []byte) (answer []byte, again bool, err error) {
	return x.OnceUntil(time.Now().Add(x.store.opts.Wait), key, judge)
}

// OnceUntil returns what judge gives for a delivery, whose key is a hash of the native
// event, the call's id and the input. A delivery with the same key that comes while the
// first is judged, or within the window after it, gets the same answer, and again is
// true. If who judges dies, or panics, the next one judges. If somebody else judges
// still at the given time it is ErrBusy, and the caller has to judge by itself. With
// any other error, either judge was not called, or its answer could not be kept, in
// which case answer is set.
func (x *Session) OnceUntil(until time.Time, key string, judge func() []byte) (answer []byte, again bool, err error) {
	path := filepath.Join(x.store.deliveries, Key(x.host, x.session, key)+deliverySuffix)
	x.store.dropDeliveries(path)
	f, err := open(path, until)
	if errors.Is(err, errBusy) {
		return nil, false, ErrBusy
	}
	if err != nil {
		return nil, false, fmt.Errorf("the state of the delivery: %w", err)
	}
	defer f.Close() // unlocks it as well
	if kept, ok := x.store.kept(f); ok {
		return kept, true, nil
	}
	if answer = judge(); answer == nil {
		answer = []byte{}
	}
	if len(answer) > x.store.opts.MaxAnswer {
		return answer, false, nil
	}
	if err := keep(f, x.store.opts.Now(), answer); err != nil {
		return answer, false, fmt.Errorf("the state of the delivery: %w", err)
	}
	return answer, false, nil
}

func sumOf(text []byte) [sha256.Size]byte {
	h := sha256.New()
	h.Write(text[:timeSize])
	h.Write(text[headerSize:])
	return [sha256.Size]byte(h.Sum(nil))
}

// keep writes an answer in place of what f holds. A kill leaves none.
func keep(f *os.File, now time.Time, answer []byte) error {
	text := append(make([]byte, headerSize, headerSize+len(answer)), answer...)
	binary.BigEndian.PutUint64(text, uint64(now.UnixNano()))
	sum := sumOf(text)
	copy(text[timeSize:], sum[:])
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt(text, 0)
	return err
}

// kept returns the answer in f if it is whole and counts still.
func (s *Store) kept(f *os.File) ([]byte, bool) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, int64(headerSize+s.opts.MaxAnswer+1)))
	if err != nil || len(text) < headerSize || len(text) > headerSize+s.opts.MaxAnswer {
		return nil, false
	}
	if sum := sumOf(text); !bytes.Equal(sum[:], text[timeSize:headerSize]) {
		return nil, false
	}
	age := s.opts.Now().Sub(time.Unix(0, int64(binary.BigEndian.Uint64(text))))
	if age < 0 || age > s.opts.Window {
		return nil, false
	}
	return text[headerSize:], true
}
