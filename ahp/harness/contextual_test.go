package harness_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

// fixtureContext is the boundary at which a response of the fixtures is judged.
type fixtureContext struct {
	Event   ahp.EventType      `json:"event"`
	Current map[string]ahp.Raw `json:"current"`
	// Mode and Action are of a result of an elicitation.
	Mode   string `json:"mode"`
	Action string `json:"action"`
}

// TestContextualFixtures judges the responses whose validity depends on the
// boundary.
func TestContextualFixtures(t *testing.T) {
	dir := filepath.Join(require.Shared(t), "fixtures", "ahp")
	data, err := os.ReadFile(filepath.Join(dir, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	r := csv.NewReader(strings.NewReader(string(data)))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = '\t', true, -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	judged := 0
	for _, row := range rows[1:] {
		if row[4] == "" {
			continue
		}
		t.Run(row[0], func(t *testing.T) {
			var c fixtureContext
			if err := strictjson.Unmarshal([]byte(row[4]), &c, strictjson.Options{}); err != nil {
				t.Fatal(err)
			}
			reply, err := os.ReadFile(filepath.Join(dir, row[0]))
			if err != nil {
				t.Fatal(err)
			}
			e := eventOf(t, &c)
			p, err := ahp.Peek(reply)
			if err != nil {
				t.Fatal(err)
			}
			e.ID, _ = p.ID.Value()
			judged++
			_, err = harness.Evaluate(&ahp.Intercept{Event: e, Capabilities: *ahptest.FullCapabilities(c.Event)}, reply)
			if (err == nil) != (row[1] == "valid") {
				t.Errorf("want %s, got %v", row[1], err)
			}
		})
	}
	if judged < 7 {
		t.Errorf("only %d rows were judged", judged)
	}
}

// eventOf returns an event whose editable value is the context's.
func eventOf(t *testing.T, c *fixtureContext) *ahp.Event {
	t.Helper()
	e := ahptest.ToolAfter("e", "")
	switch c.Event {
	case ahp.ToolAfter:
		e.Items.Messages = messagesOf(t, c.Current["output"])
	case ahp.UserMessageOutbound:
		e = &ahp.Event{ID: "e", Source: e.Source, Type: c.Event, Time: e.Time,
			Message: &ahp.UserMessage{Channel: "c", Messages: messagesOf(t, c.Current["content"])}}
	case ahp.UserElicitationResult:
		text := `{"action":"` + c.Action + `"}`
		if c.Action == "accept" {
			text = `{"action":"accept","content":` + string(c.Current["content"]) + `}`
		}
		part := ahp.TextPart("p", text)
		e = &ahp.Event{ID: "e", Source: e.Source, Type: c.Event, Time: e.Time, ParentEventID: "asked",
			Elicitation: &ahp.Elicitation{Server: "s", Mode: c.Mode, Action: c.Action, Result: &part}}
	default:
		t.Fatalf("no event for %s", c.Event)
	}
	return e
}

func messagesOf(t *testing.T, raw ahp.Raw) []ahp.Message {
	t.Helper()
	m, err := ahp.DecodeMessages(raw)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
