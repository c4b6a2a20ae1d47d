package config

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironment(t *testing.T) {
	const base, key = "ABHED_BASE_URL=http://127.0.0.1:9/v1/", "ABHED_API_KEY=0123456789"
	user := file(User, `{"model": "ollama/u"}`)
	for _, c := range []struct {
		name     string
		sources  []Source
		provider string
		model    string
		warnings []string
	}{
		{"one endpoint", []Source{environ("PATH=/bin", base, key, "ABHED_MODEL=Qwen/Qwen3"), user}, "env", "Qwen/Qwen3", nil},
		{"a model of a provider", []Source{environ("ABHED_MODEL=groq/m"), user}, "groq", "m", nil},
		{"the command line beats it", []Source{environ(base, "ABHED_MODEL=m"), args(Arg{"--model", "model", []string{"vllm/c"}})}, "vllm", "c", nil},
		{"the command line names a model of it", []Source{environ(base, "ABHED_MODEL=m"), args(Arg{"--model", "model", []string{"other"}})}, "env", "other", nil},
		{"managed beats it", []Source{environ(base, "ABHED_MODEL=m"), file(Managed, `{"model": "vllm/m"}`)}, "vllm", "m", nil},
		{"no model", []Source{environ(base), user}, "ollama", "u", []string{"environment ABHED_BASE_URL: it is used only for a model that ABHED_MODEL or --model env/<model> names"}},
		{"no endpoint", []Source{environ(key), user}, "ollama", "u", []string{"environment ABHED_API_KEY: it is sent only to the endpoint that ABHED_BASE_URL names, which isn't set"}},
		{"empty is unset", []Source{environ("ABHED_BASE_URL=", "ABHED_MODEL="), user}, "ollama", "u", nil},
		{"unknown variables", []Source{environ("ABHED_MODLE=x", "ABHED_REQUIRE=rg", "ABHED_ZZZZZZ=1"), user}, "ollama", "u", []string{
			"environment ABHED_MODLE: no such variable is known; did you mean ABHED_MODEL?",
			"environment ABHED_ZZZZZZ: no such variable is known; known are ABHED_BASE_URL, ABHED_MODEL, ABHED_API_KEY, ABHED_REQUIRE"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := load(t, c.sources...)
			e, err := s.Resolve("")
			if err != nil || e.Provider != c.provider || e.Model != c.model {
				t.Errorf("endpoint %s/%s, %v; want %s/%s", e.Provider, e.Model, err, c.provider, c.model)
			}
			var warnings []string
			for _, w := range s.Warnings {
				warnings = append(warnings, w.Origin.String()+": "+w.Text)
			}
			if d := cmp.Diff(c.warnings, warnings); d != "" {
				t.Errorf("warnings (-want +got):\n%s", d)
			}
		})
	}
	s := load(t, environ(base, key, "ABHED_MODEL=m"))
	e, err := s.Resolve("")
	if err != nil || e.BaseURL != "http://127.0.0.1:9/v1" || e.APIKey.Reveal() != "0123456789" || e.APIKeyEnv != EnvAPIKey || e.API != APIOpenAI {
		t.Errorf("endpoint = %+v, %v", e, err)
	}
	if e, _ := s.Resolve("groq/x"); !e.APIKey.IsZero() || e.APIKeyEnv != "GROQ_API_KEY" {
		t.Error("the key of ABHED_BASE_URL's endpoint goes to another one")
	}
	if got := faultsOf(t, environ("ABHED_BASE_URL=localhost:8000")); got[0] != `ABHED_BASE_URL: found "localhost:8000", expected an absolute http or https URL` {
		t.Errorf("message = %q", got)
	}
	// A file that names a bare model doesn't get an endpoint from a variable.
	if got := faultsOf(t, environ(base), file(Managed, `{"model": "m"}`)); !strings.Contains(got[0], "expected provider/model") {
		t.Errorf("message = %q", got)
	}
}

