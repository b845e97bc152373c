package planclient

import (
	"context"
	"net"
	"strconv"
	"strings"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"nodewise.dev/clients/go/nodewisev1"
)

// traced is otelgrpc's handler, and tells of each call besides what the conventions have for spans and the handler leaves out, what was
// asked and what was answered. Health checks have no spans: they belong to no reconcile, and last as long as the connection.
type traced struct {
	stats.Handler

	server []attribute.KeyValue
}

// hasSpan tells which calls have spans.
var hasSpan = filters.Not(filters.HealthCheck())

// spanKey is the key in a call's context of its span. The context's own may be that of whoever made the client.
type spanKey struct{}

func newTraced(address string, provider trace.TracerProvider) *traced {
	made := &traced{Handler: otelgrpc.NewClientHandler(otelgrpc.WithTracerProvider(provider), otelgrpc.WithFilter(hasSpan))}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return made
	}
	made.server = append(made.server, semconv.ServerAddress(host))
	if number, err := strconv.Atoi(port); err == nil {
		made.server = append(made.server, semconv.ServerPort(number))
	}
	return made
}

// TagRPC implements [stats.Handler].
func (t *traced) TagRPC(ctx context.Context, info *stats.RPCTagInfo) context.Context {
	ctx = t.Handler.TagRPC(ctx, info)
	if span := trace.SpanFromContext(ctx); span.IsRecording() && hasSpan(info) {
		return context.WithValue(ctx, spanKey{}, span)
	}
	return ctx
}

// HandleRPC implements [stats.Handler]. The span ends with the end of the call, so what is told comes first.
func (t *traced) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if span, ok := ctx.Value(spanKey{}).(trace.Span); ok {
		t.tell(span, event)
	}
	t.Handler.HandleRPC(ctx, event)
}

func (t *traced) tell(span trace.Span, event stats.RPCStats) {
	switch event := event.(type) {
	case *stats.Begin:
		// Also of a call that finds no connection.
		span.SetAttributes(t.server...)
	case *stats.OutPayload:
		if _, isPlan := event.Payload.(*nodewisev1.PlanRequest); isPlan {
			span.SetAttributes(attribute.Int("nodewise.request.bytes", event.Length))
		}
	case *stats.InPayload:
		if response, isPlan := event.Payload.(*nodewisev1.PlanResponse); isPlan && response.GetPlan() != nil {
			span.SetAttributes(
				attribute.Int("nodewise.plan.actions", actionsIn(response.GetPlan())),
				attribute.String("nodewise.plan.verdict", strings.TrimPrefix(response.GetPlan().GetVerdict().String(), "VERDICT_")),
			)
		}
	case *stats.End:
		if event.Error != nil {
			failed := code.Code(status.Code(event.Error))
			span.SetAttributes(semconv.ErrorTypeKey.String(failed.String()))
		}
	}
}

func actionsIn(plan *nodewisev1.Plan) int {
	count := 0
	for _, phase := range plan.GetPhases() {
		for _, batch := range phase.GetBatches() {
			count += len(batch.GetActions())
		}
	}
	return count
}
