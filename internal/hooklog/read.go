package hooklog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
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

// part is one file of a log, open, up to where it was whole.
type part struct {
	file *os.File
	size int64
}

// parts opens the files of a log, oldest first, as they are at one moment.
func parts(dir string) (_ []part, err error) {
	var out []part
	defer func() {
		if err != nil {
			closeAll(out)
		}
	}()
	names, err := names(dir)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		info, err := f.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s: found %s, expected a regular file", f.Name(), info.Mode().Type())
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		if slices.ContainsFunc(out, func(p part) bool { other, e := p.file.Stat(); return e == nil && os.SameFile(other, info) }) {
			f.Close()
			continue
		}
		out = append(out, part{f, info.Size()})
	}
	return out, nil
}

func closeAll(parts []part) {
	for _, p := range parts {
		p.file.Close()
	}
}

// names returns the names of a log's files, oldest first.
func names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var numbers []int
	for _, e := range entries {
		if e.Name() == File {
			numbers = append(numbers, 0)
		} else if s, ok := strings.CutPrefix(e.Name(), File+"."); ok {
			if n, err := strconv.Atoi(s); err == nil && n > 0 && strconv.Itoa(n) == s {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	slices.Reverse(numbers)
	var out []string
	for _, n := range numbers {
		if n == 0 {
			out = append(out, File)
		} else {
			out = append(out, File+"."+strconv.Itoa(n))
		}
	}
	return out, nil
}

// Read calls f with every decision, oldest first, until f fails. A line that can't be
// read is an error with its place; one that is being written is passed over.
func Read(dir string, f func(*Entry) error) error {
	all, err := parts(dir)
	if err != nil {
		return err
	}
	defer closeAll(all)
	for _, p := range all {
		if _, err := readLines(p.file.Name(), io.NewSectionReader(p.file, 0, p.size), f); err != nil {
			return err
		}
	}
	return nil
}

// readLines calls f with the whole lines of r and returns how many bytes those were.
func readLines(name string, r io.Reader, f func(*Entry) error) (int64, error) {
	lines, done := chain.NewReader(r), int64(0)
	for {
		l, err := lines.Next()
		if err == io.EOF || err == nil && !l.Whole && !l.TooLong {
			return done, nil
		}
		if err == nil {
			err = chain.Form(l)
		}
		var e *Entry
		if err == nil {
			e, err = decode(l.Data)
		}
		if err != nil {
			return done, fmt.Errorf("%s:%d: %w", name, l.Number, err)
		}
		if err := f(e); err != nil {
			return done, err
		}
		done += l.Size
	}
}

// decode reads one line. What a newer version may have added is passed over.
func decode(data []byte) (*Entry, error) {
	e := &Entry{}
	if err := strictjson.Unmarshal(data, e, strictjson.Options{MaxBytes: chain.MaxLine, MaxDepth: chain.MaxDepth}); err != nil {
		return nil, err
	}
	return e, nil
}

// Find returns the newest decision whose id begins with prefix. If several ids do, and
// none is prefix itself, it is ErrAmbiguous.
func Find(dir, prefix string) (*Entry, error) {
	var found, exact *Entry
	ids := map[string]bool{}
	err := Read(dir, func(e *Entry) error {
		if e.ID == prefix {
			exact = e
		}
		if e.ID != "" && strings.HasPrefix(e.ID, prefix) {
			found, ids[e.ID] = e, true
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case exact != nil:
		return exact, nil
	case len(ids) == 0:
		return nil, fmt.Errorf("%q: %w", prefix, ErrNotFound)
	case len(ids) > 1:
		return nil, fmt.Errorf("%q: %w: %d of them", prefix, ErrAmbiguous, len(ids))
	}
	return found, nil
}

// followEvery is how often Follow looks.
const followEvery = 200 * time.Millisecond

// Follow calls f with every decision that is appended from now on, until f fails or ctx
// ends, which is no error.
func Follow(ctx context.Context, dir string, f func(*Entry) error) error {
	seen := map[string]bool{}
	_ = Read(dir, func(e *Entry) error { seen[e.Hash] = true; return nil })
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		err := Read(dir, func(e *Entry) error {
			if seen[e.Hash] {
				return nil
			}
			seen[e.Hash] = true
			return f(e)
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
