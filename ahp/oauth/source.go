package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/run"
)

const (
	// machineTime and personTime bound one acquisition, without and with a person.
	machineTime = 30 * time.Second
	personTime  = 10 * time.Minute
	// firstHold and lastHold are how long failed acquisitions hold back the next
	// one: twice as long each time. personHold is for those that ask a person.
	firstHold  = time.Second
	lastHold   = time.Minute
	personHold = 5 * time.Minute
	// closeTime is how long Close waits for a callback of the host that doesn't heed
	// its context.
	closeTime = 5 * time.Second
	// metadataTime is how long the issuer's metadata is used.
	metadataTime = time.Hour
)

// Source gives tokens for one endpoint. Its methods may be called from any
// goroutine. Make it with New or NewTrusting.
type Source struct {
	endpoint *url.URL
	opts     Options
	trusted  []Client        // the local policy, without a registered client
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc

	mu        sync.Mutex
	closed    bool
	chosen    *Client   // nil before a challenge
	wants     *wants    // of the latest challenge, or nil
	current   Token     // zero: none
	expires   time.Time // of current, the margin taken off; zero: not known
	proven    bool      // current was accepted by the endpoint
	refresh   string
	meta      *issuerMetadata
	metaUntil time.Time
	pending   *acquisition // nil: none runs
	failures  int
	failed    error // of the latest acquisition, while it holds back
	heldUntil time.Time
	prompted  time.Time // when a person was asked last; zero: never
}

// acquisition is one that runs or has ended.
type acquisition struct {
	login bool // somebody asked for it who has a person at hand
	done  chan struct{}
	token Token // valid after done
	err   error
}

