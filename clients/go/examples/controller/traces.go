package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"k8s.io/klog/v2"
)

// lastSpans is how long the program waits at its end for the last spans to be sent.
const lastSpans = 3 * time.Second

// trace sends traces over OTLP/gRPC if the standard variables of OpenTelemetry name an endpoint. The returned function sends the last spans. The
// SDK reads headers, certificates, sampler, limits and resource attributes from these variables.
func trace(ctx context.Context) (flush func(), err error) {
	endpoint := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT"))
	exporter := cmp.Or(os.Getenv("OTEL_TRACES_EXPORTER"), "otlp")
	if endpoint == "" || exporter != "otlp" || strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return func() {}, nil
	}
	protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "grpc")
	if protocol != "grpc" {
		return nil, fmt.Errorf("traces go out over grpc only, and the environment asks for %s", protocol)
	}
	// Lost traces are logged, and are no reason to stop.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { klog.ErrorS(err, "Traces") }))
	otel.SetLogger(klog.Background())
	otlp, err := otlptracegrpc.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("sending traces to %s: %w", endpoint, err)
	}
	// The environment comes last, so it overrides the name.
	named, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(semconv.ServiceName("nodewise-go-example")), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describing the source of traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(otlp), sdktrace.WithResource(named))
	otel.SetTracerProvider(provider)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSpans)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			klog.ErrorS(err, "The last traces are lost")
		}
	}, nil
}
