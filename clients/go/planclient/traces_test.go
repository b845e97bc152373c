package planclient

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	otelcodes "go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"

	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
)

// Each call has one span, with the address of the replica even if nobody listens there, the result, and the error.
func TestCallsTellWhatTheyAskedAndGot(t *testing.T) {
	plan := &nodewisev1.Plan{Verdict: nodewisev1.Verdict_VERDICT_STATUS_ONLY, Phases: []*nodewisev1.Phase{
		{Batches: []*nodewisev1.Batch{{Actions: []*nodewisev1.Action{{}, {}}}, {Actions: []*nodewisev1.Action{{}}}}},
	}}
	answers := func(context.Context, *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
		return &nodewisev1.PlanResponse{Plan: plan}, nil
	}
	for _, test := range []struct {
		name    string
		answers func(context.Context, *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error)
		gone    bool
		// explains requests an explanation and not a plan.
		explains bool
		want     map[string]any
	}{
		{name: "answered", answers: answers, want: map[string]any{
			"rpc.response.status_code": "OK", "nodewise.request.bytes": true,
			"nodewise.plan.actions": int64(3), "nodewise.plan.verdict": "STATUS_ONLY",
		}},
		{name: "explained", answers: answers, explains: true, want: map[string]any{
			"rpc.response.status_code": "OK", "nodewise.request.bytes": true,
		}},
		{name: "refused", answers: refuses(codes.InvalidArgument), want: map[string]any{
			"rpc.response.status_code": "INVALID_ARGUMENT", "error.type": "INVALID_ARGUMENT", "nodewise.request.bytes": true,
		}},
		{name: "the service is away", gone: true, want: map[string]any{
			"rpc.response.status_code": "UNAVAILABLE", "error.type": "UNAVAILABLE",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			ended := tracetest.NewSpanRecorder()
			provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(ended))
			replica := startReplica(t, "127.0.0.1:0")
			replica.answers(test.answers)
			if test.gone {
				replica.server.Stop()
			}
			// The span in the context of New gets no attributes of calls.
			ctx, another := provider.Tracer("test").Start(t.Context(), "another")
			client, err := New(ctx, []string{"http://" + replica.address}, WithTracerProvider(provider), WithMinAttempts(1))
			if err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, "its health is known", func() bool {
				members, _ := client.replicas.now()
				state, _ := members[0].now()
				return state != unknown
			})
			method := nodewisev1.ReconcileService_Plan_FullMethodName
			if test.explains {
				method = nodewisev1.ReconcileService_Explain_FullMethodName
				_, err = client.Explain(t.Context(), "u1", question("a"))
			} else {
				_, err = client.Plan(t.Context(), "u1", request("a"))
			}
			if (err != nil) != (test.want["error.type"] != nil) {
				t.Fatalf("got %v", err)
			}
			if err := client.Close(); err != nil {
				t.Fatal(err)
			}
			spans := ended.Ended()
			if len(spans) != 1 {
				t.Fatalf("there are %d spans", len(spans))
			}
			span := spans[0]
			if span.Name() != strings.TrimPrefix(method, "/") || span.SpanKind() != trace.SpanKindClient {
				t.Errorf("it is %s %s", span.Name(), span.SpanKind())
			}
			if failed := span.Status().Code == otelcodes.Error; failed != (err != nil) {
				t.Errorf("its status is %v", span.Status())
			}
			got := map[string]any{}
			for _, attribute := range span.Attributes() {
				got[string(attribute.Key)] = attribute.Value.AsInterface()
			}
			if bytes, isThere := got["nodewise.request.bytes"].(int64); isThere {
				got["nodewise.request.bytes"] = bytes > 0
			}
			host, port, _ := net.SplitHostPort(replica.address)
			number, _ := strconv.ParseInt(port, 10, 64)
			test.want["server.address"], test.want["server.port"] = host, number
			test.want["rpc.system.name"], test.want["rpc.method"] = "grpc", strings.TrimPrefix(method, "/")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if told := another.(sdktrace.ReadOnlySpan).Attributes(); len(told) > 0 {
				t.Errorf("another span tells %v", told)
			}
		})
	}
}
