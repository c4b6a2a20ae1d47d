package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/model"
)

const testKey = "sk-test-0123456789"

func newAPI(t *testing.T, base string, change func(*Config)) *API {
	t.Helper()
	cfg := Config{BaseURL: base, Path: "chat", Model: "m", Name: "test", APIKey: testKey, APIKeyEnv: "TEST_KEY", StallTimeout: 5 * time.Second,
		Words: Words{API: "something", End: "an end", BaseURL: "it is a URL"}}
	if change != nil {
		change(&cfg)
	}
	a, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// failed posts to a server with the answer and returns the failure.
func failed(t *testing.T, status int, body string) *model.Error {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer s.Close()
	ans, err := newAPI(t, s.URL, nil).Post(context.Background(), [][]byte{[]byte("{}")})
	var me *model.Error
	if !errors.As(err, &me) || ans != nil {
		t.Fatalf("%v %v", ans, err)
	}
	return me
}

// TestWhatServersSay holds the texts of real servers against the kinds that the
// loop acts on.
func TestWhatServersSay(t *testing.T) {
	cases := []struct {
		status int
		body   string
		want   model.ErrorKind
	}{
		// OpenAI
		{400, `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, model.ErrOverflow},
		{400, `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":null}}`, model.ErrOverflow},
		{400, `{"error":{"message":"The encrypted content gAAAAA could not be verified. Reason: Encrypted content could not be decrypted or parsed.","type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}`, model.ErrReplay},
		{400, `{"error":{"message":"Item 'rs_0' of type 'reasoning' was provided without its required following item.","type":"invalid_request_error","param":"input","code":null}}`, model.ErrReplay},
		{404, `{"error":{"message":"The model 'm' does not exist","type":"invalid_request_error","code":"model_not_found"}}`, model.ErrRequest},
		// Anthropic
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213456 tokens > 200000 maximum"}}`, model.ErrOverflow},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 190000 + 20000 > 200000, decrease input length"}}`, model.ErrOverflow},
		{413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, model.ErrOverflow},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.1.content.0: Invalid ` + "`signature` in `thinking`" + ` block"}}`, model.ErrReplay},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages.5.content.0: ` + "`thinking` or `redacted_thinking`" + ` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response."}}`, model.ErrReplay},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"thinking.budget_tokens: Input should be greater than or equal to 1024"}}`, model.ErrRequest},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, model.ErrServer},
		{401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, model.ErrAuth},
		// Gemini
		{400, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, model.ErrOverflow},
		{400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}`, model.ErrAuth},
		{400, `{"error":{"code":400,"message":"Function call is missing a thought_signature in functionCall parts.","status":"INVALID_ARGUMENT"}}`, model.ErrReplay},
		{400, `{"error":{"code":400,"message":"Invalid JSON payload received.","status":"INVALID_ARGUMENT"}}`, model.ErrRequest},
		{503, `{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`, model.ErrServer},
		{429, `{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED"}}`, model.ErrRateLimit},
		// vLLM, llama.cpp, SGLang, text-generation-inference, xAI
		{400, `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000 tokens","type":"BadRequestError","code":400}`, model.ErrOverflow},
		{400, `{"error":{"message":"The decoder prompt (length 5000) is longer than the maximum model length of 4096.","type":"BadRequestError","code":400}}`, model.ErrOverflow},
		{400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9000,"n_ctx":8192}}`, model.ErrOverflow},
		{500, `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`, model.ErrOverflow},
		{400, `{"object":"error","message":"The input (9000 tokens) is longer than the model's context length (8192 tokens).","type":"BadRequestError","code":400}`, model.ErrOverflow},
		{422, "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096\",\"error_type\":\"validation\"}", model.ErrOverflow},
		{400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 200000 tokens."}`, model.ErrOverflow},
		{400, `plain text: maximum context length`, model.ErrOverflow},
		// an overloaded server that says so with another status, and what only sounds alike
		{400, `{"error":{"message":"busy","type":"overloaded_error"}}`, model.ErrServer},
		{429, `{"error":{"message":"Rate limit: maximum context length per minute","type":"tokens"}}`, model.ErrRateLimit},
		{400, `{"error":{"message":"max_tokens is too large","type":"invalid_request_error"}}`, model.ErrRequest},
	}
	for _, c := range cases {
		me := failed(t, c.status, c.body)
		if me.Kind != c.want || me.Status != c.status {
			t.Errorf("%d %s\nis %s, want %s: %v", c.status, c.body, me.Kind, c.want, me)
		}
		// In a stream the same error has no status.
		frame := newAPI(t, "http://host", nil).FrameError([]byte(c.body))
		sameInStream := c.want == model.ErrOverflow || c.want == model.ErrReplay || c.want == model.ErrAuth
		if sameInStream && strings.HasPrefix(c.body, "{") && c.status != 401 && frame.Kind != c.want {
			t.Errorf("in a stream %s\nis %s, want %s", c.body, frame.Kind, c.want)
		}
	}
}

