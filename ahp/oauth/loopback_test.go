package oauth_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/oauth"
)

// browse asks for a URL like a browser that keeps no connection, and follows
// redirects if it is told to.
func browse(method, at, host string, follow bool) (int, string, error) {
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if !follow {
		c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	req, err := http.NewRequest(method, at, nil)
	if err != nil {
		return 0, "", err
	}
	req.Host = host
	resp, err := c.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// TestLoopback holds that a browser's redirect gives a token, that requests of
// others before it are refused and spoil nothing, and that the page shows nothing
// of the redirect.
func TestLoopback(t *testing.T) {
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{})
	o := s.Options()
	o.Authorize = oauth.Loopback(func(_ context.Context, at string) error {
		u, err := url.Parse(at)
		if err != nil {
			return err
		}
		state, back := u.Query().Get("state"), u.Query().Get("redirect_uri")
		for _, bad := range []struct {
			method, at, host string
			want             int
		}{
			{"GET", back + "?code=x&state=y", "", 400},
			{"GET", back + "?code=x", "", 400},
			{"GET", back + "?code=x&state=" + state + "&state=" + state, "", 400},
			{"POST", back + "?code=x&state=" + state, "", 405},
			{"GET", strings.TrimSuffix(back, "callback") + "?code=x&state=" + state, "", 404},
			{"GET", back + "?code=x&state=" + state, "evil.example", 404},
		} {
			if status, body, err := browse(bad.method, bad.at, bad.host, false); err != nil || status != bad.want || body != "" {
				t.Errorf("%v: %d %q, %v", bad, status, body, err)
			}
		}
		status, page, err := browse("GET", at, "", true)
		if err != nil || status != 200 || !strings.Contains(page, "close this window") || strings.Contains(page, state) {
			t.Errorf("the page: %d %q, %v", status, page, err)
		}
		return nil
	})
	if _, err := open(t, s, oauth.AuthorizationCode, o).Token(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestLoopbackEnds holds that nothing is left when the browser can't be opened, or
// when nobody answers until the end.
func TestLoopbackEnds(t *testing.T) {
	s := ahptest.NewOAuthServer(t, ahptest.OAuthOptions{})
	o := s.Options()
	var back string
	note := func(at string) {
		u, _ := url.Parse(at)
		back = u.Query().Get("redirect_uri")
	}
	o.Authorize = oauth.Loopback(func(_ context.Context, at string) error {
		note(at)
		return errors.New("no browser " + at)
	})
	if _, err := open(t, s, oauth.AuthorizationCode, o).Token(t.Context()); ahp.AsFailure(err) == nil || strings.Contains(err.Error(), "state=") {
		t.Errorf("got %v", err)
	}
	if _, _, err := browse("GET", back, "", false); err == nil {
		t.Error("something listens after a failure")
	}
	opened := make(chan struct{})
	o.Authorize = oauth.Loopback(func(_ context.Context, at string) error {
		note(at)
		close(opened)
		return nil
	})
	source := open(t, s, oauth.AuthorizationCode, o)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := source.Token(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	<-opened
	if err := source.Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := browse("GET", back, "", false); err == nil {
		t.Error("something listens after Close")
	}
}
