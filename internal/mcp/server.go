package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"time"
)

// server is one configured server and what is known of it. Conversations with it
// come and go; its tools are those of the first.
type server struct {
	cfg      Server
	host     *Host
	endpoint *url.URL // nil for a process
	secrets  *redactor
	calls    calls
	// turn holds one token: whoever has it may start the server or read its list.
	turn chan struct{}
	wake chan struct{} // holds one token while the list may have changed

	// Set by Host.Start and then only read.
	list    []listed
	tools   []*serverTool
	leftOut []string

	mu       sync.Mutex // guards what follows
	link     *link
	stale    bool // the list may have changed
	failed   string
	lastErr  string
	restarts int // all of them
	recent   int // those that count: see spent
	diedAt   time.Time
	latency  time.Duration
	notices  int
	said     map[string]bool
	// changed and removed are tools that must not be called, by the server's names.
	changed, removed map[string]bool
	closed           bool
}

var errClosed = errors.New("the session is ending")

func newServer(h *Host, cfg Server) (*server, error) {
	fail := func(format string, a ...any) (*server, error) {
		return nil, &StartError{Server: cfg.Name, Msg: fmt.Sprintf(format, a...)}
	}
	if fault := checkName(cfg.Name); fault != "" {
		return fail("%s", fault)
	}
	s := &server{
		host: h, turn: make(chan struct{}, 1), wake: make(chan struct{}, 1), said: map[string]bool{},
		changed: map[string]bool{}, removed: map[string]bool{},
	}
	switch {
	case cfg.Command == "" && cfg.URL == "":
		return fail("it has neither command nor url; give one of them")
	case cfg.Command != "" && cfg.URL != "":
		return fail("it has both command and url; give one of them")
	case cfg.StartTimeout < 0 || cfg.CallTimeout < 0:
		return fail("a negative time-out; use a positive one, or none for the default")
	case cfg.URL != "":
		endpoint, fault := checkURL(cfg.URL)
		if fault != "" {
			return fail("%s", fault)
		}
		s.endpoint = endpoint
	}
	if cfg.StartTimeout == 0 {
		cfg.StartTimeout = DefaultStartTimeout
	}
	if cfg.CallTimeout == 0 {
		cfg.CallTimeout = DefaultCallTimeout
	}
	cfg.Args, cfg.Env = slices.Clone(cfg.Args), slices.Clone(cfg.Env)
	cfg.ReadOnly, cfg.Only = slices.Clone(cfg.ReadOnly), slices.Clone(cfg.Only)
	s.cfg = cfg
	s.secrets = newRedactor(&s.cfg)
	s.turn <- struct{}{}
	return s, nil
}

// start starts the server for the first time and reads its list.
func (s *server) start(ctx context.Context) {
	<-s.turn
	defer func() { s.turn <- struct{}{} }()
	list, err := s.open(ctx)
	if err != nil {
		s.giveUp(err.Error())
		return
	}
	s.list = list
}

// open begins a conversation and returns the list of tools. Its caller has the turn.
func (s *server) open(ctx context.Context) ([]listed, error) {
	begin := time.Now()
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StartTimeout)
	defer cancel()
	defer context.AfterFunc(s.host.life, cancel)()
	l, err := s.dial(ctx, firstVersion)
	var f *startFailure
	if errors.As(err, &f) && f.wire {
		if second, again := s.dial(ctx, ""); again == nil {
			l, err = second, nil
		}
	}
	if err != nil {
		return nil, s.cleaned(err)
	}
	list, faults, err := l.list(ctx)
	if err != nil {
		what := "its list of tools could not be read: " + err.Error()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			what = fmt.Sprintf("it did not list its tools within %v", s.cfg.StartTimeout)
		}
		tail := ""
		if l.child != nil {
			tail = l.child.StderrTail()
		}
		l.abort()
		l.close()
		return nil, s.cleaned(errors.New(withTail(what, tail)))
	}
	for _, fault := range faults {
		s.remark(fault)
	}
	s.mu.Lock()
	s.link, s.stale, s.latency = l, false, time.Since(begin)
	s.mu.Unlock()
	return list, nil
}

// cleaned returns an error without secrets.
func (s *server) cleaned(err error) error { return errors.New(s.secrets.clean(err.Error())) }

// ready returns a conversation in which the server can be called: it starts one if
// there is none, and reads the list again if it may have changed.
func (s *server) ready(ctx context.Context) (*link, error) {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { s.turn <- struct{}{} }()
	s.mu.Lock()
	l, stale, closed, failed := s.link, s.stale, s.closed, s.failed
	s.mu.Unlock()
	switch {
	case closed:
		return nil, errClosed
	case failed != "":
		return nil, errors.New(failed)
	case l == nil || l.over():
		return s.again(ctx, l)
	case stale:
		return l, s.reread(ctx, l)
	}
	return l, nil
}

// spent returns how many restarts count against the limit. One that worked long
// enough has them forgiven: a session over HTTP may just have expired. The caller holds
// mu.
func (s *server) spent() int {
	if s.link != nil && s.diedAt.Sub(s.link.born) >= steady {
		return 0
	}
	return s.recent
}

