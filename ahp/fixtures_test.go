package ahp_test

import (
	"encoding/csv"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

// indexRow is one line of the fixtures' index.
type indexRow struct {
	file, kind, context string
	valid               bool
}

func fixtureRows(t testing.TB) (dir string, rows []indexRow) {
	t.Helper()
	dir = filepath.Join(require.Shared(t), "fixtures", "ahp")
	data, err := os.ReadFile(filepath.Join(dir, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	r := csv.NewReader(strings.NewReader(string(data)))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = '\t', true, -1
	all, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all[1:] {
		rows = append(rows, indexRow{file: f[0], valid: f[1] == "valid", kind: f[2], context: f[4]})
	}
	if len(rows) < 80 {
		t.Fatalf("the index has %d rows", len(rows))
	}
	return dir, rows
}

// judge decodes one fixture as what it is.
func judge(row indexRow, data []byte) error {
	switch row.kind {
	case "registration":
		_, err := ahp.DecodeRegistration(data)
		return err
	case "intercept-response", "intercept-no-effect-response", "intercept-deny-response", "json-rpc-message":
		p, err := ahp.Peek(data)
		if err != nil {
			return err
		}
		effects, err := ahp.DecodeEffectsReply(data, p.ID)
		if row.kind == "intercept-deny-response" && len(effects) != 1 && err == nil {
			return errors.New("not exactly one deny")
		}
		return err
	}
	_, err := ahp.DecodeRequest(data)
	return err
}

func TestFixtures(t *testing.T) {
	dir, rows := fixtureRows(t)
	for _, row := range rows {
		if strings.Contains(row.file, "multiline") || row.context != "" {
			continue // a matter of framing, or of the boundary: the transport's and the harness's tests hold them
		}
		t.Run(row.file, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(dir, row.file))
			if err != nil {
				t.Fatal(err)
			}
			err = judge(row, data)
			if (err == nil) != row.valid {
				t.Fatalf("valid %v, got %v", row.valid, err)
			}
			var e *ahp.Error
			if errors.As(err, &e) && (e.Offset < 0 || e.Offset > int64(len(data)) || e.Found == "" || e.Expected == "" || e.Requirement == "") {
				t.Errorf("incomplete error: %+v", e)
			}
			if err == nil && (row.kind == "observe-notification" || row.kind == "intercept-request" || row.kind == "any") {
				roundTrip(t, data)
			}
		})
	}
}

// roundTrip checks that what decodes encodes to the same JSON value.
func roundTrip(t *testing.T, data []byte) {
	t.Helper()
	q, err := ahp.DecodeRequest(data)
	if err != nil {
		t.Fatal(err)
	}
	out, err := q.Encode()
	if err != nil {
		t.Fatal(err)
	}
	a, _ := strictjson.Canonical(data)
	b, _ := strictjson.Canonical(out)
	if diff := cmp.Diff(string(a), string(b)); diff != "" {
		t.Errorf("round trip (-in +out):\n%s", diff)
	}
}
