package app_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/internal/model/modeltest"
)

// TestAnswersFitTheSchema sends the schema of the answer with every request, and has
// the model answer again until its answer fits.
func TestAnswersFitTheSchema(t *testing.T) {
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`
	w := newWorld(t, modeltest.Turn{Text: `{"n":"seven"}`}, modeltest.Turn{Text: `{"n":7}`})
	w.opts.JSONSchema = w.put(filepath.Join(w.home, "schema.json"), schema)
	w.opts.Quiet = true
	r := w.run(t.Context())
	requests := w.server.Requests()
	if r.code != 0 || r.out != "{\"n\":7}\n" || len(requests) != 2 {
		t.Fatalf("exit %d, said %q, %d requests: %s", r.code, r.out, len(requests), r.err)
	}
	for _, q := range requests {
		if format := string(q.Params["response_format"]); !strings.Contains(format, `"integer"`) {
			t.Errorf("response_format is %s", format)
		}
	}
	if again := strings.Join(sent(requests[1]), "\n"); !strings.Contains(again, "doesn't fit the JSON Schema") {
		t.Errorf("the second request:\n%s", again)
	}

	bad := modeltest.Turn{Text: "not JSON"}
	w = newWorld(t, bad, bad, bad, modeltest.Turn{Text: "never"})
	w.opts.JSONSchema = w.put(filepath.Join(w.home, "schema.json"), schema)
	if r := w.run(t.Context()); r.code != 1 || w.server.Left() != 1 || !strings.Contains(r.err, "JSON Schema") {
		t.Errorf("exit %d, %d turns left: %s", r.code, w.server.Left(), r.err)
	}
	for text, says := range map[string]string{`{"type":"array"}`: `expected "object"`, `{"type":`: "not JSON", `{"type":"object","properties":{"a":{"$ref":"#/nowhere"}}}`: "can't be used"} {
		w.opts.JSONSchema = w.put(filepath.Join(w.home, "schema.json"), text)
		if r := w.run(t.Context()); r.code != 2 || !strings.Contains(r.err, says) {
			t.Errorf("%s: exit %d, %s", text, r.code, r.err)
		}
	}
}
