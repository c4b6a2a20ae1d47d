package probe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// maxSkew is how far clocks may be apart.
	maxSkew = 2 * time.Minute
	// soon is when the end of a certificate is worth a word.
	soon = 14 * 24 * time.Hour
)

// steps are what happened on the way to the endpoint. The hooks of httptrace may be
// called at the same time, and after the request has failed.
type steps struct {
	mu       sync.Mutex
	looked   string // the name that was looked up
	found    []string
	nameErr  error
	dialed   []string
	answered string
	portErr  error
	shook    bool
	state    tls.ConnectionState
	tlsErr   error
}

func (s *steps) hooks() *httptrace.ClientTrace {
	locked := func(f func()) {
		s.mu.Lock()
		defer s.mu.Unlock()
		f()
	}
	return &httptrace.ClientTrace{
		DNSStart: func(i httptrace.DNSStartInfo) { locked(func() { s.looked = i.Host }) },
		DNSDone: func(i httptrace.DNSDoneInfo) {
			locked(func() {
				s.nameErr = i.Err
				for _, a := range i.Addrs {
					s.found = append(s.found, a.String())
				}
			})
		},
		ConnectStart: func(_, addr string) { locked(func() { s.dialed = append(s.dialed, addr) }) },
		ConnectDone: func(_, addr string, err error) {
			locked(func() {
				if err == nil {
					s.answered = addr
				} else {
					s.portErr = err
				}
			})
		},
		TLSHandshakeDone: func(state tls.ConnectionState, err error) {
			locked(func() { s.shook, s.state, s.tlsErr = true, state, err })
		},
	}
}

// look says how far one gets on the way to the endpoint, by a request for the base
// URL that carries no credentials.
func (r *runner) look(ctx context.Context) {
	u, err := url.Parse(r.o.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		for _, n := range []string{Name, Port, TLS, HTTP, Clock} {
			r.skip(n, "there is no http or https URL to look at")
		}
		return
	}
	u = &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	r.report.Endpoint = r.hide.clean(shown(r.o.BaseURL))
	pool, err := roots(r.o.CAFile)
	if err != nil {
		r.set(TLS, No, "correct ca_file", "the authorities to trust can't be read: %v", err)
		r.blocked = "the authorities to trust can't be read"
		for _, n := range []string{Name, Port, HTTP, Clock} {
			r.skip(n, r.blocked)
		}
		return
	}
	limit := min(r.o.Timeout, lookTimeout)
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	s := &steps{}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: limit}).DialContext, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 1 << 20,
	}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, s.hooks()), http.MethodGet, u.String(), nil)
	if err != nil {
		r.set(HTTP, No, "correct base_url", "no request can be made of it: %v", err)
		return
	}
	req.Header.Set("User-Agent", "abhed")
	via := through(transport, req)
	resp, err := transport.RoundTrip(req)
	if err == nil {
		_ = resp.Body.Close() // nothing of it is read
	}
	if whole.Err() != nil {
		r.blocked = interrupted
		return // ask says it of every probe
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.sayName(s, u, via)
	r.sayPort(s, via, limit)
	r.sayTLS(s, u, err)
	r.sayHTTP(s, resp, err, limit)
}

// roots returns the authorities to trust, nil for the system's.
func roots(caFile string) (*x509.CertPool, error) {
	if caFile == "" {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(caFile)
	if err != nil {
		return nil, err
	}
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s holds no PEM certificate", caFile)
	}
	return pool, nil
}

// through names the proxy for req, "" for none: by scheme and host, since the rest of
// the variable may be a password.
func through(t *http.Transport, req *http.Request) string {
	u, err := t.Proxy(req)
	if err != nil || u == nil {
		return ""
	}
	return " (through the proxy " + u.Scheme + "://" + u.Host + ", set by the environment)"
}

func (r *runner) sayName(s *steps, u *url.URL, via string) {
	switch {
	case s.nameErr != nil:
		r.set(Name, No, "check the host in base_url, and the network", "%s can't be resolved: %v%s", s.looked, s.nameErr, via)
		r.blocked = "the host's name can't be resolved"
	case s.looked != "" && len(s.found) > 0:
		r.set(Name, OK, "", "%s is %s%s", s.looked, strings.Join(s.found[:min(3, len(s.found))], ", "), via)
	case s.looked != "":
		r.set(Name, No, "check the network's name service", "the look-up of %s did not end in time%s", s.looked, via)
		r.blocked = "the host's name can't be resolved"
	default:
		r.set(Name, OK, "", "%s needs no look-up%s", u.Hostname(), via)
	}
}

func (r *runner) sayPort(s *steps, via string, limit time.Duration) {
	addr := strings.Join(s.dialed, ", ")
	switch {
	case s.answered != "":
		r.set(Port, OK, "", "%s answers%s", s.answered, via)
	case r.blocked != "":
		r.skip(Port, r.blocked)
	case errors.Is(s.portErr, syscall.ECONNREFUSED):
		r.set(Port, No, "check that the server is running there, and the port in base_url", "the connection to %s was refused%s", addr, via)
	case s.portErr != nil && !timedOut(s.portErr):
		r.set(Port, No, "check base_url and the network", "no connection to %s: %v%s", addr, s.portErr, via)
	case addr != "":
		r.set(Port, No, "check the network, firewalls and the port in base_url", "no answer from %s within %v%s", addr, limit, via)
	default:
		r.set(Port, Unclear, "check base_url and the proxy variables of the environment", "nobody was called%s", via)
	}
	if r.probes[Port].Outcome == No {
		r.blocked = "the port does not answer"
	}
}

