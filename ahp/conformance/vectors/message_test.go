package vectors_test

import (
	"errors"
	"regexp"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/conformance/vectors"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/internal/strictjson"
)

// unknown matches the members that an implementation may keep or drop.
var unknown = regexp.MustCompile(`,"x-unknown":("[^"]*"|\[\]|\d)`)

// TestMessages judges each message with our decoders: the layer must be the one
// that the vector names, and a valid message must have the value that it names.
func TestMessages(t *testing.T) {
	list, err := vectors.Messages()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[vectors.Layer]int{}
	for _, m := range list {
		t.Run(m.ID, func(t *testing.T) {
			seen[m.Expect]++
			layer, value, err := judge(t, &m)
			if layer != m.Expect {
				t.Fatalf("%s: refused by %s, expected %s: %v", m.About, layer, m.Expect, err)
			}
			if m.Canonical == nil {
				return
			}
			got, err := strictjson.Canonical(value)
			got = unknown.ReplaceAll(got, nil)
			if err != nil || string(got) != string(m.Canonical) {
				t.Errorf("%v\n got %s\nwant %s", err, got, m.Canonical)
			}
			again := m
			again.Message = m.Canonical
			if layer, _, err := judge(t, &again); layer != vectors.LayerOK {
				t.Errorf("the canonical form is refused: %v", err)
			}
		})
	}
	for _, layer := range []vectors.Layer{vectors.LayerOK, vectors.LayerSyntax, vectors.LayerShape, vectors.LayerVersion, vectors.LayerCorrelation, vectors.LayerCapability, vectors.LayerApplication} {
		if seen[layer] == 0 {
			t.Errorf("no message for %s", layer)
		}
	}
}

// judge returns the layer that refuses a message, and what it was encoded to again
// if none does.
func judge(t *testing.T, m *vectors.Message) (vectors.Layer, []byte, error) {
	t.Helper()
	var value []byte
	var err error
	switch m.Kind {
	case vectors.KindRequest:
		var q ahp.Request
		if q, err = ahp.DecodeRequest(m.Message); err == nil {
			value, err = q.Encode()
		}
	case vectors.KindRegistration:
		var r *ahp.Registration
		if r, err = ahp.DecodeRegistration(m.Message); err == nil {
			value, err = r.Encode()
		}
	case vectors.KindReply:
		q, bad := ahp.DecodeRequest(m.Request)
		if bad != nil {
			t.Fatalf("the request is invalid: %v", bad)
		}
		_, err = harness.Evaluate(q.(*ahp.Intercept), m.Message)
	}
	return layerOf(err), value, err
}

func layerOf(err error) vectors.Layer {
	var e *ahp.Error
	var rpc *ahp.RPCError
	switch {
	case err == nil:
		return vectors.LayerOK
	case errors.As(err, &rpc):
		return vectors.LayerShape
	case !errors.As(err, &e):
		return vectors.Layer("no error of the protocol")
	}
	switch e.Kind {
	case ahp.KindSyntax:
		return vectors.LayerSyntax
	case ahp.KindVersion:
		return vectors.LayerVersion
	case ahp.KindCorrelation:
		return vectors.LayerCorrelation
	case ahp.KindCapability:
		return vectors.LayerCapability
	case ahp.KindApplication:
		return vectors.LayerApplication
	}
	return vectors.LayerShape
}
