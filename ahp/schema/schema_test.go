package schema_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/schema"
	"github.com/abhed/abhed/ahp/validate"
	"github.com/abhed/abhed/internal/require"
)

// compiled returns every schema, compiled; each is checked against the meta-schema
// of Draft 2020-12 on the way.
func compiled(t testing.TB) map[string]*jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	ids := map[string]string{}
	for _, name := range schema.Names() {
		data, err := schema.Read(name)
		if err != nil {
			t.Fatal(err)
		}
		doc := parse(t, data)
		object := doc.(map[string]any)
		if object["$schema"] != "https://json-schema.org/draft/2020-12/schema" {
			t.Errorf("%s: $schema is %v", name, object["$schema"])
		}
		id, _ := object["$id"].(string)
		if !strings.HasSuffix(id, "/"+ahp.Version+"/"+name+".json") {
			t.Errorf("%s: $id is %q", name, id)
		}
		ids[name] = id
		if err := c.AddResource(id, doc); err != nil {
			t.Fatal(err)
		}
	}
	out := map[string]*jsonschema.Schema{}
	for name, id := range ids {
		s, err := c.Compile(id)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = s
	}
	return out
}

func parse(t testing.TB, data []byte) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestNamesAreTheFiles(t *testing.T) {
	names, err := fs.Glob(schema.FS(), "*.json")
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, n := range schema.Names() {
		want = append(want, n+".json")
	}
	if !slices.Equal(names, want) {
		t.Errorf("files %v, names %v", names, want)
	}
	if _, err := schema.Read("nothing"); err == nil {
		t.Error("read a schema that isn't there")
	}
}

// decode is the decoder's verdict on a message of a kind.
func decode(kind string, data []byte) error {
	switch kind {
	case schema.InterceptRequest, schema.ObserveNotification, schema.CapabilitiesRequest:
		q, err := ahp.DecodeRequest(data)
		if err != nil {
			return err
		}
		methods := map[string]string{schema.InterceptRequest: ahp.MethodIntercept, schema.ObserveNotification: ahp.MethodObserve, schema.CapabilitiesRequest: ahp.MethodCapabilities}
		if q.Method() != methods[kind] {
			return fmt.Errorf("the method is %s", q.Method())
		}
		return nil
	case schema.InterceptResponse, schema.InterceptDenyResponse, schema.InterceptNoEffectResponse:
		effects, err := ahp.DecodeEffectsReply(data, idOf(data))
		switch {
		case err != nil:
			return err
		case kind == schema.InterceptDenyResponse && (len(effects) != 1 || effects[0].EffectType() != ahp.EffectDeny):
			return errors.New("not exactly one deny")
		case kind == schema.InterceptNoEffectResponse && len(effects) != 0:
			return errors.New("effects")
		}
		return nil
	case schema.CapabilitiesResponse:
		_, err := ahp.DecodeManifestReply(data, idOf(data))
		return err
	case schema.ErrorResponse:
		_, err := ahp.DecodeEffectsReply(data, idOf(data))
		var answer *ahp.RPCError
		if errors.As(err, &answer) {
			return nil
		}
		return fmt.Errorf("no error response: %w", err)
	case schema.UploadReceipt:
		_, err := ahp.DecodeReceipt(data)
		return err
	case schema.Registration:
		_, err := ahp.DecodeRegistration(data)
		return err
	case schema.JSONRPCMessage:
		r, err := validate.Message(data, validate.JSONRPCMessage, validate.Options{})
		if err == nil && len(r.Findings) > 0 {
			return errors.New(r.Findings[0].String())
		}
		return err
	}
	return fmt.Errorf("no kind %q", kind)
}

// idOf returns the id that a reply must have to be judged for itself.
func idOf(data []byte) ahp.ID {
	p, err := ahp.Peek(data)
	if err != nil {
		return ahp.ID{}
	}
	return p.ID
}

// anyKind is the dispatch of a message whose kind isn't said.
func anyKind(data []byte) string {
	p, err := ahp.Peek(data)
	switch {
	case err != nil:
		return schema.JSONRPCMessage
	case p.Method == ahp.MethodIntercept:
		return schema.InterceptRequest
	case p.Method == ahp.MethodObserve:
		return schema.ObserveNotification
	case p.Method == ahp.MethodCapabilities:
		return schema.CapabilitiesRequest
	}
	var m struct {
		Hooks  json.RawMessage
		Result struct{ Effects, Manifest json.RawMessage }
	}
	json.Unmarshal(data, &m) // what it doesn't find stays nil
	switch {
	case m.Hooks != nil:
		return schema.Registration
	case m.Result.Manifest != nil:
		return schema.CapabilitiesResponse
	case m.Result.Effects != nil:
		return schema.InterceptResponse
	}
	return schema.ErrorResponse
}

// beyond lists the fixtures whose rule no schema can express. An entry that the
// schema judges like the index fails.
func beyond() map[string]string {
	return map[string]string{
		"http/contextual-elicitation-content-decline.invalid.json": "depends on the event that the response is to",
		"http/contextual-elicitation-content-list.invalid.json":    "depends on the event that the response is to",
		"http/contextual-outbound-content-object.invalid.json":     "depends on the event that the response is to",
		"stdio/intercept-request-multiline.invalid.jsonl":          "is about the framing of lines",
	}
}

func TestFixtures(t *testing.T) {
	dir := filepath.Join(require.Shared(t), "fixtures", "ahp")
	index, err := os.ReadFile(filepath.Join(dir, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	r := csv.NewReader(bytes.NewReader(index))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = '\t', true, -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	schemas, exceptions := compiled(t), beyond()
	for _, row := range rows[1:] {
		name, valid, kind := row[0], row[1] == "valid", row[2]
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if kind == "any" {
			kind = anyKind(data)
		}
		s := schemas[kind]
		if s == nil {
			t.Fatalf("%s: no schema for %s", name, kind)
		}
		got := s.Validate(parse(t, data))
		if _, excepted := exceptions[name]; excepted {
			delete(exceptions, name)
			if (got == nil) == valid {
				t.Errorf("%s needs no exception", name)
			}
			continue
		}
		if (got == nil) != valid {
			t.Errorf("%s: valid %v, the schema says %v", name, valid, got)
		}
		if row[4] == "" && (decode(kind, data) == nil) != (got == nil) {
			t.Errorf("%s: decoder %v, schema %v", name, decode(kind, data), got)
		}
	}
	for name := range exceptions {
		t.Errorf("the exception %s is no fixture", name)
	}
}
