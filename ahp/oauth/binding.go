package oauth

import (
	"errors"
	"net/netip"
	"net/url"
	"path"
	"strings"
)

// maxURLBytes bounds every URL that is parsed.
const maxURLBytes = 4 << 10

// rules says which URLs may be asked.
type rules struct {
	// local says that the endpoint is on this machine, and so the others may be.
	local bool
}

// parse checks an issuer's or a discovered URL: https, or http to this machine
// where the endpoint is on it too; a host; no user, no fragment.
func (r rules) parse(s string) (*url.URL, error) {
	if len(s) > maxURLBytes {
		return nil, errors.New("the URL is longer than 4096 bytes")
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Opaque != "" || u.Host == "" || u.Hostname() == "" || strings.ContainsAny(s, "\\ \t\r\n"):
		return nil, errors.New("not an absolute URL")
	case u.User != nil:
		return nil, errors.New("the URL holds a user's name")
	case u.Fragment != "" || strings.Contains(s, "#"):
		return nil, errors.New("the URL has a fragment")
	case strings.Contains(u.Host, "%"):
		return nil, errors.New("the URL's host has a zone")
	case u.Scheme == "https", u.Scheme == "http" && r.local && isLoopback(u):
		return u, nil
	}
	return nil, errors.New("the URL is not https")
}

// parseEndpoint checks the configured URL that tokens are for.
func parseEndpoint(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.User != nil:
		return nil, errors.New("oauth: the endpoint isn't an absolute URL without a user's name")
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u)):
		return nil, errors.New("oauth: a token goes over https only, or over http to this machine")
	}
	return u, nil
}

// parseResource checks the identifier of a protected resource (RFC 8707 §2).
func parseResource(s string) (*url.URL, error) {
	u, err := rules{local: true}.parse(s)
	if err != nil || u.RawQuery != "" || u.ForceQuery {
		return nil, errors.New("oauth: the resource isn't an https URL without query, fragment and user (http: this machine only)")
	}
	return u, nil
}

// within reports whether a token for resource may go to u: the same origin, and a
// path that is the resource's or continues it by whole segments.
func within(resource, u *url.URL) bool {
	if resource == nil || u == nil || origin(resource) != origin(u) || u.User != nil {
		return false
	}
	base, ok := plainPath(resource)
	at, ok2 := plainPath(u)
	if !ok || !ok2 {
		return false
	}
	base = strings.TrimSuffix(base, "/")
	return at == base || strings.HasPrefix(at, base+"/")
}

// plainPath returns the path as it is sent, "" as "/". It reports false for dot
// segments and for encoded dots and slashes, which servers read in several ways.
func plainPath(u *url.URL) (string, bool) {
	p := u.EscapedPath()
	if p == "" {
		return "/", true
	}
	lower := strings.ToLower(p)
	if strings.Contains(lower, "%2e") || strings.Contains(lower, "%2f") || strings.Contains(lower, "%5c") {
		return p, false
	}
	cleaned := path.Clean(p)
	return p, cleaned == p || cleaned+"/" == p
}

// origin returns scheme, host and port in one form.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Hostname()) + ":" + port
}

// sameResource compares identifiers (RFC 9728 §3.3): character for character, but
// that the root may be written with and without its slash.
func sameResource(a, b string) bool {
	bare := func(s string) string {
		if u, err := url.Parse(s); err == nil && u.Path == "/" {
			return strings.TrimSuffix(s, "/")
		}
		return s
	}
	return a != "" && b != "" && bare(a) == bare(b)
}

// isLoopback reports whether the host of u is written as this machine.
func isLoopback(u *url.URL) bool {
	host := u.Hostname()
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// isScope reports whether s is a scope-token of RFC 6749 §3.3.
func isScope(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return s != ""
}
