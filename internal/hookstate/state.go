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
// is forgotten. Do not assume that it tells nothing to who reads it: keys are what the
// caller gives, so they must be hashes, and an answer that is kept for its second
// delivery is sealed with its delivery as key, so that who has or guesses that can
// open it.
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
	"slices"
	"time"

	"github.com/abhed/abhed/internal/ownfile"
	"github.com/abhed/abhed/internal/strictjson"
)

// Options tunes a Store. The zero value is right for most uses.
type Options struct {
	// Sessions is how many sessions are kept; zero means 1024.
	Sessions int
	// Entries is how many calls, and how many denied calls, are kept of a session; zero
	// means 256.
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
	sessions, deliveries string
	opts                 Options
}

// Open returns the store in the folders sessions and deliveries of the state folder,
// which it makes with mode 0700.
func Open(state string, opts Options) (*Store, error) {
	if opts.Sessions <= 0 {
		opts.Sessions = 1024
	}
	if opts.Entries <= 0 {
		opts.Entries = 256
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
	s := &Store{sessions: filepath.Join(state, "sessions"), deliveries: filepath.Join(state, "deliveries"), opts: opts}
	for _, dir := range []string{s.sessions, s.deliveries} {
		if err := ownfile.MakeFolder(dir); err != nil {
			return nil, fmt.Errorf("the state of sessions: %w", err)
		}
	}
	return s, nil
}

// Session returns the state of one session of a host; it does no I/O.
func (s *Store) Session(host, session string) *Session {
	return &Session{store: s, host: host, session: session, path: filepath.Join(s.sessions, Key(host, session)+sessionSuffix)}
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
	// Floor is the greatest ordinal of a call that was dropped: a key that isn't known
	// any more goes on behind it, so that no id comes twice.
	Floor int64 `json:"floor,omitzero"`
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
	// Call is the id of the call that was denied last, At when (milliseconds since 1970).
	Call string `json:"call,omitempty"`
	At   int64  `json:"at,omitempty"`
}

// Before returns the id of a call that begins, whose key is a hash of turn, tool and
// canonical input.
func (x *Session) Before(key string) (id string, err error) {
	key = bounded(key)
	err = x.change(func(d *document) bool {
		ordinal := d.Floor + 1
		for _, c := range d.Calls {
			if c.Key == key {
				ordinal = max(ordinal, c.Ordinal+1)
			}
		}
		// What has ended is needed only for the count, which the new one keeps.
		d.Calls = slices.DeleteFunc(d.Calls, func(c call) bool { return c.Key == key && !c.Open })
		d.Calls = append(d.Calls, call{Key: key, Ordinal: ordinal, Open: true})
		id = x.id(key, ordinal)
		return true
	})
	if err != nil {
		return "", err
	}
	return id, nil
}

// After returns the id of the call that ends: of the earliest one of this key whose end
// wasn't seen. ok is false if there is none.
func (x *Session) After(key string) (id string, ok bool, err error) {
	key = bounded(key)
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

// Refused says that the call of this key with this id, which Before gave, will not run,
// so that no end of it comes: else the end of the next such call would be taken for it.
func (x *Session) Refused(key, id string) error {
	key = bounded(key)
	return x.change(func(d *document) bool {
		for i := range d.Calls {
			if c := &d.Calls[i]; c.Key == key && c.Open && x.id(key, c.Ordinal) == id {
				c.Open = false
				return true
			}
		}
		return false
	})
}

// bounded returns a key of at most as many bytes as Key gives.
func bounded(key string) string {
	if len(key) <= 2*sha256.Size {
		return key
	}
	return Key(key)
}

func (x *Session) id(key string, ordinal int64) string {
	return "ahp-" + Key(x.host, x.session, key, fmt.Sprint(ordinal))[:32]
}

// Denied counts another denial of a call and returns how often it was denied before.
// The same id within the window is the same call, which is judged for another of the
// host's lines.
func (x *Session) Denied(key, id string) (before int, err error) {
	key, id = bounded(key), bounded(id)
	now := x.store.opts.Now()
	err = x.change(func(d *document) bool {
		for i, e := range d.Denied {
			if e.Key != key {
				continue
			}
			if id != "" && e.Call == id && now.Sub(time.UnixMilli(e.At)) < x.store.opts.Window {
				before = e.Count - 1
				return false
			}
			before = e.Count
			d.Denied = append(d.Denied[:i:i], d.Denied[i+1:]...)
			break
		}
		d.Denied = append(d.Denied, denied{key, before + 1, id, now.UnixMilli()})
		return true
	})
	return before, err
}

// change calls f with the session's state, locked, and writes it if f returns true.
func (x *Session) change(f func(*document) bool) error {
	if err := x.changeFile(f); err != nil {
		return fmt.Errorf("the state of the session: %w", err)
	}
	return nil
}

func (x *Session) changeFile(f func(*document) bool) error {
	file, err := open(x.path, time.Now().Add(x.store.opts.LockWait))
	if err != nil {
		return err
	}
	defer file.Close() // unlocks it as well
	d, isNew, err := x.read(file)
	if err != nil {
		return err
	}
	if isNew {
		x.store.dropSessions(x.path)
	}
	if !f(d) {
		return x.touch(file)
	}
	d.bound(x.store.opts.Entries)
	text, err := strictjson.Marshal(d)
	if err != nil {
		return err
	}
	return x.replace(append(text, '\n'))
}

// touch marks a session as used, so that it isn't dropped for an older one.
func (x *Session) touch(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if now := time.Now(); now.Sub(info.ModTime()).Abs() > time.Minute {
		return os.Chtimes(x.path, now, now)
	}
	return nil
}

// bound drops the oldest entries, ended calls before those that are open.
func (d *document) bound(entries int) {
	for _, open := range []bool{false, true} {
		over := len(d.Calls) - entries
		d.Calls = slices.DeleteFunc(d.Calls, func(c call) bool {
			if over <= 0 || c.Open != open {
				return false
			}
			over--
			d.Floor = max(d.Floor, c.Ordinal)
			return true
		})
	}
	if over := len(d.Denied) - entries; over > 0 {
		d.Denied = d.Denied[over:]
	}
}

// maxBytes bounds the file of one session.
const maxBytes = 4 << 20

func (x *Session) read(f *os.File) (d *document, isNew bool, err error) {
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, false, err
	}
	d = &document{Version: 1, Calls: []call{}, Denied: []denied{}}
	if len(data) == 0 {
		return d, true, nil
	}
	err = strictjson.Unmarshal(data, d, strictjson.Options{MaxBytes: maxBytes, MaxDepth: 8, RejectUnknown: true})
	if err == nil && d.Version != 1 {
		err = fmt.Errorf("found version %d, expected 1: another ahp wrote it", d.Version)
	}
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w; remove the file to begin anew", x.path, err)
	}
	return d, false, nil
}

// replace puts text in the place of the session's file, which is locked, whole or not
// at all. Who waits for the old one notices.
func (x *Session) replace(text []byte) error {
	next := x.path + ".new" // nobody else uses it: the file is locked
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(next, x.path)
	}
	if err != nil {
		os.Remove(next)
	}
	return err
}
