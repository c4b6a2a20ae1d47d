package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/ahpconfig"
	"github.com/abhed/abhed/internal/backends/rules"
	"github.com/abhed/abhed/internal/hooklog"
)

// newReplay is "ahp replay".
func newReplay(sys system) *cobra.Command {
	var o replayOptions
	c := &cobra.Command{
		Use:   "replay [FILE]…",
		Short: "Judge recorded events by another registration, and show what would change",
		Long: `Ask the backends of another registration about every recorded event that can be decided,
in order, and print which decisions would be another. FILE is a file of the decision log,
a folder with one, or the record of an Abhed session; without FILE it is this account's
decision log. --rules judges by a file of rules, as "ahp backend rules" does, alone or
behind --registration. Observers are told of nothing; interceptors are asked as if the
event happened now, and may do what they do then.

A decision changes if it becomes another one of pass, ask, deny, rewrite and answer, or
if it stays a rewrite or an answer with other effects. For an agent that can't do what
the backends want, the decision is what would stand in for it. Of an Abhed record only
what its backends said is compared: its rules and extensions are "abhed record verify
--rules". What the log scrubbed is judged as it stands there.

AHP_HOME takes the place of the home folder. Exit codes: 0 nothing changes, 1 something
does, 2 wrong use or configuration, 3 a file can't be read, a backend failed, or the
replay was interrupted.`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), sys, args) },
	}
	c.Flags().StringVar(&o.registration, "registration", "", "registration `FILE` to judge by")
	c.Flags().StringVar(&o.rules, "rules", "", "`FILE` of rules to judge by")
	c.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	return c
}

type replayOptions struct {
	registration, rules string
	json                bool
}

// replayed is the result in JSON.
type replayed struct {
	// Judged counts the events that were judged again, Failures those of which a
	// backend failed.
	Judged   int `json:"judged"`
	Failures int `json:"failures"`
	// Changed holds what would be decided otherwise, at most maxChanges of it; More counts
	// the others.
	Changed []change `json:"changed"`
	More    int      `json:"more,omitzero"`
	// Skipped counts what was not judged, by why.
	Skipped map[string]int `json:"skipped"`
	// Interrupted tells that not all was judged.
	Interrupted bool `json:"interrupted,omitzero"`
}

// maxChanges bounds what is kept to be printed.
const maxChanges = 10_000

// change is one decision that would be another.
type change struct {
	ID     string           `json:"id"`
	Time   string           `json:"time"`
	Host   string           `json:"host"`
	Tool   string           `json:"tool,omitzero"`
	Before hooklog.Decision `json:"before"`
	After  hooklog.Decision `json:"after"`
	// Why is the reason of the new decision, WhyBefore that of the recorded one.
	Why       string `json:"why"`
	WhyBefore string `json:"whyBefore,omitzero"`
}

func (o *replayOptions) run(ctx context.Context, sys system, files []string) (err error) {
	if len(files) == 0 {
		dir, err := sys.logDir()
		if err != nil {
			return err
		}
		files = []string{dir}
	}
	p, err := o.player(sys)
	if err != nil {
		return err
	}
	defer func() {
		if bad := p.close(); err == nil && bad != nil {
			err = failWith(exitFailed, bad)
		}
	}()
	out := &replayed{Changed: []change{}, Skipped: map[string]int{}}
	for _, file := range files {
		err := eachRecorded(file, func(r *recorded) error { return out.judge(ctx, p, r) })
		if errors.Is(err, context.Canceled) {
			out.Interrupted = true
			break
		}
		if err != nil {
			return err
		}
	}
	return sys.conclude(out, o.json)
}

