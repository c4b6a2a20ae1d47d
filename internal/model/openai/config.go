package openai

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/abhed/abhed/internal/model/httpapi"
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
	// httpapi.DefaultStallTimeout. Traffic without content counts for ten times as long.
	StallTimeout time.Duration
	// MaxReply bounds a whole reply, unpacked, in bytes; zero means
	// httpapi.DefaultMaxReply.
	MaxReply int
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
func paramNames() map[string]string {
	return map[string]string{
		"temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "min_p": "min_p", "seed": "seed",
		"frequency_penalty": "frequency_penalty", "presence_penalty": "presence_penalty",
		"repetition_penalty": "repetition_penalty", "max_tokens": "max_tokens", "stop": "stop",
		"effort": "reasoning_effort", "thinking_budget": "thinking_budget",
	}
}

// prefix is the start of every request body, up to and including the comma before
// the tools or the messages.
type prefix struct {
	whole     []byte // with the configured limit of the output
	unlimited []byte // without
	limit     int64  // as configured, 0 for none
	member    string // what the limit is called
}

// with returns the start of a request that has a limit of its own, 0 for none.
func (p *prefix) with(limit int64) []byte {
	if n := httpapi.Smaller(p.limit, limit); n > 0 && n != p.limit {
		out := append(httpapi.AppendQuote(slices.Clone(p.unlimited), p.member), ':')
		return append(strconv.AppendInt(out, n, 10), ',')
	}
	return p.whole
}

func (cfg *Config) prefix() (prefix, error) {
	start := append([]byte(`{"model":`), httpapi.Quote(cfg.Model)...)
	start = append(start, `,"stream":true,`...)
	if !cfg.NoStreamOptions {
		start = append(start, `"stream_options":{"include_usage":true},`...)
	}
	params, err := httpapi.Params(cfg.Sampling, paramNames(), cfg.ParamNames, "model", "stream", "stream_options", "tools", "messages", "response_format")
	if err != nil {
		return prefix{}, err
	}
	p := prefix{whole: slices.Clone(start), unlimited: start, member: "max_tokens"}
	if m, ok := cfg.ParamNames["max_tokens"]; ok {
		p.member = m
	}
	for _, param := range params {
		member := append(append(append(httpapi.Quote(param.Member), ':'), param.Value...), ',')
		p.whole = append(p.whole, member...)
		if param.Name == "max_tokens" {
			p.limit, _ = httpapi.Integer(param.Value) // the endpoint refuses what isn't one
		} else {
			p.unlimited = append(p.unlimited, member...)
		}
	}
	return p, nil
}
