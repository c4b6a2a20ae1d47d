package session

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/abhed/abhed/internal/chain"
)

// Options configures a Store. The zero value is what the program uses.
type Options struct {
	// Secrets are values that must not enter a record, each of 8 bytes or more
	// after trimming white space; a shorter one is refused. They are kept in
	// memory only. Nil is none.
	Secrets [][]byte
	// NoSync leaves out every fdatasync: AppendDurable then survives the death of
	// the process but not of the machine. It is for benchmarks.
	NoSync bool
	// FlushEvery is the longest time that an event of Append stays in memory; 0
	// means 100 ms.
	FlushEvery time.Duration

	open func(path string, flag int) (file, error) // tests put faults here
}

// Store is the file store of one installation. It is safe for concurrent use.
type Store struct {
	dir     string
	opts    Options
	key     *chain.Key
	secrets *secrets
}

// DefaultDir returns the state folder: $XDG_STATE_HOME/abhed, or
// ~/.local/state/abhed where that variable is unset or not an absolute path.
func DefaultDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "abhed"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("there is no place for the record: set XDG_STATE_HOME or HOME to an absolute path: %w", err)
	}
	return filepath.Join(home, ".local", "state", "abhed"), nil
}

// OpenStore opens the store in the state folder dir ("" means DefaultDir), and
// makes the folder and the signing key if they are missing. Sessions lie in
// dir/sessions, the key in dir/key.
func OpenStore(dir string, o Options) (*Store, error) {
	if dir == "" {
		var err error
		if dir, err = DefaultDir(); err != nil {
			return nil, err
		}
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("the state folder can't be located: %w", err)
	}
	sec, err := newSecrets(o.Secrets)
	if err != nil {
		return nil, err
	}
	if o.FlushEvery == 0 {
		o.FlushEvery = 100 * time.Millisecond
	}
	if o.open == nil {
		o.open = openFile
	}
	s := &Store{dir: dir, opts: o, secrets: sec}
	if err := privateDir(s.sessions()); err != nil {
		return nil, fmt.Errorf("the state folder can't be made: %w", err)
	}
	if s.key, err = chain.LoadKey(filepath.Join(dir, "key")); err != nil {
		return nil, err
	}
	return s, nil
}

// Key returns the installation's signing key.
func (s *Store) Key() *chain.Key { return s.key }

// Dir returns the state folder.
func (s *Store) Dir() string { return s.dir }

func (s *Store) sessions() string { return filepath.Join(s.dir, "sessions") }

// privateDir makes dir for this user alone. What exists above it stays as it is.
func privateDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700)
}

// workspaceDir returns where the sessions of the workspace at root lie:
// <base>-<12 hex digits of the SHA-256 of the resolved root> (record.md).
func (s *Store) workspaceDir(root string) (string, error) {
	abs, err := filepath.Abs(root)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", fmt.Errorf("the workspace %s can't be resolved: %w", root, err)
	}
	sum := sha256.Sum256([]byte(abs))
	return filepath.Join(s.sessions(), baseName(abs)+"-"+hex.EncodeToString(sum[:6])), nil
}

// baseName returns the last part of path as a harmless file name; the hash behind
// it is what tells workspaces apart.
func baseName(path string) string {
	base := filepath.Base(path)
	if base == string(filepath.Separator) {
		return "root"
	}
	base = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return '_'
		}
		return r
	}, base)
	for len(base) > 200 {
		_, n := utf8.DecodeLastRuneInString(base)
		base = base[:len(base)-n]
	}
	return base
}

// CreateOptions configures a new session.
type CreateOptions struct {
	// ID names the session; "" makes a UUIDv7. It consists of letters, digits,
	// '-' and '_', at most 100.
	ID string
}

// Create starts the record of a session in the workspace at root. The file is
// there when Create returns; its first event, which the caller appends, is signed
// at once. The caller must Close the session.
func (s *Store) Create(root string, o CreateOptions) (*Session, error) {
	id := o.ID
	if id == "" {
		u, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("no session id can be made: %w", err)
		}
		id = u.String()
	}
	if !validID(id) {
		return nil, fmt.Errorf("the session id %q is not usable: expected letters, digits, - and _, at most 100", id)
	}
	dir, err := s.workspaceDir(root)
	if err != nil {
		return nil, err
	}
	if err := privateDir(dir); err != nil {
		return nil, fmt.Errorf("the session's folder can't be made: %w", err)
	}
	path := filepath.Join(dir, id+fileSuffix)
	lock, err := acquire(lockPath(path))
	if err != nil {
		return nil, err
	}
	f, err := s.opts.open(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND)
	if err != nil {
		lock.release()
		return nil, fmt.Errorf("the record can't be made: %w", err)
	}
	if err := errors.Join(s.syncDir(dir), s.syncDir(s.sessions())); err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path), lock.release())
	}
	return newSession(s, id, path, f, lock), nil
}

// syncDir makes the entries of dir durable.
func (s *Store) syncDir(dir string) error {
	if s.opts.NoSync {
		return nil
	}
	d, err := os.Open(dir)
	if err == nil {
		err = errors.Join(d.Sync(), d.Close())
	}
	if err != nil {
		return fmt.Errorf("the folder %s can't be put on disk: %w", dir, err)
	}
	return nil
}

func validID(id string) bool {
	if id == "" || len(id) > 100 {
		return false
	}
	for _, r := range id {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return false
		}
	}
	return true
}
