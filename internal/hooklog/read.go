package hooklog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/chain"
	"github.com/abhed/abhed/internal/strictjson"
)

// ErrNotFound is what Find gives for an id of no decision, and ErrAmbiguous for a
// prefix of several.
var (
	ErrNotFound  = errors.New("no such decision in the log")
	ErrAmbiguous = errors.New("several decisions begin so")
)

// DamagedError says that lines could not be read; all others were.
type DamagedError struct {
	// Lines counts them; Where and Err are of the first.
	Lines int
	Where string
	Err   error
}

// Error names the place of the first.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s: %v; lines that can't be read: %d; ahp verify tells more", e.Where, e.Err, e.Lines)
}

// Unwrap returns what is wrong with the first.
func (e *DamagedError) Unwrap() error { return e.Err }

// Read calls f with every decision, oldest first, until f fails. A log without files is
// fs.ErrNotExist. Lines that can't be read are passed over and make a *DamagedError;
// one that is half written at the end is no damage.
func Read(dir string, f func(*Entry) error) error {
	all, err := parts(dir)
	if err != nil {
		return err
	}
	defer closeAll(all)
	damaged := &DamagedError{}
	for i := range all {
		if _, err := readLines(all[i].name(), all[i].content(0), nil, f, damaged); err != nil {
			return err
		}
	}
	return damaged.orNil()
}

func (e *DamagedError) orNil() error {
	if e.Lines == 0 {
		return nil
	}
	return e
}

// readLines calls f with the decisions in the whole lines of r that pick, if it isn't
// nil, takes, and returns how many bytes the whole lines were.
func readLines(name string, r io.Reader, pick func(line []byte) bool, f func(*Entry) error, damaged *DamagedError) (int64, error) {
	lines, whole := chain.NewReader(r), int64(0)
	for {
		l, err := lines.Next()
		if err == io.EOF || err == nil && !l.Whole && !l.TooLong {
			return whole, nil
		}
		if err != nil {
			return whole, fmt.Errorf("%s: %w", name, err)
		}
		whole += l.Size
		if pick != nil && !pick(l.Data) {
			continue
		}
		err = chain.Form(l)
		var e *Entry
		if err == nil {
			e, err = Decode(l.Data)
		}
		if err != nil {
			if damaged.Lines++; damaged.Err == nil {
				damaged.Where, damaged.Err = fmt.Sprintf("%s:%d", name, l.Number), err
			}
			continue
		}
		if err := f(e); err != nil {
			return whole, err
		}
	}
}

// Decode reads one line. What a newer version may have added is passed over.
func Decode(data []byte) (*Entry, error) {
	e := &Entry{}
	if err := strictjson.Unmarshal(data, e, strictjson.Options{MaxBytes: chain.MaxLine, MaxDepth: chain.MaxDepth}); err != nil {
		return nil, err
	}
	return e, nil
}

// Last returns the newest n decisions that keep takes, oldest first. No more of the log
// is read than that needs, and no damage told of but in that.
func Last(dir string, n int, keep func(*Entry) bool) ([]*Entry, error) {
	all, err := parts(dir)
	if err != nil {
		return nil, err
	}
	defer closeAll(all)
	var out []*Entry
	damaged := &DamagedError{}
	for i := len(all) - 1; i >= 0 && len(out) < n; i-- {
		here, err := all[i].last(n-len(out), keep, damaged)
		if err != nil {
			return nil, err
		}
		out = slices.Concat(here, out)
	}
	return out, damaged.orNil()
}

// lastWindow is how much of a file's end Last reads first.
const lastWindow = 1 << 20

