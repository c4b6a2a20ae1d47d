package ahp_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// addFixtures seeds f with whatever fixtures there are.
func addFixtures(f *testing.F, pattern string) {
	files, _ := filepath.Glob(filepath.Join("..", "..", "shared", "fixtures", "ahp", pattern))
	for _, name := range files {
		if data, err := os.ReadFile(name); err == nil {
			f.Add(data)
		}
	}
}

// checkError checks that an error says where and what.
func checkError(t *testing.T, data []byte, err error) {
	t.Helper()
	var e *ahp.Error
	if !errors.As(err, &e) {
		t.Fatalf("error of another type: %T %v", err, err)
	}
	if e.Offset < 0 || e.Offset > int64(len(data)) || e.Found == "" || e.Expected == "" || e.Kind == 0 {
		t.Fatalf("incomplete: %+v", e)
	}
}

func FuzzDecodeRequest(f *testing.F) {
	addFixtures(f, "http/*.json")
	addFixtures(f, "stdio/*.jsonl")
	f.Add([]byte(interceptText("", `,"state":{"permission":"none","candidate":null}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		q, err := ahp.DecodeRequest(data)
		if err != nil {
			checkError(t, data, err)
			return
		}
		out, err := q.Encode()
		if err != nil {
			t.Fatalf("what decodes doesn't encode: %v", err)
		}
		again, err := ahp.DecodeRequest(out)
		if err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		twice, err := again.Encode()
		if err != nil || !strictjson.Equal(out, twice) {
			t.Fatalf("not stable:\n%s\n%s", out, twice)
		}
	})
}

func FuzzDecodeReply(f *testing.F) {
	addFixtures(f, "http/*response*.json")
	f.Add([]byte(`{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[{"type":"return","value":1}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ahp.Peek(data)
		if err != nil {
			checkError(t, data, err)
		}
		effects, err := ahp.DecodeEffectsReply(data, p.ID)
		var rpc *ahp.RPCError
		switch {
		case errors.As(err, &rpc):
		case err != nil:
			checkError(t, data, err)
			if ahp.ReplyFailure(err) == nil {
				t.Fatal("no class")
			}
		default:
			if _, err := ahp.EncodeEffects(p.ID, effects); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ahp.DecodeManifestReply(data, p.ID); err != nil && !errors.As(err, &rpc) {
			checkError(t, data, err)
		}
		ahp.MessageID(data)
	})
}

func FuzzDecodeRegistration(f *testing.F) {
	addFixtures(f, "registration/*.json")
	f.Add([]byte(registrationText))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ahp.DecodeRegistration(data)
		if err != nil {
			checkError(t, data, err)
			return
		}
		if _, err := r.Encode(); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzDecodeParts(f *testing.F) {
	f.Add([]byte(`[` + message + `]`))
	f.Add([]byte(`[{"id":"p","kind":"text","mediaType":"text/plain","selection":"omit"}]`))
	f.Add([]byte(manifest))
	f.Add([]byte(`{"cwd":"/"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := ahp.DecodeMessages(data); err != nil {
			checkError(t, data, err)
		}
		if _, err := ahp.DecodeTextParts(data); err != nil {
			checkError(t, data, err)
		}
		if _, err := ahp.DecodeEffects(data); err != nil {
			checkError(t, data, err)
		}
		if _, err := ahp.DecodeEvent(data); err != nil {
			checkError(t, data, err)
		}
		if _, err := ahp.DecodeWorkspaceState(data); err != nil {
			checkError(t, data, err)
		}
		if m, err := ahp.DecodeManifest(data); err != nil {
			checkError(t, data, err)
		} else if _, err := m.Encode(); err != nil {
			t.Fatal(err)
		}
	})
}
