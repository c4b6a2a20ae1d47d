package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/conformance"
)

// broken returns the report of a run over HTTP of a backend with a mutation.
func broken(t *testing.T, check string, only []string, baseline string) *conformance.Report {
	t.Helper()
	opts := options()
	opts.Only = only
	var err error
	if opts.Baseline, err = conformance.ParseBaseline(baseline); err != nil {
		t.Fatal(err)
	}
	return run(t, check, conformance.HTTP, opts)
}

// TestBaseline: the four outcomes, and what the run makes of them.
func TestBaseline(t *testing.T) {
	only := []string{"version.supported", "method.unknown"}
	tests := map[string]struct {
		mutation, baseline string
		ok                 bool
		outcomes           map[string]conformance.Outcome
	}{
		"nothing fails": {"none", "", true, map[string]conformance.Outcome{"method.unknown": conformance.OutcomePass}},
		"unexpected":    {"method.unknown", "", false, map[string]conformance.Outcome{"method.unknown": conformance.OutcomeUnexpectedFail, "answer": conformance.OutcomePass}},
		"expected":      {"method.unknown", "# known\nmethod.unknown\tfixed in 2.0\n", true, map[string]conformance.Outcome{"method.unknown": conformance.OutcomeExpectedFail}},
		"stale":         {"none", "method.unknown fixed in 2.0", false, map[string]conformance.Outcome{"method.unknown": conformance.OutcomeStale}},
		"stale beside an expected one": {"method.unknown", "method.unknown x\nversion.supported y", false, map[string]conformance.Outcome{
			"method.unknown": conformance.OutcomeExpectedFail, "version.supported": conformance.OutcomeStale}},
		"what an expected failure blocks": {"answer", "answer is being rewritten", true, map[string]conformance.Outcome{
			"answer": conformance.OutcomeExpectedFail, "method.unknown": conformance.OutcomeExpectedFail}},
		"a warning isn't a failure": {"version.supported", "", true, map[string]conformance.Outcome{"version.supported": conformance.OutcomePass}},
		"a warning may be listed":   {"version.supported", "version.supported later", true, map[string]conformance.Outcome{"version.supported": conformance.OutcomeExpectedFail}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := broken(t, tt.mutation, only, tt.baseline)
			if r.OK() != tt.ok {
				t.Errorf("OK is %v", r.OK())
			}
			for id, want := range tt.outcomes {
				if got := r.Find(id).Outcome; got != want {
					t.Errorf("%s: %s, expected %s", id, got, want)
				}
			}
		})
	}
}

func TestBaselineRefuses(t *testing.T) {
	for name, text := range map[string]string{"no reason": "answer\n", "twice": "answer a\nanswer b\n"} {
		if b, err := conformance.ParseBaseline(text); err == nil {
			t.Errorf("%s: %v", name, b)
		}
	}
	opts := options()
	opts.Baseline = conformance.Baseline{"no.such.check": "x"}
	if _, err := conformance.Backend(t.Context(), target(t, "none", conformance.HTTP), opts); err == nil || !strings.Contains(err.Error(), "no.such.check") {
		t.Errorf("%v", err)
	}
}

// TestFormats: each format names each check, in the same order both times.
func TestFormats(t *testing.T) {
	r := broken(t, "method.unknown", nil, "method.unknown known since spring")
	for _, f := range []conformance.Format{conformance.FormatText, conformance.FormatJSON, conformance.FormatJUnit, conformance.FormatMarkdown} {
		var first, second bytes.Buffer
		if err := errors.Join(r.Write(&first, f), r.Write(&second, f)); err != nil {
			t.Fatal(err)
		}
		if first.String() != second.String() {
			t.Errorf("%s isn't the same twice", f)
		}
		last := -1
		for _, res := range r.Results {
			if res.Verdict == conformance.NotApplicable && f == conformance.FormatText {
				continue
			}
			at := strings.Index(first.String(), marked(f, res.ID))
			if at < last {
				t.Errorf("%s: %s is missing or out of order", f, res.ID)
			}
			last = max(last, at)
		}
	}
	if err := r.Write(&bytes.Buffer{}, "pdf"); err == nil {
		t.Error("an unknown format is written")
	}
}

