package harness_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/transport"
	"github.com/abhed/abhed/internal/require"
	"github.com/abhed/abhed/internal/strictjson"
)

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

func readShared(t *testing.T, name string, v any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(require.Shared(t), "fixtures", "ahp", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	if err := strictjson.Unmarshal(data, v, strictjson.Options{}); err != nil {
		t.Fatal(err)
	}
}

func TestInteropScenarios(t *testing.T) {
	var file struct {
		Version   int        `json:"version"`
		Scenarios []scenario `json:"scenarios"`
	}
	readShared(t, "interop/scenarios.json", &file)
	if len(file.Scenarios) < 60 {
		t.Fatalf("only %d rows", len(file.Scenarios))
	}
	for _, s := range file.Scenarios {
		t.Run(s.ID, func(t *testing.T) { runScenario(t, &s) })
	}
}

func runScenario(t *testing.T, s *scenario) {
	q, err := ahp.DecodeRequest(s.Request)
	if err != nil {
		t.Fatal(err)
	}
	req := q.(*ahp.Intercept)
	link := transport.InProcess(func(_ context.Context, msg []byte) ([]byte, error) {
		if !strictjson.Equal(msg, s.Request) {
			t.Errorf("sent  %s\nwanted %s", msg, s.Request)
		}
		return s.Response, nil
	})
	h := newHarness(t, harness.Options{}, party{link: link, subs: []ahp.Subscription{ahptest.Intercept(ahp.FailClosed, 30*time.Second, string(req.Event.Type))}})
	out, err := h.Dispatch(t.Context(), req.Event, &req.Capabilities, req.State, harness.DispatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Such a row without hostExpected is refused by the protocol itself.
	application := s.HostExpected != nil
	if s.ExpectError && !application {
		checkRejected(t, s, out)
		return
	}
	if out.Trace[0].Kind != ahp.AnswerEffects {
		t.Fatalf("refused: %v", out.Trace[0].Failure)
	}
	want := s.Expected
	if application {
		want = s.HostExpected
	}
	got := verdictOf(out, &req.Capabilities, !application)
	for name, value := range want {
		if !strictjson.Equal(got[name], value) {
			t.Errorf("%s: got %s, want %s", name, got[name], value)
		}
	}
	if _, ok := want["result"]; !ok && got["result"] != nil {
		t.Errorf("result %s, want none", got["result"])
	}
	if _, ok := want["flow"]; !ok && got["flow"] != nil {
		t.Errorf("flow %s, want none", got["flow"])
	}
}

// checkRejected checks that the whole response was refused, in the layer that the
// row names, and that nothing of it is left.
func checkRejected(t *testing.T, s *scenario, out *harness.Outcome) {
	t.Helper()
	first := out.Trace[0]
	if first.Kind != ahp.AnswerFailure || !out.Denial().Synthetic || len(out.Messages) > 0 || len(out.Injections) > 0 || out.Changed {
		t.Fatalf("not refused as a whole: %+v", out.Outcome)
	}
	var e *ahp.Error
	if !errors.As(first.Failure, &e) {
		t.Fatalf("failure without a cause: %v", first.Failure)
	}
	if want := e.Kind.Layer() + "-invalid"; !slices.Contains(s.Tags, want) {
		t.Errorf("refused as %s (%v), the row says %v", want, e, s.Tags)
	}
}

// verdictOf says what a host that allows and never prompts makes of an outcome.
// valid tells whether the host's own argument schema accepts the input.
func verdictOf(out *harness.Outcome, caps *ahp.Capabilities, valid bool) map[string]ahp.Raw {
	decision := "allow"
	if out.Permission == ahp.PermissionDeny || out.Permission == ahp.PermissionAsk {
		decision = string(out.Permission)
	}
	got := map[string]ahp.Raw{
		"decision": encode(decision),
		"executed": encode(out.Event.Type == ahp.ToolBefore && out.MayExecute() && valid),
		"messages": encode(append([]string{}, out.Messages...)),
	}
	if out.Event.Tool != nil {
		got["input"] = out.Event.Tool.Input
	}
	if out.Candidate != nil && decision == "allow" {
		got["result"] = out.Candidate.Value
	}
	if out.Flow != ahp.FlowStateNone {
		got["flow"] = encode(string(out.Flow))
	}
	if caps.Flow != nil && slices.Contains(caps.Flow.Operations, ahp.FlowContinue) {
		left := *caps.Flow.RemainingContinuations
		if out.Flow == ahp.FlowStateContinue {
			left--
		}
		got["continuationInstructions"] = encode(append([]string{}, out.Instructions...))
		got["continuationRemaining"] = encode(left)
	}
	var injections [][]byte
	for _, i := range out.Injections {
		raw, err := ahp.EncodeEffect(i)
		if err != nil {
			panic(err)
		}
		injections = append(injections, raw)
	}
	if injections != nil {
		got["injections"] = slices.Concat([]byte("["), bytes.Join(injections, []byte(",")), []byte("]"))
	}
	return got
}

func encode(v any) ahp.Raw {
	b, err := strictjson.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
