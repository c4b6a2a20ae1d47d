package hooklog

import (
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
)

// part is one file of a log, open, as it was at one moment.
type part struct {
	file *os.File
	info fs.FileInfo
	size int64
	// head is the signature beside it, headErr why there is none.
	head    *chain.SignedHead
	headErr error
}

func (p *part) name() string { return p.file.Name() }

// content reads the part as long as it was, from an offset on.
func (p *part) content(from int64) io.Reader {
	return io.NewSectionReader(p.file, from, max(p.size-from, 0))
}

// is reports whether p is the file that info is about.
func (p *part) is(info fs.FileInfo) bool { return info != nil && os.SameFile(p.info, info) }

// readWait bounds how long a reader waits for the writers to stand still. After that
// it reads all the same, and may meet a line half written.
const readWait = time.Second

// parts opens the files of a log, oldest first, as they are at one moment. A log
// without files is fs.ErrNotExist.
func parts(dir string) ([]part, error) {
	for range 16 {
		newest, err := openPart(filepath.Join(dir, File))
		if errors.Is(err, fs.ErrNotExist) {
			break // older ones may be there all the same
		}
		if err != nil {
			return nil, err
		}
		lockShared(newest.file)
		there, err := os.Lstat(filepath.Join(dir, File))
		if err != nil || !newest.is(there) {
			newest.file.Close() // it was put aside in the meantime
			continue
		}
		all, err := openParts(dir)
		newest.file.Close()
		return all, err
	}
	return openParts(dir)
}

// lockShared keeps the writers from writing until f is closed.
func lockShared(f *os.File) {
	end := time.Now().Add(readWait)
	for time.Now().Before(end) {
		if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
			return
		}
		time.Sleep(200 * time.Microsecond)
	}
}

func openParts(dir string) ([]part, error) {
	names, err := names(dir)
	if err != nil {
		return nil, err
	}
	var out []part
	for _, name := range names {
		p, err := openPart(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			closeAll(out)
			return nil, err
		}
		// A process that was killed while it put the log aside leaves two names for it.
		if slices.ContainsFunc(out, func(other part) bool { return other.is(p.info) }) {
			p.file.Close()
			continue
		}
		out = append(out, p)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s: no decision is logged there: %w", dir, fs.ErrNotExist)
	}
	return out, nil
}

func openPart(path string) (part, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return part{}, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: found %s, expected a regular file", path, info.Mode().Type())
	}
	if err != nil {
		f.Close()
		return part{}, err
	}
	p := part{file: f, info: info, size: info.Size()}
	p.head, p.headErr = chain.ReadHead(path)
	return p, nil
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
