package conformance

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
)

// TestRequirements: the list holds the protocol's 26 ids and parts of those, and
// each line says something.
func TestRequirements(t *testing.T) {
	if _, err := parseRequirements(draftRequirements); err != nil {
		t.Fatal(err)
	}
	list := Requirements(ahp.Version)
	own := regexp.MustCompile(`^AHP-[A-Z]+-\d{3}$`)
	wholes := map[string]bool{}
	for _, r := range list {
		whole, _, part := strings.Cut(r.ID, ".")
		if !part {
			wholes[r.ID] = true
			if !own.MatchString(r.ID) {
				t.Errorf("%s isn't an id of the protocol", r.ID)
			}
		}
		if !wholes[whole] {
			t.Errorf("%s comes before %s, or without it", r.ID, whole)
		}
		if !slices.Contains([]Level{Must, MustNot, Should}, r.Level) || !slices.Contains([]string{"both", "backend", "harness"}, r.Role) ||
			!slices.Contains(profiles(), r.Profile) || !strings.HasPrefix(r.Section, "§") || !strings.HasSuffix(r.Text, ".") {
			t.Errorf("a column is wrong: %+v", r)
		}
	}
	if len(wholes) != 26 {
		t.Errorf("%d ids of the protocol, it has 26", len(wholes))
	}
	if Requirements("1999-01-01") != nil {
		t.Error("a revision that isn't there has requirements")
	}
}

func TestParseRequirementsRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"other columns": "id\tlevel\n",
		"few columns":   requirementColumns + "\nAHP-X-001\tMUST\n",
		"twice":         requirementColumns + strings.Repeat("\nA\tMUST\tboth\tbase\t§1\tText.", 2),
	} {
		if got, err := parseRequirements(text); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestChecks: every check names requirements of its role that are there, comes
// after what it depends on, and depends on nothing weaker than itself.
func TestChecks(t *testing.T) {
	known := map[string]Requirement{}
	for _, r := range Requirements(ahp.Version) {
		known[r.ID] = r
	}
	for _, role := range []Role{RoleBackend, RoleHarness} {
		seen := map[string]Check{}
		for _, c := range Checks(role) {
			if _, twice := seen[c.ID]; twice || c.ID == "" || c.About == "" || c.Role != role || len(c.Bindings) == 0 || len(c.Requirements) == 0 {
				t.Errorf("%q is there twice, or incomplete: %+v", c.ID, c)
			}
			for _, id := range c.Requirements {
				if r, is := known[id]; !is || !r.concerns(role) {
					t.Errorf("%s names %s, which is no requirement of a %s", c.ID, id, role)
				} else if c.Level != Should && r.Level == Should {
					t.Errorf("%s is a %s and names %s, which is a SHOULD", c.ID, c.Level, id)
				}
			}
			for _, d := range c.DependsOn {
				other, before := seen[d]
				if !before {
					t.Errorf("%s depends on %s, which doesn't come before it", c.ID, d)
				}
				if other.Level == Should && c.Level != Should {
					t.Errorf("%s, a %s, depends on %s, a SHOULD", c.ID, c.Level, d)
				}
			}
			seen[c.ID] = c
		}
	}
	if Checks("cook") != nil {
		t.Error("another role has checks")
	}
}

// TestBackendRequirementsHaveChecks: a requirement of ours that binds backends is
// looked at by some check.
func TestBackendRequirementsHaveChecks(t *testing.T) {
	met := map[string]bool{}
	for _, c := range Checks(RoleBackend) {
		for _, id := range c.Requirements {
			met[id] = true
		}
	}
	for _, r := range Requirements(ahp.Version) {
		if r.concerns(RoleBackend) && strings.Contains(r.ID, ".") && !met[r.ID] {
			t.Errorf("%s has no check: %s", r.ID, r.Text)
		}
	}
}

// TestSamples: every line is a valid event, and every type has one.
func TestSamples(t *testing.T) {
	lines := strings.Count(sampleEvents, "\n")
	if got := len(samples("")); got != lines {
		t.Errorf("%d of %d lines are JSON objects", got, lines)
	}
	for _, typ := range ahp.EventTypes() {
		if len(samples(typ)) == 0 {
			t.Errorf("no sample of %s", typ)
		}
		for _, event := range samples(typ) {
			raw, err := encode(event)
			if err == nil {
				_, err = ahp.DecodeEvent(raw)
			}
			if err != nil {
				t.Errorf("%s: %v", typ, err)
			}
			if !typ.Interceptable() {
				continue
			}
			m, err := made(intercepting("x", event, everything(event)), 0)
			if err == nil {
				err = m.check()
			}
			if err != nil {
				t.Errorf("%s with everything advertised: %v", typ, err)
			}
		}
	}
}

// TestOwnFaults: a message of the suite that isn't what it is meant to be is the
// suite's fault, whatever the peer makes of it.
func TestOwnFaults(t *testing.T) {
	e, err := newBackendEnv(Target{URL: "http://127.0.0.1"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]func() (message, error){
		"invalid and meant to be valid":   func() (message, error) { return e.request(0, drop("params.event.time")) },
		"valid and meant to break a rule": func() (message, error) { return e.request(ahp.KindShape) },
		"breaks another rule":             func() (message, error) { return e.request(ahp.KindVersion, drop("params.event.time")) },
	} {
		msg, err := m()
		if err != nil {
			t.Fatal(err)
		}
		if err := msg.check(); err == nil {
			t.Errorf("%s: no error", name)
		} else if r := (&probe{}).judge(Check{}, err); r.Verdict != SuiteError {
			t.Errorf("%s: verdict %s", name, r.Verdict)
		}
	}
}

func TestReadable(t *testing.T) {
	p := &probe{redact: func(s string) string { return strings.ReplaceAll(s, "secret", "[redacted]") }}
	got := p.readable([]byte("a\x00b\xff secret\n" + strings.Repeat("x", 2*maxLineText)))
	if strings.ContainsAny(got, "\x00\n") || strings.Contains(got, "secret") || len(got) > maxLineText+40 || !strings.HasPrefix(got, "a") {
		t.Errorf("%q", got)
	}
}
