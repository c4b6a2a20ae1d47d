package harness_test

import (
	"context"
	"strings"
	"testing"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
)

// TestPrepared holds that a prepared event is sent as any other, that one of another
// event counts for nothing, and that an event which can't be sent can't be prepared.
func TestPrepared(t *testing.T) {
	var sent []string
	h := newHarness(t, harness.Options{}, intercepts(transport.InProcess(func(_ context.Context, msg []byte) ([]byte, error) {
		sent = append(sent, string(msg))
		q, err := ahp.DecodeRequest(msg)
		if err != nil {
			return nil, err
		}
		return ahp.EncodeEffects(ahp.StringID(q.(*ahp.Intercept).Event.ID), nil)
	}), ahp.FailClosed))
	e, other := ahptest.ToolBefore("one", `{"command":"ls"}`), ahptest.ToolBefore("two", `{"command":"pwd"}`)
	made, err := harness.Prepare(e)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := e.Encode(); err != nil || string(made.Text()) != string(want) {
		t.Errorf("found %s, expected %s, %v", made.Text(), want, err)
	}
	for _, opts := range []harness.DispatchOptions{{}, {Prepared: made}} {
		for _, e := range []*ahp.Event{e, other} {
			if out, err := h.Dispatch(t.Context(), e, noAllow(), nil, opts); err != nil || out.Denial() != nil {
				t.Errorf("found %+v, %v", out, err)
			}
		}
	}
	if len(sent) != 4 || sent[0] != sent[2] || sent[1] != sent[3] || !strings.Contains(sent[3], "pwd") {
		t.Errorf("found %q", sent)
	}
	bad := ahptest.ToolBefore("three", `{"command":`)
	if _, err := harness.Prepare(bad); err == nil {
		t.Error("an invalid event was prepared")
	}
	if _, err := h.Dispatch(t.Context(), bad, noAllow(), nil, harness.DispatchOptions{Prepared: made}); err == nil || len(sent) != 4 {
		t.Errorf("an invalid event was sent under the text of another: %v", err)
	}
}
