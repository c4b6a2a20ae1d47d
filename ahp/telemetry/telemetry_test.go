package telemetry_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/ahptest"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/telemetry"
	"github.com/abhed/abhed/ahp/transport"
)

// secret stands in every content, reason and error of these tests; no span, no
// metric may hold it.
const secret = "hunter2"

type rig struct {
	h      *harness.Harness
	spans  *tracetest.SpanRecorder
	reader *metric.ManualReader
	tracer trace.TracerProvider
}

func newRig(t *testing.T, links ...transport.Transport) *rig {
	t.Helper()
	r := &rig{spans: tracetest.NewSpanRecorder(), reader: metric.NewManualReader()}
	r.tracer = sdk.NewTracerProvider(sdk.WithSpanProcessor(r.spans))
	tel, err := telemetry.New(telemetry.Options{Tracer: r.tracer, Meter: metric.NewMeterProvider(metric.WithReader(r.reader))})
	if err != nil {
		t.Fatal(err)
	}
	r.h = newHarness(t, tel, links...)
	return r
}

func newHarness(t *testing.T, tel harness.Telemetry, links ...transport.Transport) *harness.Harness {
	t.Helper()
	reg := &ahp.Registration{ProtocolVersion: ahp.Version}
	byID := map[string]transport.Transport{}
	for i, link := range links {
		id := fmt.Sprintf("test.b%d", i)
		byID[id] = link
		reg.Hooks = append(reg.Hooks, ahp.Backend{ID: id,
			Transport:     ahp.TransportConfig{Type: ahp.TransportStdio, Command: "unused", Lifecycle: ahp.LifecyclePersistent},
			Subscriptions: []ahp.Subscription{ahptest.Intercept(ahp.FailOpen, time.Minute, "tool.before")}})
	}
	h, err := harness.New(reg, harness.Options{Manifest: ahptest.Manifest(), Telemetry: tel, Retries: -1,
		Open: func(b *ahp.Backend) (transport.Transport, error) { return byID[b.ID], nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

func dispatch(t *testing.T, ctx context.Context, h *harness.Harness) *harness.Outcome {
	t.Helper()
	out, err := h.Dispatch(ctx, ahptest.ToolBefore("e-1", `{"command":"echo `+secret+`"}`), ahptest.FullCapabilities(ahp.ToolBefore), nil, harness.DispatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// answers is a backend that says effects and keeps what it was sent.
func answers(effects string, seen *[]*ahp.Event) transport.Transport {
	return transport.InProcess(func(_ context.Context, msg []byte) ([]byte, error) {
		q, err := ahp.DecodeRequest(msg)
		if err != nil {
			return nil, err
		}
		e := q.(*ahp.Intercept).Event
		if seen != nil {
			*seen = append(*seen, e)
		}
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%q,"result":{"protocolVersion":"draft","effects":%s}}`, e.ID, effects), nil
	})
}

func TestSpansAndMetrics(t *testing.T) {
	broken := transport.InProcess(func(context.Context, []byte) ([]byte, error) {
		return nil, &ahp.Failure{Class: ahp.FailConnect, Detail: "refused by " + secret}
	})
	r := newRig(t, broken, answers(`[{"type":"message","text":"`+secret+`"}]`, nil), answers(`[{"type":"deny","reason":"`+secret+`"}]`, nil))
	if out := dispatch(t, t.Context(), r.h); out.Denial() == nil {
		t.Fatalf("outcome %+v", out.Outcome)
	}
	ended := r.spans.Ended()
	if len(ended) != 4 {
		t.Fatalf("%d spans, want three interceptions and the dispatch", len(ended))
	}
	whole := ended[3]
	if whole.Name() != "ahp.dispatch tool.before" || value(whole.Attributes(), "ahp.decision") != "deny" || value(whole.Attributes(), "ahp.denied_by") != "test.b2" {
		t.Errorf("dispatch: %s %v", whole.Name(), whole.Attributes())
	}
	for i, want := range []struct {
		outcome, class, policy string
		status                 codes.Code
	}{{"failure", "connect", "fail-open", codes.Error}, {"effects", "", "", codes.Unset}, {"deny", "", "", codes.Unset}} {
		s := ended[i]
		attrs := s.Attributes()
		if s.Name() != "ahp.intercept tool.before" || s.SpanKind() != trace.SpanKindClient || s.Parent().SpanID() != whole.SpanContext().SpanID() ||
			value(attrs, "ahp.backend") != fmt.Sprintf("test.b%d", i) || value(attrs, "ahp.event.id") != "e-1" ||
			value(attrs, "ahp.outcome") != want.outcome || value(attrs, "ahp.failure.class") != want.class ||
			value(attrs, "ahp.failure.policy") != want.policy || s.Status().Code != want.status {
			t.Errorf("interception %d: %s %v %v", i, s.Name(), attrs, s.Status())
		}
	}
	var data metricdata.ResourceMetrics
	if err := r.reader.Collect(t.Context(), &data); err != nil {
		t.Fatal(err)
	}
	if got := measured(t, &data); !slices.Equal(got, []string{
		"ahp.failures test.b0 failure connect 1",
		"ahp.intercept.duration test.b0 failure connect 1", "ahp.intercept.duration test.b1 effects  1", "ahp.intercept.duration test.b2 deny  1",
	}) {
		t.Errorf("measured\n%s", strings.Join(got, "\n"))
	}
	if all := fmt.Sprintf("%+v %+v", tracetest.SpanStubsFromReadOnlySpans(ended), data); strings.Contains(all, secret) {
		t.Error("telemetry holds content")
	}
}

// measured writes each point of the two instruments in one line, sorted.
func measured(t *testing.T, data *metricdata.ResourceMetrics) []string {
	t.Helper()
	var out []string
	line := func(name string, set attribute.Set, n uint64) {
		attrs := set.ToSlice()
		out = append(out, fmt.Sprintf("%s %s %s %s %d", name, value(attrs, "ahp.backend"), value(attrs, "ahp.outcome"), value(attrs, "ahp.failure.class"), n))
	}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch d := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					if p.Sum <= 0 {
						t.Errorf("%s: a duration of %v", m.Name, p.Sum)
					}
					line(m.Name, p.Attributes, p.Count)
				}
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					line(m.Name, p.Attributes, uint64(p.Value))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

func value(attrs []attribute.KeyValue, key string) string {
	for _, a := range attrs {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

// The trace context on the wire is that of the interception's span, and a backend
// that takes it up is part of the same trace.
func TestTraceContext(t *testing.T) {
	var seen []*ahp.Event
	r := newRig(t, answers(`[]`, &seen))
	ctx, outer := r.tracer.Tracer("test").Start(t.Context(), "turn")
	dispatch(t, ctx, r.h)
	outer.End()
	remote := trace.SpanContextFromContext(telemetry.Extract(context.Background(), seen[0]))
	ask := r.spans.Ended()[0].SpanContext()
	if remote.TraceID() != outer.SpanContext().TraceID() || remote.SpanID() != ask.SpanID() || !remote.IsRemote() || !remote.IsSampled() {
		t.Errorf("the backend got %+v, the span is %+v", remote, ask)
	}
}

// Without an active trace nothing is added, whatever is measured.
func TestNoTraceNoExtension(t *testing.T) {
	var seen []*ahp.Event
	tel, err := telemetry.New(telemetry.Options{Meter: metric.NewMeterProvider()})
	if err != nil {
		t.Fatal(err)
	}
	dispatch(t, t.Context(), newHarness(t, tel, answers(`[]`, &seen)))
	if len(seen) != 1 || len(seen[0].Extensions) != 0 {
		t.Errorf("extensions %s", seen[0].Extensions)
	}
}

// What arrives is foreign: a bad trace context is none.
func TestExtractRefuses(t *testing.T) {
	for _, raw := range []string{
		`null`, `"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"`, `{}`, `{"traceparent":3}`, `{"traceparent":"00-00000000000000000000000000000000-b7ad6b7169203331-01"}`,
		`{"traceparent":"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`, `{"traceparent":"` + strings.Repeat("x", 10000) + `"}`,
	} {
		e := &ahp.Event{Extensions: ahp.Extensions{telemetry.ContextExtension: ahp.Raw(raw)}}
		if c := trace.SpanContextFromContext(telemetry.Extract(context.Background(), e)); c.IsValid() {
			t.Errorf("%s gave %v", raw, c)
		}
	}
	e := &ahp.Event{Extensions: ahp.Extensions{telemetry.ContextExtension: ahp.Raw(
		`{"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01","tracestate":"a=1","later":true}`)}}
	if c := trace.SpanContextFromContext(telemetry.Extract(context.Background(), e)); !c.IsValid() || c.TraceState().Get("a") != "1" {
		t.Errorf("a valid context gave %v", c)
	}
}
