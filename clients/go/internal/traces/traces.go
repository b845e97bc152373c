// Package traces has what the packages of the executor share for tracing: it begins spans, and passes their context to the apiserver. Without an
// SDK spans are empty, and no context is passed.
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

// header is the header of the W3C trace context, and its key in a map carrier.
const header = "traceparent"

// w3c is the format that kube-apiserver reads. The program's global propagator may be another one.
var w3c propagation.TraceContext

// Tracer is the tracer of all spans of the executor.
func Tracer(provider trace.TracerProvider) trace.Tracer {
	return provider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL))
}

// Start begins a span below the one of the context, with the same provider.
func Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	return Tracer(trace.SpanFromContext(ctx).TracerProvider()).Start(ctx, name, options...)
}

// WithoutSpans returns a context in which no spans are begun. The trace context of calls is that of the present span without the sampled flag,
// so that the called server records nothing either.
func WithoutSpans(ctx context.Context) context.Context {
	present := trace.SpanContextFromContext(ctx)
	return trace.ContextWithSpanContext(ctx, present.WithTraceFlags(present.TraceFlags().WithSampled(false)))
}

// IsOn reports whether there is a span, recorded or not.
func IsOn(ctx context.Context) bool {
	return trace.SpanContextFromContext(ctx).IsValid()
}

// Headers are the HTTP headers with the trace context of the present span; nil if there is no span.
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

// ParseParent reads a W3C traceparent. For any other text the context is not valid.
func ParseParent(text string) trace.SpanContext {
	return trace.SpanContextFromContext(w3c.Extract(context.Background(), propagation.MapCarrier{header: text}))
}
