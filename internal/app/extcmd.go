package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/abhed/abhed/internal/control"
	"github.com/abhed/abhed/internal/event"
	"github.com/abhed/abhed/internal/extension"
	"github.com/abhed/abhed/internal/gate"
	"github.com/abhed/abhed/internal/strictjson"
)

// ExtList starts the configured extensions, asks for their tools, and prints the state
// of each. It exits with 1 if one of them is dead.
func ExtList(ctx context.Context, o SettingsOptions, asJSON bool, sys System) int {
	e, notes, err := overheard(ctx, o, sys)
	if err != nil {
		return sys.fail(ExitUsage, err)
	}
	defer e.close()
	if err := e.startExtensions(ctx); err != nil {
		return sys.fail(ExitUsage, err)
	}
	c := &conversation{e: e}
	list := c.Extensions()
	if asJSON {
		b, err := strictjson.Marshal(extensionList{list})
		if err != nil {
			return sys.fail(ExitFailure, err)
		}
		fmt.Fprintf(sys.Stdout, "%s\n", b)
	} else {
		printExtensions(sys, e.o.loaded, list)
	}
	notes.print(sys)
	if slices.ContainsFunc(list, func(x control.Extension) bool { return x.State != extension.StateStarted }) {
		return ExitNegative
	}
	return ExitOK
}

type extensionList struct {
	Extensions []control.Extension `json:"extensions"`
}

func printExtensions(sys System, l *loaded, list []control.Extension) {
	if len(list) == 0 {
		fmt.Fprintln(sys.Stdout, "No extension is configured.")
	}
	for i, x := range list {
		c := l.Extensions[i]
		events := "all events"
		if len(c.Events) > 0 {
			events = strings.Join(c.Events, ", ")
		}
		fmt.Fprintf(sys.Stdout, "%s  %s  pid %d  %d calls, median %.1f ms, worst %.1f ms\n", gate.Visible(x.Name), x.State, x.Pid, x.Calls, x.MedianMS, x.WorstMS)
		fmt.Fprintf(sys.Stdout, "    command     %s\n", gate.Visible(strings.Join(append([]string{c.Command}, c.Args...), " ")))
		fmt.Fprintf(sys.Stdout, "    asked about %s; when it fails: %s; sandbox: %t\n", events, cmp.Or(c.OnFailure, string(extension.Skip)), c.Sandbox)
		if len(x.Tools) > 0 {
			fmt.Fprintf(sys.Stdout, "    tools       %s\n", gate.Visible(strings.Join(x.Tools, ", ")))
		}
		if x.LastError != "" {
			fmt.Fprintf(sys.Stdout, "    last error  %s\n", gate.Visible(x.LastError))
		}
	}
}

// overheard is an engine without session, and what its parts say of themselves.
func overheard(ctx context.Context, o SettingsOptions, sys System) (*engine, *notes, error) {
	l, err := loadSettings(o, sys)
	if err != nil {
		return nil, nil, err
	}
	n := &notes{}
	e, err := sessionless(ctx, l, sys, n.hear)
	return e, n, err
}

// notes collects what the parts of an engine without session say of themselves.
type notes struct {
	mu   sync.Mutex
	text strings.Builder
}

func (n *notes) hear(d event.Draft) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	st := newStory(&n.text)
	st.tell(event.Event{Payload: d.Payload})
	return nil
}

func (n *notes) print(sys System) {
	n.mu.Lock()
	defer n.mu.Unlock()
	fmt.Fprint(sys.Stderr, n.text.String())
}

// ExtTestOptions is one test of an extension.
type ExtTestOptions struct {
	SettingsOptions
	Name string
	// Tool and Args make the sample call; empty means a harmless bash call.
	Tool, Args string
	// NoInvoke leaves the extension's own tools alone.
	NoInvoke bool
	JSON     bool
}

