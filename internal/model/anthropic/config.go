package anthropic

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/internal/model/httpapi"
)

const (
	apiVersion = "2023-06-01"
	// DefaultMaxTokens bounds a reply where neither Sampling nor OutputLimit does: what
	// every current model of Anthropic's can write.
	DefaultMaxTokens = 32_000
	// maxTokenCount is above every real limit and small enough to calculate with.
	maxTokenCount = 1 << 40
)

// Config says which endpoint to speak to and how. New copies it.
type Config struct {
	// BaseURL is the API's root, to which /v1/messages is added, or /messages if it
	// ends in /v1; a query is kept, user information and a fragment are refused.
	// Required.
	BaseURL string
	// Model is the model's name as the endpoint knows it. Required.
	Model string
	// APIKey is sent in x-api-key and nowhere else; "" sends none.
	APIKey string
	// APIKeyEnv is the variable that the key came from, named in errors; "" is unknown.
	APIKeyEnv string
	// Name is the provider's configured name; "" means "anthropic".
	Name string
	// Sampling holds the parameters to send, by their names in the configuration (spec:
	// Providers). What is absent is never sent, but for max_tokens.
	Sampling map[string]any
	// OutputLimit is how many tokens the model can write; it stands in for an absent
	// max_tokens. Zero means DefaultMaxTokens.
	OutputLimit int64
	// Headers are sent with every request. Their values are taken for secrets.
	Headers map[string]string
	// StallTimeout is the longest wait for a byte, the first included; zero means
	// httpapi.DefaultStallTimeout. Pings alone count for ten times as long.
	StallTimeout time.Duration
	// MaxReply bounds a whole reply, unpacked, in bytes; zero means
	// httpapi.DefaultMaxReply.
	MaxReply int
	// CAFile is a PEM file of authorities trusted besides the system's; "" is none. It
	// can't be combined with HTTPClient.
	CAFile string
	// HTTPClient, if set, is used instead of a client of the Client's own, without its
	// redirect policy: redirects are never followed.
	HTTPClient *http.Client
}

// path returns what is added to the base URL.
func (cfg *Config) path() string {
	u, err := url.Parse(cfg.BaseURL)
	if err == nil && strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/v1") {
		return "messages"
	}
	return "v1/messages" // of a URL that is none httpapi says what is wrong
}

// params is what the configuration makes of every request.
type params struct {
	// start begins a request's body, up to and including the comma after the
	// parameters that never change.
	start     []byte
	maxTokens int64
	// budget bounds the thinking in tokens: -1 says nothing of thinking, 0 turns it off.
	budget int64
	effort []byte // JSON, nil for none
}

func paramMembers() map[string]string {
	return map[string]string{
		"temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "stop": "stop_sequences",
		"max_tokens": "max_tokens", "effort": "output_config", "thinking_budget": "thinking",
	}
}

func (cfg *Config) params() (params, error) {
	p := params{maxTokens: cfg.OutputLimit, budget: -1}
	if p.maxTokens == 0 {
		p.maxTokens = DefaultMaxTokens
	}
	if p.maxTokens < 0 || p.maxTokens > maxTokenCount {
		return p, fmt.Errorf("the output limit is %d tokens; expected a positive count, or 0 for %d", cfg.OutputLimit, DefaultMaxTokens)
	}
	list, err := httpapi.Params(cfg.Sampling, paramMembers(), nil)
	if err != nil {
		return p, fmt.Errorf("the Messages API (anthropic): %w", err)
	}
	p.start = append([]byte(`{"model":`), httpapi.Quote(cfg.Model)...)
	p.start = append(p.start, `,"stream":true,`...)
	for _, param := range list {
		if err := p.take(param); err != nil {
			return p, err
		}
	}
	return p, p.checkThinking(list)
}

// take puts one sampling parameter where it belongs.
func (p *params) take(param httpapi.Param) error {
	var ok bool
	switch param.Name {
	case "max_tokens":
		if p.maxTokens, ok = httpapi.Integer(param.Value); !ok || p.maxTokens < 1 || p.maxTokens > maxTokenCount {
			return fmt.Errorf("sampling parameter max_tokens is %s; expected a positive whole number", param.Value)
		}
		return nil
	case "thinking_budget":
		if p.budget, ok = httpapi.Integer(param.Value); !ok || p.budget < 0 || p.budget > maxTokenCount {
			return fmt.Errorf("sampling parameter thinking_budget is %s; expected a whole number of tokens, 0 to turn thinking off", param.Value)
		}
		return nil
	case "effort":
		if httpapi.Scalar(param.Value) == "" || jsontext.Value(param.Value).Kind() != '"' {
			return fmt.Errorf("sampling parameter effort is %s; expected a word like \"low\" or \"high\"", param.Value)
		}
		p.effort = param.Value
		return nil
	case "stop":
		if jsontext.Value(param.Value).Kind() == '"' {
			param.Value = slices.Concat([]byte("["), param.Value, []byte("]"))
		}
	}
	p.start = append(append(p.start, httpapi.Quote(param.Member)...), ':')
	p.start = append(append(p.start, param.Value...), ',')
	return nil
}

// checkThinking refuses what the API refuses together with thinking.
func (p *params) checkThinking(list []httpapi.Param) error {
	if p.budget <= 0 {
		return nil
	}
	if p.budget >= p.maxTokens {
		return fmt.Errorf("sampling parameter thinking_budget is %d and max_tokens %d; the Messages API counts thinking as output, so that max_tokens must be the larger", p.budget, p.maxTokens)
	}
	for _, param := range list {
		if param.Name == "temperature" || param.Name == "top_k" {
			return fmt.Errorf("sampling parameters thinking_budget and %s can't be combined: the Messages API (anthropic) refuses %s while the model thinks; remove one of them", param.Name, param.Name)
		}
	}
	return nil
}

// limits returns the members that depend on the request, each with a comma after it.
// hold says that thinking must be left off; note says that it was.
func (p *params) limits(maxOutput int64, hold bool) (out []byte, note string) {
	limit := p.maxTokens
	if maxOutput > 0 {
		limit = min(limit, maxOutput)
	}
	out = strconv.AppendInt([]byte(`"max_tokens":`), limit, 10)
	out = append(out, ',')
	switch {
	case p.budget < 0:
	case p.budget == 0:
		out = append(out, `"thinking":{"type":"disabled"},`...)
	case limit <= p.budget:
		note = fmt.Sprintf("thinking was left off: its budget of %d tokens doesn't fit an output of %d", p.budget, limit)
	case hold:
		note = "thinking was left off, because the calls that are being answered came without thinking of this model"
	default:
		out = strconv.AppendInt(append(out, `"thinking":{"type":"enabled","budget_tokens":`...), p.budget, 10)
		out = append(out, "},"...)
	}
	return out, note
}
