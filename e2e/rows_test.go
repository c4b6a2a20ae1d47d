package e2e

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

// collected gathers the rows of runs that happen at the same time.
type collected struct {
	mu   sync.Mutex
	rows []Row
}

func (c *collected) add(r Row) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = append(c.rows, r)
}

// save writes the rows, beside those of the versions that were not run.
func (c *collected) save(t *testing.T) {
	t.Helper()
	if len(c.rows) == 0 {
		t.Log("nothing was measured, and nothing is written")
		return
	}
	path := filepath.Join(require.Root(t), "internal", "coverage", "measured.json")
	var old Measured
	if b, err := os.ReadFile(path); err == nil {
		if old, err = decode(b); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, encode(t, merge(old.Rows, c.rows)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// merge returns the new rows and those of the old that they don't replace, in
// order.
func merge(old, measured []Row) []Row {
	out := slices.Clone(measured)
	for _, r := range old {
		if !slices.ContainsFunc(measured, func(m Row) bool { return m.Host == r.Host && m.Version == r.Version }) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, compare)
	return out
}

func compare(a, b Row) int {
	place := func(r Row) int { return slices.Index(Scenarios(), Scenario(r.Scenario)) }
	return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Version, b.Version), cmp.Compare(place(a), place(b)), cmp.Compare(a.Policy, b.Policy))
}

// encode writes the document with a row per line, so that a diff shows cells.
func encode(t *testing.T, rows []Row) []byte {
	t.Helper()
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"schema\":%d,\"rows\":[", MeasuredSchema)
	for i, r := range rows {
		line, err := strictjson.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n")
		b.Write(line)
	}
	b.WriteString("\n]}\n")
	return b.Bytes()
}

// decode reads the document and holds it to its form.
func decode(b []byte) (Measured, error) {
	var m Measured
	if err := strictjson.Unmarshal(b, &m, strictjson.Options{RejectUnknown: true}); err != nil {
		return m, err
	}
	if m.Schema != MeasuredSchema {
		return m, fmt.Errorf("schema %d, want %d", m.Schema, MeasuredSchema)
	}
	for i, r := range m.Rows {
		_, err := time.Parse(time.DateOnly, r.Date)
		switch {
		case r.Host == "" || r.Version == "" || r.System == "" || r.Scope != "user" || err != nil:
			return m, fmt.Errorf("row %d: %+v: want a host, a version, a date, a system and the scope user", i, r)
		case !slices.Contains(Scenarios(), Scenario(r.Scenario)) || r.Policy != PolicyClosed && r.Policy != PolicyOpen:
			return m, fmt.Errorf("row %d: no scenario %q or policy %q", i, r.Scenario, r.Policy)
		case i > 0 && compare(m.Rows[i-1], r) >= 0:
			return m, fmt.Errorf("row %d: %+v is out of order, or there twice", i, r)
		}
	}
	return m, nil
}

// TestRows keeps the rows of other versions, replaces those that were measured,
// and refuses a document that is no such table.
func TestRows(t *testing.T) {
	row := func(host, version string, s Scenario, policy string, ran bool) Row {
		return Row{Host: host, Version: version, Date: "2026-11-30", System: "linux/amd64", Scenario: string(s), Policy: policy, Scope: "user", Ran: ran}
	}
	old := []Row{row("codex", "1", Deny, PolicyClosed, true), row("codex", "1", Hang, PolicyOpen, true), row("pi", "1", Deny, PolicyClosed, true)}
	fresh := []Row{row("codex", "2", Deny, PolicyClosed, false), row("codex", "1", Deny, PolicyOpen, false), row("codex", "1", Deny, PolicyClosed, false)}
	doc := encode(t, merge(old, fresh))
	m, err := decode(doc)
	if err != nil {
		t.Fatalf("%v in %s", err, doc)
	}
	want := []Row{fresh[2], fresh[1], fresh[0], old[2]}
	if !slices.Equal(m.Rows, want) {
		t.Errorf("got %+v\nwant %+v", m.Rows, want)
	}
	for _, bad := range []string{
		`{"schema":2,"rows":[]}`,
		`{"schema":1,"rows":[{"host":"pi","surprise":1}]}`,
		string(encode(t, []Row{old[0], old[0]})),
		string(encode(t, []Row{old[2], old[0]})),
		string(encode(t, []Row{row("pi", "1", "other", PolicyClosed, true)})),
		string(encode(t, []Row{row("pi", "1", Deny, "fail-sometimes", true)})),
		string(encode(t, []Row{row("", "1", Deny, PolicyClosed, true)})),
	} {
		if _, err := decode([]byte(bad)); err == nil {
			t.Errorf("accepted: %s", bad)
		}
	}
}

// TestMeasured holds the checked-in table to its form: whole for each version in
// it, and without a cell that is neither as it has to be nor excused.
func TestMeasured(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(require.Root(t), "internal", "coverage", "measured.json"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := decode(b)
	if err != nil {
		t.Fatal(err)
	}
	whole := map[string]int{}
	for _, r := range m.Rows {
		whole[r.Host+" "+r.Version]++
		for _, problem := range judge(&r, cell{Scenario(r.Scenario), r.Policy}, exceptions()) {
			t.Error(problem)
		}
	}
	for version, n := range whole {
		if want := 2 * len(Scenarios()); n != want {
			t.Errorf("%s has %d rows, want %d: run -update for it", version, n, want)
		}
	}
}
