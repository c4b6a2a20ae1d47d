package oauth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	// callbackPath is fixed, since issuers compare all of a registered redirect URI
	// but the port (RFC 8252 §7.3).
	callbackPath = "/callback"
	donePage     = "The authorization is finished. You may close this window.\n"
	// lingerTime is how long the page may take to reach the browser.
	lingerTime = time.Second
)

// Loopback returns an Options.Authorize for a host with a browser on this machine
// (RFC 8252 §7.3): it listens at a free port of 127.0.0.1, has open show the URL to
// the person, and returns the redirect to http://127.0.0.1:PORT/callback. open must
// return soon, and hand the URL to a browser as one argument, not through a shell.
// Requests that don't answer this authorization are refused and change nothing, so
// that another page or program of this machine can't spoil it.
func Loopback(open func(ctx context.Context, url string) error) func(context.Context, *Authorization) (string, error) {
	return func(ctx context.Context, a *Authorization) (string, error) {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
		if err != nil {
			return "", fmt.Errorf("oauth: no port of this machine is free for the redirect: %w", err)
		}
		base := "http://" + l.Addr().String()
		at, err := a.URL(base + callbackPath)
		if err != nil {
			l.Close()
			return "", err
		}
		redirected := make(chan string, 1)
		server := &http.Server{
			Handler:     &callback{host: l.Addr().String(), base: base, state: a.state, redirected: redirected},
			ReadTimeout: 5 * time.Second, WriteTimeout: 5 * time.Second, MaxHeaderBytes: maxBodyBytes,
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			server.Serve(l)
		}()
		defer func() {
			linger, cancel := context.WithTimeout(context.WithoutCancel(ctx), lingerTime)
			defer cancel()
			if server.Shutdown(linger) != nil {
				server.Close()
			}
			<-ended
		}()
		if err := open(ctx, at); err != nil {
			return "", errors.New("oauth: the browser can't be opened")
		}
		select {
		case out := <-redirected:
			return out, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// callback waits for the redirect of one authorization.
type callback struct {
	host, base, state string
	redirected        chan<- string // has room for one
}

// ServeHTTP takes the redirect if it has the authorization's state. The page says
// nothing of what it holds.
func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	state := r.URL.Query()["state"]
	switch {
	case r.Host != c.host || r.URL.Path != callbackPath: // a name that was pointed here is not this host
		w.WriteHeader(http.StatusNotFound)
		return
	case r.Method != http.MethodGet:
		w.Header().Set("Allow", http.MethodGet)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case len(state) != 1 || subtle.ConstantTimeCompare([]byte(state[0]), []byte(c.state)) != 1:
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	select {
	case c.redirected <- c.base + r.URL.RequestURI():
	default: // the first one counts
	}
	io.WriteString(w, donePage)
}
