// Package traces is what the packages of the executor share to trace: how a span is begun below another, and how its context is
// told to others. It needs no SDK: without one, spans are empty and nothing is told.
package traces

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// scope is the name of the instrumentation.
const scope = "nodewise.dev/clients/go"

// header is that of the W3C trace context, which is also the key under which the context is read of a map.
const header = "traceparent"

// w3c is what kube-apiserver reads, whatever the program's own propagator is.
var w3c propagation.TraceContext

// Tracer is the one that all spans of the executor are made with.
func Tracer(provider trace.TracerProvider) trace.Tracer {
	return provider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))
}

// Start begins a span below the one of the context, with the same provider.
func Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	return Tracer(trace.SpanFromContext(ctx).TracerProvider()).Start(ctx, name, options...)
}

// WithoutSpans is a context below which no spans are begun. Whoever is called gets the context of the present span with the sampled flag
// off, so that he records nothing either.
func WithoutSpans(ctx context.Context) context.Context {
	present := trace.SpanContextFromContext(ctx)
	return trace.ContextWithSpanContext(ctx, present.WithTraceFlags(present.TraceFlags().WithSampled(false)))
}

// IsOn tells whether there is a span, recorded or not.
func IsOn(ctx context.Context) bool {
	return trace.SpanContextFromContext(ctx).IsValid()
}

// Headers are those that carry the present span to an apiserver; none if there is no span.
func Headers(ctx context.Context) http.Header {
	if !IsOn(ctx) {
		return nil
	}
	headers := http.Header{}
	w3c.Inject(ctx, propagation.HeaderCarrier(headers))
	return headers
}

// Parent is the present span as a W3C traceparent; empty if there is none.
func Parent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	w3c.Inject(ctx, carrier)
	return carrier.Get(header)
}

// ParseParent reads a W3C traceparent. What is none gives a context that is not valid.
func ParseParent(text string) trace.SpanContext {
	return trace.SpanContextFromContext(w3c.Extract(context.Background(), propagation.MapCarrier{header: text}))
}
