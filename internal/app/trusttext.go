package app

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/config"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/trust"
)

// broughtShown is what a person has to know before a workspace is trusted.
type broughtShown struct {
	Workspace string `json:"workspace"`
	// State is "trusted", "not trusted" or says that it has changed.
	State        string             `json:"state"`
	Settings     *settingsShown     `json:"settings,omitempty"`
	Registration *registrationShown `json:"registration,omitempty"`
	// Notes say what trust doesn't hold.
	Notes []string `json:"notes,omitempty"`
}

type settingsShown struct {
	Path     string         `json:"path"`
	SHA256   string         `json:"sha256"`
	Programs []programShown `json:"programs"`
	// Brings counts only once it is trusted, Counts does already.
	Brings []valueShown `json:"brings"`
	Counts []valueShown `json:"counts_already"`
	// Files are the files of the workspace whose bytes are trusted too.
	Files []fileShown `json:"files"`
}

// programShown is an extension or an MCP server that would be started, or asked at a
// URL.
type programShown struct {
	What string   `json:"what"`
	Name string   `json:"name"`
	Runs []string `json:"runs,omitempty"`
	URL  string   `json:"url,omitempty"`
	// Env names the variables that it is given. Their values aren't shown.
	Env []string `json:"env,omitempty"`
	// Events are what an extension is asked about, none means all.
	Events  []string `json:"events,omitempty"`
	Sandbox bool     `json:"sandbox"`
}

// valueShown is one value in a settings file.
type valueShown struct {
	Key    string         `json:"key"`
	Value  jsontext.Value `json:"value"`
	Line   int            `json:"line"`
	Column int            `json:"column"`
}

type fileShown struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	By     string `json:"key"`
}

type registrationShown struct {
	Path     string         `json:"path"`
	SHA256   string         `json:"sha256"`
	Backends []backendShown `json:"backends"`
}

type backendShown struct {
	ID   string   `json:"id"`
	Runs []string `json:"runs,omitempty"`
	URL  string   `json:"url,omitempty"`
	// Decides and Told are the events.
	Decides []string `json:"decides,omitempty"`
	Told    []string `json:"told,omitempty"`
}

// shown returns what is shown of what the workspace brings.
func (b *brought) shown() broughtShown {
	s := broughtShown{Workspace: b.workspace, Notes: b.named.notes}
	if b.settings != nil {
		s.Settings = b.settingsShown()
	}
	if b.backends != nil {
		s.Registration = &registrationShown{Path: registrationFile(b.workspace), SHA256: trust.Sum(b.registration), Backends: showBackends(b.backends)}
		s.Notes = append(s.Notes, `the registration counts for "ahp hook" in other agents too; the programs and rules that it names may change and stay trusted`)
	}
	return s
}

func (b *brought) settingsShown() *settingsShown {
	out := &settingsShown{
		Path: settingsFile(b.workspace), SHA256: trust.Sum(b.settings),
		Programs: programs(b.own), Brings: []valueShown{}, Counts: []valueShown{}, Files: []fileShown{},
	}
	for _, v := range b.own.Explain().Values {
		if v.Origin.Layer != config.Project {
			continue
		}
		value := valueShown{Key: v.Origin.Key, Value: v.Value, Line: v.Origin.Line, Column: v.Origin.Column}
		if slices.ContainsFunc(b.wary.Ignored, func(i config.Ignored) bool { return under(i.Origin.Key, value.Key) }) {
			out.Brings = append(out.Brings, value)
		} else {
			out.Counts = append(out.Counts, value)
		}
	}
	if b.model != "" {
		out.Brings = slices.Insert(out.Brings, 0, b.modelShown())
	}
	for _, f := range b.named.files {
		out.Files = append(out.Files, fileShown{Path: f.path, SHA256: trust.Sum(f.content), By: f.by})
	}
	return out
}

// modelShown is the model, which b.own has another one for.
func (b *brought) modelShown() valueShown {
	quoted, _ := jsontext.AppendQuote(nil, b.model)
	v := valueShown{Key: "model", Value: quoted}
	for _, i := range b.wary.Ignored {
		if i.Origin.Key == "model" {
			v.Line, v.Column = i.Origin.Line, i.Origin.Column
		}
	}
	return v
}

