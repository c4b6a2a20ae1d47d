package gemini

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/model"
)

func TestGenerationConfig(t *testing.T) {
	schema := []byte(`{"type":"object","properties":{"a":{"type":"string"}}}`)
	tools := []model.ToolSpec{{Name: "f"}}
	for _, c := range []struct {
		name     string
		sampling map[string]any
		req      model.Request
		want     string // the generationConfig member, "" for none
	}{
		{"nothing is configured", nil, model.Request{}, ""},
		{"all", map[string]any{"temperature": 0.0, "top_p": 0.5, "top_k": int64(4), "seed": int64(-7), "frequency_penalty": 1.0, "presence_penalty": -1.0, "max_tokens": int64(100), "stop": []string{"x", "y"}}, model.Request{},
			`{"frequencyPenalty":1,"presencePenalty":-1,"seed":-7,"stopSequences":["x","y"],"temperature":0,"topK":4,"topP":0.5,"maxOutputTokens":100}`},
		{"effort", map[string]any{"effort": "high"}, model.Request{}, `{"thinkingConfig":{"thinkingLevel":"high","includeThoughts":true}}`},
		{"budget", map[string]any{"thinking_budget": int64(512), "top_p": 1.0}, model.Request{}, `{"topP":1,"thinkingConfig":{"thinkingBudget":512,"includeThoughts":true}}`},
		{"no thinking", map[string]any{"thinking_budget": int64(0)}, model.Request{}, `{"thinkingConfig":{"thinkingBudget":0}}`},
		{"a bound alone", nil, model.Request{MaxOutput: 9}, `{"maxOutputTokens":9}`},
		{"a lower bound", map[string]any{"max_tokens": int64(100)}, model.Request{MaxOutput: 9}, `{"maxOutputTokens":9}`},
		{"a higher bound", map[string]any{"max_tokens": int64(100)}, model.Request{MaxOutput: 900}, `{"maxOutputTokens":100}`},
		{"a schema", nil, model.Request{Output: schema}, `{"responseMimeType":"application/json","responseJsonSchema":` + string(schema) + `}`},
		{"a schema beside tools", nil, model.Request{Output: schema, Tools: tools}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			client := testClient(t, func(cfg *Config) { cfg.Sampling = c.sampling })
			want := `"contents":[]}`
			if c.want != "" {
				want = `"generationConfig":` + c.want + "," + want
			}
			for range 2 { // a request leaves nothing behind
				got := sent(t, client, &c.req)
				if !strings.HasSuffix(got, want) || c.want == "" && strings.Contains(got, "generationConfig") {
					t.Errorf("sent %s, want it to end with %s", got, want)
				}
			}
		})
	}
	_, err := testClient(t, nil).Stream(t.Context(), &model.Request{Output: []byte(`{`), Messages: []*model.Message{user("a")}}, nil)
	if me := asError(t, err); me.Kind != model.ErrRequest || !strings.Contains(me.Detail, "schema of the answer") {
		t.Error(err)
	}
}

func TestConfigFaults(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Config){
		"base_url":      func(c *Config) { c.BaseURL = "" },
		"model":         func(c *Config) { c.Model = "" },
		"/v1beta":       func(c *Config) { c.BaseURL = "ftp://h" }, // says the scheme
		"api_key_env":   func(c *Config) { c.BaseURL = "http://u:" + testKey + "@h" },
		"$TEST_KEY":     func(c *Config) { c.APIKey, c.APIKeyEnv = testKey+"\n", "TEST_KEY" },
		`"min_p"`:       func(c *Config) { c.Sampling = map[string]any{"min_p": 1.0} },
		"exclude":       func(c *Config) { c.Sampling = map[string]any{"effort": "low", "thinking_budget": 1} },
		"32 bits":       func(c *Config) { c.Sampling = map[string]any{"seed": int64(1) << 40} },
		"above 0":       func(c *Config) { c.Sampling = map[string]any{"max_tokens": 0} },
		"null":          func(c *Config) { c.Sampling = map[string]any{"stop": nil} },
		ca:              func(c *Config) { c.CAFile = ca },
		"no/such":       func(c *Config) { c.CAFile = "no/such.pem" }, // I197
		"header X-Team": func(c *Config) { c.Headers = map[string]string{"X-Team": "a\nb"} },
	} {
		cfg := Config{BaseURL: "http://h/v1beta", Model: "m"}
		change(&cfg)
		c, err := New(cfg)
		if want == "/v1beta" {
			want = "ftp"
		}
		if err == nil || c != nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), testKey) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if c := testClient(t, func(cfg *Config) { cfg.Name = "" }); c.Name() != "gemini/gemini-x" {
		t.Errorf("name %q", c.Name())
	}
}
