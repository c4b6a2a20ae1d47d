package app

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/abhed/abhed/internal/agent"
	"github.com/abhed/abhed/internal/config"
	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/openai"
	"github.com/abhed/abhed/internal/model/script"
)

// minSecret is the length below which a key isn't treated as a secret: replacing
// it everywhere would destroy ordinary text (record.md).
const minSecret = 8

// connect returns the client for the configured model.
func connect(l *loaded, sys System) (model.Client, error) {
	e, err := l.Resolve("")
	if err != nil {
		return nil, err
	}
	switch e.API {
	case config.APIScript:
		data, err := readBounded(e.BaseURL, maxSettings)
		if err != nil {
			return nil, fmt.Errorf("the model's script can't be read: %w", err)
		}
		steps, err := script.Parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.BaseURL, err)
		}
		return script.New(steps), nil
	case config.APIOpenAI:
		return connectOpenAI(l, e, sys)
	default:
		return nil, fmt.Errorf("the API %q of provider %q is not supported by this build", e.API, e.Provider)
	}
}

func connectOpenAI(l *loaded, e config.Endpoint, sys System) (model.Client, error) {
	headers := map[string]string{}
	for name, variable := range e.HeadersEnv {
		v := sys.Getenv(variable)
		if v == "" {
			return nil, fmt.Errorf("provider %q sends the header %s from the variable %s, which isn't set", e.Provider, name, variable)
		}
		headers[name] = v
	}
	return openai.New(openai.Config{
		BaseURL: e.BaseURL, Model: e.Model, APIKey: apiKey(e, sys), APIKeyEnv: e.APIKeyEnv,
		Name: e.Provider, Sampling: samplingValues(l.Sampling), Headers: headers,
	})
}

// price returns what the configured model costs. It is needed only for a limit on
// the cost, and then every rate must be known.
func price(l *loaded) (*agent.Price, error) {
	if l.Limits.MaxCostUSD == 0 {
		return nil, nil
	}
	e, err := l.Resolve("")
	if err != nil {
		return nil, err
	}
	p := e.Info.Price
	if p == nil || p.Input == nil || p.Output == nil {
		return nil, fmt.Errorf("limits.max_cost_usd needs the price of %s/%s, which isn't known: set models.%q.price.input and .output in the settings, or remove the limit", e.Provider, e.Model, e.Provider+"/"+e.Model)
	}
	out := agent.Price{Input: *p.Input, Output: *p.Output, CacheRead: *p.Input, CacheWrite: *p.Input}
	if p.CacheRead != nil {
		out.CacheRead = *p.CacheRead
	}
	if p.CacheWrite != nil {
		out.CacheWrite = *p.CacheWrite
	}
	return &out, nil
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
