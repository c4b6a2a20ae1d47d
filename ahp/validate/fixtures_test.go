package validate_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/validate"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

func shared(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(require.Shared(t), "fixtures", "ahp", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestFixtures judges every row of the index as the row says, in its context.
func TestFixtures(t *testing.T) {
	r := csv.NewReader(strings.NewReader(string(shared(t, "INDEX.tsv"))))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = '\t', true, 6
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) < 80 {
		t.Fatalf("the index has %d rows", len(rows))
	}
	kinds := map[validate.Kind]int{}
	for _, row := range rows[1:] {
		file, valid, kind, context := row[0], row[1] == "valid", validate.Kind(row[2]), row[4]
		kinds[kind]++
		t.Run(file, func(t *testing.T) {
			var opts validate.Options
			if context != "" {
				if opts.Response, err = validate.DecodeResponseContext([]byte(context)); err != nil {
					t.Fatal(err)
				}
			}
			judge := validate.Message
			if strings.HasSuffix(file, ".jsonl") {
				judge = validate.Lines
			}
			data := shared(t, file)
			got, err := judge(data, kind, opts)
			if err != nil {
				t.Fatal(err)
			}
			if got.Valid() != valid {
				t.Fatalf("want valid %v, got %+v", valid, got.Findings)
			}
			for _, f := range append(got.Findings, got.Warnings...) {
				if f.Found == "" || f.Expected == "" || f.Layer == "" || f.Offset < 0 || f.Offset > int64(len(data)) {
					t.Errorf("incomplete: %+v", f)
				}
			}
			if kind != validate.Any && !strings.HasPrefix(file, "stdio/") && valid && context == "" {
				sameByAny(t, data, kind)
			}
		})
	}
	for _, k := range []validate.Kind{validate.InterceptResponse, validate.InterceptDenyResponse, validate.InterceptNoEffectResponse, validate.ObserveNotification, validate.Registration} {
		if kinds[k] == 0 {
			t.Errorf("no row of the kind %s", k)
		}
	}
}

// sameByAny holds that a valid text is recognised for what it is.
func sameByAny(t *testing.T, data []byte, kind validate.Kind) {
	t.Helper()
	got, err := validate.Message(data, validate.Any, validate.Options{})
	if err != nil || !got.Valid() {
		t.Fatalf("as any: %+v, %v", got, err)
	}
	if kind == validate.InterceptDenyResponse || kind == validate.InterceptNoEffectResponse {
		kind = validate.InterceptResponse
	}
	if got.Kind != kind {
		t.Errorf("taken for %s", got.Kind)
	}
}

// catalogueRow is one row of the interop suite's catalogue-scenarios.json.
type catalogueRow struct {
	ID       string          `json:"id"`
	Category string          `json:"category"`
	Steps    []catalogueStep `json:"steps"`
	Expected struct {
		Sent          []ahp.Raw `json:"sent"`
		Registrations []ahp.Raw `json:"registrations"`
		Deliveries    []ahp.Raw `json:"deliveries"`
	} `json:"expected"`
}

type catalogueStep struct {
	Op           string  `json:"op"`
	Message      ahp.Raw `json:"message"`
	Registration ahp.Raw `json:"registration"`
	Requirements ahp.Raw `json:"requirements"`
	Context      ahp.Raw `json:"context"`
}

// TestCatalogue runs the rows in the order of the file through one stream.
func TestCatalogue(t *testing.T) {
	var file struct {
		Scenarios []catalogueRow `json:"scenarios"`
	}
	if err := strictjson.Unmarshal(shared(t, "interop/catalogue-scenarios.json"), &file, strictjson.Options{}); err != nil {
		t.Fatal(err)
	}
	if len(file.Scenarios) < 28 {
		t.Fatalf("only %d rows", len(file.Scenarios))
	}
	stream := validate.NewStream(ahp.LineageOptions{})
	for _, row := range file.Scenarios {
		t.Run(row.ID, func(t *testing.T) { runCatalogueRow(t, stream, &row) })
	}
}

func runCatalogueRow(t *testing.T, stream *validate.Stream, row *catalogueRow) {
	sent, registrations, deliveries := []ahp.Raw{}, []ahp.Raw{}, []ahp.Raw{}
	for _, step := range row.Steps {
		switch step.Op {
		case "notify", "rawNotify":
			message := step.Message
			if step.Op == "notify" {
				// What a harness sends went through the types.
				q, err := ahp.DecodeRequest(step.Message)
				if err != nil {
					t.Fatal(err)
				}
				if message, err = q.Encode(); err != nil {
					t.Fatal(err)
				}
			}
			sent = append(sent, message)
			deliveries = append(deliveries, encode(t, stream.Judge(compact(t, message))))
		case "register":
			registrations = append(registrations, encode(t, map[string]bool{"accepted": register(t, &step)}))
		default:
			t.Fatalf("unknown step %q", step.Op)
		}
	}
	same(t, "sent", sent, row.Expected.Sent)
	same(t, "registrations", registrations, row.Expected.Registrations)
	same(t, "deliveries", deliveries, row.Expected.Deliveries)
}

// register judges the registration of a step in its context.
func register(t *testing.T, step *catalogueStep) bool {
	t.Helper()
	context := map[string]ahp.Raw{}
	if err := strictjson.Unmarshal(step.Context, &context, strictjson.Options{}); err != nil {
		t.Fatal(err)
	}
	context["requirements"] = step.Requirements
	c, err := validate.DecodeRegistrationContext(encode(t, context))
	if err != nil {
		t.Fatal(err)
	}
	r, err := validate.Message(step.Registration, validate.Registration, validate.Options{Registration: c})
	if err != nil {
		t.Fatal(err)
	}
	return r.Valid()
}

func same(t *testing.T, what string, got, want []ahp.Raw) {
	t.Helper()
	if g, w := encode(t, got), encode(t, want); !strictjson.Equal(g, w) {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}

func encode(t *testing.T, v any) ahp.Raw {
	t.Helper()
	b, err := strictjson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func compact(t *testing.T, raw ahp.Raw) []byte {
	t.Helper()
	b, err := strictjson.Canonical(raw)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
