package config

import "strings"

// The variables that Abhed reads (abhed.md, Configuration).
const (
	EnvBaseURL = "ABHED_BASE_URL"
	EnvModel   = "ABHED_MODEL"
	EnvAPIKey  = "ABHED_API_KEY"
)

// environmentProvider is the provider's name for the endpoint that ABHED_BASE_URL
// names: its models are env/<model>.
const environmentProvider = "env"

// knownVariables are the ABHED_* names that mean something to some part of the
// program or its tests.
func knownVariables() []string { return []string{EnvBaseURL, EnvModel, EnvAPIKey, "ABHED_REQUIRE"} }

// QuickStart is the one OpenAI-compatible endpoint that variables may name. The
// zero value is none.
type QuickStart struct {
	// BaseURL is ABHED_BASE_URL, empty if there is no such endpoint.
	BaseURL string `json:"base_url,omitzero"`
	// APIKey is ABHED_API_KEY.
	APIKey Secret `json:"api_key,omitzero"`
}

// Warning is something odd that stops nothing.
type Warning struct {
	Origin Origin `json:"origin"`
	Text   string `json:"text"`
}

// environment reads the ABHED_* variables. An empty variable counts as unset.
func (l *loader) environment(src *Source) *node {
	vars := map[string]string{}
	for _, entry := range src.Environ {
		name, value, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "ABHED_") && value != "" {
			if _, twice := vars[name]; !twice {
				vars[name] = value
				l.knownVariable(name)
			}
		}
	}
	at := func(name string) Origin { return Origin{Layer: Environment, File: name, Key: name} }
	warn := func(name, text string) {
		l.warnings = append(l.warnings, Warning{Origin: at(name), Text: text})
	}
	base, model := vars[EnvBaseURL], vars[EnvModel]
	if base != "" {
		if want := endpointURL(base); want != "" {
			l.faults.add(&Error{Origin: Origin{Layer: Environment, File: EnvBaseURL}, Found: foundURL(base), Expected: want})
			return nil
		}
		l.quick = QuickStart{BaseURL: base, APIKey: NewSecret(vars[EnvAPIKey])}
		if model == "" {
			warn(EnvBaseURL, "it is used only for a model that "+EnvModel+" or --model "+environmentProvider+"/<model> names")
		}
	} else if vars[EnvAPIKey] != "" {
		warn(EnvAPIKey, "it is sent only to the endpoint that "+EnvBaseURL+" names, which isn't set")
	}
	if model == "" {
		return nil
	}
	if base != "" {
		model = environmentProvider + "/" + model
	}
	v := &node{kind: '"', text: model, origin: at(EnvModel)}
	v.origin.Key = "model"
	return &node{kind: '{', origin: at(EnvModel), members: []member{{name: "model", value: v, origin: v.origin}}}
}

// knownVariable warns of an ABHED_* variable that nothing reads.
func (l *loader) knownVariable(name string) {
	known := knownVariables()
	for _, k := range known {
		if k == name {
			return
		}
	}
	text := "no such variable is known; known are " + strings.Join(known, ", ")
	if n := nearest(name, known); n != "" {
		text = "no such variable is known; did you mean " + n + "?"
	}
	l.warnings = append(l.warnings, Warning{Origin: Origin{Layer: Environment, File: name, Key: name}, Text: text})
}
