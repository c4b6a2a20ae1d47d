package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/adapter"
	"github.com/abhed/abhed/internal/hookd"
	"github.com/abhed/abhed/internal/hooklog"
	"github.com/abhed/abhed/internal/strictjson"
	"github.com/abhed/abhed/internal/trust"
)

// newExplain is "ahp explain".
func newExplain(sys system) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "explain [ID]",
		Short: "Tell everything about one decision",
		Long: `Print who was asked about one event, what each answered and in which time, what came of
it, how the agent was told, and what to change if it should come out otherwise. ID is the
event's, as "ahp log" shows it, or the beginning of only one; without it, the newest
decision that kept something from happening is explained: a refusal, or a question.

AHP_HOME takes the place of the home folder. Exit codes: 0 done, 1 there is no such
decision, 2 wrong use or a beginning of several ids, 3 the log can't be read.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("explain: found %d arguments, expected the ID of one decision, which \"ahp log\" shows, or none", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return explainNewest(sys, asJSON)
			}
			return runExplain(sys, args[0], asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// explained is the result in JSON.
type explained struct {
	Decision *hooklog.Entry `json:"decision"`
	// Files tells how the registration files are now.
	Files []fileNow `json:"files"`
	// Advice says what to change, most important first.
	Advice []string `json:"advice"`
}

// fileNow is a registration file of a decision.
type fileNow struct {
	Path string `json:"path"`
	// Now is "same", "changed" or "gone".
	Now string `json:"now"`
}

func runExplain(sys system, id string, asJSON bool) error {
	dir, err := sys.logDir()
	if err != nil {
		return err
	}
	if id == "" {
		return failWith(exitUsage, errors.New("explain: found an empty id, expected one of \"ahp log\""))
	}
	e, err := hooklog.Find(dir, id)
	switch {
	case errors.Is(err, hooklog.ErrNotFound):
		return failWith(exitNegative, fmt.Errorf("explain: %q is no decision in %s: older ones are removed when the log grows beyond its bound", id, dir))
	case errors.Is(err, hooklog.ErrAmbiguous):
		return failWith(exitUsage, fmt.Errorf("explain: %w: give more of the id", err))
	case err != nil:
		return failWith(exitFailed, err)
	}
	return sys.explain(e, asJSON)
}

// explainNewest explains the newest decision that a person is likely to ask about; the
// canaries of "ahp doctor" are none.
func explainNewest(sys system, asJSON bool) error {
	dir, err := sys.logDir()
	if err != nil {
		return err
	}
	list, err := hooklog.Last(dir, 1, func(e *hooklog.Entry) bool {
		return (e.Decision == hooklog.Deny || e.Decision == hooklog.Ask) && e.Tool != hookd.CanaryDeny && e.Tool != hookd.CanaryPass
	})
	switch {
	case len(list) > 0: // a damaged line elsewhere is for "ahp verify"
		return sys.explain(list[0], asJSON)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return failWith(exitFailed, err)
	}
	return failWith(exitNegative, fmt.Errorf("explain: nothing was refused or asked about in %s", dir))
}

func (sys system) explain(e *hooklog.Entry, asJSON bool) error {
	x := &explained{Decision: e, Files: filesNow(e)}
	x.Advice = x.advise()
	if asJSON {
		return sys.printJSON(x)
	}
	return sys.print(x.text())
}

func filesNow(e *hooklog.Entry) []fileNow {
	out := []fileNow{}
	for _, s := range e.Registration {
		now := fileNow{Path: s.Path, Now: "changed"}
		data, err := readSmall(s.Path)
		switch {
		case err != nil:
			now.Now = "gone"
		case trust.Sum(data) == s.SHA256:
			now.Now = "same"
		}
		out = append(out, now)
	}
	return out
}

// readSmall reads a regular file of the size that a registration may have.
func readSmall(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: found %s, expected a regular file", path, info.Mode().Type())
	}
	if info.Size() > maxRegistration {
		return nil, fmt.Errorf("%s: found %d bytes, expected a registration of at most %d", path, info.Size(), maxRegistration)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return bounded(f, path)
}

// maxRegistration bounds a registration file in bytes, as package ahpconfig does.
const maxRegistration = 4 << 20

// advise says what to change.
func (x *explained) advise() []string {
	e := x.Decision
	advice := []string{}
	add := func(format string, args ...any) { advice = append(advice, fmt.Sprintf(format, args...)) }
	if e.Problem != "" {
		add("Put right what went wrong in the check itself: %s. \"ahp doctor %s\" looks at the rest.", strings.TrimSuffix(short(e.Problem, 1000), "."), short(e.Host, 32))
	}
	files := strings.Join(x.paths(), ", ")
	for i := range e.Answers {
		a := &e.Answers[i]
		switch {
		case a.Failure != nil && a.Policy == string(ahp.FailClosed):
			add("%s could not be asked (%s), and its subscription %d is fail-closed: make it answer, or change the subscription in %s.", short(a.Backend, 64), short(a.Failure.Class, 32), a.Subscription, or(files, "the registration"))
		case a.Failure != nil:
			add("%s could not be asked (%s), and its subscription %d is fail-open, so that it had no say: make it answer.", short(a.Backend, 64), short(a.Failure.Class, 32), a.Subscription)
		case holds(a, ahp.EffectAsk):
			add("%s wants a person to decide; the protocol's question has no reason, so which rule asks stands in the policy of that backend.", short(a.Backend, 64))
		case holds(a, ahp.EffectDeny):
			add("%s denied it: change the policy of that backend, or do something that it accepts.", short(a.Backend, 64))
		}
	}
	if e.Applied == hooklog.AppliedStoodIn {
		add("%s can't do at %s what the backends wanted, so it was refused instead: \"ahp hosts %[1]s\" shows what it can.", short(e.Host, 32), short(or(e.Native, string(e.Type)), 40))
	}
	if e.Repeat > 0 {
		add("This very call was denied %s before: the agent repeats itself and may need to be told otherwise.", times(e.Repeat))
	}
	if e.Duplicate {
		add("The agent delivered this event more than once: the hook may be installed in two scopes (\"ahp doctor %s\").", short(e.Host, 32))
	}
	for _, file := range e.Untrusted {
		add("%s had no say, because nobody has trusted it: read it, and run \"ahp trust\" in its project if it may decide.", short(file, 400))
	}
	for _, f := range x.Files {
		if f.Now != "same" {
			add("%s is %s since this decision: \"ahp replay\" tells what would be decided now.", f.Path, f.Now)
		}
	}
	return advice
}

func (x *explained) paths() (out []string) {
	for _, f := range x.Files {
		out = append(out, f.Path)
	}
	return out
}

// holds reports whether an answer holds an effect of the type.
func holds(a *hooklog.Answer, wanted ahp.EffectType) bool {
	for _, raw := range a.Effects {
		var effect struct {
			Type ahp.EffectType `json:"type"`
		}
		if err := strictjson.Unmarshal(raw, &effect, strictjson.Options{}); err == nil && effect.Type == wanted {
			return true
		}
	}
	return false
}

// text returns x for people.
func (x *explained) text() string {
	var b strings.Builder
	e := x.Decision
	field := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-14s%s\n", name, value)
		}
	}
	field("id", short(e.ID, 200))
	field("time", localTime(e.Time)+" ("+short(e.Time, 40)+")")
	field("agent", short(e.Host+" "+or(e.HostVersion, "(version unknown)"), 80))
	field("event", short(strings.Join(both(string(e.Type), e.Native), ", natively "), 120))
	field("tool", short(e.Tool, 120))
	field("session", short(e.Session, 200))
	field("turn", short(e.Turn, 200))
	call := short(e.Call, 200)
	if e.CallSynthesized {
		call += " (the agent gives none)"
	}
	field("call", call)
	field("judged", fmt.Sprintf("%s in %d ms", or(short(e.Mode, 40), "somewhere"), e.Milliseconds))
	for i, f := range x.Files {
		field("registration", fmt.Sprintf("%s (%s now), SHA-256 %s", short(f.Path, 400), f.Now, short(e.Registration[i].SHA256, 64)))
	}
	b.WriteString("\n")
	for i := range e.Answers {
		writeAnswer(&b, &e.Answers[i])
	}
	if len(e.Answers) == 0 {
		b.WriteString("Nobody was asked.\n")
	}
	if e.Problem != "" {
		fmt.Fprintf(&b, "The check itself failed: %s\n", short(e.Problem, 4000))
	}
	fmt.Fprintf(&b, "\nDecision: %s", short(string(e.Decision), 40))
	if e.Applied != "" {
		fmt.Fprintf(&b, " (%s)", short(e.Applied, 400))
	}
	b.WriteString("\n")
	if e.Reason != "" {
		fmt.Fprintf(&b, "Reason: %s\n", indent(adapter.Clean(e.Reason)))
	}
	field("Code:", short(e.Code, 200))
	switch {
	case len(e.Event) > 0:
		fmt.Fprintf(&b, "\nThe event, without what looks like a secret:\n%s\n", adapter.Printable(string(e.Event)))
	case e.Omitted != "":
		fmt.Fprintf(&b, "\nThe event isn't in the log: %s.\n", short(e.Omitted, 200))
	}
	if len(x.Advice) > 0 {
		b.WriteString("\nWhat to change:\n")
	}
	for _, a := range x.Advice {
		fmt.Fprintf(&b, "- %s\n", a)
	}
	return b.String()
}

func both(list ...string) (out []string) {
	for _, s := range list {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}

func indent(s string) string { return strings.ReplaceAll(s, "\n", "\n  ") }

func writeAnswer(b *strings.Builder, a *hooklog.Answer) {
	fmt.Fprintf(b, "%s, subscription %d, ", short(a.Backend, 80), a.Subscription)
	switch {
	case a.Failure != nil:
		fmt.Fprintf(b, "failed after %d ms, so %s applied: %s: %s\n", a.Milliseconds, short(a.Policy, 40), short(a.Failure.Class, 40), short(a.Failure.Detail, 1000))
	case a.Kind != ahp.AnswerEffects:
		fmt.Fprintf(b, "%s after %d ms\n", short(string(a.Kind), 40), a.Milliseconds)
	case len(a.Effects) == 0:
		fmt.Fprintf(b, "had no objection after %d ms\n", a.Milliseconds)
	default:
		fmt.Fprintf(b, "answered after %d ms:\n", a.Milliseconds)
		for _, effect := range a.Effects {
			fmt.Fprintf(b, "  %s\n", short(string(effect), 4000))
		}
	}
}
