// Package telemetry maps what a harness does with the Agent Hooks Protocol to
// OpenTelemetry: a span per dispatch and per interception, a histogram and a
// counter, and the W3C trace context in the extension "org.w3c.trace_context" of
// the events that are sent while a trace is active. docs/protocol/telemetry.md
// lists names and attributes.
//
// It guarantees that spans and metrics hold identifiers and classes only: no
// content of events, no reason, no text of an error, no credential. It changes no
// decision, and without an active trace nothing is added to a message.
//
// Do not assume that a backend continues the trace, or that a trace context which
// arrives is honest: it correlates, and carries no authority (AHP-EXT-001).
//
// It is apart from package harness so that only who measures links OpenTelemetry.
package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/abhed/abhed/ahp"
	"github.com/abhed/abhed/ahp/harness"
)

// Scope is the name of the instrumentation.
const Scope = "github.com/abhed/abhed/ahp"

// Options says where spans and measurements go.
type Options struct {
	// Tracer makes the spans; nil makes none, and sends no trace context of its own.
	Tracer trace.TracerProvider
	// Meter makes the instruments; nil measures nothing.
	Meter metric.MeterProvider
}

// mapping is a harness.Telemetry.
type mapping struct {
	tracer   trace.Tracer // nil for none
	duration metric.Float64Histogram
	failures metric.Int64Counter
}

var _ harness.Telemetry = (*mapping)(nil)

// New returns what harness.Options.Telemetry takes. The providers stay the
// caller's, who shuts them down after the harness. An error comes from a meter
// that can't make an instrument.
func New(opts Options) (harness.Telemetry, error) {
	m := &mapping{}
	if opts.Tracer != nil {
		m.tracer = opts.Tracer.Tracer(Scope)
	}
	if opts.Meter == nil {
		return m, nil
	}
	meter := opts.Meter.Meter(Scope)
	var err error
	if m.duration, err = meter.Float64Histogram("ahp.intercept.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from dispatching an interception to accepting its answer."),
		metric.WithExplicitBucketBoundaries(.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30)); err != nil {
		return nil, err
	}
	if m.failures, err = meter.Int64Counter("ahp.failures", metric.WithUnit("{failure}"),
		metric.WithDescription("Operational failures of interceptions and of deliveries to observers.")); err != nil {
		return nil, err
	}
	return m, nil
}

// Dispatch opens the span of a whole chain.
func (m *mapping) Dispatch(ctx context.Context, e *ahp.Event) (context.Context, func(*ahp.Outcome, error)) {
	if m.tracer == nil {
		return ctx, nil
	}
	ctx, span := m.tracer.Start(ctx, "ahp.dispatch "+string(e.Type), trace.WithAttributes(eventAttributes(e)...))
	return ctx, func(o *ahp.Outcome, err error) {
		switch {
		case err != nil:
			span.SetStatus(codes.Error, "the dispatch could not be made")
		case o.Interrupted:
			span.SetAttributes(attribute.String("ahp.decision", "interrupted"))
		default:
			span.SetAttributes(attribute.String("ahp.decision", string(o.Permission)), attribute.Bool("ahp.changed", o.Changed),
				attribute.String("ahp.flow", string(o.Flow)), attribute.Int("ahp.interceptors", len(o.Trace)))
			if d := o.Denial(); d != nil {
				span.SetAttributes(attribute.String("ahp.denied_by", d.By.Backend), attribute.Bool("ahp.synthetic", d.Synthetic))
			}
		}
		span.End()
	}
}

// Ask opens the span of one interception and measures it.
func (m *mapping) Ask(ctx context.Context, e *ahp.Event, by ahp.SubscriptionID) (context.Context, func(ahp.Answer)) {
	began := time.Now()
	var span trace.Span
	if m.tracer != nil {
		attrs := append(eventAttributes(e), attribute.String("ahp.backend", by.Backend), attribute.Int("ahp.subscription", by.Index))
		ctx, span = m.tracer.Start(ctx, "ahp.intercept "+string(e.Type), trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	}
	return ctx, func(a ahp.Answer) {
		attrs := answerAttributes(&a)
		if span != nil {
			endAsk(span, &a, attrs)
		}
		if m.duration != nil {
			of := append(attrs, attribute.String("ahp.backend", by.Backend), attribute.String("ahp.event.type", string(e.Type)))
			m.duration.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(of...))
			if a.Failure != nil {
				m.failures.Add(ctx, 1, metric.WithAttributes(of...))
			}
		}
	}
}

// endAsk closes the span of an interception.
func endAsk(span trace.Span, a *ahp.Answer, attrs []attribute.KeyValue) {
	span.SetAttributes(attrs...)
	span.SetAttributes(attribute.Int("ahp.attempts", a.Attempts))
	if len(a.Effects) > 0 {
		types := make([]string, len(a.Effects))
		for i, e := range a.Effects {
			types[i] = string(e.EffectType())
		}
		span.SetAttributes(attribute.StringSlice("ahp.effects", types), attribute.Bool("ahp.changed", a.Changed))
	}
	switch {
	case a.Failure != nil:
		// The class alone: a failure's detail may quote what a backend said.
		span.SetStatus(codes.Error, string(a.Failure.Class))
	case a.Kind == "":
		span.SetStatus(codes.Error, "the interception could not be made")
	}
	span.End()
}

// Extensions returns the trace context of the active span, if there is one.
func (m *mapping) Extensions(ctx context.Context) ahp.Extensions {
	return Inject(ctx)
}

// Delivered counts deliveries that failed.
func (m *mapping) Delivered(ctx context.Context, d harness.Delivery) {
	if m.failures == nil || d.Failure == nil {
		return
	}
	m.failures.Add(ctx, 1, metric.WithAttributes(attribute.String("ahp.backend", d.By.Backend), attribute.String("ahp.event.type", string(d.Type)),
		attribute.String("ahp.outcome", "undelivered"), attribute.String("ahp.failure.class", string(d.Failure.Class))))
}

// eventAttributes identify an event; none of them is its content.
func eventAttributes(e *ahp.Event) []attribute.KeyValue {
	attrs := []attribute.KeyValue{attribute.String("ahp.event.type", string(e.Type)), attribute.String("ahp.event.id", e.ID)}
	if e.Session != nil {
		attrs = append(attrs, attribute.String("ahp.session.id", e.Session.ID))
	}
	if e.Call != nil {
		attrs = append(attrs, attribute.String("ahp.call.id", e.Call.ID))
	}
	return attrs
}

// answerAttributes are those that spans and metrics share: all of them are from
// small sets.
func answerAttributes(a *ahp.Answer) []attribute.KeyValue {
	attrs := []attribute.KeyValue{attribute.String("ahp.outcome", outcomeOf(a))}
	if a.Failure != nil {
		attrs = append(attrs, attribute.String("ahp.failure.class", string(a.Failure.Class)), attribute.String("ahp.failure.policy", string(a.Policy)))
	}
	return attrs
}

// outcomeOf says in one word what came of an interception.
func outcomeOf(a *ahp.Answer) string {
	switch a.Kind {
	case "":
		return "bug"
	case ahp.AnswerEffects:
	default:
		return string(a.Kind)
	}
	word := "none"
	for _, e := range a.Effects {
		switch e.EffectType() {
		case ahp.EffectDeny:
			return "deny"
		case ahp.EffectAsk:
			word = "ask"
		default:
			if word == "none" {
				word = "effects"
			}
		}
	}
	return word
}
