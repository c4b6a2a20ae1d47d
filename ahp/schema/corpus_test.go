package schema_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/schema"
)

// specimen is one valid message of the corpus.
type specimen struct {
	line    int
	kind    string
	message any
}

func corpus(t testing.TB) []specimen {
	t.Helper()
	data, err := os.ReadFile("testdata/messages.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var out []specimen
	for i, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		m := parse(t, line).(map[string]any)
		out = append(out, specimen{line: i + 1, kind: m["kind"].(string), message: m["message"]})
	}
	return out
}

func TestCorpusIsValid(t *testing.T) {
	a := newArbiter(t)
	for _, s := range corpus(t) {
		if err := a.judge(s.kind, s.message); err != nil {
			t.Errorf("line %d: %v", s.line, err)
		}
		data, _ := json.Marshal(s.message)
		if err := decode(s.kind, data); err != nil {
			t.Errorf("line %d: %v", s.line, err)
		}
		if err := a.judge(schema.JSONRPCMessage, s.message); err != nil {
			t.Errorf("line %d as an envelope: %v", s.line, err)
		}
	}
}

// TestCorpusIsComplete holds that every member of every shape is in some message,
// so that the mutations reach it.
func TestCorpusIsComplete(t *testing.T) {
	missing := map[string]bool{}
	for _, s := range ahp.Describe().Shapes {
		for _, m := range s.Members {
			missing[s.Name+"."+m.Name] = true
		}
	}
	// These are described so that they can be refused.
	delete(missing, "Manifest.identity")
	delete(missing, "Backend.contentReceiver")
	for _, s := range corpus(t) {
		data, _ := json.Marshal(s.message)
		var decoded any
		switch s.kind {
		case schema.InterceptRequest, schema.ObserveNotification:
			decoded, _ = ahp.DecodeRequest(data)
		case schema.CapabilitiesResponse:
			decoded, _ = ahp.DecodeManifestReply(data, idOf(data))
		case schema.ErrorResponse:
			_, decoded = ahp.DecodeEffectsReply(data, idOf(data))
		case schema.UploadReceipt:
			decoded, _ = ahp.DecodeReceipt(data)
		case schema.Registration:
			decoded, _ = ahp.DecodeRegistration(data)
		case schema.InterceptResponse, schema.InterceptDenyResponse:
			for _, e := range at(s.message, "result", "effects").([]any) {
				for name := range e.(map[string]any) {
					delete(missing, "Effect."+name)
				}
			}
		}
		tick(reflect.ValueOf(decoded), missing)
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		t.Errorf("no message of testdata/messages.jsonl has %s", name)
	}
}

// tick removes from missing the members that are set in v.
func tick(v reflect.Value, missing map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			tick(v.Elem(), missing)
		}
	case reflect.Slice:
		for i := range v.Len() {
			tick(v.Index(i), missing)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			tick(v.MapIndex(k), missing)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() {
				continue
			}
			if name := f.Tag.Get("json"); name != "" && !v.Field(i).IsZero() {
				delete(missing, v.Type().Name()+"."+name)
			}
			tick(v.Field(i), missing)
		}
	}
}
