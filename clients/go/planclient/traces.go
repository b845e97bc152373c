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

// traced is the stats handler of otelgrpc with more attributes: server.address, server.port and error.type, which the semantic conventions
// ask for and otelgrpc leaves out, and the size of the request and of the plan. Health checks have no spans: they belong to no
// reconcile, and last as long as the connection.
type traced struct {
	stats.Handler

	server []attribute.KeyValue
}

// hasSpan reports whether a call has a span.
var hasSpan = filters.Not(filters.HealthCheck())

// spanKey is the context key of a call's own span. trace.SpanFromContext would also return a foreign span for a call that has none, such
// as the one in the context that was given to [New].
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

// HandleRPC implements [stats.Handler]. The inner handler ends the span with the call, so attributes are set first.
func (t *traced) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if span, ok := ctx.Value(spanKey{}).(trace.Span); ok {
		setAttributes(span, event, t.server)
	}
	t.Handler.HandleRPC(ctx, event)
}

func setAttributes(span trace.Span, event stats.RPCStats, server []attribute.KeyValue) {
	switch event := event.(type) {
	case *stats.Begin:
		// At the beginning, so that calls that find no connection have them, too.
		span.SetAttributes(server...)
	case *stats.OutPayload:
		if _, hasSnapshot := event.Payload.(snapshotRequest); hasSnapshot {
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
