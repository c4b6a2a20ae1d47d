package hookd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/ahpconfig"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/trust"
)

// where says which registrations hold for a call: what plans are kept by.
type where struct {
	host, registration, home, project string
}

// plan is the registrations that hold for one host in one project, with what is kept
// warm for them.
type plan struct {
	host    *adapter.Host
	loaded  *ahpconfig.Loaded
	reg     *ahp.Registration // fitted; without backends if none is registered
	sources []hooklog.Source
	notes   []string
	stamps  []stamp
	// own tells that a backend needs a process that stays, so that each session has a
	// harness of its own; environ that a credential is a variable's, which a service
	// may not have.
	own, environ bool
	budget       time.Duration // the sum of the longest chain's deadlines
	manifest     *ahp.Manifest

	mu       sync.Mutex // guards what follows
	sessions map[string]*seat
	closed   bool
}

// seat is a harness and who sits on it.
type seat struct {
	h     *harness.Harness
	users int
	last  time.Time
}

// stamp is how a file was when it was read.
type stamp struct {
	path  string
	size  int64
	mtime time.Time
	inode uint64
	gone  bool
}

func stampOf(path string) stamp {
	s := stamp{path: path}
	info, err := os.Stat(path)
	if err != nil {
		s.gone = true
		return s
	}
	s.size, s.mtime, s.inode = info.Size(), info.ModTime(), inode(info)
	return s
}

// fresh reports whether every file is as it was.
func (p *plan) fresh() bool {
	return !slices.ContainsFunc(p.stamps, func(s stamp) bool { return stampOf(s.path) != s })
}

// errNoRegistration is for a machine on which nothing is registered.
var errNoRegistration = errors.New("no AHP registration is in force: none of the usual files is there; write one, or run \"ahp uninstall\" for this agent")

// load reads the registrations for w.
func (j *Judge) load(h *adapter.Host, w where) (*plan, error) {
	p := &plan{host: h, manifest: h.Manifest(), sessions: map[string]*seat{}}
	p.manifest.ManagedPolicy.Scopes = []string{"user", "project", "managed"}
	o := ahpconfig.Options{File: w.registration, Home: w.home, Dir: w.project, Managed: j.opts.Managed}
	store := trust.Open(filepath.Join(j.state, "trust.json"))
	o.Trusted = store.Trusted
	if file := projectFile(w.project); file != "" && w.registration == "" && !known(store, file) {
		if content, err := os.ReadFile(file); err != nil || !store.Trusted(file, content) {
			p.notes = append(p.notes, fmt.Sprintf("%s isn't trusted, so it isn't in force; read it and run \"ahp trust\"", file))
			p.stamps = append(p.stamps, stampOf(file))
			o.Dir = ""
		}
	}
	p.stamps = append(p.stamps, stampOf(store.Path()))
	loaded, err := ahpconfig.Load(o)
	if err != nil {
		return nil, err
	}
	if loaded.Registration == nil {
		return nil, errNoRegistration
	}
	p.loaded = loaded
	for _, s := range loaded.Sources {
		p.sources = append(p.sources, hooklog.Source{Path: s.Path, SHA256: trust.Sum(s.Content)})
	}
	for _, path := range loaded.Looked {
		p.stamps = append(p.stamps, stampOf(path))
	}
	reg, notes, err := Fit(loaded.Registration, p.manifest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(names(loaded.Sources), ", "), err)
	}
	p.reg, p.notes = reg, append(p.notes, notes...)
	p.learn(j)
	return p, nil
}

func names(list []ahpconfig.Source) (out []string) {
	for _, s := range list {
		out = append(out, s.Path)
	}
	return out
}