func newSource(endpoint *url.URL, o Options) *Source {
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Source{endpoint: endpoint, opts: o}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Ready reports why no token can be had, as far as this machine knows: an
// *ahp.Failure of class auth where the client's secret isn't there. It asks nobody
// else.
func (s *Source) Ready(ctx context.Context) error {
	s.mu.Lock()
	c := s.chosen
	s.mu.Unlock()
	if c == nil || c.SecretRef == "" {
		return nil
	}
	if secret, err := s.opts.ResolveSecret(ctx, c.SecretRef); err != nil || secret == "" {
		return failure("the clientSecretRef didn't resolve to a secret")
	}
	return nil
}

// Token returns a token that has not expired, and obtains one if need be; the zero
// Token where none is called for yet (NewTrusting). Concurrent calls wait for the
// same acquisition. It returns when ctx ends, with an error that wraps ctx.Err();
// the acquisition goes on within its own bound, and the next call may find its
// token. Other errors are *ahp.Failure of class auth.
func (s *Source) Token(ctx context.Context) (Token, error) { return s.token(ctx, false) }

// Login obtains a token now if there is none, and isn't held back by an earlier
// failure. A host calls it when a person is there, before calls with a deadline
// need the token.
func (s *Source) Login(ctx context.Context) error {
	_, err := s.token(ctx, true)
	return err
}

func (s *Source) token(ctx context.Context, anyway bool) (Token, error) {
	if ctx.Err() != nil {
		return Token{}, fmt.Errorf("before waiting for a token: %w", ctx.Err())
	}
	s.mu.Lock()
	now := s.opts.Now()
	switch {
	case s.closed:
		s.mu.Unlock()
		return Token{}, failure("the source of tokens is closed")
	case s.chosen == nil && s.wants == nil:
		s.mu.Unlock()
		return Token{}, nil
	case !s.current.IsZero() && (s.expires.IsZero() || now.Before(s.expires)):
		defer s.mu.Unlock()
		return s.current, nil
	case s.pending == nil && !anyway && s.failed != nil && now.Before(s.heldUntil):
		defer s.mu.Unlock()
		s.forget()
		return Token{}, s.held()
	}
	p := s.pending
	if p == nil {
		p = &acquisition{login: anyway, done: make(chan struct{})}
		s.pending = p
		go s.run(p) // until p.done, for which Close waits
	}
	s.mu.Unlock()
	select {
	case <-p.done:
		return p.token, p.err
	case <-ctx.Done():
		return Token{}, fmt.Errorf("while waiting for a token: %w", ctx.Err())
	}
}

// held returns the failure that holds back. A bug stays one. The lock is held.
func (s *Source) held() error {
	f := ahp.AsFailure(s.failed)
	if f == nil {
		return s.failed
	}
	return failure("%s (no other try before %s)", f.Detail, s.heldUntil.UTC().Format("15:04:05Z"))
}

// run makes one acquisition and publishes its result to all who wait.
func (s *Source) run(p *acquisition) {
	defer close(p.done)
	s.mu.Lock()
	job := job{source: s, chosen: s.chosen, wants: s.wants, refresh: s.refresh}
	if !p.login && !s.prompted.IsZero() {
		job.quiet = s.prompted.Add(personHold)
	}
	if s.opts.Now().Before(s.metaUntil) {
		job.meta = s.meta
	}
	s.mu.Unlock()
	var g *grant
	err := run.Protect(func() (err error) {
		g, err = job.do()
		return err
	})

	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending = nil
	if s.closed {
		p.err = failure("the source of tokens is closed")
		return
	}
	s.refresh = job.refresh
	if job.asked {
		s.prompted = s.opts.Now()
	}
	if err == nil {
		var r *url.URL
		r, err = parseResource(job.chosen.Resource)
		p.token = Token{value: g.access, resource: r}
	}
	if err != nil {
		p.token, p.err = Token{}, err
		s.meta = nil
		s.forget()
		s.hold(err, job.asked)
		return
	}
	if s.meta != job.meta {
		s.meta, s.metaUntil = job.meta, s.opts.Now().Add(metadataTime)
	}
	s.wants = nil // it is met
	s.chosen, s.current, s.expires, s.proven, s.failed = job.chosen, p.token, g.expires, false, nil
	if g.refresh != "" {
		s.refresh = g.refresh
	}
}

// forget has the endpoint asked again what it wants, after a failure and where no
// client is chosen. The lock is held.
func (s *Source) forget() {
	if s.chosen == nil {
		s.wants = nil
	}
}

// hold remembers a failure, so that calls fail at once for a while instead of
// asking again; asked says that a person was. The lock is held.
func (s *Source) hold(err error, asked bool) {
	wait := min(firstHold<<min(s.failures, 10), lastHold)
	if asked {
		wait = personHold
	}
	s.failures++
	s.failed, s.heldUntil = err, s.opts.Now().Add(wait)
}

// Accepted is told that the endpoint didn't refuse a request with t.
func (s *Source) Accepted(t Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !t.IsZero() && s.current == t {
		s.proven, s.failures = true, 0
	}
}

// Refused is told that the endpoint answered a request with t, which may be the
// zero Token, with 401 and these headers. Nil means that another try makes sense:
// Token then gives a new one, or the one that another call obtained meanwhile. A
// token that was never accepted is not replaced, and holds back the next try: it
// would be refused again.
func (s *Source) Refused(t Token, response http.Header) error {
	w, err := readWants(response.Values("WWW-Authenticate"))
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case t.IsZero() && s.chosen != nil:
		return nil // another call has found how
	case t.IsZero():
		if err == nil {
			s.wants = w
		}
		return err
	case s.current != t:
		return nil
	}
	s.current = Token{}
	if !s.proven {
		if s.failures > 0 {
			s.refresh = "" // what it gives is refused every time
		}
		err := failure("HTTP status 401: the endpoint refused a new token")
		s.hold(err, s.chosen.Flow == AuthorizationCode && s.refresh == "")
		return err
	}
	s.wants = w // nil where the challenge can't be read: the token is replaced all the same
	return nil
}

