package traces_test

import (
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"nodewise.dev/clients/go/internal/traces"
)

func TestContextsGoThere(t *testing.T) {
	if got := traces.Headers(t.Context()); len(got) != 0 || traces.Parent(t.Context()) != "" {
		t.Errorf("without a span %v is told", got)
	}
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	ctx, span := traces.Tracer(provider).Start(t.Context(), "outer")
	want := "00-" + span.SpanContext().TraceID().String() + "-" + span.SpanContext().SpanID().String() + "-01"
	if got := traces.Parent(ctx); got != want || traces.Headers(ctx).Get("traceparent") != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if read := traces.ParseParent(want); !read.IsRemote() || !read.WithRemote(false).Equal(span.SpanContext()) {
		t.Errorf("read as %v", read)
	}
	for _, text := range []string{"", "x", "00-0-0-00", "00-00000000000000000000000000000000-0000000000000000-01"} {
		if traces.ParseParent(text).IsValid() {
			t.Errorf("%q was taken", text)
		}
	}
}

// No span is begun, even by a provider that samples everything.
func TestWithoutSpansNoneIsBegun(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder), sdktrace.WithSampler(sdktrace.AlwaysSample()))
	ctx, outer := traces.Tracer(provider).Start(t.Context(), "outer")
	inner, span := traces.Start(traces.WithoutSpans(ctx), "inner")
	span.End()
	want := "00-" + outer.SpanContext().TraceID().String() + "-" + outer.SpanContext().SpanID().String() + "-00"
	if got := traces.Headers(inner).Get("traceparent"); got != want || span.IsRecording() {
		t.Errorf("got %s, want %s", got, want)
	}
	_, span = traces.Start(ctx, "inner")
	span.End()
	if ended := recorder.Ended(); len(ended) != 1 || ended[0].Parent().SpanID() != outer.SpanContext().SpanID() {
		t.Errorf("ended: %v", ended)
	}
}
