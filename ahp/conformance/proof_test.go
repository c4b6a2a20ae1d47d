package conformance_test

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp/conformance"
)

// secrets are the tokens that the suite gives to peers, or is given.
var secrets = regexp.MustCompile(regexp.QuoteMeta(token) + "|conform-[0-9a-f]{24}")

// proven holds that each verdict has the lines that it was seen from, within the
// bounds, that they are in the reports that promise them, and no secret is.
func proven(t *testing.T, r *conformance.Report) {
	t.Helper()
	var page, object, text bytes.Buffer
	err := errors.Join(r.Write(&page, conformance.FormatMarkdown), r.Write(&object, conformance.FormatJSON), r.Write(&text, conformance.FormatText))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []*bytes.Buffer{&page, &object, &text} {
		if found := secrets.FindString(b.String()); found != "" {
			t.Errorf("a report holds the secret %s", found)
		}
	}
	for i := range r.Results {
		res := &r.Results[i]
		most := 12
		switch res.Verdict {
		case conformance.Pass:
			most = 24
		case conformance.Fail, conformance.Warn:
		default:
			continue
		}
		lines := res.Proven()
		if len(lines) == 0 || len(lines) != len(res.Proof) || len(lines) > most || len(res.Transcript) > 120 {
			t.Errorf("%s: %s: %d lines for the proof %v, %d lines in all", res.ID, res.Verdict, len(lines), res.Proof, len(res.Transcript))
		}
		last := 0
		for _, l := range res.Transcript {
			if l.Number <= last || len(l.Text) > 1<<10+len("…") || strings.ContainsAny(l.Text, "\n\r") {
				t.Errorf("%s: line %d comes after %d, or has %d bytes, or isn't one", res.ID, l.Number, last, len(l.Text))
			}
			last = l.Number
		}
		for _, l := range lines {
			// A long line is cut at a character, so that its very end isn't compared.
			if start := l.Text[:len(l.Text)*3/4]; !strings.Contains(page.String(), start) {
				t.Errorf("%s: line %d isn't in the Markdown", res.ID, l.Number)
			}
		}
	}
}

// TestPassIsShown: what proves a pass is the message, what came of it, and not just
// any line; the report for people stays short.
func TestPassIsShown(t *testing.T) {
	r := run(t, "none", conformance.HTTP, options())
	shown := r.Find("method.unknown").Proven()
	if len(shown) < 2 || shown[0].Direction != conformance.ToPeer || !strings.Contains(shown[len(shown)-1].Text, "-32601") {
		t.Errorf("method.unknown: %+v", shown)
	}
	var text, page bytes.Buffer
	if err := errors.Join(r.Write(&text, conformance.FormatText), r.Write(&page, conformance.FormatMarkdown)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text.String(), "→") || !strings.Contains(page.String(), "<details><summary><code>method.unknown</code>") {
		t.Error("the text shows what proves a pass, or the page doesn't")
	}
	h, err := judged(t, programs(t), "none", conformance.HTTP, "deny", "bearer.sent", "registration.version")
	if err != nil {
		t.Fatal(err)
	}
	e, err := judged(t, programs(t), "none", conformance.StdioPerEvent, "stdio.environment", "stdio.per-event")
	if err != nil {
		t.Fatal(err)
	}
	h.Results = append(h.Results, e.Results...)
	for id, wants := range map[string][]string{
		"stdio.environment":    {"the variables of its environment: "},
		"stdio.per-event":      {`"method":"hooks/intercept"`, "the end of its standard input"},
		"deny":                 {`"method":"hooks/intercept"`, `"type":"deny"`, "the command ended: exit code 0", "files that are there: call000 call002"},
		"bearer.sent":          {"Authorization: the registered token"},
		"registration.version": {`registration {`, "files that are there: of no call"},
	} {
		all := ""
		for _, l := range h.Find(id).Proven() {
			all += l.Text + "\n"
		}
		for _, want := range wants {
			if !strings.Contains(all, want) {
				t.Errorf("%s: %q is in no line that proves it:\n%s", id, want, all)
			}
		}
	}
}
