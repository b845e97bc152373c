package main

import (
	"context"
	"net"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// listening is a collector that keeps the received spans, or never answers.
type listening struct {
	collector.UnimplementedTraceServiceServer
	hangs bool
	sent  chan *collector.ExportTraceServiceRequest
}

func (l *listening) Export(
	ctx context.Context, request *collector.ExportTraceServiceRequest,
) (*collector.ExportTraceServiceResponse, error) {
	l.sent <- request
	if l.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func listen(t *testing.T, hangs bool) *listening {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, made := grpc.NewServer(), &listening{hangs: hangs, sent: make(chan *collector.ExportTraceServiceRequest, 10)}
	collector.RegisterTraceServiceServer(server, made)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+listener.Addr().String())
	return made
}

// The last spans are sent at the end, also after the stop, with the service name from the environment. A collector that hangs delays the end
// only for a short time.
func TestTracesAreSentAtTheEnd(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		collector := listen(t, hangs)
		t.Setenv("OTEL_SERVICE_NAME", "mine")
		ctx, stop := context.WithCancel(t.Context())
		flush, err := trace(ctx)
		if err != nil {
			t.Fatal(err)
		}
		provider := otel.GetTracerProvider()
		_, span := provider.Tracer("test").Start(ctx, "reconcile")
		span.End()
		stop()
		begun := time.Now()
		flush()
		if took := time.Since(begun); took > lastSpans+2*time.Second {
			t.Errorf("it took %s", took)
		}
		if len(collector.sent) != 1 {
			t.Fatalf("%d requests were sent", len(collector.sent))
		}
		sent := (<-collector.sent).GetResourceSpans()[0]
		if got := sent.GetScopeSpans()[0].GetSpans()[0].GetName(); got != "reconcile" {
			t.Errorf("sent %s", got)
		}
		service := ""
		for _, attribute := range sent.GetResource().GetAttributes() {
			if attribute.GetKey() == "service.name" {
				service = attribute.GetValue().GetStringValue()
			}
		}
		if service != "mine" {
			t.Errorf("sent as %q", service)
		}
	}
}

func TestTracesAreOffUnlessTheEnvironmentAsksForThem(t *testing.T) {
	before := otel.GetTracerProvider()
	for name, environment := range map[string]map[string]string{
		"no endpoint":      {},
		"disabled":         {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		"another exporter": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
	} {
		t.Run(name, func(t *testing.T) {
			for key, value := range environment {
				t.Setenv(key, value)
			}
			flush, err := trace(t.Context())
			if err != nil || otel.GetTracerProvider() != before {
				t.Errorf("it traces: %v", err)
			}
			flush()
		})
	}
	t.Setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	if _, err := trace(t.Context()); err == nil {
		t.Error("it takes a protocol that it does not speak")
	}
}