func TestResolveFaults(t *testing.T) {
	s := load(t, file(User, `{"custom_providers": [{"name": "house", "api": "openai", "base_url": "http://h"}]}`))
	for model, want := range map[string]string{
		"gpt":            `found "gpt", expected provider/model (name the provider: nothing is guessed from a model's name)`,
		"env/x":          "ABHED_BASE_URL isn't set",
		"hause/x":        `did you mean "house"?`,
		"azure-openai/x": "name it in custom_providers",
		"house/":         "expected provider/model",
		"a b/c":          "expected provider/model",
	} {
		_, err := s.Resolve(model)
		var fault *Error
		if !errors.As(err, &fault) || !strings.Contains(err.Error(), want) {
			t.Errorf("Resolve(%q): %v, want %q in it", model, err, want)
		}
	}
}

// TestResolveChecksSampling: to change the model is to start with it.
func TestResolveChecksSampling(t *testing.T) {
	s := load(t, file(User, `{"model": "vllm/a", "sampling": {"top_k": 4, "seed": 1}}`))
	if _, err := s.Resolve("vllm/b"); err != nil {
		t.Error(err)
	}
	_, err := s.Resolve("groq/b")
	if err == nil || err.Error() != `/f/user.json:1:43: sampling.top_k: the parameter "top_k", which the provider "groq" doesn't honour, expected one of temperature, top_p, max_tokens, stop, seed, effort` {
		t.Errorf("error = %v", err)
	}
}

// TestBuiltinTable checks that every row can be used or says why not, and that
// it is made of names that exist.
func TestBuiltinTable(t *testing.T) {
	want := []string{"openai", "anthropic", "gemini", "openrouter", "mistral", "groq", "together", "deepseek", "xai", "azure-openai", "ollama", "vllm", "sglang", "llamacpp", "lmstudio"}
	if d := cmp.Diff(want, BuiltinProviders()); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
	s := load(t)
	for _, p := range s.Provided() {
		e, err := s.Resolve(p.Name + "/some/model")
		if p.Missing != "" {
			if err == nil || !strings.Contains(err.Error(), p.Missing) {
				t.Errorf("%s: %v, want %q in it", p.Name, err, p.Missing)
			}
			continue
		}
		if err != nil || e.Model != "some/model" || e.API != p.API || !slices.Contains(APIs(), e.API) || endpointURL(e.BaseURL) != "" || strings.HasSuffix(e.BaseURL, "/") {
			t.Errorf("%s: %+v, %v", p.Name, e, err)
		}
		if local := strings.Contains(e.BaseURL, "localhost"); local != strings.HasPrefix(e.BaseURL, "http:") || local != (e.APIKeyEnv == "") {
			t.Errorf("%s: only a local endpoint goes without TLS and without a key: %+v", p.Name, e)
		}
		for i, name := range e.Sampling {
			if !slices.Contains(APISampling(e.API), name) || slices.Contains(e.Sampling[:i], name) {
				t.Errorf("%s: sampling %q is unknown or there twice", p.Name, name)
			}
		}
	}
}

