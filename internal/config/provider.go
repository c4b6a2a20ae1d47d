package config

import (
	"slices"
	"strings"
)

// Endpoint is where the requests for one model go.
type Endpoint struct {
	// Provider is the provider's name, Model the model's name as the provider
	// knows it.
	Provider string
	Model    string
	API      string
	// BaseURL has no trailing slash; for APIScript it is the script's file.
	BaseURL string
	// APIKeyEnv names the variable that holds the key; empty means that no key is
	// sent.
	APIKeyEnv string
	// APIKey is the key itself where the settings hold it: only ABHED_API_KEY.
	APIKey Secret
	// HeadersEnv maps a header's name to the variable that holds its value.
	HeadersEnv map[string]string
	// Sampling lists the parameters that the endpoint honours, Spelled how it spells
	// those that it calls otherwise.
	Sampling []string
	Spelled  map[string]string
	// Info is what is known of the model: what the settings say, and for the rest
	// what is generally known of it.
	Info ModelInfo
}

// builtin is a row of the table of providers. One without api is known by name
// only.
type builtin struct {
	name, api, baseURL, keyEnv string
	sampling                   []string
	hint                       string
}

// builtins is the data table of built-in providers (abhed.md, Providers). The
// sampling lists hold what each endpoint documents under the very name that we
// would send; an endpoint that calls it differently doesn't honour it.
func builtins() []builtin {
	common := []string{"temperature", "top_p", "max_tokens", "stop"}
	with := func(more ...string) []string { return append(slices.Clone(common), more...) }
	open := with("top_k", "min_p", "seed", "frequency_penalty", "presence_penalty", "repetition_penalty")
	penalties := with("seed", "frequency_penalty", "presence_penalty")
	return []builtin{
		{"openai", APIOpenAI, "https://api.openai.com/v1", "OPENAI_API_KEY", append(slices.Clone(penalties), "effort"), ""},
		{"anthropic", APIAnthropic, "https://api.anthropic.com", "ANTHROPIC_API_KEY", APISampling(APIAnthropic), ""},
		{"gemini", APIGemini, "https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY", APISampling(APIGemini), ""},
		{"openrouter", APIOpenAI, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", slices.Clone(open), ""},
		{"mistral", APIOpenAI, "https://api.mistral.ai/v1", "MISTRAL_API_KEY", with("frequency_penalty", "presence_penalty"), ""},
		{"groq", APIOpenAI, "https://api.groq.com/openai/v1", "GROQ_API_KEY", with("seed", "effort"), ""},
		{"together", APIOpenAI, "https://api.together.xyz/v1", "TOGETHER_API_KEY", slices.Clone(open), ""},
		{"deepseek", APIOpenAI, "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", with("frequency_penalty", "presence_penalty"), ""},
		{"xai", APIOpenAI, "https://api.x.ai/v1", "XAI_API_KEY", append(slices.Clone(penalties), "effort"), ""},
		{name: "azure-openai", hint: "its address differs by resource: name it in custom_providers with api openai and the resource's /openai/v1 URL"},
		{"ollama", APIOpenAI, "http://localhost:11434/v1", "", slices.Clone(penalties), ""},
		{"vllm", APIOpenAI, "http://localhost:8000/v1", "", slices.Clone(open), ""},
		{"sglang", APIOpenAI, "http://localhost:30000/v1", "", slices.Clone(open), ""},
		{"llamacpp", APIOpenAI, "http://localhost:8080/v1", "", append(slices.Clone(penalties), "top_k", "min_p"), ""},
		{"lmstudio", APIOpenAI, "http://localhost:1234/v1", "", append(slices.Clone(penalties), "top_k"), ""},
	}
}

// BuiltinProviders returns the names that no custom provider may take.
func BuiltinProviders() []string {
	var names []string
	for _, b := range builtins() {
		names = append(names, b.name)
	}
	return names
}

// Provided is one provider that a model may name.
type Provided struct {
	Name    string
	API     string
	BaseURL string
	// KeyEnv names the variable that holds the key; may be empty.
	KeyEnv string
	// Sampling lists the parameters that it honours.
	Sampling []string
	// Missing says why it can't be used; empty if it can.
	Missing string
}

// Provided returns every provider: ABHED_BASE_URL's, the custom ones in the
// order of the settings, then the built-in ones.
func (s *Settings) Provided() []Provided {
	var out []Provided
	if s.QuickStart.BaseURL != "" {
		keyEnv := EnvAPIKey
		if s.QuickStart.APIKey.IsZero() {
			keyEnv = ""
		}
		out = append(out, Provided{Name: environmentProvider, API: APIOpenAI, BaseURL: s.QuickStart.BaseURL, KeyEnv: keyEnv,
			Sampling: []string{"temperature", "top_p", "max_tokens", "stop", "seed", "frequency_penalty", "presence_penalty"}})
	}
	for _, p := range s.Providers {
		out = append(out, Provided{Name: p.Name, API: p.API, BaseURL: p.BaseURL, KeyEnv: p.APIKeyEnv, Sampling: slices.Clone(p.Sampling)})
	}
	for _, b := range builtins() {
		out = append(out, Provided{Name: b.name, API: b.api, BaseURL: b.baseURL, KeyEnv: b.keyEnv, Sampling: b.sampling, Missing: b.hint})
	}
	return out
}

// Resolve returns the endpoint for a model named as provider/model; "" is the
// configured one. Where ABHED_BASE_URL is set a name without a slash that stands
// in no settings file is a model of that endpoint. A model whose provider doesn't
// honour a configured sampling parameter is refused, naming both. The error is
// an *Error.
func (s *Settings) Resolve(model string) (Endpoint, error) {
	e, err := s.resolve(model)
	if err != nil {
		return Endpoint{}, err
	}
	if refused := s.unhonoured(&e); len(refused) > 0 {
		return Endpoint{}, refused[0]
	}
	return e, nil
}

// unhonoured returns a fault for each configured sampling parameter that the
// endpoint doesn't honour.
func (s *Settings) unhonoured(e *Endpoint) []*Error {
	sampling := s.merged.get("sampling")
	if sampling == nil {
		return nil
	}
	var out []*Error
	for _, m := range sampling.members {
		if !slices.Contains(e.Sampling, m.name) {
			out = append(out, &Error{Origin: m.value.origin, Found: "the parameter " + quote(m.name) + ", which the provider " + quote(e.Provider) + " doesn't honour", Expected: oneOf(e.Sampling)})
		}
	}
	return out
}

func (s *Settings) resolve(model string) (Endpoint, *Error) {
	origin := Origin{}
	if model == "" {
		model = s.Model
		origin, _ = s.Origin("model")
	}
	if model == "" {
		return Endpoint{}, &Error{Found: "no model is configured", Hint: "set model in the settings, --model, or " + EnvBaseURL + " and " + EnvModel}
	}
	fail := func(found, expected, hint string) (Endpoint, *Error) {
		return Endpoint{}, &Error{Origin: origin, Found: found, Expected: expected, Hint: hint}
	}
	if want := modelName(model); want != "" {
		return fail("found "+quote(model), want, "")
	}
	all := s.Provided()
	provider, name, has := strings.Cut(model, "/")
	inFile := origin.Layer == Managed || origin.Layer == User || origin.Layer == Project
	if !has && s.QuickStart.BaseURL != "" && !inFile {
		provider, name, has = environmentProvider, model, true
	}
	if !has {
		return fail("found "+quote(model), "provider/model", "name the provider: nothing is guessed from a model's name")
	}
	i := slices.IndexFunc(all, func(p Provided) bool { return p.Name == provider })
	if i < 0 {
		names := make([]string, len(all))
		for j, p := range all {
			names[j] = p.Name
		}
		hint := didYouMean(provider, names)
		if provider == environmentProvider {
			hint = EnvBaseURL + " isn't set"
		}
		return fail("the provider "+quote(provider)+", which isn't known", oneOf(names), hint)
	}
	p := all[i]
	if p.Missing != "" {
		return fail("the provider "+quote(provider)+", which can't be used", "", p.Missing)
	}
	e := Endpoint{Provider: p.Name, Model: name, API: p.API, BaseURL: strings.TrimRight(p.BaseURL, "/"), APIKeyEnv: p.KeyEnv, Sampling: p.Sampling}
	if provider == environmentProvider {
		e.APIKey = s.QuickStart.APIKey
	}
	if provider == "openai" || provider == "azure-openai" { // whose newer models refuse max_tokens
		e.Spelled = map[string]string{"max_tokens": "max_completion_tokens"}
	}
	e.Info = builtinModel(provider, name)
	for _, custom := range s.Providers {
		if custom.Name == provider {
			e.HeadersEnv, e.Info = custom.HeadersEnv, custom.Models[name]
		}
	}
	e.Info = s.Models[provider+"/"+name].over(e.Info)
	return e, nil
}