func TestKeyAndHeaders(t *testing.T) {
	var got *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r
		http.Error(w, fmt.Sprint(r.Header), http.StatusTeapot)
	}))
	defer s.Close()
	for _, c := range []struct{ header, want string }{
		{"", "Authorization: Bearer " + testKey},
		{"x-api-key", "X-Api-Key: " + testKey},
		{"x-goog-api-key", "X-Goog-Api-Key: " + testKey},
	} {
		a := newAPI(t, s.URL+"/base?v=1", func(cfg *Config) {
			cfg.KeyHeader, cfg.Path, cfg.Query = c.header, "models/a b:stream", "alt=sse"
			cfg.Fixed = map[string]string{"X-Version": "2023"}
			cfg.Headers = map[string]string{"X-Extra": "hidden-value"}
		})
		_, err := a.Post(t.Context(), [][]byte{[]byte(`{"a":`), []byte(`1}`)})
		if err == nil || strings.Contains(err.Error(), testKey) || strings.Contains(err.Error(), "hidden-value") || strings.Contains(err.Error(), "alt=") {
			t.Errorf("%s: %v", c.header, err)
		}
		name, value, _ := strings.Cut(c.want, ": ")
		if got.Header.Get(name) != value || got.Header.Get("X-Version") != "2023" || got.Header.Get("X-Extra") != "hidden-value" || got.ContentLength != 7 {
			t.Errorf("%s: %v", c.header, got.Header)
		}
		if c.header != "" && got.Header.Get("Authorization") != "" {
			t.Errorf("%s: the key is in Authorization too", c.header)
		}
		if want := "/base/models/a%20b:stream?v=1&alt=sse"; got.URL.RequestURI() != want {
			t.Errorf("%s, want %s", got.URL.RequestURI(), want)
		}
	}
}

func TestNotesAreBoundedAndSaidOnce(t *testing.T) {
	var n Notes
	for i := range 100 {
		n.Note(fmt.Sprint("note ", i/2))
	}
	if got := strings.Split(n.String(), "; "); len(got) != maxNotes || got[1] != "note 1" {
		t.Error(n.String())
	}
}

func TestStrictSchema(t *testing.T) {
	inner := `{"type":"object","properties":{"b":{"type":["string","null"]}},"required":["b"],"additionalProperties":false}`
	for schema, want := range map[string]bool{
		inner: true,
		`{"type":"object","properties":{"a":` + inner + `,"l":{"type":"array","items":` + inner + `},"u":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/x"}]}},"required":["a","l","u"],"additionalProperties":false,"$defs":{"x":` + inner + `}}`: true,
		`{"type":"object"}`: false,
		`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`:                                                     false,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                                 false,
		`{"type":"object","properties":{"a":{"type":"object"}},"required":["a"],"additionalProperties":false}`:                                    false,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}},"required":["a"],"additionalProperties":false}`:           false,
		`{"type":"object","properties":{"a":{"oneOf":[{"type":"string"}]}},"required":["a"],"additionalProperties":false}`:                        false,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"object"}]}},"required":["a"],"additionalProperties":false}`:                        false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"required":["a"],"additionalProperties":false,"$defs":{"x":{"properties":{}}}}`: false,
		`[]`: false,
		strings.Repeat(`{"type":"array","items":`, 100) + `{}` + strings.Repeat(`}`, 100): false,
	} {
		if got := StrictSchema([]byte(schema)); got != want {
			t.Errorf("%v for %.200s", got, schema)
		}
	}
}