// again starts a server that ended. Its caller has the turn.
func (s *server) again(ctx context.Context, old *link) (*link, error) {
	s.mu.Lock()
	n, cause := s.spent(), s.lastErr
	wait := time.Until(s.diedAt.Add(restartPause << n))
	s.mu.Unlock()
	if n == maxRestarts {
		return nil, fmt.Errorf("it was started again %d times and ended soon each time, so it stays down for the rest of the session. The last cause: %s", n, cause)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if old != nil {
		old.close()
	}
	s.mu.Lock()
	s.restarts, s.recent = s.restarts+1, n+1
	s.link = nil
	s.mu.Unlock()
	list, err := s.open(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		s.mu.Lock()
		s.lastErr, s.diedAt = err.Error(), time.Now()
		s.mu.Unlock()
		s.notice("warning", "it could not be started again: "+err.Error())
		return nil, err
	}
	s.notice("info", fmt.Sprintf("it was started again (%d of at most %d times in a row)", n+1, maxRestarts))
	s.compare(list)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link, nil
}

// outdated notes that the server's list may have changed.
func (s *server) outdated() {
	s.mu.Lock()
	s.stale = true
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default: // whoever is woken will see it
	}
}

// watch reads the list again whenever the server says that it changed, until the
// host is closed.
func (s *server) watch(ctx context.Context) {
	for {
		select {
		case <-s.wake:
		case <-ctx.Done():
			return
		}
		s.refresh(ctx)
		timer := time.NewTimer(rereadPause) // a server may say so without end
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// refresh reads the list again unless a call has done so, or will have to start
// the server anyway.
func (s *server) refresh(ctx context.Context) {
	select {
	case <-s.turn:
	case <-ctx.Done():
		return
	}
	defer func() { s.turn <- struct{}{} }()
	s.mu.Lock()
	l, stale := s.link, s.stale
	s.mu.Unlock()
	if l == nil || !stale || l.over() {
		return
	}
	if err := s.reread(ctx, l); err != nil && ctx.Err() == nil {
		s.remark(err.Error())
	}
}

// reread reads the list again. Its caller has the turn.
func (s *server) reread(ctx context.Context, l *link) error {
	s.mu.Lock()
	s.stale = false
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StartTimeout)
	defer cancel()
	list, faults, err := l.list(ctx)
	if err != nil {
		s.mu.Lock()
		s.stale = true
		s.mu.Unlock()
		return s.cleaned(fmt.Errorf("it said that its tools changed, and its list could not be read again: %w", err))
	}
	for _, fault := range faults {
		s.remark(fault)
	}
	s.compare(list)
	return nil
}

// compare notes what became of the tools that were offered at the start. The model
// was told of those, and a person may have approved them: one that is described
// differently now is another tool.
func (s *server) compare(list []listed) {
	now := map[string]string{}
	for _, t := range list {
		now[t.name] = t.digest
	}
	known := map[string]bool{}
	for _, t := range s.list {
		known[t.name] = true
		digest, there := now[t.name]
		s.mu.Lock()
		fresh := there && digest != t.digest && !s.changed[t.name]
		gone := !there && !s.removed[t.name]
		s.removed[t.name] = !there
		s.changed[t.name] = s.changed[t.name] || fresh
		s.mu.Unlock()
		switch {
		case fresh:
			s.remark(fmt.Sprintf("it changed the description or schema of its tool %s after it was offered; calls of it are refused until the next session", quoted(t.name)))
		case gone:
			s.remark(fmt.Sprintf("it took its tool %s away", quoted(t.name)))
		}
	}
	for _, t := range list {
		if !known[t.name] {
			s.remark(fmt.Sprintf("it has a new tool %s, which is offered from the next session on", quoted(t.name)))
		}
	}
}

// refused says why a tool can't be called although its server can, or "".
func (s *server) refused(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.changed[name]:
		return "the server changed what the tool is after it was offered in this session, so that it isn't what was approved. It can't be used before the next session; tell the user"
	case s.removed[name]:
		return "the server doesn't offer it any more"
	}
	return ""
}

// close ends the server's conversation for good.
func (s *server) close() {
	<-s.turn // a start in progress has been cut short by the end of host.life
	defer func() { s.turn <- struct{}{} }()
	s.mu.Lock()
	l := s.link
	s.closed = true
	s.mu.Unlock()
	if l != nil {
		l.close()
	}
}

func (s *server) state() State {
	st := State{Name: s.cfg.Name, Transport: "stdio", State: StateReady, LeftOut: slices.Clone(s.leftOut)}
	if s.endpoint != nil {
		st.Transport = "http"
	}
	for _, t := range s.tools {
		st.Tools = append(st.Tools, t.spec.Name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	st.Error, st.Restarts, st.Latency = s.lastErr, s.restarts, s.latency
	switch {
	case s.closed:
		st.State = StateClosed
	case s.failed != "":
		st.State = StateFailed
	case s.link == nil || s.link.over():
		st.State = StateEnded
		if s.spent() == maxRestarts {
			st.State = StateFailed
		}
	case s.link.child != nil:
		st.Pid = s.link.child.Pid()
	}
	return st
}
