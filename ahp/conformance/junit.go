package conformance

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// junitSuite is the element that the readers of CI systems agree on.
type junitSuite struct {
	XMLName   xml.Name    `xml:"testsuite"`
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Time      string      `xml:"time,attr"`
	Cases     []junitCase `xml:"testcase"`
	SystemOut string      `xml:"system-out,omitempty"`
	SystemErr string      `xml:"system-err,omitempty"`
}

type junitCase struct {
	Class   string      `xml:"classname,attr"`
	Name    string      `xml:"name,attr"`
	Time    string      `xml:"time,attr"`
	Failure *junitText  `xml:"failure"`
	Error   *junitText  `xml:"error"`
	Skipped *junitText  `xml:"skipped"`
	Out     *junitLines `xml:"system-out"`
}

type junitText struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Body    string `xml:",chardata"`
}

type junitLines struct {
	Body string `xml:",chardata"`
}

// junit returns the report as JUnit XML. What the baseline expects to fail, and
// what isn't applicable, is skipped; a stale entry is a failure; a warning is in
// the case's output.
func (r *Report) junit() ([]byte, error) {
	s := junitSuite{Name: "ahp " + string(r.Claim.Role) + " " + bindingsOf(r.Claim), SystemOut: r.claimText(), SystemErr: printable(r.Stderr)}
	var total float64
	for i := range r.Results {
		res := &r.Results[i]
		total += res.Elapsed.Seconds()
		c := junitCase{Class: "ahp." + string(res.Role) + "." + string(res.Profile), Name: res.ID, Time: fmt.Sprintf("%.3f", res.Elapsed.Seconds())}
		text := &junitText{Message: printable(res.Reason), Type: string(res.Verdict), Body: printable(proofText(res))}
		switch {
		case res.Verdict == SuiteError:
			c.Error = text
			s.Errors++
		case res.Outcome == OutcomeStale:
			text.Message, text.Type = "the baseline says that this fails, and it passes: remove its line", string(OutcomeStale)
			c.Failure = text
			s.Failures++
		case res.Outcome == OutcomeUnexpectedFail:
			c.Failure = text
			s.Failures++
		case res.Outcome == OutcomeExpectedFail:
			c.Skipped = &junitText{Message: printable("expected to fail: " + res.Expected)}
			s.Skipped++
		case res.Verdict == NotApplicable, res.Verdict == Blocked:
			c.Skipped = &junitText{Message: printable(res.Reason)}
			s.Skipped++
		case res.Reason != "":
			c.Out = &junitLines{Body: printable(string(res.Verdict) + ": " + res.Reason + "\n" + proofText(res))}
		}
		s.Cases = append(s.Cases, c)
	}
	s.Tests, s.Time = len(s.Cases), fmt.Sprintf("%.3f", total)
	b, err := xml.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, err
	}
	return append([]byte(xml.Header), append(b, '\n')...), nil
}

func proofText(r *Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s\n", r.Level, strings.Join(r.Requirements, " "), r.About)
	for _, l := range r.Proven() {
		b.WriteString(l.display(maxLineText) + "\n")
	}
	return b.String()
}

// printable drops what XML 1.0 can't hold.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\t' || c == 0xFFFE || c == 0xFFFF {
			return '\uFFFD'
		}
		return c
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
