package app

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/config"
	"github.com/abhed/abhed/internal/mcp"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/anthropic"
	"github.com/abhed/abhed/internal/model/gemini"
	"github.com/abhed/abhed/internal/model/openai"
	"github.com/abhed/abhed/internal/model/responses"
	"github.com/abhed/abhed/internal/model/script"
)

// minSecret is the length below which a key isn't treated as a secret: replacing
// it everywhere would destroy ordinary text (record.md).
const minSecret = 8

// connect returns the model of that name, provider/model; "" is the configured one.
// Each agent gets a client of its own, because a client keeps what it has encoded.
// title is the task of the agent, "" for the main one, which only a script can see.
func (e *engine) connect(name, title string) (agent.Model, error) {
	l := e.o.loaded
	if e.o.model != nil { // compiled in
		return agent.Model{Client: forTask(e.o.model, title)}, nil
	}
	ep, err := l.Resolve(name)
	if err != nil {
		return agent.Model{}, err
	}
	m := agent.Model{Window: ep.Info.ContextWindow, Output: ep.Info.OutputLimit, Price: price(ep.Info.Price), Images: ep.Info.Images != nil && *ep.Info.Images}
	if m.Price == nil && l.Limits.MaxCostUSD > 0 {
		return agent.Model{}, fmt.Errorf("limits.max_cost_usd needs the price of %s/%s, which isn't known: set models.%q.price.input and .output in the settings, or remove the limit", ep.Provider, ep.Model, ep.Provider+"/"+ep.Model)
	}
	if ep.API == config.APIScript {
		m.Client, err = e.script(ep, title)
		return m, err
	}
	headers, err := headersOf(ep, e.sys)
	if err != nil {
		return agent.Model{}, err
	}
	if ep.APIKeyEnv != "" && ep.APIKey.IsZero() && e.sys.Getenv(ep.APIKeyEnv) == "" {
		return agent.Model{}, fmt.Errorf("provider %q takes its key from the variable %s, which isn't set", ep.Provider, ep.APIKeyEnv)
	}
	if m.Client, err = dial(l, ep, headers, apiKey(ep, e.sys), e.id); err == nil && len(l.MCP) > 0 {
		m.Client = careful{m.Client, func() *mcp.Host { return e.servers }}
	}
	return m, err
}

// dial makes the client for an endpoint. It connects to nothing.
func dial(l *loaded, ep config.Endpoint, headers map[string]string, key, session string) (model.Client, error) {
	sampling, stall, ca := samplingValues(l.Sampling), l.HTTP.StallTimeout(), l.HTTP.CAFile
	switch ep.API {
	case config.APIOpenAI:
		return openai.New(openai.Config{
			BaseURL: ep.BaseURL, Model: ep.Model, APIKey: key, APIKeyEnv: ep.APIKeyEnv, Name: ep.Provider,
			Sampling: sampling, ParamNames: ep.Spelled, Headers: headers, StallTimeout: stall, CAFile: ca,
		})
	case config.APIOpenAIResponses:
		return responses.New(responses.Config{
			BaseURL: ep.BaseURL, Model: ep.Model, APIKey: key, APIKeyEnv: ep.APIKeyEnv, Name: ep.Provider, CacheKey: session,
			Sampling: sampling, Headers: headers, StallTimeout: stall, CAFile: ca,
		})
	case config.APIAnthropic:
		return anthropic.New(anthropic.Config{
			BaseURL: ep.BaseURL, Model: ep.Model, APIKey: key, APIKeyEnv: ep.APIKeyEnv, Name: ep.Provider, OutputLimit: ep.Info.OutputLimit,
			Sampling: sampling, Headers: headers, StallTimeout: stall, CAFile: ca,
		})
	case config.APIGemini:
		return gemini.New(gemini.Config{
			BaseURL: ep.BaseURL, Model: ep.Model, APIKey: key, APIKeyEnv: ep.APIKeyEnv, Name: ep.Provider,
			Sampling: sampling, Headers: headers, StallTimeout: stall, CAFile: ca,
		})
	}
	return nil, fmt.Errorf("the API %q of provider %q is not supported by this build", ep.API, ep.Provider)
}

// headersOf returns the headers that an endpoint gets from the environment.
func headersOf(ep config.Endpoint, sys System) (map[string]string, error) {
	headers := map[string]string{}
	for name, variable := range ep.HeadersEnv {
		v := sys.Getenv(variable)
		if v == "" {
			return nil, fmt.Errorf("provider %q sends the header %s from the variable %s, which isn't set", ep.Provider, name, variable)
		}
		headers[name] = v
	}
	return headers, nil
}

// script returns the client that plays a script. All agents that are given no steps
// of their own play one and the same.
func (e *engine) script(ep config.Endpoint, title string) (model.Client, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.scripts == nil {
		e.scripts = map[string]*script.Client{}
	}
	c := e.scripts[ep.BaseURL]
	if c == nil {
		data, err := readBounded(ep.BaseURL, maxSettings)
		if err != nil {
			return nil, fmt.Errorf("the model's script can't be read: %w", err)
		}
		if c, err = script.Load(data, script.Options{Name: ep.Provider + "/" + ep.Model}); err != nil {
			return nil, fmt.Errorf("%s: %w", ep.BaseURL, err)
		}
		e.scripts[ep.BaseURL] = c
	}
	return forTask(c, title), nil
}

