package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/abhed/abhed/ahp"
)

// backendShown is what a person has to know of a backend before it may decide.
type backendShown struct {
	ID string `json:"id"`
	// Runs is the command with its arguments, and Dir where it runs; URL is where it is
	// asked instead.
	Runs []string `json:"runs,omitzero"`
	Dir  string   `json:"dir,omitzero"`
	URL  string   `json:"url,omitzero"`
	// InProject tells that the program, or a file that it is given, can be changed with
	// the project.
	InProject bool `json:"inProject,omitzero"`
	// Credentials names what is sent to prove who asks.
	Credentials   []string            `json:"credentials,omitzero"`
	Subscriptions []subscriptionShown `json:"subscriptions"`
}

type subscriptionShown struct {
	Events        []string          `json:"events"`
	Mode          ahp.Mode          `json:"mode"`
	Milliseconds  int64             `json:"milliseconds,omitzero"`
	FailurePolicy ahp.FailurePolicy `json:"failurePolicy,omitzero"`
	// Told is what of an event's content is sent, as "category: body".
	Told   []string `json:"told"`
	Native bool     `json:"native,omitzero"`
	Upload string   `json:"upload,omitzero"`
}

// showBackends returns what a registration in dir registers.
func showBackends(reg *ahp.Registration, dir string) []backendShown {
	out := []backendShown{}
	project := dir
	if filepath.Base(dir) == ".ahp" {
		project = filepath.Dir(dir)
	}
	for i := range reg.Hooks {
		b := &reg.Hooks[i]
		s := backendShown{ID: b.ID, URL: b.Transport.URL, Credentials: credentialNames(b.Authentication), Subscriptions: []subscriptionShown{}}
		if b.Transport.Type == ahp.TransportStdio {
			s.Runs = append([]string{b.Transport.Command}, b.Transport.Args...)
			s.Dir = dir
			if b.Transport.Cwd != "" {
				s.Dir = within(dir, b.Transport.Cwd)
			}
			s.InProject = slices.ContainsFunc(s.Runs, func(word string) bool { return isIn(project, s.Dir, word) })
		}
		for j := range b.Subscriptions {
			s.Subscriptions = append(s.Subscriptions, showSubscription(&b.Subscriptions[j]))
		}
		out = append(out, s)
	}
	return out
}

func showSubscription(s *ahp.Subscription) subscriptionShown {
	out := subscriptionShown{Events: s.Events, Mode: s.Mode, FailurePolicy: s.FailurePolicy, Native: s.IncludeNative, Told: []string{}}
	if s.TimeoutMs != nil {
		out.Milliseconds = *s.TimeoutMs
	}
	for category, selection := range s.Content {
		out.Told = append(out.Told, category+": "+string(selection))
	}
	slices.Sort(out.Told)
	if s.Upload != nil {
		out.Upload = s.Upload.Endpoint
	}
	return out
}

// credentialNames names what a refers to; it holds no credential itself.
func credentialNames(a *ahp.Authentication) (out []string) {
	if a == nil {
		return nil
	}
	for _, r := range []struct{ name, ref string }{{"variable", a.TokenEnv}, {"token", a.TokenRef}, {"client", a.ClientID}, {"client secret", a.ClientSecretRef}} {
		if r.ref != "" {
			out = append(out, r.name+" "+r.ref)
		}
	}
	return out
}

func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// isIn reports whether word, as seen from dir, names something in the project: a word
// with a slash, or the name of a file that is there.
func isIn(project, dir, word string) bool {
	if _, value, is := strings.Cut(word, "="); is && strings.HasPrefix(word, "-") {
		word = value
	}
	path := within(dir, word)
	if rel, err := filepath.Rel(project, path); err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return false
	}
	_, err := readSmall(path)
	return strings.Contains(word, "/") || err == nil
}

// text shows the file to the person who is to trust it.
func (t *trustShown) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nSHA-256 %s\n", short(t.Path, 4096), t.SHA256)
	for i := range t.Backends {
		s := &t.Backends[i]
		fmt.Fprintf(&b, "\nbackend %s\n", short(s.ID, 200))
		if len(s.Runs) > 0 {
			var words []string
			for _, w := range s.Runs {
				words = append(words, fmt.Sprintf("%q", short(w, 1000)))
			}
			fmt.Fprintf(&b, "  runs      %s\n  in        %s\n", strings.Join(words, " "), short(s.Dir, 1000))
		} else {
			fmt.Fprintf(&b, "  asks      %s\n", short(s.URL, 1000))
		}
		if s.InProject {
			b.WriteString("  careful   what it runs lies in the project: it can change, and is not asked about again\n")
		}
		for _, c := range s.Credentials {
			fmt.Fprintf(&b, "  proves    itself with the %s\n", short(c, 200))
		}
		for j := range s.Subscriptions {
			s.Subscriptions[j].write(&b)
		}
	}
	if len(t.Backends) == 0 {
		b.WriteString("\nIt registers nothing.\n")
	}
	b.WriteString("\n")
	for _, w := range t.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", short(w, 1000))
	}
	return b.String()
}

func (s *subscriptionShown) write(b *strings.Builder) {
	events := short(strings.Join(s.Events, ", "), 1000)
	if s.Mode == ahp.ModeIntercept {
		fmt.Fprintf(b, "  decides   about %s, within %d ms; without an answer: %s\n", events, s.Milliseconds, s.FailurePolicy)
	} else {
		fmt.Fprintf(b, "  is told   of %s\n", events)
	}
	fmt.Fprintf(b, "            and sees %s\n", short(strings.Join(s.Told, ", "), 1000))
	if s.Native {
		b.WriteString("            and what the agent itself sends\n")
	}
	if s.Upload != "" {
		fmt.Fprintf(b, "            and gets attachments at %s\n", short(s.Upload, 1000))
	}
}
