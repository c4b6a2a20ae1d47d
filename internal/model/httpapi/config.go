package httpapi

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/strictjson"
)

// endpoint returns the URL to post to and its form for people, without query.
func (cfg *Config) endpoint() (full, shown string, err error) {
	u, err := url.Parse(cfg.BaseURL)
	if err != nil {
		// The error of url.Parse quotes its input, which may hold a password.
		return "", "", fmt.Errorf("base_url is not a URL; expected something like https://host/v1")
	}
	switch {
	case u.User != nil:
		return "", "", fmt.Errorf("base_url holds user information; put credentials in api_key_env or headers_env")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", "", fmt.Errorf("base_url has the scheme %q; expected http or https", u.Scheme)
	case u.Host == "":
		return "", "", fmt.Errorf("base_url %q has no host", cfg.BaseURL)
	case u.Fragment != "":
		return "", "", fmt.Errorf("base_url %q has a fragment; remove #%s", cfg.BaseURL, u.Fragment)
	}
	u = u.JoinPath(strings.Split(escapePath(cfg.Path), "/")...)
	switch {
	case u.RawQuery == "":
		u.RawQuery = cfg.Query
	case cfg.Query != "":
		u.RawQuery += "&" + cfg.Query
	}
	full = u.String()
	u.RawQuery, u.ForceQuery = "", false
	return full, u.String(), nil
}

// escapePath escapes what can't stand in a path, but for its slashes.
func escapePath(path string) string {
	elements := strings.Split(path, "/")
	for i, e := range elements {
		elements[i] = url.PathEscape(e)
	}
	return strings.Join(elements, "/")
}

// headers returns the request headers and the values that no error may show.
func (cfg *Config) headers() (http.Header, []string, error) {
	h := http.Header{}
	var secrets []string
	for name, value := range cfg.Fixed {
		h.Set(name, value)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.Headers)) {
		value := cfg.Headers[name]
		if !token(name) {
			return nil, nil, fmt.Errorf("%q is not a header name", name)
		}
		if !headerValue(value) {
			return nil, nil, fmt.Errorf("the value for header %s holds a line end or another control character", name)
		}
		h.Set(name, value)
		secrets = append(secrets, value)
	}
	if !headerValue(cfg.APIKey) {
		return nil, nil, fmt.Errorf("the API key%s holds a line end or another control character; check for a trailing newline", from(cfg.APIKeyEnv))
	}
	if cfg.APIKey != "" {
		if cfg.KeyHeader == "" {
			h.Set("Authorization", "Bearer "+cfg.APIKey)
		} else {
			h.Set(cfg.KeyHeader, cfg.APIKey)
		}
		secrets = append(secrets, cfg.APIKey)
	}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "text/event-stream, application/json")
	if h.Get("User-Agent") == "" {
		h.Set("User-Agent", "abhed")
	}
	return h, secrets, nil
}

func from(env string) string {
	if env == "" {
		return ""
	}
	return " from $" + env
}

// token reports whether s is a token of RFC 9110.
func token(s string) bool {
	for _, c := range []byte(s) {
		alnum := '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
		if !alnum && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

func headerValue(s string) bool {
	for _, c := range []byte(s) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// keyHint says what to do about refused credentials.
func keyHint(cfg *Config) string {
	switch {
	case cfg.APIKey == "" && cfg.APIKeyEnv != "":
		return fmt.Sprintf("No key was sent: set $%s", cfg.APIKeyEnv)
	case cfg.APIKey == "":
		return "No key was sent: name its variable in api_key_env"
	case cfg.APIKeyEnv == "":
		return "Check that the configured key is valid for this endpoint and model"
	default:
		return fmt.Sprintf("Check that the key in $%s is valid for this endpoint and model", cfg.APIKeyEnv)
	}
}

func (a *API) setHTTP(cfg *Config) error {
	hc := &http.Client{}
	if cfg.HTTPClient != nil {
		if cfg.CAFile != "" {
			return fmt.Errorf("ca_file and a ready HTTP client can't be combined")
		}
		*hc = *cfg.HTTPClient
	} else {
		a.files = authorities{cfg.CAFile, os.Getenv(certFileEnv)}
		if err := a.files.check(); err != nil {
			return err
		}
		a.own = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
			TLSHandshakeTimeout:    15 * time.Second,
			ForceAttemptHTTP2:      true,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 1 << 20,
			// A compressed stream may hold tokens back, so none is asked for.
			DisableCompression: true,
		}
		hc.Transport = a.own
	}
	hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a.http = hc
	return nil
}

// Param is a sampling parameter as it is sent.
type Param struct {
	// Name is the configuration's name, as "max_tokens".
	Name string
	// Member is what the API calls it.
	Member string
	// Value is JSON.
	Value []byte
}

// Params returns the configured sampling parameters in the order of their names.
// members maps each name that the API knows to its member; renamed is how this
// endpoint spells a name otherwise. A name outside members, a null, a value that JSON
// can't hold, two names for one member, and a member among own, which the client
// itself sends, are errors.
func Params(sampling map[string]any, members, renamed map[string]string, own ...string) ([]Param, error) {
	used := map[string]string{}
	for _, member := range own {
		used[member] = ""
	}
	var out []Param
	for _, name := range slices.Sorted(maps.Keys(sampling)) {
		member, ok := members[name]
		if !ok {
			return nil, fmt.Errorf("sampling parameter %q is none that this API has; it has %s", name, strings.Join(slices.Sorted(maps.Keys(members)), ", "))
		}
		if m, ok := renamed[name]; ok {
			member = m
		}
		if other, ok := used[member]; ok {
			return nil, fmt.Errorf("sampling parameter %q would be sent as %q, which %s", name, member, taken(other))
		}
		used[member] = name
		value, err := strictjson.Marshal(sampling[name])
		if err != nil {
			return nil, fmt.Errorf("sampling parameter %q has a value that JSON can't hold: %w", name, err)
		}
		if string(value) == "null" {
			return nil, fmt.Errorf("sampling parameter %q is null; leave it out to not send it", name)
		}
		out = append(out, Param{Name: name, Member: member, Value: value})
	}
	return out, nil
}

func taken(by string) string {
	if by == "" {
		return "is the client's own"
	}
	return fmt.Sprintf("%q is sent as too", by)
}