// player returns what judges by the registration and the rules that were given.
func (o *replayOptions) player(sys system) (*player, error) {
	if o.registration == "" && o.rules == "" {
		return nil, failWith(exitUsage, errors.New("replay: expected --registration or --rules: what to judge by"))
	}
	loaded := &ahpconfig.Loaded{Registration: &ahp.Registration{ProtocolVersion: ahp.Version}}
	if o.registration != "" {
		var err error
		if loaded, err = sys.registration(o.registration); err != nil {
			return nil, err
		}
	}
	p := &player{wire: &wire{sys: sys, loaded: loaded, once: true, said: map[string]bool{}}, reg: loaded.Registration, tables: map[string]*table{}}
	if o.rules == "" {
		return p, p.scrubber()
	}
	doc, err := rules.ReadFile(o.rules)
	if err != nil {
		return nil, failWith(exitUsage, err)
	}
	home := or(sys.getenv("AHP_HOME"), accountHome())
	b, warnings, err := rules.New(doc, rules.Options{Home: home, Getenv: sys.getenv})
	if err != nil {
		return nil, failWith(exitUsage, err)
	}
	for _, w := range warnings {
		fmt.Fprintln(sys.stderr, w)
	}
	if slices.ContainsFunc(loaded.Registration.Hooks, func(b ahp.Backend) bool { return b.ID == rulesID }) {
		return nil, failWith(exitUsage, fmt.Errorf("%s: found the backend %s, which is the name of --rules here", o.registration, rulesID))
	}
	p.addRules(b)
	return p, p.scrubber()
}

// judge judges one recorded event again.
func (out *replayed) judge(ctx context.Context, p *player, r *recorded) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if r.skip != "" {
		out.Skipped[r.skip]++
		return nil
	}
	now, err := p.decide(ctx, r)
	if err != nil {
		return err
	}
	out.Judged++
	if now.failed {
		out.Failures++
	}
	if now.decision == r.decision && (r.kindOnly || slices.Equal(now.effects, r.effects)) {
		return nil
	}
	if len(out.Changed) == maxChanges {
		out.More++
		return nil
	}
	why := now.why
	if now.decision == r.decision {
		why = "the same decision with other effects: " + why
	}
	out.Changed = append(out.Changed, change{ID: r.event.ID, Time: r.event.Time, Host: r.host, Tool: toolName(r.event), Before: r.decision, After: now.decision, Why: why, WhyBefore: r.why})
	return nil
}

func toolName(e *ahp.Event) string {
	if e.Tool == nil {
		return ""
	}
	return e.Tool.Name
}

func (out *replayed) code() int {
	switch {
	case out.Interrupted || out.Failures > 0:
		return exitFailed
	case len(out.Changed) > 0:
		return exitNegative
	}
	return exitOK
}

// text returns out for people.
func (out *replayed) text() string {
	var b strings.Builder
	for _, c := range out.Changed {
		fmt.Fprintf(&b, "%s  %s  %-12s %-16s %s -> %s", localTime(c.Time), short(c.ID, 64), short(c.Host, 16), short(c.Tool, 32), c.Before, c.After)
		if c.Why != "" {
			fmt.Fprintf(&b, "  %s", short(c.Why, 300))
		}
		b.WriteByte('\n')
		if c.WhyBefore != "" {
			fmt.Fprintf(&b, "    before: %s\n", short(c.WhyBefore, 300))
		}
	}
	if out.More > 0 {
		fmt.Fprintf(&b, "and more: %d\n", out.More)
	}
	fmt.Fprintf(&b, "judged: %d, would change: %d", out.Judged, len(out.Changed)+out.More)
	if out.Failures > 0 {
		fmt.Fprintf(&b, ", with a backend that failed: %d, which says nothing about its policy", out.Failures)
	}
	b.WriteByte('\n')
	var whys []string
	for why := range out.Skipped {
		whys = append(whys, why)
	}
	slices.Sort(whys)
	for _, why := range whys {
		fmt.Fprintf(&b, "not judged: %d: %s\n", out.Skipped[why], why)
	}
	if out.Interrupted {
		b.WriteString("interrupted: not all was judged\n")
	}
	return b.String()
}
