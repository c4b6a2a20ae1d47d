package conformance

import (
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// TestOwnAnswers: an answer of the suite that is meant to be valid and isn't is the
// suite's fault, whatever the harness makes of it.
func TestOwnAnswers(t *testing.T) {
	event := samples(ahp.ToolBefore)[0]
	m, err := made(intercepting("one", event, only(everything(event), ahp.EffectDeny)), 0)
	if err != nil {
		t.Fatal(err)
	}
	a := &arrival{raw: m.raw, body: parsedObject(t, m.raw), call: -1}
	for name, tt := range map[string]struct {
		re   reaction
		want bool
	}{
		"a deny":                    {says(a, deny("no")), false},
		"what isn't offered":        {says(a, object{"type": "ask"}), true},
		"an unknown effect":         {says(a, object{"type": "teleport"}), true},
		"the same, on purpose":      {wrongly(says(a, object{"type": "teleport"})), false},
		"no effects, in a megabyte": {reaction{raw: a.roomy()}, false},
		"nothing":                   {reaction{silent: true}, false},
	} {
		s := &stage{}
		s.judge(a, &tt.re)
		if (s.err != nil) != tt.want {
			t.Errorf("%s: %v", name, s.err)
		}
	}
}

func parsedObject(t *testing.T, raw []byte) object {
	t.Helper()
	var o object
	if err := strictjson.Unmarshal(raw, &o, strictjson.Options{}); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestAgree: who has nothing to say answers requests for a decision with no effects,
// and other requests with the error of a method that isn't there.
func TestAgree(t *testing.T) {
	for method, want := range map[string]string{
		ahp.MethodIntercept:    `{"id":"one","jsonrpc":"2.0","result":{"effects":[],"protocolVersion":"draft"}}`,
		ahp.MethodCapabilities: `{"error":{"code":-32601,"message":"no such method"},"id":"one","jsonrpc":"2.0"}`,
	} {
		if got := string(agree(&arrival{body: object{"id": "one", "method": method}})); got != want {
			t.Errorf("%s: %s", method, got)
		}
	}
}