// ExtTest sends an extension every event with sample data and prints the replies. It
// exits with 1 if something would be wrong in a session.
func ExtTest(ctx context.Context, o ExtTestOptions, sys System) int {
	l, err := loadSettings(o.SettingsOptions, sys)
	if err != nil {
		return sys.fail(ExitUsage, err)
	}
	e, err := sessionless(ctx, l, sys, nil)
	if err != nil {
		return sys.fail(ExitUsage, err)
	}
	defer e.close()
	configs := e.extensionConfigs()
	i := slices.IndexFunc(configs, func(c extension.Config) bool { return c.Name == o.Name })
	if i < 0 {
		var names []string
		for _, c := range configs {
			names = append(names, c.Name)
		}
		return sys.fail(ExitUsage, fmt.Errorf("there is no extension %q; configured are: %s", o.Name, cmp.Or(strings.Join(names, ", "), "none")))
	}
	rep, err := extension.Test(ctx, configs[i], extension.TestOptions{Confine: e.confineExtension, Taken: builtinNames(), Tool: o.Tool, Args: []byte(o.Args), NoInvoke: o.NoInvoke})
	if err != nil {
		return sys.fail(ExitUsage, err)
	}
	if o.JSON {
		b, err := strictjson.Marshal(encodable(rep))
		if err != nil {
			return sys.fail(ExitFailure, err)
		}
		fmt.Fprintf(sys.Stdout, "%s\n", b)
	} else {
		printTrial(sys, rep)
	}
	if len(rep.Findings) > 0 {
		return ExitNegative
	}
	return ExitOK
}

// trialReport is the JSON form of what a test found.
type trialReport struct {
	Name      string          `json:"name"`
	Tools     []string        `json:"tools,omitempty"`
	Exchanges []trialExchange `json:"exchanges"`
	Findings  []trialFinding  `json:"findings"`
}

type trialExchange struct {
	Event      string   `json:"event"`
	About      string   `json:"about,omitempty"`
	Subscribed bool     `json:"subscribed"`
	Sent       string   `json:"sent"`
	Received   string   `json:"received"`
	MS         float64  `json:"ms"`
	Notes      []string `json:"notes,omitempty"`
}

type trialFinding struct {
	Event string `json:"event"`
	Text  string `json:"text"`
}

func encodable(rep *extension.Report) trialReport {
	out := trialReport{Name: rep.Name, Tools: rep.Tools, Exchanges: []trialExchange{}, Findings: []trialFinding{}}
	for _, x := range rep.Exchanges {
		out.Exchanges = append(out.Exchanges, trialExchange{x.Event, x.About, x.Subscribed, x.Sent, x.Received, milliseconds(x.Took), x.Notes})
	}
	for _, f := range rep.Findings {
		out.Findings = append(out.Findings, trialFinding{f.Event, f.Text})
	}
	return out
}

func printTrial(sys System, rep *extension.Report) {
	out := sys.Stdout
	for _, x := range rep.Exchanges {
		about := ""
		if x.About != "" {
			about = " (" + x.About + ")"
		}
		if !x.Subscribed {
			about += " (a session would not send it)"
		}
		fmt.Fprintf(out, "%s%s  %.1f ms\n  → %s\n", x.Event, about, milliseconds(x.Took), gate.Visible(x.Sent))
		fmt.Fprintf(out, "  ← %s\n", cmp.Or(gate.Visible(x.Received), "(no reply)"))
		for _, n := range x.Notes {
			fmt.Fprintf(out, "    %s\n", gate.Visible(n))
		}
	}
	if len(rep.Findings) == 0 {
		fmt.Fprintf(out, "\n%s: nothing is wrong\n", gate.Visible(rep.Name))
		return
	}
	fmt.Fprintf(out, "\n%s: %d findings\n", gate.Visible(rep.Name), len(rep.Findings))
	for _, f := range rep.Findings {
		fmt.Fprintf(out, "  %s: %s\n", cmp.Or(f.Event, "start or end"), gate.Visible(f.Text))
	}
}