// last returns the newest n decisions of one file that keep takes.
func (p *part) last(n int, keep func(*Entry) bool, damaged *DamagedError) ([]*Entry, error) {
	for window := int64(lastWindow); ; window *= 4 {
		from := max(p.size-window, 0)
		var out []*Entry
		bad := &DamagedError{}
		skip := from > 0 // most probably in the midst of a line
		_, err := readLines(p.name(), p.content(from), func([]byte) bool {
			pick := !skip
			skip = false
			return pick
		}, func(e *Entry) error {
			if !keep(e) {
				return nil
			}
			if out = append(out, e); len(out) >= 2*n {
				out = append(out[:0], out[len(out)-n:]...)
			}
			return nil
		}, bad)
		if err != nil {
			return nil, err
		}
		if len(out) < n && from > 0 {
			continue
		}
		damaged.add(bad, from > 0)
		return out[max(len(out)-n, 0):], nil
	}
}

// add counts what other counts. A place in a part of a file has no line number.
func (e *DamagedError) add(other *DamagedError, within bool) {
	if e.Err == nil && other.Err != nil {
		e.Where, e.Err = other.Where, other.Err
		if at := strings.LastIndexByte(e.Where, ':'); within && at >= 0 {
			e.Where = e.Where[:at]
		}
	}
	e.Lines += other.Lines
}

// Find returns the newest decision whose id begins with prefix. If several ids do, and
// none is prefix itself, it is ErrAmbiguous.
func Find(dir, prefix string) (*Entry, error) {
	all, err := parts(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%q: %w: %w", prefix, ErrNotFound, err)
	}
	if err != nil {
		return nil, err
	}
	defer closeAll(all)
	quoted, err := strictjson.Marshal(prefix)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", prefix, ErrNotFound)
	}
	// To look for the text is much faster than to read every line.
	begin := append([]byte(`"id":`), quoted[:len(quoted)-1]...)
	var found, exact *Entry
	ids := map[string]bool{}
	for i := range all {
		_, err := readLines(all[i].name(), all[i].content(0), func(line []byte) bool { return bytes.Contains(line, begin) }, func(e *Entry) error {
			if e.ID == prefix {
				exact = e
			}
			if e.ID != "" && strings.HasPrefix(e.ID, prefix) && len(ids) <= maxShown {
				found, ids[e.ID] = e, true
			}
			return nil
		}, &DamagedError{})
		if err != nil {
			return nil, err
		}
	}
	switch {
	case exact != nil:
		return exact, nil
	case len(ids) == 0:
		return nil, fmt.Errorf("%q: %w", prefix, ErrNotFound)
	case len(ids) > 1:
		return nil, fmt.Errorf("%q: %w", prefix, ErrAmbiguous)
	}
	return found, nil
}

// maxShown bounds how many ids that begin alike are told apart.
const maxShown = 16

// followEvery is how often Follow looks.
const followEvery = 100 * time.Millisecond

// Follow calls f with every decision that is appended from now on, until f fails or ctx
// ends, which is no error. The log need not be there yet. What is put aside more often
// than the log keeps between two looks is missed.
func Follow(ctx context.Context, dir string, f func(*Entry) error) error {
	w := &follower{dir: dir, f: f}
	if err := w.look(true); err != nil {
		return err
	}
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := w.look(false); err != nil {
				return err
			}
		}
	}
}

type follower struct {
	dir string
	f   func(*Entry) error
	// at is the file that was read last, up to offset.
	at     fs.FileInfo
	offset int64
}

// look reads what is new; with skip it only finds the end.
func (w *follower) look(skip bool) error {
	newest, err := openPart(filepath.Join(w.dir, File))
	if err == nil && newest.is(w.at) {
		defer newest.file.Close()
		return w.read(&newest, skip)
	}
	if err == nil {
		newest.file.Close()
	}
	all, err := parts(w.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closeAll(all)
	from := 0
	for i := range all {
		if all[i].is(w.at) {
			from = i
		}
	}
	for i := from; i < len(all); i++ {
		if !all[i].is(w.at) {
			w.at, w.offset = all[i].info, 0
		}
		if err := w.read(&all[i], skip); err != nil {
			return err
		}
	}
	return nil
}

func (w *follower) read(p *part, skip bool) error {
	f := w.f
	if skip {
		f = func(*Entry) error { return nil }
	}
	n, err := readLines(p.name(), p.content(w.offset), func([]byte) bool { return !skip }, f, &DamagedError{})
	w.offset += n
	return err
}
