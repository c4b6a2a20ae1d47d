package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

// taskSchema is the argument schema of the tool in the interop suite.
const taskSchema = `{"type":"object","properties":{"task":{"type":"integer","minimum":1}}}`

// scenario is one row of the interop suite's scenarios.json.
type scenario struct {
	ID           string             `json:"id"`
	Request      ahp.Raw            `json:"request"`
	Response     ahp.Raw            `json:"response"`
	Tags         []string           `json:"tags"`
	Expected     map[string]ahp.Raw `json:"expected"`
	ExpectError  bool               `json:"expectError"`
	HostExpected map[string]ahp.Raw `json:"hostExpected"`
}

// interop returns the rows, and the command's output for each.
func interop(t *testing.T, args ...string) ([]scenario, []map[string]ahp.Raw) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(require.Shared(t), "fixtures", "ahp", "interop", "scenarios.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Scenarios []scenario `json:"scenarios"`
	}
	if err := strictjson.Unmarshal(data, &file, strictjson.Options{}); err != nil {
		t.Fatal(err)
	}
	if len(file.Scenarios) < 60 {
		t.Fatalf("only %d rows", len(file.Scenarios))
	}
	var in strings.Builder
	for _, s := range file.Scenarios {
		// The whole row: what isn't for this command is ignored.
		line, err := strictjson.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		in.Write(line)
		in.WriteByte('\n')
	}
	got := runAHP(t, in.String(), append([]string{"evaluate"}, args...)...)
	if got.code != exitOK || got.stderr != "" {
		t.Fatalf("%+v", got)
	}
	var out []map[string]ahp.Raw
	for line := range strings.Lines(got.stdout) {
		var m map[string]ahp.Raw
		if err := strictjson.Unmarshal([]byte(strings.TrimSuffix(line, "\n")), &m, strictjson.Options{}); err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	if len(out) != len(file.Scenarios) {
		t.Fatalf("%d lines for %d rows", len(out), len(file.Scenarios))
	}
	return file.Scenarios, out
}

// TestInterop holds every row of the interop suite: exactly the members that it
// expects, with exactly those values.
func TestInterop(t *testing.T) {
	schema := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(schema, []byte(taskSchema), 0o600); err != nil {
		t.Fatal(err)
	}
	rows, got := interop(t, "--tool-schema", schema)
	for i := range rows {
		s, line := &rows[i], got[i]
		t.Run(s.ID, func(t *testing.T) {
			if id, _ := strictjson.Marshal(s.ID); string(line["id"]) != string(id) {
				t.Errorf("the line of %s", line["id"])
			}
			delete(line, "id")
			if s.ExpectError && s.HostExpected == nil {
				checkRejection(t, s, line)
				return
			}
			want := s.Expected
			if s.HostExpected != nil {
				want = s.HostExpected
				if string(line["hostRefused"]) != "true" {
					t.Errorf("hostRefused is %s", line["hostRefused"])
				}
				delete(line, "hostRefused")
			}
			for name, value := range want {
				if !strictjson.Equal(line[name], value) {
					t.Errorf("%s: got %s, want %s", name, line[name], value)
				}
			}
			for name, value := range line {
				if _, wanted := want[name]; !wanted {
					t.Errorf("%s is there: %s", name, value)
				}
			}
		})
	}
}

func checkRejection(t *testing.T, s *scenario, line map[string]ahp.Raw) {
	t.Helper()
	if string(line["rejected"]) != "true" || len(line["error"]) < 3 || len(line) != 3 {
		t.Fatalf("not rejected: %v", line)
	}
	if layer := strings.Trim(string(line["layer"]), `"`); !strings.Contains(strings.Join(s.Tags, " "), layer+"-invalid") {
		t.Errorf("rejected as %s: %s; the row says %v", layer, line["error"], s.Tags)
	}
}

// TestInteropWithoutSchema holds that the protocol alone accepts what only the
// host's own check refuses.
func TestInteropWithoutSchema(t *testing.T) {
	rows, got := interop(t)
	refused := 0
	for i := range rows {
		if rows[i].HostExpected == nil {
			continue
		}
		refused++
		if string(got[i]["executed"]) != "true" || got[i]["hostRefused"] != nil || got[i]["rejected"] != nil {
			t.Errorf("%s: %v", rows[i].ID, got[i])
		}
	}
	if refused == 0 {
		t.Error("no row is for the host's own check")
	}
}
