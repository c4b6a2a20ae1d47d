package hookstate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrBusy tells that another process judges the same delivery and takes too long.
var ErrBusy = errors.New("another process is judging the same delivery and has not answered in time")

// onceSuffix ends the name of a file that holds one answer.
const onceSuffix = ".once"

// header is the time of an answer in nanoseconds, and its length.
const header = 16

// Once returns what judge gives for a delivery, whose key is a hash of the native
// event, the call's id and the input. A delivery with the same key that comes while the
// first is judged, or within the window after it, gets the same answer, and again is
// true. If who judges dies, the next one judges. With ErrBusy the caller has to judge
// by itself; with another error, judge was not called or its answer could not be kept,
// in which case answer is set.
func (x *Session) Once(key string, judge func() []byte) (answer []byte, again bool, err error) {
	path := filepath.Join(x.store.dir, Key(x.host, x.session, key)+onceSuffix)
	x.store.sweep(path)
	f, err := open(path, time.Now().Add(x.store.opts.Wait))
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
	answer = judge()
	if len(answer) > x.store.opts.MaxAnswer {
		return answer, false, nil
	}
	text := make([]byte, header, header+len(answer))
	binary.BigEndian.PutUint64(text, uint64(x.store.opts.Now().UnixNano()))
	binary.BigEndian.PutUint64(text[8:], uint64(len(answer)))
	if err := rewrite(f, append(text, answer...)); err != nil {
		return answer, false, fmt.Errorf("the state of the delivery: %s: %w", path, err)
	}
	return answer, false, nil
}

// kept returns the answer in f if it is whole and counts still.
func (s *Store) kept(f *os.File) ([]byte, bool) {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, int64(header+s.opts.MaxAnswer+1)))
	if err != nil || len(data) < header || binary.BigEndian.Uint64(data[8:]) != uint64(len(data)-header) {
		return nil, false
	}
	age := s.opts.Now().Sub(time.Unix(0, int64(binary.BigEndian.Uint64(data))))
	if age < 0 || age > s.opts.Window {
		return nil, false
	}
	return bytes.Clone(data[header:]), true
}

// sweep removes the answers whose window is over, but for the one at path.
func (s *Store) sweep(path string) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		name := filepath.Join(s.dir, e.Name())
		info, err := e.Info()
		if err != nil || name == path || !strings.HasSuffix(name, onceSuffix) || time.Since(info.ModTime()) <= s.opts.Window {
			continue
		}
		f, err := os.OpenFile(name, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		// One that is locked is being judged.
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.Remove(name)
		}
		f.Close()
	}
}
