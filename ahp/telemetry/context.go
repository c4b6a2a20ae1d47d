package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/internal/strictjson"
)

// ContextExtension is the key of the extension that holds a W3C trace context:
// {"traceparent": "00-…-…-01", "tracestate": "…"}, the second where there is one.
const ContextExtension = "org.w3c.trace_context"

// wireContext is the value of the extension. Unknown members are ignored.
type wireContext struct {
	Traceparent string `json:"traceparent"`
	Tracestate  string `json:"tracestate,omitempty"`
}

// Inject returns the extension with the trace context of ctx, or nil where no
// valid trace is active.
func Inject(ctx context.Context) ahp.Extensions {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	headers := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, headers)
	raw, err := strictjson.Marshal(wireContext{Traceparent: headers["traceparent"], Tracestate: headers["tracestate"]})
	if err != nil {
		return nil
	}
	return ahp.Extensions{ContextExtension: raw}
}

// Extract returns ctx with the remote trace context that e carries, or ctx as it
// is where e carries none or none that is valid. It is for backends, whose spans
// then belong to the harness's trace.
func Extract(ctx context.Context, e *ahp.Event) context.Context {
	raw, ok := e.Extensions[ContextExtension]
	if !ok {
		return ctx
	}
	var w wireContext
	if strictjson.Unmarshal(raw, &w, strictjson.Options{}) != nil {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": w.Traceparent, "tracestate": w.Tracestate})
}
