package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
	"github.com/abhed/abhed/ahp/telemetry"
	"github.com/abhed/abhed/internal/event"
)

// Bounds of telemetry: a collector that is slow or away must not hold a run up.
const (
	exportTimeout = 5 * time.Second
	flushTimeout  = 3 * time.Second
)

// measuring is what a run measures itself with; nil where telemetry is off.
type measuring struct {
	traces  *trace.TracerProvider
	mapping harness.Telemetry
}

// startTelemetry connects to the collector of the settings, if they name one. What
// goes wrong with it later is recorded, and changes nothing else.
func (e *engine) startTelemetry(ctx context.Context) error {
	l := e.o.loaded
	base := strings.TrimSuffix(l.Telemetry.OTLPEndpoint, "/")
	if base == "" {
		return nil
	}
	headers := map[string]string{}
	for name, variable := range l.Telemetry.HeadersEnv {
		v := e.sys.Getenv(variable)
		switch {
		case v == "":
			return fmt.Errorf("telemetry sends the header %s from the variable %s, which isn't set", name, variable)
		case !strings.HasPrefix(base, "https://") && !ahp.IsLoopbackURL(base):
			return fmt.Errorf("telemetry.headers_env: a header from a variable is sent by https or to this machine only, and telemetry.otlp_endpoint is %s", base)
		}
		headers[name] = v
	}
	spans, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(base+"/v1/traces"), otlptracehttp.WithHeaders(headers),
		otlptracehttp.WithTimeout(exportTimeout), otlptracehttp.WithRetry(otlptracehttp.RetryConfig{}))
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	values, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(base+"/v1/metrics"), otlpmetrichttp.WithHeaders(headers),
		otlpmetrichttp.WithTimeout(exportTimeout), otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{}))
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	about := resource.NewSchemaless(attribute.String("service.name", "abhed"), attribute.String("service.version", e.sys.Version),
		attribute.String("ahp.session.id", e.log.ID()))
	traces := trace.NewTracerProvider(trace.WithBatcher(spans), trace.WithResource(about))
	meter := metric.NewMeterProvider(metric.WithReader(metric.NewPeriodicReader(values)), metric.WithResource(about))
	mapping, err := telemetry.New(telemetry.Options{Tracer: traces, Meter: meter})
	if err != nil {
		return fmt.Errorf("telemetry: %w", err)
	}
	e.measuring = &measuring{traces: traces, mapping: mapping}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(e.telemetryFailed))
	e.onClose(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		if err := errors.Join(traces.Shutdown(ctx), meter.Shutdown(ctx)); err != nil {
			e.telemetryFailed(err)
		}
		return nil // a run doesn't fail because nobody listened
	})
	return nil
}

// telemetryFailed records that a collector could not be reached. The text of the
// error may hold the answer of a foreign server, which the record bounds and
// scrubs like every other.
func (e *engine) telemetryFailed(err error) {
	_, _ = e.log.Append(system(&event.ExtensionLogged{Name: "telemetry", Level: "log", Line: err.Error()}))
}

// telemetry returns what the harness of the backends reports to, or nil.
func (e *engine) telemetry() harness.Telemetry {
	if e.measuring == nil {
		return nil
	}
	return e.measuring.mapping
}

// traced returns ctx with the span of a whole run, and what ends it. The run
// belongs to the trace of TRACEPARENT where the environment names one.
func (e *engine) traced(ctx context.Context) (context.Context, func()) {
	if e.measuring == nil {
		return ctx, func() {}
	}
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{
		"traceparent": e.sys.Getenv("TRACEPARENT"), "tracestate": e.sys.Getenv("TRACESTATE"),
	})
	ctx, span := e.measuring.traces.Tracer(telemetry.Scope).Start(ctx, "abhed.run")
	return ctx, func() { span.End() }
}
