package openai

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/abhed/abhed/internal/strictjson"
)

const (
	// DefaultStallTimeout is what a zero Config.StallTimeout means.
	DefaultStallTimeout = 60 * time.Second
	// keepAliveFactor times the stall limit is how long keep-alive comments alone
	// count as life.
	keepAliveFactor = 10
	defaultMaxReply = 64 << 20
)

// Config says which endpoint to speak to and how. New copies it.
type Config struct {
	// BaseURL is the API's root, to which /chat/completions is added; a query is
	// kept, user information and a fragment are refused. Required.
	BaseURL string
	// Model is the model's name as the endpoint knows it. Required.
	Model string
	// APIKey is sent as a bearer token and nowhere else; "" sends none.
	APIKey string
	// APIKeyEnv is the variable that the key came from, named in errors; "" is
	// unknown.
	APIKeyEnv string
	// Name is the provider's configured name; "" means "openai".
	Name string
	// Sampling holds the parameters to send, by their names in the configuration
	// (spec: Providers). What is absent is never sent.
	Sampling map[string]any
	// ParamNames is how this endpoint spells a sampling name where it differs from
	// the usual, as {"max_tokens": "max_completion_tokens"}.
	ParamNames map[string]string
	// Headers are sent with every request. Their values are taken for secrets.
	Headers map[string]string
	// StallTimeout is the longest wait for a byte, the first included; zero means
	// DefaultStallTimeout. Traffic without content counts for ten times as long.
	StallTimeout time.Duration
	// CAFile is a PEM file of authorities trusted besides the system's; "" is none.
	// It can't be combined with HTTPClient.
	CAFile string
	// NoStreamOptions leaves out stream_options for endpoints that refuse it.
	NoStreamOptions bool
	// NoReasoning keeps reasoning out of the requests, for endpoints that refuse it.
	NoReasoning bool
	// HTTPClient, if set, is used instead of a client of the Client's own, without
	// its redirect policy: redirects are never followed.
	HTTPClient *http.Client
}

// paramNames maps each sampling name of the configuration to the usual member of
// a chat completions request.
var paramNames = map[string]string{
	"temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "min_p": "min_p", "seed": "seed",
	"frequency_penalty": "frequency_penalty", "presence_penalty": "presence_penalty",
	"repetition_penalty": "repetition_penalty", "max_tokens": "max_tokens", "stop": "stop",
	"effort": "reasoning_effort", "thinking_budget": "thinking_budget",
}

// endpointURL returns the URL to post to and its form for people, without query.
func endpointURL(base string) (full, shown string, err error) {
	u, err := url.Parse(base)
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
		return "", "", fmt.Errorf("base_url %q has no host", base)
	case u.Fragment != "":
		return "", "", fmt.Errorf("base_url %q has a fragment; remove #%s", base, u.Fragment)
	}
	u = u.JoinPath("chat", "completions")
	full = u.String()
	u.RawQuery, u.ForceQuery = "", false
	return full, u.String(), nil
}

// headers returns the request headers and the values that no error may show.
func (cfg *Config) headers() (http.Header, []string, error) {
	h := http.Header{}
	var secrets []string
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
		h.Set("Authorization", "Bearer "+cfg.APIKey)
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

// prefix returns the start of every request body, up to and including the comma
// before the tools or the messages.
func (cfg *Config) prefix() ([]byte, error) {
	out := append([]byte(`{"model":`), quote(cfg.Model)...)
	out = append(out, `,"stream":true,`...)
	if !cfg.NoStreamOptions {
		out = append(out, `"stream_options":{"include_usage":true},`...)
	}
	used := map[string]string{"model": "", "stream": "", "stream_options": "", "tools": "", "messages": ""}
	for _, name := range slices.Sorted(maps.Keys(cfg.Sampling)) {
		member, ok := paramNames[name]
		if !ok {
			return nil, fmt.Errorf("unknown sampling parameter %q; known are %s", name, strings.Join(slices.Sorted(maps.Keys(paramNames)), ", "))
		}
		if m, ok := cfg.ParamNames[name]; ok {
			member = m
		}
		if other, ok := used[member]; ok {
			return nil, fmt.Errorf("sampling parameter %q would be sent as %q, which %s", name, member, taken(other))
		}
		used[member] = name
		value, err := strictjson.Marshal(cfg.Sampling[name])
		if err != nil {
			return nil, fmt.Errorf("sampling parameter %q has a value that JSON can't hold: %w", name, err)
		}
		if string(value) == "null" {
			return nil, fmt.Errorf("sampling parameter %q is null; leave it out to not send it", name)
		}
		out = append(append(out, quote(member)...), ':')
		out = append(append(out, value...), ',')
	}
	return out, nil
}

func taken(by string) string {
	if by == "" {
		return "is the client's own"
	}
	return fmt.Sprintf("%q is sent as too", by)
}