// TestSamplingNamesAgree holds the three places together that list parameters.
func TestSamplingNamesAgree(t *testing.T) {
	table := settingsSpec().field("sampling").names()
	if d := cmp.Diff(SamplingNames(), table); d != "" {
		t.Errorf("names and table (-names +table):\n%s", d)
	}
	for _, name := range SamplingNames() {
		value := map[bool]string{true: "1"}[settingsSpec().field("sampling").field(name).shape != shapeString]
		switch name {
		case "stop":
			value = `["x"]`
		case "effort":
			value = `"high"`
		}
		data := `{"sampling": {"` + name + `": ` + value + `}, "model": "p/m", "custom_providers": [{"name": "p", "api": "openai", "base_url": "http://h", "sampling": [`
		load(t, file(User, data+`"`+name+`"]}]}`))
		if got := faultsOf(t, file(User, data+`]}]}`)); len(got) != 1 || !strings.Contains(got[0], `the parameter "`+name+`", which the provider "p" doesn't honour`) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestEveryAPI: a custom provider of each API is accepted with every parameter
// that the API has, and refused with each one that it has not.
func TestEveryAPI(t *testing.T) {
	for _, api := range APIs() {
		provider := func(names ...string) string {
			return `{"model": "p/m", "custom_providers": [{"name": "p", "api": "` + api + `", "base_url": "http://h/v1/", "sampling": ["` + strings.Join(names, `", "`) + `"]}]}`
		}
		can := APISampling(api)
		e, err := load(t, file(User, provider(can...))).Resolve("")
		if err != nil || e.API != api {
			t.Errorf("%s: %+v, %v", api, e, err)
		}
		if d := cmp.Diff(can, e.Sampling); d != "" {
			t.Errorf("%s: sampling (-want +got):\n%s", api, d)
		}
		for i, name := range can {
			if !slices.Contains(SamplingNames(), name) || slices.Contains(can[:i], name) {
				t.Errorf("%s: %q is unknown or there twice", api, name)
			}
		}
		for _, name := range SamplingNames() {
			if slices.Contains(can, name) {
				continue
			}
			if got := faultsOf(t, file(User, provider(name))); len(got) != 1 || !strings.Contains(got[0], quote(name)) || !strings.Contains(got[0], "the API "+quote(api)) {
				t.Errorf("%s with %s: %q", api, name, got)
			}
		}
	}
}

// TestModelInfo: settings stand over what is generally known, member by member.
func TestModelInfo(t *testing.T) {
	yes, no, one, two := true, false, 1.0, 2.0
	s := load(t, file(User, `{"models": {"anthropic/claude-sonnet-4-5": {"output_limit": 9, "price": {"input": 1}}, "p/m": {"context_window": 7, "price": {"output": 2}}, "p/only": {"images": true}},
		"custom_providers": [{"name": "p", "api": "gemini", "base_url": "http://h", "models": {"m": {"output_limit": 8, "images": false, "price": {"input": 1, "output": 1}}}}]}`))
	for model, want := range map[string]ModelInfo{
		"anthropic/claude-sonnet-4-5":  {ContextWindow: 200_000, OutputLimit: 9, Images: &yes, Price: &Price{Input: &one}},
		"p/m":                          {ContextWindow: 7, OutputLimit: 8, Images: &no, Price: &Price{Input: &one, Output: &two}},
		"p/only":                       {Images: &yes},
		"gemini/gemini-2.5-pro":        {ContextWindow: 1_048_576, OutputLimit: 65_536, Images: &yes},
		"openai/o3-mini":               {ContextWindow: 200_000, OutputLimit: 100_000, Images: &no},
		"openai/o3-mini-of-tomorrow":   {},
		"openrouter/gemini-2.5-pro":    {},
		"anthropic/claude-sonnet-4-5x": {},
	} {
		e, err := s.Resolve(model)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, e.Info); d != "" {
			t.Errorf("%s (-want +got):\n%s", model, d)
		}
	}
	seen := map[string]bool{}
	for _, k := range builtinModels() {
		for _, name := range k.names {
			model := k.provider + "/" + name
			if !slices.Contains(BuiltinProviders(), k.provider) || seen[model] || k.most <= 0 || k.most >= k.context {
				t.Errorf("%s: unknown provider, there twice, or no room for a prompt: %+v", model, k)
			}
			seen[model] = true
		}
	}
}

// TestOwnSpelling names the parameter that OpenAI's own endpoints call otherwise.
func TestOwnSpelling(t *testing.T) {
	for model, want := range map[string]string{"openai/gpt-x": "max_completion_tokens", "groq/x": ""} {
		s, err := Load([]Source{{Layer: User, File: "/c.json", Dir: "/", Data: []byte(`{"model":"` + model + `"}`), Trusted: true}})
		if err != nil {
			t.Fatal(err)
		}
		e, err := s.Resolve("")
		if err != nil || e.Spelled["max_tokens"] != want {
			t.Errorf("%s: %v, %v", model, e.Spelled, err)
		}
	}
}
