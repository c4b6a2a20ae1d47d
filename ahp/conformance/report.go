package conformance

import (
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/abhed/abhed/internal/strictjson"
)

// Report is what a run came to.
type Report struct {
	Claim Claim `json:"claim"`
	// Peer says what was tested, without credentials.
	Peer string `json:"peer"`
	// Results are in the order of the checks.
	Results []Result `json:"results"`
	// Unexercised names the requirements that bind the role and that no check
	// looked at in this run.
	Unexercised []string `json:"unexercised"`
	// Stderr is the end of what the peer wrote to standard error, without secrets.
	Stderr string `json:"stderr,omitempty"`
}

// Format is how a report is written.
type Format string

// The formats.
const (
	FormatText     Format = "text"
	FormatJSON     Format = "json"
	FormatJUnit    Format = "junit"
	FormatMarkdown Format = "markdown"
)

// newReport puts a report together.
func newReport(pl plan, revision, peer string, results []Result, known Baseline) *Report {
	known.apply(results)
	return &Report{
		Claim: claim(pl.role, revision, pl.binding, results, pl.only != nil), Peer: peer, Results: results,
		Unexercised: unexercised(pl.role, pl.binding, results),
	}
}

// OK reports whether the run has neither an unexpected failure nor a stale entry
// of the baseline.
func (r *Report) OK() bool {
	n := r.outcomes()
	return n[OutcomeUnexpectedFail] == 0 && n[OutcomeStale] == 0
}

// SuiteErrors returns the checks that came to no verdict for a fault of the suite.
func (r *Report) SuiteErrors() []string {
	var out []string
	for i := range r.Results {
		if r.Results[i].Verdict == SuiteError {
			out = append(out, r.Results[i].ID)
		}
	}
	return out
}

// Find returns the result of a check, or nil.
func (r *Report) Find(id string) *Result {
	for i := range r.Results {
		if r.Results[i].ID == id {
			return &r.Results[i]
		}
	}
	return nil
}

func (r *Report) outcomes() map[Outcome]int {
	n := map[Outcome]int{}
	for i := range r.Results {
		n[r.Results[i].Outcome]++
	}
	return n
}

func (r *Report) verdicts() map[Verdict]int {
	n := map[Verdict]int{}
	for i := range r.Results {
		n[r.Results[i].Verdict]++
	}
	return n
}

// Write writes the report to w. The order is that of the checks, and two runs with
// equal verdicts differ in nothing but measured times and what the peer said.
func (r *Report) Write(w io.Writer, f Format) error {
	var text []byte
	var err error
	switch f {
	case FormatText, "":
		text = []byte(r.text())
	case FormatJSON:
		if text, err = strictjson.Marshal(r); err == nil {
			text = append(text, '\n')
		}
	case FormatJUnit:
		text, err = r.junit()
	case FormatMarkdown:
		text = []byte(r.markdown())
	default:
		return fmt.Errorf("conformance: format %q, expected text, json, junit or markdown", f)
	}
	if err != nil {
		return fmt.Errorf("conformance: the report can't be written as %s: %w", f, err)
	}
	_, err = w.Write(text)
	return err
}

// summary is the last line of a report for people.
func (r *Report) summary() string {
	v, o := r.verdicts(), r.outcomes()
	return fmt.Sprintf("%d passed, %d failed (%d of them blocked, %d as the baseline says), %d warnings, %d not applicable, %d stale, %d suite errors",
		v[Pass], v[Fail]+v[Blocked], v[Blocked], o[OutcomeExpectedFail], v[Warn], v[NotApplicable], o[OutcomeStale], v[SuiteError])
}

// verdictOf is a verdict with its outcome where that says more.
func verdictOf(r *Result) string {
	switch r.Outcome {
	case OutcomeExpectedFail, OutcomeStale:
		return string(r.Verdict) + " (" + string(r.Outcome) + ")"
	}
	return string(r.Verdict)
}

func (r *Report) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, protocol %s, as a %s over %s\n\n", r.Peer, r.Claim.Revision, r.Claim.Role, bindingsOf(r.Claim))
	for i := range r.Results {
		res := &r.Results[i]
		if res.Verdict == NotApplicable {
			continue
		}
		fmt.Fprintf(&b, "%-14s %-28s %s\n", verdictOf(res), res.ID, strings.Join(res.Requirements, " "))
		if res.Reason != "" {
			fmt.Fprintf(&b, "%15s%s\n", "", res.Reason)
		}
		if res.Expected != "" {
			fmt.Fprintf(&b, "%15sbaseline: %s\n", "", res.Expected)
		}
		if res.Verdict == Pass {
			continue // what proves it is in the other formats
		}
		for _, l := range res.Proven() {
			fmt.Fprintf(&b, "%15s%s\n", "", l.display(maxShown))
		}
	}
	b.WriteString("\n")
	for _, p := range r.Claim.Profiles {
		fmt.Fprintf(&b, "profile %-22s %s\n", p.Profile, p.status())
	}
	fmt.Fprintf(&b, "claim: %s\n", r.claimText())
	if len(r.Unexercised) > 0 {
		fmt.Fprintf(&b, "requirements not exercised: %s\n", strings.Join(r.Unexercised, " "))
	}
	if r.Stderr != "" && !r.OK() {
		fmt.Fprintf(&b, "the peer's standard error ends:\n%s\n", indent(r.Stderr))
	}
	b.WriteString(r.summary() + "\n")
	return b.String()
}