// forTask returns the client of the agent that has the task.
func forTask(c model.Client, title string) model.Client {
	if s, ok := c.(*script.Client); ok && title != "" {
		return s.For(title)
	}
	return c
}

// takesImages reports whether the configured model is known to take images.
func (e *engine) takesImages() bool { return e.model.Images }

// retry bounds the repetition of failed model calls.
func (e *engine) retry() agent.Retry {
	r := e.sys.Retry
	if n := e.o.loaded.HTTP.Retries; r.Attempts == 0 && n > 0 {
		r.Attempts = int(n) + 1
	}
	return r
}

// price returns what tokens cost; nil if a rate that is always used is unknown. A
// cache's rates are those of input where nothing is said of them.
func price(p *config.Price) *agent.Price {
	if p == nil || p.Input == nil || p.Output == nil {
		return nil
	}
	out := agent.Price{Input: *p.Input, Output: *p.Output, CacheRead: *p.Input, CacheWrite: *p.Input}
	if p.CacheRead != nil {
		out.CacheRead = *p.CacheRead
	}
	if p.CacheWrite != nil {
		out.CacheWrite = *p.CacheWrite
	}
	return &out
}

// priceOf returns what the model of that name costs, nil if it is unknown.
func (e *engine) priceOf(name string) *agent.Price {
	ep, err := e.o.loaded.Resolve(name)
	if err != nil {
		return nil
	}
	return price(ep.Info.Price)
}

// apiKey returns the key of an endpoint, "" for none.
func apiKey(e config.Endpoint, sys System) string {
	if !e.APIKey.IsZero() {
		return e.APIKey.Reveal()
	}
	if e.APIKeyEnv == "" {
		return ""
	}
	return sys.Getenv(e.APIKeyEnv)
}

// samplingValues returns the parameters that are set, by their names.
func samplingValues(s config.Sampling) map[string]any {
	m := map[string]any{}
	number := func(name string, v *float64) {
		if v != nil {
			m[name] = *v
		}
	}
	integer := func(name string, v *int64) {
		if v != nil {
			m[name] = *v
		}
	}
	number("temperature", s.Temperature)
	number("top_p", s.TopP)
	integer("top_k", s.TopK)
	number("min_p", s.MinP)
	integer("seed", s.Seed)
	number("frequency_penalty", s.FrequencyPenalty)
	number("presence_penalty", s.PresencePenalty)
	number("repetition_penalty", s.RepetitionPenalty)
	integer("max_tokens", s.MaxTokens)
	if len(s.Stop) > 0 {
		m["stop"] = s.Stop
	}
	if s.Effort != "" {
		m["effort"] = s.Effort
	}
	integer("thinking_budget", s.ThinkingBudget)
	return m
}

// secrets returns the values that must never enter the record. One of the settings
// that is too short is an error; one that is missing, and an API key that is too
// short, are only warned of.
func secrets(l *loaded, sys System) (values [][]byte, warnings []string, err error) {
	add := func(what, v string) error {
		v = strings.TrimSpace(v)
		if len(v) < minSecret {
			return fmt.Errorf("the secret in %s has %d bytes; at least %d are needed, or it can't be told from ordinary text", what, len(v), minSecret)
		}
		values = append(values, []byte(v))
		return nil
	}
	for _, name := range l.Secrets.Env {
		v := sys.Getenv(name)
		if v == "" {
			warnings = append(warnings, "secrets.env names the variable "+name+", which isn't set")
			continue
		}
		if err := add("the variable "+name, v); err != nil {
			return nil, nil, err
		}
	}
	for _, file := range l.Secrets.Files {
		b, err := readBounded(file, 1<<20)
		if errors.Is(err, os.ErrNotExist) {
			warnings = append(warnings, "secrets.files names "+file+", which doesn't exist")
			continue
		}
		if err != nil {
			return nil, nil, fmt.Errorf("the secret file can't be read: %w", err)
		}
		if err := add("the file "+file, string(b)); err != nil {
			return nil, nil, err
		}
	}
	values = append(values, headerValues(l.Telemetry.HeadersEnv, sys)...)
	for _, s := range l.MCP {
		values = append(values, headerValues(s.HeadersEnv, sys)...)
	}
	for _, p := range l.Provided() { // a session may switch to any of them
		if v := sys.Getenv(p.KeyEnv); p.KeyEnv != "" && len(v) >= minSecret {
			values = append(values, []byte(v))
		}
	}
	for _, p := range l.Settings.Providers {
		values = append(values, headerValues(p.HeadersEnv, sys)...)
	}
	e, err := l.Resolve("")
	if err != nil {
		return values, warnings, nil // no model, so no key
	}
	if key := apiKey(e, sys); key != "" {
		if err := add("the API key", key); err != nil {
			warnings = append(warnings, "the API key is so short that it isn't treated as a secret")
		}
	}
	return append(values, headerValues(e.HeadersEnv, sys)...), warnings, nil
}

// headerValues returns the values of headers that come from variables and are long
// enough to be told from ordinary text.
func headerValues(headersEnv map[string]string, sys System) [][]byte {
	var values [][]byte
	for _, variable := range headersEnv {
		if v := sys.Getenv(variable); len(v) >= minSecret {
			values = append(values, []byte(v))
		}
	}
	return values
}