// marked is how a check's id stands in a format.
func marked(f conformance.Format, id string) string {
	switch f {
	case conformance.FormatJSON:
		return fmt.Sprintf(`"id":%q`, id)
	case conformance.FormatJUnit:
		return fmt.Sprintf(`name=%q`, id)
	case conformance.FormatMarkdown:
		return "| `" + id + "` |"
	}
	return " " + id + " "
}

func TestJSON(t *testing.T) {
	r := broken(t, "method.unknown", nil, "")
	var b bytes.Buffer
	if err := r.Write(&b, conformance.FormatJSON); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Claim   conformance.Claim
		Results []conformance.Result
	}
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(back.Results, func(res conformance.Result) bool { return res.ID == "method.unknown" })
	got := back.Results[i]
	if got.Verdict != conformance.Fail || len(got.Proven()) < 2 || got.Proven()[0].Direction != conformance.ToPeer || back.Claim.Holds {
		t.Errorf("%+v", got)
	}
}

// TestJUnit reads the report as a CI system does, and counts.
func TestJUnit(t *testing.T) {
	for mutation, baseline := range map[string]string{"method.unknown": "", "answer": "", "none": "answer stale"} {
		r := broken(t, mutation, nil, baseline)
		var b bytes.Buffer
		if err := r.Write(&b, conformance.FormatJUnit); err != nil {
			t.Fatal(err)
		}
		var suite struct {
			XMLName  xml.Name `xml:"testsuite"`
			Tests    int      `xml:"tests,attr"`
			Failures int      `xml:"failures,attr"`
			Errors   int      `xml:"errors,attr"`
			Skipped  int      `xml:"skipped,attr"`
			Cases    []struct {
				Name    string  `xml:"name,attr"`
				Class   string  `xml:"classname,attr"`
				Time    float64 `xml:"time,attr"`
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		}
		d := xml.NewDecoder(&b)
		d.Strict = true
		if err := d.Decode(&suite); err != nil {
			t.Fatalf("%s: %v", mutation, err)
		}
		failures, skipped, unexpected := 0, 0, 0
		for _, c := range suite.Cases {
			if c.Failure != nil {
				failures++
				if c.Failure.Message == "" {
					t.Errorf("%s: %s fails without a message", mutation, c.Name)
				}
			}
			if c.Skipped != nil {
				skipped++
			}
		}
		for _, res := range r.Results {
			if res.Outcome == conformance.OutcomeUnexpectedFail || res.Outcome == conformance.OutcomeStale {
				unexpected++
			}
		}
		if suite.Tests != len(r.Results) || suite.Tests != len(suite.Cases) || suite.Failures != failures || failures != unexpected || suite.Skipped != skipped || suite.Errors != 0 || failures == 0 {
			t.Errorf("%s: %d tests, %d failures (%d, %d), %d skipped (%d)", mutation, suite.Tests, suite.Failures, failures, unexpected, suite.Skipped, skipped)
		}
	}
}

// TestSecrets: a peer that tells everything it knows doesn't get a secret into a
// report.
func TestSecrets(t *testing.T) {
	r := broken(t, "auth.echo", nil, "")
	if r.Find("auth.echo").Verdict != conformance.Fail {
		t.Fatal("the token isn't given away, so this test shows nothing")
	}
	leak := target(t, "stdio.output", conformance.StdioPersistent)
	leak.Env = append(leak.Env, "MY_API_KEY=k3y-of-the-backend")
	// The command's own arguments are no secrets; the backend repeats a value of its
	// environment on both streams.
	leak.Command = []string{"/bin/sh", "-c", `echo "$MY_API_KEY"; echo "$MY_API_KEY" >&2; exit 1`}
	s, err := conformance.Backend(t.Context(), leak, options())
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.Stderr, "[redacted]") {
		t.Errorf("standard error %q", s.Stderr)
	}
	for _, report := range []*conformance.Report{r, s} {
		for _, f := range []conformance.Format{conformance.FormatText, conformance.FormatJSON, conformance.FormatJUnit, conformance.FormatMarkdown} {
			var b bytes.Buffer
			if err := report.Write(&b, f); err != nil {
				t.Fatal(err)
			}
			for _, secret := range []string{token, "k3y-of-the-backend"} {
				if strings.Contains(b.String(), secret) {
					t.Errorf("%s holds %q", f, secret)
				}
			}
		}
	}
}