// learn notes what the backends need.
func (p *plan) learn(j *Judge) {
	for i := range p.reg.Hooks {
		b := &p.reg.Hooks[i]
		if file := j.rulesFile(b, p.dirOf(b)); file != "" {
			p.stamps = append(p.stamps, stampOf(file))
		} else if b.Transport.Type == ahp.TransportStdio && b.Transport.Lifecycle == ahp.LifecyclePersistent {
			p.own = true
		}
		if a := b.Authentication; a != nil && (a.TokenEnv != "" || strings.HasPrefix(a.TokenRef, "env:") || strings.HasPrefix(a.ClientSecretRef, "env:")) {
			p.environ = true
		}
		for k := range b.Subscriptions {
			if t := b.Subscriptions[k].TimeoutMs; t != nil {
				p.budget += time.Duration(min(*t, 3_600_000)) * time.Millisecond
			}
		}
	}
}

// dirOf returns the folder of the file that registers a backend.
func (p *plan) dirOf(b *ahp.Backend) string { return filepath.Dir(p.loaded.FileOf(b.ID)) }

// projectFile returns the project's registration, "" for none.
func projectFile(project string) string {
	if project == "" {
		return ""
	}
	file := filepath.Join(project, ".ahp", "registration.json")
	if _, err := os.Lstat(file); err != nil {
		return ""
	}
	return file
}

// known reports whether the person has trusted the file at some time: then another
// content is a change, which must not switch the project's policy off.
func known(store *trust.Store, file string) bool {
	list, err := store.List()
	if err != nil {
		return true // what is trusted can't be told: the file counts, and is refused
	}
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return true
	}
	return slices.ContainsFunc(list, func(e trust.Entry) bool { return e.Path == real })
}

// ProjectOf returns the folder whose registration holds in dir: the nearest one at or
// above dir that has one, no further up than the root of the repository, and never the
// home folder's parent; "" for none.
func ProjectOf(dir string) string {
	if !filepath.IsAbs(dir) {
		return ""
	}
	for dir = filepath.Clean(dir); ; dir = filepath.Dir(dir) {
		if projectFile(dir) != "" {
			return dir
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil || !errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// sit returns a harness for a session. The caller gives it back with rise.
func (p *plan) sit(j *Judge, session string) (*seat, error) {
	if !p.own {
		session = "" // nothing of a session's own: all share one
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, harness.ErrClosed
	}
	s := p.sessions[session]
	if s == nil {
		h, err := harness.New(p.reg, harness.Options{Manifest: p.manifest, Open: j.open(p), CloseTimeout: j.opts.CloseTimeout})
		if err != nil {
			return nil, err
		}
		s = &seat{h: h}
		p.sessions[session] = s
		p.evict(session)
	}
	s.users++
	s.last = time.Now()
	return s, nil
}

// maxSeats bounds the sessions that have processes of their own.
const maxSeats = 64

// evict closes the harness that was used least recently, if there are too many. The
// lock is held.
func (p *plan) evict(keep string) {
	for len(p.sessions) > maxSeats {
		oldest := ""
		for name, s := range p.sessions {
			if name != keep && s.users == 0 && (oldest == "" || s.last.Before(p.sessions[oldest].last)) {
				oldest = name
			}
		}
		if oldest == "" {
			return // all are in use
		}
		go p.sessions[oldest].h.Close()
		delete(p.sessions, oldest)
	}
}

func (p *plan) rise(s *seat) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.users--
	s.last = time.Now()
	if p.closed && s.users == 0 {
		go s.h.Close()
	}
}

// close ends what is kept warm: now what is idle, and the rest when its calls end.
func (p *plan) close() {
	p.mu.Lock()
	p.closed = true
	var idle []*seat
	for _, s := range p.sessions {
		if s.users == 0 {
			idle = append(idle, s)
		}
	}
	p.mu.Unlock()
	for _, s := range idle {
		s.h.Close()
	}
}

// idle closes the harnesses that nobody has used since before.
func (p *plan) idle(before time.Time) {
	p.mu.Lock()
	var old []*seat
	for name, s := range p.sessions {
		if s.users == 0 && s.last.Before(before) {
			old = append(old, s)
			delete(p.sessions, name)
		}
	}
	p.mu.Unlock()
	for _, s := range old {
		s.h.Close()
	}
}
