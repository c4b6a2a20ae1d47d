package workspace

import (
	"crypto/sha256"
	"fmt"
	"sync"
)

// Snapshot is a file as it was at one moment.
type Snapshot struct {
	Info Info
	// Data is the whole content.
	Data []byte
	hash [sha256.Size]byte
}

// NewSnapshot returns the snapshot of a file with that content. It keeps data.
func NewSnapshot(info Info, data []byte) Snapshot {
	return Snapshot{Info: info, Data: data, hash: sha256.Sum256(data)}
}

// Tracker remembers which files the agent has seen and in what state, so that it
// overwrites nothing that it doesn't know. It is safe for concurrent use. The zero
// Tracker is not usable; make it with NewTracker.
type Tracker struct {
	mu    sync.Mutex
	seen  map[string][sha256.Size]byte
	locks map[string]*pathLock
}

type pathLock struct {
	sync.Mutex
	users int
}

// NewTracker returns a tracker that has seen nothing.
func NewTracker() *Tracker {
	return &Tracker{seen: map[string][sha256.Size]byte{}, locks: map[string]*pathLock{}}
}

// Saw records that the agent knows the file at this path, a Place's, as it is in s.
func (t *Tracker) Saw(path string, s Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[path] = s.hash
}

// Forget drops what is known of the path.
func (t *Tracker) Forget(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.seen, path)
}

// StaleError says that the agent doesn't know what a file now holds.
type StaleError struct {
	// Path is the file.
	Path string
	// Never reports that the file was never read, as opposed to changed since.
	Never bool
}

// Error says what to do.
func (e *StaleError) Error() string {
	if e.Never {
		return fmt.Sprintf("%s has not been read yet; read it first, so that nothing unseen is lost", e.Path)
	}
	return fmt.Sprintf("%s has changed on disk since it was read; read it again and repeat the change on what it holds now", e.Path)
}

// Check returns nil if the agent knows the file as it is in now, else a
// *StaleError. The content decides: a file that was only touched is current, and
// one that was changed is not, even with its time and size put back.
func (t *Tracker) Check(path string, now Snapshot) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	hash, ok := t.seen[path]
	switch {
	case !ok:
		return &StaleError{Path: path, Never: true}
	case hash != now.hash:
		return &StaleError{Path: path}
	}
	return nil
}

// Lock makes the caller the only one to change the file at this path through the
// tracker, until it calls unlock.
func (t *Tracker) Lock(path string) (unlock func()) {
	t.mu.Lock()
	l := t.locks[path]
	if l == nil {
		l = &pathLock{}
		t.locks[path] = l
	}
	l.users++
	t.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		t.mu.Lock()
		defer t.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(t.locks, path)
		}
	}
}