func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

func (r *runner) sayTLS(s *steps, u *url.URL, err error) {
	switch {
	case r.blocked != "":
		r.skip(TLS, r.blocked)
	case u.Scheme == "http" && loopback(u.Hostname()):
		r.skip(TLS, "base_url is plain http, on this machine")
	case u.Scheme == "http":
		r.set(TLS, Unclear, "use https where the endpoint has it", "base_url is plain http: whoever is on the way can read the key and all that is said")
	case s.shook && s.tlsErr == nil:
		r.set(TLS, OK, "", "%s, %s", tls.VersionName(s.state.Version), described(s.state.PeerCertificates))
	default:
		r.tlsFailed(s, err)
	}
}

// tlsFailed says why there is no TLS connection.
func (r *runner) tlsFailed(s *steps, err error) {
	if s.tlsErr != nil {
		err = s.tlsErr
	}
	var (
		verify  *tls.CertificateVerificationError
		record  tls.RecordHeaderError
		name    x509.HostnameError
		invalid x509.CertificateInvalidError
	)
	do := "if the endpoint is yours, trust its authority with ca_file; else somebody stands between"
	switch {
	case errors.As(err, &verify):
		switch {
		case errors.As(err, &name):
			do = "check the host in base_url: the certificate is for other names"
		case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
			do = "check this machine's clock; else the endpoint's certificate must be renewed"
		}
		outcome := No
		if os.Getenv("SSL_CERT_FILE") != "" {
			// The client trusts the system's authorities besides those of the variable.
			outcome = Unclear
		}
		r.set(TLS, outcome, do, "the certificate is not accepted: %v; it is %s", verify.Err, described(verify.UnverifiedCertificates))
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		r.set(TLS, No, "if it is meant to be plain, write http:// in base_url", "the server does not speak TLS")
	case timedOut(err):
		r.set(TLS, No, "check that this is the API's port", "the server did not finish the TLS handshake in time")
	default:
		r.set(TLS, No, "check base_url and what stands between", "there is no TLS connection: %v", err)
	}
	if r.probes[TLS].Outcome == No {
		r.blocked = "there is no TLS connection"
	}
}

// described says whose certificate a chain is.
func described(chain []*x509.Certificate) string {
	if len(chain) == 0 {
		return "not shown"
	}
	c := chain[0]
	whose := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		whose = append(whose, ip.String())
	}
	if len(whose) == 0 {
		whose = []string{c.Subject.String()}
	}
	out := fmt.Sprintf("a certificate for %q by %q, valid until %s", strings.Join(whose[:min(3, len(whose))], ", "), c.Issuer.String(), c.NotAfter.UTC().Format(time.DateOnly))
	if time.Until(c.NotAfter) < soon {
		out += ", which is soon or past"
	}
	return out
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (r *runner) sayHTTP(s *steps, resp *http.Response, err error, limit time.Duration) {
	switch {
	case r.blocked != "":
		r.skip(HTTP, r.blocked)
	case resp == nil && timedOut(err):
		r.set(HTTP, Unclear, "check that the server is well", "it took the connection and a request for base_url, and did not answer within %v", limit)
	case resp == nil:
		r.set(HTTP, Unclear, "check base_url", "a request for base_url failed: %v", err)
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		target := "elsewhere"
		if to, err := resp.Location(); err == nil {
			target = "to " + shown(to.String())
		}
		r.set(HTTP, Unclear, "if requests are redirected too, set base_url to where the API is: redirects are never followed", "base_url redirects %s (HTTP %d)", target, resp.StatusCode)
	default:
		r.set(HTTP, OK, "", "it speaks %s (a request for base_url alone: %d)", resp.Proto, resp.StatusCode)
	}
	r.sayClock(resp)
}

func (r *runner) sayClock(resp *http.Response) {
	if resp == nil {
		why := r.blocked
		if why == "" {
			why = "there was no answer to read a date from"
		}
		r.skip(Clock, why)
		return
	}
	there, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		r.set(Clock, Unclear, "", "the answer has no date")
		return
	}
	skew := time.Since(there).Round(time.Second)
	switch {
	case skew > maxSkew:
		r.set(Clock, No, "set this machine's clock; certificates and signed requests depend on it", "this machine's clock is %v ahead of the endpoint's", skew)
	case skew < -maxSkew:
		r.set(Clock, No, "set this machine's clock; certificates and signed requests depend on it", "this machine's clock is %v behind the endpoint's", -skew)
	default:
		r.set(Clock, OK, "", "it agrees with this machine's to %v", max(skew.Abs(), time.Second))
	}
}