func indent(s string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n  ")
}

// maxShown is how much of a line the report for people shows.
const maxShown = 400

// display is a line as a person reads it, of about limit bytes.
func (l Line) display(limit int) string {
	arrow := map[Direction]string{ToPeer: "→", FromPeer: "←", Happened: "·"}[l.Direction]
	text, size := l.Text, ""
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "") + "…"
	}
	if l.Bytes > limit {
		size = fmt.Sprintf(" (%d bytes)", l.Bytes)
	}
	return fmt.Sprintf("%d.%d %s %s%s", l.Connection, l.Number, arrow, text, size)
}

func (p ProfileClaim) status() string {
	if p.Met {
		return fmt.Sprintf("met, with %d warnings", p.Warned)
	}
	if len(p.Broken) == 0 && p.Blocked == 0 {
		return "not shown: nothing passed"
	}
	s := "not met: " + strings.Join(p.Broken, " ")
	if p.Blocked > 0 {
		s += fmt.Sprintf(" (%d blocked)", p.Blocked)
	}
	return s
}

func bindingsOf(c Claim) string {
	var names []string
	for _, b := range c.Bindings {
		names = append(names, string(b))
	}
	return strings.Join(names, ", ")
}

// claimText is the claim as its peer may publish it.
func (r *Report) claimText() string {
	switch {
	case r.Claim.Partial:
		return "none (only some checks were run)"
	case !r.Claim.Holds:
		return "none (it takes base, a binding and a capability profile)"
	}
	var met []string
	for _, p := range r.Claim.Profiles {
		if p.Met {
			met = append(met, string(p.Profile))
		}
	}
	return fmt.Sprintf("AHP %s, role %s, bindings %s, profiles %s", r.Claim.Revision, r.Claim.Role, bindingsOf(r.Claim), strings.Join(met, ", "))
}

func (r *Report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# AHP conformance: %s\n\n", markdownCell(r.Peer))
	fmt.Fprintf(&b, "%s.\n\nClaim: %s\n\n", r.summary(), r.claimText())
	b.WriteString("| check | requirements | level | verdict | reason |\n|---|---|---|---|---|\n")
	for i := range r.Results {
		res := &r.Results[i]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", res.ID, strings.Join(res.Requirements, ", "), res.Level, verdictOf(res), markdownCell(res.Reason))
	}
	b.WriteString("\n| profile | |\n|---|---|\n")
	for _, p := range r.Claim.Profiles {
		fmt.Fprintf(&b, "| %s | %s |\n", p.Profile, p.status())
	}
	if len(r.Unexercised) > 0 {
		fmt.Fprintf(&b, "\nRequirements not exercised: %s\n", strings.Join(r.Unexercised, ", "))
	}
	for i := range r.Results {
		if res := &r.Results[i]; len(res.Proof) > 0 && res.Verdict != Pass {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n\n%s", res.ID, markdownCell(res.Reason), listing(res))
		}
	}
	b.WriteString(r.passed())
	return b.String()
}

// passed shows what proves the passes, each in a block that is closed at first.
func (r *Report) passed() string {
	var b strings.Builder
	for i := range r.Results {
		res := &r.Results[i]
		if res.Verdict != Pass || len(res.Proof) == 0 {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("\n## What passed\n")
		}
		fmt.Fprintf(&b, "\n<details><summary><code>%s</code>: %s</summary>\n\n%s\n</details>\n", res.ID, html.EscapeString(res.About), listing(res))
	}
	return b.String()
}

// listing is the lines that prove a verdict as code. Nothing in it is markup: each
// is one line, and indented.
func listing(res *Result) string {
	var b strings.Builder
	for _, l := range res.Proven() {
		fmt.Fprintf(&b, "    %s\n", l.display(maxLineText))
	}
	return b.String()
}

// markdownCell keeps what a peer said from becoming markup.
func markdownCell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;", "`", "'", "[", "\\[").Replace(s)
}