// TestNoPeer: what can't be started or reached is no verdict.
func TestNoPeer(t *testing.T) {
	for name, target := range map[string]conformance.Target{
		"a command that isn't there": {Command: []string{"/no/such/backend"}},
		"nobody listens":             {URL: "http://" + freeAddress(t)},
		"no URL":                     {URL: "ftp://127.0.0.1"},
	} {
		r, err := conformance.Backend(t.Context(), target, options())
		var peer *conformance.PeerError
		if !errors.As(err, &peer) || r != nil {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
}

func TestWrongUse(t *testing.T) {
	good := target(t, "none", conformance.HTTP)
	for name, tt := range map[string]struct {
		target conformance.Target
		change func(*conformance.Options)
	}{
		"no target":           {conformance.Target{}, nil},
		"two targets":         {conformance.Target{Command: []string{"x"}, URL: "http://x"}, nil},
		"a token for stdio":   {conformance.Target{Command: []string{"x"}, Token: "x"}, nil},
		"a lifecycle of HTTP": {conformance.Target{URL: "http://x", PerEvent: true}, nil},
		"an unknown check":    {good, func(o *conformance.Options) { o.Only = []string{"no.such"} }},
		"an unknown profile":  {good, func(o *conformance.Options) { o.Profiles = []conformance.Profile{"gold"} }},
		"an observed event":   {good, func(o *conformance.Options) { o.Events = []ahp.EventType{ahp.TurnEnd} }},
		"input of a text":     {good, func(o *conformance.Options) { o.DenyInput = ahp.Raw(`"ls"`) }},
	} {
		opts := options()
		if tt.change != nil {
			tt.change(&opts)
		}
		_, err := conformance.Backend(t.Context(), tt.target, opts)
		var peer *conformance.PeerError
		if err == nil || errors.As(err, &peer) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCancel: the end of the context ends a run, and leaves nothing behind.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	opts := options()
	opts.OnResult = func(*conformance.Result) { cancel() }
	if _, err := conformance.Backend(ctx, target(t, "none", conformance.StdioPersistent), opts); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestProfiles: what isn't claimed isn't held against the peer, and isn't claimed.
func TestProfiles(t *testing.T) {
	opts := options()
	opts.Profiles = []conformance.Profile{conformance.ProfileBase, conformance.ProfileHTTP}
	r := run(t, "effects.narrow", conformance.HTTP, opts)
	if got := r.Find("effects.narrow"); got.Verdict != conformance.NotApplicable || r.Claim.Holds || !r.OK() {
		t.Errorf("%s, %+v", got.Verdict, r.Claim)
	}
	if !slices.Contains(r.Unexercised, "AHP-CAP-001") {
		t.Errorf("not exercised: %v", r.Unexercised)
	}
}

// TestPages: a web server that is no backend at all is told so, and quickly.
func TestPages(t *testing.T) {
	s := httptest.NewServer(http.FileServer(http.Dir(".")))
	defer s.Close()
	r, err := conformance.Backend(t.Context(), conformance.Target{URL: s.URL}, options())
	if err != nil {
		t.Fatal(err)
	}
	if r.OK() || r.Find("answer").Verdict != conformance.Fail || r.Find("effects.full").BlockedBy != "answer" {
		t.Errorf("%+v", r.Find("answer"))
	}
}

// A test of one's own backend.
func ExampleBackend() {
	r, err := conformance.Backend(context.Background(), conformance.Target{Command: []string{"/no/such/backend"}}, conformance.Options{
		DenyInput: ahp.Raw(`{"command":"rm -rf /"}`),
	})
	if err != nil {
		var peer *conformance.PeerError
		fmt.Println("not started:", errors.As(err, &peer))
		return
	}
	r.Write(os.Stdout, conformance.FormatText)
	// Output: not started: true
}
