package app

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/abhed/abhed/internal/config"
	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/strictjson"
)

// providers lists every source of models that the settings know: the endpoint that
// variables name, the custom ones, then the built-in ones. Of a key it says whether
// there is one.
func providers(l *loaded, sys System) []control.Provider {
	var out []control.Provider
	for _, p := range l.Provided() {
		shown := control.Provider{Name: p.Name, API: p.API, BaseURL: p.BaseURL, KeyEnv: p.KeyEnv, Honours: p.Sampling, Missing: p.Missing}
		if shown.Honours == nil {
			shown.Honours = []string{}
		}
		if p.KeyEnv != "" {
			shown.HasKey = sys.Getenv(p.KeyEnv) != ""
		}
		if shown.Missing == "" {
			shown.Missing = strings.Join(missing(l, p, sys), "; ")
		}
		out = append(out, shown)
	}
	return out
}

// missing says what a provider needs and isn't there.
func missing(l *loaded, p config.Provided, sys System) []string {
	var out []string
	if p.KeyEnv != "" && sys.Getenv(p.KeyEnv) == "" {
		out = append(out, "the key: the variable "+p.KeyEnv+" isn't set")
	}
	i := slices.IndexFunc(l.Settings.Providers, func(c config.Provider) bool { return c.Name == p.Name })
	if i < 0 {
		return out
	}
	var headers []string
	for header, variable := range l.Settings.Providers[i].HeadersEnv {
		if sys.Getenv(variable) == "" {
			headers = append(headers, "the header "+header+": the variable "+variable+" isn't set")
		}
	}
	slices.Sort(headers)
	out = append(out, headers...)
	if p.API == config.APIScript {
		if _, err := os.Stat(p.BaseURL); err != nil {
			out = append(out, "the script: "+err.Error())
		}
	}
	return out
}

// Providers prints the table of providers.
func Providers(o SettingsOptions, asJSON bool, sys System) int {
	l, err := loadSettings(o, sys)
	if err != nil {
		return sys.fail(ExitUsage, err)
	}
	list := providers(l, sys)
	if asJSON {
		for _, p := range list {
			b, err := strictjson.Marshal(p)
			if err != nil {
				return sys.fail(ExitFailure, err)
			}
			fmt.Fprintf(sys.Stdout, "%s\n", b)
		}
		return ExitOK
	}
	inUse := ""
	if e, err := l.Resolve(""); err == nil {
		inUse = e.Provider
	}
	fmt.Fprint(sys.Stdout, providersText(list, inUse))
	return ExitOK
}

// providersText writes the table for a person. The provider of the configured model
// has a star.
func providersText(list []control.Provider, inUse string) string {
	var name, api, base int
	for _, p := range list {
		name, api, base = max(name, len(p.Name)), max(api, len(p.API)), max(base, len(p.BaseURL))
	}
	var b strings.Builder
	for _, p := range list {
		star, key := " ", "no key"
		if p.Name == inUse {
			star = "*"
		}
		switch {
		case p.KeyEnv != "" && p.HasKey:
			key = "key in " + p.KeyEnv
		case p.KeyEnv != "":
			key = "no key in " + p.KeyEnv
		case p.API == "":
			key = ""
		}
		row := fmt.Sprintf("%s %-*s  %-*s  %-*s  %s", star, name, p.Name, api, p.API, base, oneLine(p.BaseURL), key)
		b.WriteString(strings.TrimRight(row, " ") + "\n")
		if p.API != "" {
			fmt.Fprintf(&b, "    honours  %s\n", orNone(strings.Join(p.Honours, ", ")))
		}
		if p.Missing != "" {
			fmt.Fprintf(&b, "    missing  %s\n", oneLine(p.Missing))
		}
	}
	return b.String()
}

func orNone(s string) string {
	if s == "" {
		return "no sampling parameter"
	}
	return s
}