// under reports whether key is the value at top or one inside it.
func under(top, key string) bool {
	rest, ok := strings.CutPrefix(key, top)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// programs returns what the settings start or ask.
func programs(s *config.Settings) []programShown {
	out := []programShown{}
	for _, x := range s.Extensions {
		out = append(out, programShown{What: "extension", Name: x.Name, Runs: append([]string{x.Command}, x.Args...), Env: sortedKeys(x.Env), Events: x.Events, Sandbox: x.Sandbox})
	}
	for _, name := range sortedKeys(s.MCP) {
		m := s.MCP[name]
		p := programShown{What: "MCP server", Name: name, URL: m.URL, Env: sortedKeys(m.Env), Sandbox: m.URL == ""}
		if m.URL == "" {
			p.Runs = append([]string{m.Command}, m.Args...)
		}
		out = append(out, p)
	}
	if s.Record.Anchor != "" && !s.Record.IsURL() {
		out = append(out, programShown{What: "record anchor", Runs: []string{s.Record.Anchor}})
	}
	return out
}

func showBackends(r *ahp.Registration) []backendShown {
	out := []backendShown{}
	for i := range r.Hooks {
		h := &r.Hooks[i]
		s := backendShown{ID: h.ID, URL: h.Transport.URL}
		if h.Transport.Type == ahp.TransportStdio {
			s.Runs = append([]string{h.Transport.Command}, h.Transport.Args...)
		}
		for j := range h.Subscriptions {
			sub := &h.Subscriptions[j]
			if sub.Mode == ahp.ModeIntercept {
				s.Decides = append(s.Decides, sub.Events...)
			} else {
				s.Told = append(s.Told, sub.Events...)
			}
		}
		out = append(out, s)
	}
	return out
}

// text shows it all to the person who is to trust it. What stands in the files is
// written so that a terminal shows every character of it.
func (s broughtShown) text() string {
	var b strings.Builder
	if s.Settings != nil {
		s.Settings.write(&b)
	}
	if r := s.Registration; r != nil {
		fmt.Fprintf(&b, "%s\nSHA-256 %s\n", oneLine(r.Path), r.SHA256)
		for _, h := range r.Backends {
			fmt.Fprintf(&b, "  backend %q %s\n", h.ID, runsOrAsks(h.Runs, h.URL))
			if len(h.Decides) > 0 {
				fmt.Fprintf(&b, "    decides about %s\n", oneLine(strings.Join(h.Decides, ", ")))
			}
			if len(h.Told) > 0 {
				fmt.Fprintf(&b, "    is told of %s\n", oneLine(strings.Join(h.Told, ", ")))
			}
		}
		b.WriteString("\n")
	}
	for _, n := range s.Notes {
		fmt.Fprintf(&b, "note: %s\n", oneLine(n))
	}
	return b.String()
}

func (s *settingsShown) write(b *strings.Builder) {
	fmt.Fprintf(b, "%s\nSHA-256 %s\n", oneLine(s.Path), s.SHA256)
	section := func(title string, n int) {
		if n > 0 {
			fmt.Fprintf(b, "\n%s\n", title)
		}
	}
	section("It runs or asks:", len(s.Programs))
	for _, p := range s.Programs {
		fmt.Fprintf(b, "  %s %q %s\n", p.What, p.Name, runsOrAsks(p.Runs, p.URL))
		if p.What == "extension" {
			fmt.Fprintf(b, "    %s, %s\n", eventsText(p.Events), confinedText(p.Sandbox))
		}
		if len(p.Env) > 0 {
			fmt.Fprintf(b, "    is given the variables %s\n", oneLine(strings.Join(p.Env, ", ")))
		}
	}
	section("What counts only once it is trusted:", len(s.Brings))
	for _, v := range s.Brings {
		v.write(b)
	}
	section("What counts already, because it is stricter:", len(s.Counts))
	for _, v := range s.Counts {
		v.write(b)
	}
	section("Files of the workspace whose content is trusted with it:", len(s.Files))
	for _, f := range s.Files {
		fmt.Fprintf(b, "  %.12s  %s  (%s)\n", f.SHA256, oneLine(f.Path), oneLine(f.By))
	}
	b.WriteString("\n")
}

func (v valueShown) write(b *strings.Builder) {
	fmt.Fprintf(b, "  %s = %s  # line %d\n", oneLine(v.Key), oneLine(string(v.Value)), v.Line)
}

func eventsText(events []string) string {
	if len(events) == 0 {
		return "is asked about everything"
	}
	return "is asked about " + strings.Join(events, ", ")
}

func confinedText(sandbox bool) string {
	if sandbox {
		return "confined"
	}
	return "with all your powers"
}

// runsOrAsks says what is run, each word quoted, or what is asked.
func runsOrAsks(runs []string, url string) string {
	if len(runs) == 0 {
		return "asks " + oneLine(url)
	}
	words := make([]string, len(runs))
	for i, w := range runs {
		words[i] = fmt.Sprintf("%+q", w)
	}
	return "runs " + strings.Join(words, " ") + pathNote(runs[0])
}

// pathNote says that a bare name is looked up.
func pathNote(command string) string {
	if command != "" && filepath.Base(command) == command {
		return " (by PATH)"
	}
	return ""
}

// oneLine returns text as gate.Visible does, and line feeds and tabs as escapes too: a
// name in the file must not look like a line of ours.
func oneLine(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(gate.Visible(s))
}