// Close ends an acquisition that runs, waits for it and forgets all tokens. It waits
// no longer than five seconds for a callback of the host that doesn't return. It may
// be repeated.
func (s *Source) Close() error {
	s.mu.Lock()
	s.closed = true
	s.current, s.refresh = Token{}, ""
	p := s.pending
	s.mu.Unlock()
	s.cancel()
	if p == nil {
		return nil
	}
	timer := time.NewTimer(closeTime)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		return errors.New("oauth: a callback of the host doesn't return")
	}
}

// Format writes a placeholder for every verb, so that no token gets into a log.
func (s *Source) Format(f fmt.State, _ rune) { fmt.Fprint(f, "[source of tokens]") }

// job is the work of one acquisition. It belongs to one goroutine.
type job struct {
	source  *Source
	chosen  *Client
	wants   *wants
	refresh string
	meta    *issuerMetadata
	asked   bool      // a person was
	quiet   time.Time // no person is asked before; zero: whenever
}

func (j *job) do() (*grant, error) {
	s := j.source
	ctx, cancel := context.WithTimeout(s.ctx, j.time())
	defer cancel()
	g, err := j.steps(ctx)
	if err != nil && ctx.Err() != nil && !isPanic(err) {
		if s.ctx.Err() != nil {
			return nil, failure("the source of tokens is closed")
		}
		return nil, failure("no token within %v", j.time())
	}
	return g, err
}

func isPanic(err error) bool {
	var p *run.PanicError
	return errors.As(err, &p)
}

func (j *job) time() time.Duration {
	person := j.chosen != nil && j.chosen.Flow == AuthorizationCode
	for i := range j.source.trusted {
		person = person || j.source.trusted[i].Flow == AuthorizationCode
	}
	if person {
		return personTime
	}
	return machineTime
}

// steps finds the client if need be, then the issuer's endpoints, then a token.
func (j *job) steps(ctx context.Context) (*grant, error) {
	s := j.source
	ask := newSession(&s.opts, isLoopback(s.endpoint))
	defer ask.end()
	if err := j.agree(ctx, ask); err != nil {
		return nil, err
	}
	if j.meta == nil {
		m, err := ask.issuer(ctx, j.chosen)
		if err != nil {
			return nil, err
		}
		j.meta = m
	}
	if j.refresh != "" {
		form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {j.refresh}}
		g, err := ask.request(ctx, j.meta, j.chosen, form, s.opts.Now)
		var refused *tokenError
		if !errors.As(err, &refused) || refused.code != "invalid_grant" {
			return g, err
		}
		j.refresh = "" // it has expired or was revoked
	}
	if j.chosen.Flow == AuthorizationCode {
		if s.opts.Now().Before(j.quiet) {
			return nil, failure("a new authorization is needed, and a person was asked less than %v ago", personHold)
		}
		j.asked = true
		return ask.authorize(ctx, j.meta, j.chosen, s.opts.Now)
	}
	return ask.request(ctx, j.meta, j.chosen, withScopes(url.Values{"grant_type": {"client_credentials"}}, j.chosen), s.opts.Now)
}

// agree holds what the endpoint says, where a challenge points to it, against the
// registered client; or has the local policy choose a client by it.
func (j *job) agree(ctx context.Context, ask *session) error {
	s := j.source
	if j.chosen != nil && (j.wants == nil || j.wants.metadata == "") {
		return nil
	}
	m, err := ask.resource(ctx, s.endpoint, j.wants)
	switch {
	case err != nil && j.chosen != nil:
		return ctx.Err() // the choice needs no advertisement
	case err != nil:
		return err
	case len(s.trusted) == 0:
		return contradiction(m, j.chosen)
	}
	c, err := choose(m, j.wants, s.trusted)
	if err != nil {
		return err
	}
	if j.chosen == nil || c.Issuer != j.chosen.Issuer || c.ClientID != j.chosen.ClientID {
		j.meta, j.refresh = nil, "" // they are another client's
	}
	j.chosen = c
	return nil
}
