// Package trust remembers which files of projects a person has read and trusts, each
// with its exact content.
//
// It guarantees that a file is trusted only with the very bytes that were added, at
// the path that symbolic links lead to; that the store is this account's alone and is
// refused otherwise; that it is written whole or not at all, and that changes of
// several processes don't undo each other. A store that can't be read trusts nothing,
// and Err says why.
//
// Do not assume that a trusted file is harmless: somebody said yes to it. Do not
// assume that it still has that content when it is read again: judge the bytes that
// are used.
package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/ownfile"
	"github.com/abhed/abhed/internal/strictjson"
)

// Bounds of the store.
const (
	maxBytes   = 1 << 20
	maxEntries = 1000
	maxPath    = 4096
	// lockWait bounds how long another process may change the store.
	lockWait = 5 * time.Second
)

// Entry is one file that is trusted.
type Entry struct {
	// Path is absolute and resolved.
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	// Time says when it was added, in RFC 3339.
	Time string `json:"time"`
}

// Store is the file at a path. Its methods may be called from any goroutine.
type Store struct {
	path string

	mu  sync.Mutex
	err error
}

// Open returns the store at path, which need not be there. It is read anew for every
// question, so that a change counts at once.
func Open(path string) *Store { return &Store{path: path} }

// Path returns where the store is.
func (s *Store) Path() string { return s.path }

// Err returns why the last reading of the store failed, nil if it didn't. A store that
// isn't there is an empty one.
func (s *Store) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Trusted reports whether the file at path is trusted with exactly this content. It
// fits ahpconfig.Options.Trusted.
func (s *Store) Trusted(path string, content []byte) bool {
	real, err := resolve(path)
	if err != nil {
		return false
	}
	entries, err := s.List()
	if err != nil {
		return false
	}
	sum := Sum(content)
	return slices.ContainsFunc(entries, func(e Entry) bool { return e.Path == real && e.SHA256 == sum })
}

// Sum returns the SHA-256 of content as the store has it.
func Sum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// List returns what is trusted, by path.
func (s *Store) List() ([]Entry, error) {
	entries, err := s.read()
	if err != nil {
		err = fmt.Errorf("the trust store can't be used, so nothing is trusted: %w", err)
	}
	s.mu.Lock()
	s.err = err
	s.mu.Unlock()
	return entries, err
}

// Add trusts the file at path with this content, and no longer with another.
func (s *Store) Add(path string, content []byte) error {
	real, err := resolve(path)
	if err != nil {
		return fmt.Errorf("trust: %w", err)
	}
	if len(real) > maxPath {
		return fmt.Errorf("trust: found a path of %d bytes, expected at most %d", len(real), maxPath)
	}
	return s.change(func(entries []Entry) ([]Entry, error) {
		entries = without(entries, real)
		if len(entries) >= maxEntries {
			return nil, fmt.Errorf("%s: found %d trusted files, expected less than %d: remove some with ahp trust --remove", s.path, len(entries), maxEntries)
		}
		return append(entries, Entry{Path: real, SHA256: Sum(content), Time: ahp.Timestamp(time.Now())}), nil
	})
}

// Remove ends the trust in the file at path and reports whether there was any. The file
// itself need not be there.
func (s *Store) Remove(path string) (was bool, err error) {
	real, err := resolve(path)
	if errors.Is(err, fs.ErrNotExist) {
		real, err = filepath.Abs(path)
	}
	if err != nil {
		return false, fmt.Errorf("trust: %w", err)
	}
	err = s.change(func(entries []Entry) ([]Entry, error) {
		kept := without(entries, real)
		was = len(kept) < len(entries)
		return kept, nil
	})
	return was && err == nil, err
}

func without(entries []Entry, path string) []Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return e.Path == path })
}

// resolve returns the absolute path that symbolic links lead to. The path isn't cleaned
// before: what "link/.." is, only the file system knows.
func resolve(path string) (string, error) {
	if path == "" {
		return "", fmt.Errorf("found an empty path, expected a file's: %w", fs.ErrNotExist)
	}
	if !filepath.IsAbs(path) {
		dir, err := os.Getwd()
		if err != nil {
			return "", err
		}
		path = dir + string(filepath.Separator) + path
	}
	return filepath.EvalSymlinks(path)
}

// document is the store as it is written.
type document struct {
	Version int     `json:"version"`
	Trusted []Entry `json:"trusted"`
}

func (s *Store) read() ([]Entry, error) {
	if err := ownfile.CheckFolder(filepath.Dir(s.path)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	f, err := ownfile.Open(s.path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, err
	}
	return decode(s.path, data)
}

// decode reads the store strictly: what isn't understood might restrict something.
func decode(path string, data []byte) ([]Entry, error) {
	var d document
	if err := strictjson.Unmarshal(data, &d, strictjson.Options{MaxBytes: maxBytes, MaxDepth: 8, RejectUnknown: true}); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if d.Version != 1 {
		return nil, fmt.Errorf("%s: found version %d at /version, expected 1: another ahp wrote it", path, d.Version)
	}
	if len(d.Trusted) > maxEntries {
		return nil, fmt.Errorf("%s: found %d entries at /trusted, expected at most %d", path, len(d.Trusted), maxEntries)
	}
	for i, e := range d.Trusted {
		if !filepath.IsAbs(e.Path) || filepath.Clean(e.Path) != e.Path {
			return nil, fmt.Errorf("%s: found %q at /trusted/%d/path, expected an absolute path in its shortest form", path, e.Path, i)
		}
		if sum, err := hex.DecodeString(e.SHA256); err != nil || len(sum) != sha256.Size || strings.ToLower(e.SHA256) != e.SHA256 {
			return nil, fmt.Errorf("%s: found %q at /trusted/%d/sha256, expected 64 lower-case hexadecimal digits", path, e.SHA256, i)
		}
		if i > 0 && d.Trusted[i-1].Path >= e.Path {
			return nil, fmt.Errorf("%s: found %q at /trusted/%d/path, expected the paths sorted and each once", path, e.Path, i)
		}
	}
	return d.Trusted, nil
}

// change writes what f makes of the store, under a lock.
func (s *Store) change(f func([]Entry) ([]Entry, error)) error {
	dir := filepath.Dir(s.path)
	if err := ownfile.MakeFolder(dir); err != nil {
		return fmt.Errorf("trust: %w", err)
	}
	lock, err := s.lock()
	if err != nil {
		return fmt.Errorf("trust: %w", err)
	}
	defer lock.Close()
	entries, err := s.List()
	if err != nil {
		return err
	}
	if entries, err = f(entries); err != nil {
		return fmt.Errorf("trust: %w", err)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	if entries == nil {
		entries = []Entry{}
	}
	text, err := strictjson.Marshal(document{Version: 1, Trusted: entries})
	if err != nil {
		return fmt.Errorf("trust: %w", err)
	}
	if err := s.replace(append(text, '\n')); err != nil {
		return fmt.Errorf("trust: the store can't be written: %w", err)
	}
	return nil
}

// replace puts a new store in the place of the old one.
func (s *Store) replace(text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(s.path), filepath.Base(s.path)+".*.part")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), s.path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
