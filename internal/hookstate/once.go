package hookstate

import (
	"crypto/aes"
	"crypto/cipher"
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

// A file of a delivery holds the time of the answer in nanoseconds, and the answer,
// sealed: the text of an answer may quote a call, and a call may hold a secret, which
// must not come to the disk. The key is made of what the delivery is, so that only who
// has the delivery can read the answer to it. A file that is empty, or doesn't open,
// has none: it is being judged, or who judged it died.
const timeSize = 8

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
	c, err := sealer(Key("the answer to a delivery", x.host, x.session, key))
	if err != nil {
		return nil, false, fmt.Errorf("the state of the delivery: %w", err)
	}
	if kept, ok := x.store.kept(f, c); ok {
		return kept, true, nil
	}
	if answer = judge(); answer == nil {
		answer = []byte{}
	}
	if len(answer) > x.store.opts.MaxAnswer {
		return answer, false, nil
	}
	if err := keep(f, c, x.store.opts.Now(), answer); err != nil {
		return answer, false, fmt.Errorf("the state of the delivery: %w", err)
	}
	return answer, false, nil
}

// sealer returns what seals and opens an answer.
func sealer(key string) (cipher.AEAD, error) {
	raw := sha256.Sum256([]byte(key))
	block, err := aes.NewCipher(raw[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// keep writes an answer in place of what f holds. A kill leaves none.
func keep(f *os.File, c cipher.AEAD, now time.Time, answer []byte) error {
	text := make([]byte, timeSize, timeSize+c.Overhead()+len(answer))
	binary.BigEndian.PutUint64(text, uint64(now.UnixNano()))
	text = c.Seal(text, nil, answer, text)
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt(text, 0)
	return err
}

// kept returns the answer in f if it is whole and counts still.
func (s *Store) kept(f *os.File, c cipher.AEAD) ([]byte, bool) {
	longest := timeSize + c.Overhead() + s.opts.MaxAnswer
	text, err := io.ReadAll(io.NewSectionReader(f, 0, int64(longest+1)))
	if err != nil || len(text) < timeSize || len(text) > longest {
		return nil, false
	}
	answer, err := c.Open([]byte{}, nil, text[timeSize:], text[:timeSize])
	if err != nil {
		return nil, false
	}
	age := s.opts.Now().Sub(time.Unix(0, int64(binary.BigEndian.Uint64(text))))
	if age < 0 || age > s.opts.Window {
		return nil, false
	}
	return answer, true
}
