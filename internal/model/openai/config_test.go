package openai

import (
	"encoding/pem"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/model"
	"github.com/abhed/abhed/internal/model/modeltest"
)

func TestParametersAreSentAsConfigured(t *testing.T) {
	c := testClient(t, func(cfg *Config) {
		cfg.NoStreamOptions = false
		cfg.Sampling = map[string]any{"temperature": 0.0, "seed": 7, "stop": []string{"x"}, "effort": "low", "max_tokens": 100}
		cfg.ParamNames = map[string]string{"max_tokens": "max_completion_tokens"}
	})
	want := `{"model":"m","stream":true,"stream_options":{"include_usage":true},"reasoning_effort":"low","max_completion_tokens":100,"seed":7,"stop":["x"],"temperature":0,"messages":[{"role":"user","content":"a"}]}`
	if got := sent(t, c, &model.Request{Messages: []*model.Message{user("a")}}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestLimitAndFormatOfOneRequest(t *testing.T) {
	limited := map[string]any{"max_tokens": 100, "seed": 7}
	strict := `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	cases := []struct {
		name     string
		sampling map[string]any
		req      model.Request
		want     string
	}{
		{"neither", nil, model.Request{}, ``},
		{"its own limit", nil, model.Request{MaxOutput: 7}, `"max_completion_tokens":7,`},
		{"a smaller limit", limited, model.Request{MaxOutput: 7}, `"seed":7,"max_completion_tokens":7,`},
		{"a larger limit", limited, model.Request{MaxOutput: 700}, `"max_completion_tokens":100,"seed":7,`},
		{"the same again", limited, model.Request{}, `"max_completion_tokens":100,"seed":7,`},
		{"strict", nil, model.Request{Output: []byte(strict)}, `"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":` + strict + `}},`},
		{"not strict", nil, model.Request{Output: []byte(`{"type":"object"}`)}, `"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":false,"schema":{"type":"object"}}},`},
	}
	for _, c := range cases {
		client := testClient(t, func(cfg *Config) {
			cfg.Sampling, cfg.ParamNames = c.sampling, map[string]string{"max_tokens": "max_completion_tokens"}
		})
		for range 2 { // a limit of one request doesn't stay
			if got, want := sent(t, client, &c.req), `{"model":"m","stream":true,`+c.want+`"messages":[]}`; got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, want)
			}
			if c.req.MaxOutput > 0 {
				sent(t, client, &model.Request{})
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	notPEM := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(notPEM, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"no URL", func(c *Config) { c.BaseURL = "" }, "base_url"},
		{"no model", func(c *Config) { c.Model = "" }, "model"},
		{"not a URL", func(c *Config) { c.BaseURL = "http://u:" + testKey + "@a b" }, "not a URL"},
		{"user information", func(c *Config) { c.BaseURL = "http://u:" + testKey + "@host/v1" }, "user information"},
		{"no scheme", func(c *Config) { c.BaseURL = "localhost:8080/v1" }, `scheme "localhost"`},
		{"other scheme", func(c *Config) { c.BaseURL = "ftp://host" }, "http or https"},
		{"no host", func(c *Config) { c.BaseURL = "http:///v1" }, "no host"},
		{"fragment", func(c *Config) { c.BaseURL = "http://host/v1#x" }, "fragment"},
		{"key with a newline", func(c *Config) { c.APIKey = testKey + "\n" }, "$TEST_KEY holds a line end"},
		{"header name", func(c *Config) { c.Headers = map[string]string{"a b": "x"} }, `"a b"`},
		{"header value", func(c *Config) { c.Headers = map[string]string{"X-A": testKey + "\r\nX-B: c"} }, "X-A"},
		{"unknown parameter", func(c *Config) { c.Sampling = map[string]any{"temprature": 1} }, `"temprature"`},
		{"null parameter", func(c *Config) { c.Sampling = map[string]any{"seed": nil} }, `"seed" is null`},
		{"no number", func(c *Config) { c.Sampling = map[string]any{"top_p": math.NaN()} }, `"top_p"`},
		{"two parameters, one member", func(c *Config) {
			c.Sampling, c.ParamNames = map[string]any{"seed": 1, "top_k": 1}, map[string]string{"seed": "top_k"}
		}, `"seed" is sent as too`},
		{"our own member", func(c *Config) {
			c.Sampling, c.ParamNames = map[string]any{"seed": 1}, map[string]string{"seed": "messages"}
		}, "client's own"},
		{"negative limit", func(c *Config) { c.StallTimeout = -1 }, "stall limit"},
		{"missing CA file", func(c *Config) { c.CAFile = "/nonexistent/ca.pem" }, "/nonexistent/ca.pem"},
		{"bad CA file", func(c *Config) { c.CAFile = notPEM }, "no PEM certificate"},
		{"CA file and client", func(c *Config) { c.CAFile, c.HTTPClient = notPEM, http.DefaultClient }, "combined"},
	}
	for _, c := range cases {
		cfg := Config{BaseURL: "http://host/v1", Model: "m", APIKey: testKey, APIKeyEnv: "TEST_KEY"}
		c.change(&cfg)
		got, err := New(cfg)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
			continue
		}
		if strings.Contains(err.Error(), testKey) || got != nil {
			t.Errorf("%s: a client, or the key in %q", c.name, err)
		}
	}
}

func TestURLsAndHeaders(t *testing.T) {
	var got *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		http.Error(w, "key "+r.Header.Get("Authorization")+" and "+r.Header.Get("X-Extra"), http.StatusTeapot)
	}))
	defer s.Close()
	for base, want := range map[string]string{"": "/chat/completions", "/": "/chat/completions", "/v1/": "/v1/chat/completions", "/a%2Fb/v1?api-version=2": "/a%2Fb/v1/chat/completions?api-version=2"} {
		c := newClient(t, s.URL+base, func(cfg *Config) { cfg.Headers = map[string]string{"x-extra": "hidden-value"} })
		_, err := c.Stream(t.Context(), request(user("go")), nil)
		me := asError(t, err)
		if got.URL.RequestURI() != want || got.Header.Get("Authorization") != "Bearer "+testKey || got.Header.Get("X-Extra") != "hidden-value" {
			t.Errorf("%q: %s %v", base, got.URL.RequestURI(), got.Header)
		}
		if strings.Contains(err.Error(), "hidden-value") || strings.Contains(me.Endpoint, "?") || me.Status != http.StatusTeapot {
			t.Errorf("%v", err)
		}
	}
	c := newClient(t, s.URL, func(cfg *Config) { cfg.APIKey = "" })
	if _, err := c.Stream(t.Context(), request(user("go")), nil); err == nil || got.Header.Values("Authorization") != nil {
		t.Errorf("a header without a key: %v", got.Header)
	}
	if c.Name() != "test/m1" {
		t.Error(c.Name())
	}
}

func TestKeyHint(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"set $TEST_KEY":     func(c *Config) { c.APIKey = "" },
		"api_key_env":       func(c *Config) { c.APIKey, c.APIKeyEnv = "", "" },
		"key in $TEST_KEY":  func(*Config) {},
		"configured key is": func(c *Config) { c.APIKeyEnv = "" },
	} {
		s := modeltest.Start(modeltest.Options{APIKey: "another"})
		_, err := newClient(t, s.URL, change).Stream(t.Context(), request(user("go")), nil)
		if me := asError(t, err); me.Kind != model.ErrAuth || !strings.Contains(me.Detail, want) {
			t.Errorf("%v, want %q", err, want)
		}
		s.Close()
	}
}

func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(frames(delta1(`{"content":"`+r.Proto+`"}`), "[DONE]")))
	}))
	s.EnableHTTP2 = true
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // the refused handshake is what is tested
	s.StartTLS()
	defer s.Close()
	start := time.Now()
	_, err := newClient(t, s.URL, nil).Stream(t.Context(), request(user("go")), nil)
	if me := asError(t, err); me.Kind != model.ErrTLS || me.Retryable() || !strings.Contains(me.Detail, "ca_file") || time.Since(start) > 2*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	c := newClient(t, s.URL, func(cfg *Config) { cfg.CAFile = file })
	if resp, err := c.Stream(t.Context(), request(user("go")), nil); err != nil || resp.Message.Text() != "HTTP/2.0" {
		t.Errorf("%+v %v", resp, err)
	}
	plain := modeltest.New(t)
	_, err = newClient(t, strings.Replace(plain.URL, "http:", "https:", 1), nil).Stream(t.Context(), request(user("go")), nil)
	if me := asError(t, err); me.Kind != model.ErrConnect || !strings.Contains(me.Detail, "http://") {
		t.Error(err)
	}
}

func TestConnectionIsKept(t *testing.T) {
	connections := 0
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for _, f := range []string{delta1(`{"content":"hi"}`), "[DONE]"} {
			_, _ = w.Write([]byte(frames(f)))
			w.(http.Flusher).Flush()
		}
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections++
		}
	}
	s.Start()
	defer s.Close()
	c := newClient(t, s.URL, nil)
	for range 5 {
		if _, err := c.Stream(t.Context(), request(user("go")), nil); err != nil {
			t.Fatal(err)
		}
	}
	c.Close()
	s.Close()
	if connections != 1 {
		t.Errorf("%d connections for 5 calls in a row", connections)
	}
}
