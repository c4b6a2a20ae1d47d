package hookd

import (
	"bytes"
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
	"github.com/abhed/abhed/internal/proc"
	"github.com/abhed/abhed/internal/selfprotect"
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
	stamps  []stamp
	// own tells that a backend needs a process that stays, so that each session has a
	// harness of its own; environ that a credential is a variable's, which a service
	// may not have.
	own, environ bool
	// native tells that a subscription asks for the provider's own event.
	native   bool
	manifest *ahp.Manifest
	protect  *selfprotect.Set

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

// stamp is how a file was when it was read, or how open a folder was.
type stamp struct {
	path  string
	size  int64
	mtime time.Time
	inode uint64
	mode  fs.FileMode
	owner uint32
	gone  bool
}

func stampOf(path string) stamp {
	s := stamp{path: path}
	info, err := os.Stat(path)
	if err != nil {
		s.gone = true
		return s
	}
	s.inode, s.owner = inode(info)
	s.mode = info.Mode()
	if !info.IsDir() { // what else lies in a folder doesn't matter
		s.size, s.mtime = info.Size(), info.ModTime()
	}
	return s
}

// stampsOf returns the stamps of registrations: what others may write decides nothing, so
// that their folders count as well.
func stampsOf(paths []string) (out []stamp) {
	for _, path := range paths {
		out = append(out, stampOf(path), stampOf(filepath.Dir(path)))
		if real, err := filepath.EvalSymlinks(path); err == nil && filepath.Dir(real) != filepath.Dir(path) {
			out = append(out, stampOf(filepath.Dir(real)))
		}
	}
	return out
}

// fresh reports whether every file is as it was.
func (p *plan) fresh() bool {
	return !slices.ContainsFunc(p.stamps, func(s stamp) bool { return stampOf(s.path) != s })
}

// errNoRegistration is for a machine on which nothing is registered.
var errNoRegistration = errors.New("no AHP registration is in force: neither /etc/ahp/registration.json nor .config/ahp/registration.json in the home is there; write one, or run \"ahp uninstall\" for this agent")

// load reads the registrations for w.
func (j *Judge) load(h *adapter.Host, w where) (*plan, error) {
	p := &plan{host: h, manifest: manifestOf(h), sessions: map[string]*seat{}}
	o := ahpconfig.Options{File: w.registration, Home: w.home, Dir: w.project, Managed: j.opts.Managed}
	store := trust.Open(filepath.Join(j.state, "trust.json"))
	o.Trusted = store.Trusted
	if w.project != "" {
		if _, err := os.Stat(registrationIn(w.project)); err != nil {
			return nil, fmt.Errorf("%s was trusted, and can't be read now: %w; restore it, or run \"ahp trust --remove %s\"", registrationIn(w.project), err, registrationIn(w.project))
		}
	}
	p.stamps = append(p.stamps, stampOf(store.Path()))
	loaded, stamps, err := j.read(o)
	if untrusted := (*ahpconfig.UntrustedError)(nil); errors.As(err, &untrusted) {
		return nil, fmt.Errorf("%s was trusted with other content: read it, and run \"ahp trust\" in its project if it may still decide, or \"ahp trust --remove\" with its name if not", untrusted.Path)
	}
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
	p.stamps = append(p.stamps, stamps...)
	reg, _, err := Fit(loaded.Registration, p.manifest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(names(loaded.Sources), ", "), err)
	}
	p.reg = reg
	p.learn(j)
	p.protect = selfprotect.New(p.protected(j))
	return p, nil
}

// manifestOf returns what this program promises for a host. A test holds that each is
// valid.
func manifestOf(h *adapter.Host) *ahp.Manifest {
	m := h.Manifest()
	m.ManagedPolicy.Scopes = []string{"user", "project", "managed"}
	return m
}

// maxReads bounds how often registrations are read that change all the time.
const maxReads = 20

// read reads the registrations, and how their files were: what is replaced in between is
// read again for a service, which would else hold to what was there before.
func (j *Judge) read(o ahpconfig.Options) (*ahpconfig.Loaded, []stamp, error) {
	loaded, err := ahpconfig.Load(o)
	if err != nil {
		return nil, nil, err
	}
	for range maxReads {
		stamps := stampsOf(loaded.Looked)
		if j.opts.Mode != hooklog.ModeService { // it judges one call
			return loaded, stamps, nil
		}
		next, err := ahpconfig.Load(o)
		if err != nil {
			return nil, nil, err
		}
		if slices.EqualFunc(loaded.Sources, next.Sources, func(a, b ahpconfig.Source) bool {
			return a.Path == b.Path && bytes.Equal(a.Content, b.Content)
		}) {
			return next, stamps, nil
		}
		loaded = next
	}
	return nil, nil, errors.New("the registrations change all the time: they were read 20 times, and were others each time")
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
			p.native = p.native || b.Subscriptions[k].IncludeNative
		}
	}
}

// protected names what an agent must not change.
func (p *plan) protected(j *Judge) selfprotect.Options {
	o := selfprotect.Options{Home: j.home, State: j.state, Config: filepath.Join(j.home, ".config", "ahp"), Binaries: []string{j.opts.Executable}}
	for _, s := range p.sources {
		o.Registrations = append(o.Registrations, s.Path)
	}
	for i := range p.reg.Hooks {
		b := &p.reg.Hooks[i]
		dir := p.dirOf(b)
		if b.Transport.Cwd != "" {
			dir = join(dir, b.Transport.Cwd)
		}
		if at := slices.Index(b.Transport.Args, "--rules"); at >= 0 && at+1 < len(b.Transport.Args) {
			o.Rules = append(o.Rules, join(dir, b.Transport.Args[at+1]))
		}
		o.More = append(o.More, j.programs(b, dir)...)
	}
	return o
}

// programs names the program of a backend, and the files that it is given to run or to
// read: who writes them decides.
func (j *Judge) programs(b *ahp.Backend, dir string) (out []selfprotect.Place) {
	if b.Transport.Type != ahp.TransportStdio {
		return nil
	}
	if program, err := proc.LookPath(b.Transport.Command, dir, j.environ()); err == nil {
		out = append(out, selfprotect.Place{Path: join(dir, program), What: "the program of an AHP backend in force"})
	}
	for _, arg := range b.Transport.Args {
		path := join(dir, arg)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			out = append(out, selfprotect.Place{Path: path, What: "a file of an AHP backend in force"})
		}
	}
	return out
}

// dirOf returns the folder of the file that registers a backend.
func (p *plan) dirOf(b *ahp.Backend) string { return filepath.Dir(p.loaded.FileOf(b.ID)) }

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
		h, err := harness.New(p.reg, harness.Options{Manifest: p.manifest, ManifestChecked: true, Open: j.open(p), CloseTimeout: j.opts.CloseTimeout})
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
