package hookstate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The endings of the files of one session, and of one delivery.
const (
	sessionSuffix  = ".json"
	deliverySuffix = ".once"
)

// swept is the file whose time says when the deliveries were swept last.
const swept = ".swept"

// file is one file of a folder.
type file struct {
	path  string
	mtime time.Time
}

// filesIn returns the files of a folder whose names end so.
func filesIn(dir, suffix string) []file {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // what can't be listed can't be dropped either, and the next tries again
	}
	var out []file
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		if info, err := e.Info(); err == nil {
			out = append(out, file{filepath.Join(dir, e.Name()), info.ModTime()})
		}
	}
	return out
}

// dropSessions removes the sessions that were used least recently, as many as there are
// too many, but not the one at path.
func (s *Store) dropSessions(path string) {
	files := filesIn(s.sessions, sessionSuffix)
	over := len(files) - s.opts.Sessions
	if over <= 0 {
		return
	}
	slices.SortFunc(files, func(a, b file) int { return a.mtime.Compare(b.mtime) })
	for _, f := range files {
		if over == 0 {
			return
		}
		if f.path != path && drop(f.path) {
			over--
		}
	}
}

// dropDeliveries removes the answers whose window is over, but not the one at path. It
// looks no more often than twice in a window.
func (s *Store) dropDeliveries(path string) {
	mark := filepath.Join(s.deliveries, swept)
	now := time.Now()
	if info, err := os.Lstat(mark); err == nil {
		if age := now.Sub(info.ModTime()); age >= 0 && age < s.opts.Window/2 {
			return
		}
	}
	f, err := os.OpenFile(mark, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
	if err == nil {
		f.Close()
		_ = os.Chtimes(mark, now, now)
	}
	for _, f := range filesIn(s.deliveries, deliverySuffix) {
		if age := now.Sub(f.mtime); f.path != path && (age < 0 || age > s.opts.Window) {
			drop(f.path)
		}
	}
}

// drop removes a file that nobody uses.
func drop(path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false // it is in use
	}
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(mine, there) && os.Remove(path) == nil
}
