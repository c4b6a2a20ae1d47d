// Package hookstate keeps the little that "ahp hook" has to remember of a host's
// session from one process to the next: the ids of calls that the host gives none,
// how often a call was denied, and the answer to a delivery that comes twice.
//
// It guarantees that what several processes do with one session is one after the
// other; that a call's id is the same before and after it, and for the same sequence
// of calls always the same; that a delivery is judged once within its window, unless
// who judges it dies or takes too long; that state stays within bounds, the oldest
// being dropped first; and that folder and files are this account's alone. State that
// can't be used is an error that says why, never a guess.
//
// Do not assume that state lives long: it is a cache, and what falls out of its bounds
// is forgotten. Do not assume that it is free of secrets: an answer that is kept for
// its second delivery is kept as it is, for as long as its window and until the next
// call.
package hookstate

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/abhed/abhed/internal/strictjson"
)

// Options tunes a Store. The zero value is right for most uses.
type Options struct {
	// Sessions is how many sessions are kept; zero means 256.
	Sessions int
	// Entries is how many calls, and how many denied calls, are kept of a session; zero
	// means 1024.
	Entries int
	// MaxAnswer is the largest answer in bytes that is kept for a second delivery; zero
	// means 1 MiB. A larger one is judged again.
	MaxAnswer int
	// Window is how long an answer counts for another delivery; zero means 30 s.
	Window time.Duration
	// Wait is how long another process is waited for that judges the same delivery;
	// zero means 30 s. LockWait is the same for its use of a session's state; zero
	// means 2 s.
	Wait, LockWait time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Store is the state of all sessions in one folder. Its methods may be called from any
// goroutine.
type Store struct {
	dir  string
	opts Options
}

// Open returns the store in the folder sessions of the state folder, which it makes
// with mode 0700.
func Open(state string, opts Options) (*Store, error) {
	if opts.Sessions <= 0 {
		opts.Sessions = 256
	}
	if opts.Entries <= 0 {
		opts.Entries = 1024
	}
	if opts.MaxAnswer <= 0 {
		opts.MaxAnswer = 1 << 20
	}
	if opts.Window <= 0 {
		opts.Window = 30 * time.Second
	}
	if opts.Wait <= 0 {
		opts.Wait = 30 * time.Second
	}
	if opts.LockWait <= 0 {
		opts.LockWait = 2 * time.Second
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	dir := filepath.Join(state, "sessions")
	if err := folder(dir); err != nil {
		return nil, fmt.Errorf("the state of sessions: %w", err)
	}
	return &Store{dir: dir, opts: opts}, nil
}

// Session returns the state of one session of a host; it does no I/O.
func (s *Store) Session(host, session string) *Session {
	return &Session{store: s, host: host, session: session, path: filepath.Join(s.dir, Key(host, session)+".json")}
}

// Session is the state of one session of a host. Its methods may be called from any
// goroutine.
type Session struct {
	store         *Store
	host, session string
	path          string
}

// Key returns one key for several texts: two keys are equal only if the texts are.
func Key(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		io.WriteString(h, p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// document is the state of a session as it is written.
type document struct {
	Version int `json:"version"`
	// Calls are those with an id of ours, oldest first.
	Calls  []call   `json:"calls"`
	Denied []denied `json:"denied"`
	// Project is the folder whose registration holds for the session.
	Project string `json:"project,omitempty"`
}

type call struct {
	Key string `json:"key"`
	// Ordinal counts the calls of one key from 1.
	Ordinal int64 `json:"ordinal"`
	// Open tells that the call's end wasn't seen.
	Open bool `json:"open"`
}

type denied struct {
	Key   string `json:"key"`
	Count int    `json:"count"`
}

// Before returns the id of a call that begins, whose key is a hash of turn, tool and
// canonical input.
func (x *Session) Before(key string) (id string, err error) {
	err = x.change(func(d *document) bool {
		ordinal := int64(1)
		for i, c := range d.Calls {
			if c.Key == key {
				ordinal = c.Ordinal + 1
				// What has ended is needed only for the count.
				if !c.Open {
					d.Calls = append(d.Calls[:i:i], d.Calls[i+1:]...)
				}
				break
			}
		}
		for _, c := range d.Calls {
			if c.Key == key {
				ordinal = max(ordinal, c.Ordinal+1)
			}
		}
		d.Calls = append(d.Calls, call{Key: key, Ordinal: ordinal, Open: true})
		id = x.id(key, ordinal)
		return true
	})
	return id, err
}

// After returns the id of the call that ends: of the earliest one of this key whose end
// wasn't seen. ok is false if there is none.
func (x *Session) After(key string) (id string, ok bool, err error) {
	err = x.change(func(d *document) bool {
		for i := range d.Calls {
			if c := &d.Calls[i]; c.Key == key && c.Open {
				c.Open, id, ok = false, x.id(key, c.Ordinal), true
				return true
			}
		}
		return false
	})
	if err != nil {
		return "", false, err
	}
	return id, ok, nil
}

func (x *Session) id(key string, ordinal int64) string {
	return "ahp-" + Key(x.host, x.session, key, fmt.Sprint(ordinal))[:32]
}

// Denied counts another denial of a call and returns how often it was denied before.
func (x *Session) Denied(key string) (before int, err error) {
	err = x.change(func(d *document) bool {
		for i, e := range d.Denied {
			if e.Key == key {
				before = e.Count
				d.Denied = append(d.Denied[:i:i], d.Denied[i+1:]...)
				break
			}
		}
		d.Denied = append(d.Denied, denied{key, before + 1})
		return true
	})
	return before, err
}

// change calls f with the session's state, locked, and writes it if f returns true.
func (x *Session) change(f func(*document) bool) error {
	file, err := open(x.path, time.Now().Add(x.store.opts.LockWait))
	if err != nil {
		return fmt.Errorf("the state of the session: %w", err)
	}
	defer file.Close()
	d, err := x.read(file)
	if err != nil {
		return fmt.Errorf("the state of the session: %w", err)
	}
	if !f(d) {
		return nil
	}
	if over := len(d.Calls) - x.store.opts.Entries; over > 0 {
		d.Calls = d.Calls[over:]
	}
	if over := len(d.Denied) - x.store.opts.Entries; over > 0 {
		d.Denied = d.Denied[over:]
	}
	text, err := strictjson.Marshal(d)
	if err != nil {
		return err
	}
	if err := rewrite(file, append(text, '\n')); err != nil {
		return fmt.Errorf("the state of the session: %s: %w", x.path, err)
	}
	return nil
}

// maxBytes bounds the file of one session.
const maxBytes = 4 << 20

func (x *Session) read(f *os.File) (*document, error) {
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, err
	}
	d := &document{Version: 1, Calls: []call{}, Denied: []denied{}}
	if len(data) == 0 {
		return d, nil
	}
	if err := strictjson.Unmarshal(data, d, strictjson.Options{MaxBytes: maxBytes, MaxDepth: 8, RejectUnknown: true}); err != nil {
		return nil, fmt.Errorf("%s: %w", x.path, err)
	}
	if d.Version != 1 {
		return nil, fmt.Errorf("%s: found version %d, expected 1: another ahp wrote it", x.path, d.Version)
	}
	return d, nil
}

// rewrite replaces the content of f.
func rewrite(f *os.File, text []byte) error {
	if _, err := f.WriteAt(text, 0); err != nil {
		return err
	}
	return f.Truncate(int64(len(text)))
}

// open opens the file at path, made if it isn't there, and locks it. A file that was
// removed in the meantime is opened anew.
func open(path string, end time.Time) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
		if err != nil {
			return nil, err
		}
		if err = checkFile(path, f); err == nil {
			err = lock(f, end)
		}
		if err != nil {
			f.Close()
			return nil, err
		}
		mine, err := f.Stat()
		if err != nil {
			f.Close()
			return nil, err
		}
		if there, err := os.Lstat(path); err == nil && os.SameFile(mine, there) {
			return f, nil
		}
		f.Close()
	}
}

// errBusy is what lock gives for a file that another process holds to the end.
var errBusy = errors.New("another process holds it")

func lock(f *os.File, end time.Time) error {
	for pause := 20 * time.Microsecond; ; pause = min(2*pause, 2*time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return err
		case !time.Now().Before(end):
			return fmt.Errorf("%s: %w", f.Name(), errBusy)
		}
		time.Sleep(pause)
	}
}
