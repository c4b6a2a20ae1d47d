package anthropic

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/model"
)

func TestParametersAreSentAsConfigured(t *testing.T) {
	cases := []struct {
		sampling map[string]any
		limit    int64
		want     string
	}{
		{nil, 0, `"max_tokens":32000,`},
		{nil, 8192, `"max_tokens":8192,`},
		{map[string]any{"max_tokens": int64(100)}, 8192, `"max_tokens":100,`},
		{map[string]any{"temperature": 0.0, "top_p": 0.9, "top_k": int64(5), "stop": []string{"x"}, "effort": "low"}, 0,
			`"stop_sequences":["x"],"temperature":0,"top_k":5,"top_p":0.9,"max_tokens":32000,"output_config":{"effort":"low"},`},
		{map[string]any{"stop": "x"}, 0, `"stop_sequences":["x"],"max_tokens":32000,`},
		{map[string]any{"thinking_budget": int64(4000), "top_p": 0.95}, 0, `"top_p":0.95,"max_tokens":32000,"thinking":{"type":"enabled","budget_tokens":4000},`},
	}
	for _, c := range cases {
		got, _ := sent(t, newClient(t, nowhere, func(cfg *Config) { cfg.Sampling, cfg.OutputLimit = c.sampling, c.limit }), &model.Request{})
		if want := `{"model":"m1","stream":true,` + c.want + `"messages":[]}`; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	sampling := func(kv ...any) func(*Config) {
		return func(c *Config) {
			c.Sampling = map[string]any{}
			for i := 0; i < len(kv); i += 2 {
				c.Sampling[kv[i].(string)] = kv[i+1]
			}
		}
	}
	cases := []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"no URL", func(c *Config) { c.BaseURL = "" }, []string{"base_url"}},
		{"not a URL", func(c *Config) { c.BaseURL = "http://u:" + testKey + "@a b" }, []string{"not a URL"}},
		{"no model", func(c *Config) { c.Model = "" }, []string{"model"}},
		{"key with a newline", func(c *Config) { c.APIKey = testKey + "\n" }, []string{"$TEST_KEY holds a line end"}},
		{"not of this API", sampling("seed", 1), []string{`"seed"`, "Messages API", "anthropic"}},
		{"not of this API either", sampling("min_p", 0.1), []string{`"min_p"`, "Messages API"}},
		{"no parameter", sampling("temprature", 1), []string{`"temprature"`}},
		{"null", sampling("top_k", nil), []string{`"top_k" is null`}},
		{"no number", sampling("top_p", math.NaN()), []string{`"top_p"`}},
		{"thinking and temperature", sampling("thinking_budget", 2000, "temperature", 1), []string{"thinking_budget", "temperature"}},
		{"thinking and top_k", sampling("thinking_budget", 2000, "top_k", 1), []string{"thinking_budget", "top_k"}},
		{"thinking beyond the output", sampling("thinking_budget", 2000, "max_tokens", 2000), []string{"thinking_budget is 2000", "max_tokens 2000"}},
		{"thinking beyond the limit", func(c *Config) { c.OutputLimit = 1000; sampling("thinking_budget", 2000)(c) }, []string{"thinking_budget", "max_tokens 1000"}},
		{"negative budget", sampling("thinking_budget", -1), []string{"thinking_budget is -1"}},
		{"half a token", sampling("max_tokens", 1.5), []string{"max_tokens is 1.5"}},
		{"no output", sampling("max_tokens", 0), []string{"max_tokens is 0"}},
		{"effort that is a number", sampling("effort", 3), []string{"effort is 3"}},
		{"negative limit", func(c *Config) { c.OutputLimit = -1 }, []string{"output limit is -1"}},
	}
	for _, c := range cases {
		cfg := Config{BaseURL: "http://host", Model: "m", APIKey: testKey, APIKeyEnv: "TEST_KEY", HTTPClient: http.DefaultClient}
		c.change(&cfg)
		got, err := New(cfg)
		if err == nil || got != nil || strings.Contains(err.Error(), testKey) {
			t.Errorf("%s: %v, %v", c.name, got, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q does not contain %q", c.name, err, w)
			}
		}
	}
}

func TestURLsAndHeaders(t *testing.T) {
	var got *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got = r
		http.Error(w, "key "+r.Header.Get("x-api-key")+" and "+r.Header.Get("X-Extra"), http.StatusTeapot)
	}))
	defer s.Close()
	for base, want := range map[string]string{
		"": "/v1/messages", "/": "/v1/messages", "/v1": "/v1/messages", "/v1/": "/v1/messages", "/anthropic": "/anthropic/v1/messages",
		"/a%2Fb/v1?beta=true": "/a%2Fb/v1/messages?beta=true", "/av1": "/av1/v1/messages",
	} {
		c := newClient(t, s.URL+base, func(cfg *Config) { cfg.Headers = map[string]string{"x-extra": "hidden-value"} })
		_, err := c.Stream(t.Context(), request(user("go")), nil)
		me := asError(t, err)
		h := got.Header
		if got.URL.RequestURI() != want || h.Get("x-api-key") != testKey || h.Get("anthropic-version") != "2023-06-01" || h.Get("Authorization") != "" || h.Get("X-Extra") != "hidden-value" {
			t.Errorf("%q: %s %v", base, got.URL.RequestURI(), h)
		}
		if strings.Contains(err.Error(), "hidden-value") || strings.Contains(me.Endpoint, "?") || me.Status != http.StatusTeapot {
			t.Error(err)
		}
	}
	c := newClient(t, s.URL, func(cfg *Config) {
		cfg.APIKey = ""
		cfg.Headers = map[string]string{"Authorization": "Bearer token-of-a-proxy", "anthropic-version": "2099-01-01"}
	})
	if _, err := c.Stream(t.Context(), request(user("go")), nil); err == nil || got.Header.Values("x-api-key") != nil || got.Header.Get("Authorization") != "Bearer token-of-a-proxy" || got.Header.Get("anthropic-version") != "2099-01-01" {
		t.Errorf("%v", got.Header)
	}
	if c.Name() != "test/m1" {
		t.Error(c.Name())
	}
	unnamed, err := New(Config{BaseURL: s.URL, Model: "m", HTTPClient: http.DefaultClient})
	if err != nil || unnamed.Name() != "anthropic/m" {
		t.Error(unnamed, err)
	}
}
