package harness_test

import (
	"errors"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
)

// FuzzEvaluate holds that whatever a backend answers, the outcome is either refused
// as a whole or made of advertised effects, never less strict than before, and
// with an event that another backend could be sent.
func FuzzEvaluate(f *testing.F) {
	const head = `{"jsonrpc":"2.0","id":"e","result":{"protocolVersion":"draft","effects":[`
	for _, effects := range []string{
		``, `{"type":"deny","reason":"r"}`, `{"type":"ask"},{"type":"allow"}`, `{"type":"flow","operation":"stop","reason":"s"}`,
		`{"type":"modify","target":"input","operation":"merge","value":{"a":null}},{"type":"return","value":[1]}`,
		`{"type":"modify","target":"output","operation":"replace","value":[]},{"type":"flow","operation":"continue"}`,
		`{"type":"inject","target":"context","operation":"append","deliverAt":"now","value":[{"id":"m","role":"user","parts":[]}]}`,
	} {
		f.Add([]byte(head+effects+"]}}"), uint8(0))
		f.Add([]byte(head+effects+"]}}"), uint8(1))
		f.Add([]byte(head+effects+"]}}"), uint8(2))
	}
	f.Fuzz(func(t *testing.T, reply []byte, which uint8) {
		q := &ahp.Intercept{Event: ahptest.ToolBefore("e", `{"command":"ls"}`), State: &ahp.State{Permission: ahp.PermissionAsk}}
		switch which % 3 {
		case 1:
			q.Event = ahptest.ToolAfter("e", "out")
		case 2:
			q.State.Permission = ahp.PermissionDeny
		}
		q.Capabilities = *ahptest.FullCapabilities(q.Event.Type)
		before, err := q.Event.Encode()
		if err != nil {
			t.Fatal(err)
		}
		out, err := harness.Evaluate(q, reply)
		if after, _ := q.Event.Encode(); string(after) != string(before) {
			t.Fatalf("the event was changed to %s", after)
		}
		if err != nil {
			var mine *ahp.Error
			var rpc *ahp.RPCError
			if out != nil || !errors.As(err, &mine) && !errors.As(err, &rpc) {
				t.Fatalf("%v with %T %v", out, err, err)
			}
			return
		}
		if q.State.Permission.Stricter(out.Permission) || out.MayExecute() {
			t.Fatalf("%s became %s", q.State.Permission, out.Permission)
		}
		for _, e := range out.Trace[0].Effects {
			if err := q.Capabilities.Accepts(e); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := (&ahp.Intercept{Event: out.Event, Capabilities: q.Capabilities}).Encode(); err != nil {
			t.Fatalf("the effective event can't be sent: %v", err)
		}
	})
}
