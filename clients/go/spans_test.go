package nodewise

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/client-go/tools/record"

	"nodewise.dev/clients/go/internal/apply"
	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
)

// collected is an SDK that keeps the ended spans.
type collected struct {
	*sdktrace.TracerProvider
	t     *testing.T
	ended *tracetest.SpanRecorder
}

func collect(t *testing.T, options ...sdktrace.TracerProviderOption) *collected {
	t.Helper()
	ended := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(append(options, sdktrace.WithSpanProcessor(ended))...)
	return &collected{TracerProvider: provider, t: t, ended: ended}
}

// all returns the spans of this name, in the order of their start.
func (c *collected) all(name string) []sdktrace.ReadOnlySpan {
	spans := slices.DeleteFunc(c.ended.Ended(), func(span sdktrace.ReadOnlySpan) bool { return span.Name() != name })
	slices.SortStableFunc(spans, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	return spans
}

// one returns the only span of this name.
func (c *collected) one(name string) sdktrace.ReadOnlySpan {
	c.t.Helper()
	spans := c.all(name)
	if len(spans) != 1 {
		c.t.Fatalf("%d spans are %s:\n%s", len(spans), name, c.tree())
	}
	return spans[0]
}

// last returns the span of the last reconcile.
func (c *collected) last() sdktrace.ReadOnlySpan {
	c.t.Helper()
	spans := c.all("reconcile")
	if len(spans) == 0 {
		c.t.Fatal("there was no reconcile")
	}
	return spans[len(spans)-1]
}

// tree prints every span below its parent, in the order of their start: a tab for each level, the name and the kind.
func (c *collected) tree() string {
	spans := c.ended.Ended()
	slices.SortStableFunc(spans, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	var lines strings.Builder
	var below func(parent trace.SpanID, level int)
	below = func(parent trace.SpanID, level int) {
		for _, span := range spans {
			if span.Parent().SpanID() == parent {
				fmt.Fprintf(&lines, "%s%s %s\n", strings.Repeat("\t", level), span.Name(), span.SpanKind())
				below(span.SpanContext().SpanID(), level+1)
			}
		}
	}
	below(trace.SpanID{}, 0)
	return lines.String()
}

// told returns attributes by name.
func told(attributes []attribute.KeyValue) map[string]any {
	told := map[string]any{}
	for _, attribute := range attributes {
		told[string(attribute.Key)] = attribute.Value.AsInterface()
	}
	return told
}

// traceparent is the header with the context of a span.
func traceparent(span trace.SpanContext) string {
	return fmt.Sprintf("00-%s-%s-%s", span.TraceID(), span.SpanID(), span.TraceFlags())
}

// serving is a planning service with a scripted plan.
type serving struct {
	nodewisev1.UnimplementedReconcileServiceServer
	plan *nodewisev1.Plan
}

func (s *serving) Plan(context.Context, *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
	return &nodewisev1.PlanResponse{Plan: s.plan}, nil
}

func (s *serving) Report(_ context.Context, report *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
	requeue := nodewisev1.Requeue_REQUEUE_NONE
	for _, outcome := range report.GetOutcomes() {
		if apply.IsFailure(outcome.GetResult()) {
			requeue = nodewisev1.Requeue_REQUEUE_BACKOFF
		}
	}
	return &nodewisev1.ReportResponse{State: report.GetState(), Requeue: requeue}, nil
}

func (*serving) GetCapabilities(context.Context, *nodewisev1.GetCapabilitiesRequest) (*nodewisev1.GetCapabilitiesResponse, error) {
	return &nodewisev1.GetCapabilitiesResponse{WorkloadKinds: []string{"DaemonSet"}, Features: []string{"SharedLabels"}}, nil
}

// serve starts the service, and makes a client of it.
func serve(t *testing.T, plan *nodewisev1.Plan, spans *collected) *planclient.Client {
	t.Helper()
	plan.Workload = &nodewisev1.WorkloadReference{Kind: "DaemonSet", Namespace: key.Namespace, Name: key.Name, Uid: "d1"}
	client, err := planclient.New(t.Context(), []string{testkit.Serve(t, &serving{plan: plan})}, planclient.WithTracerProvider(spans))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// started is a Reconciler that has been started on an apiserver, and has not reconciled yet.
func started(t *testing.T, api *apiserver, planner Planner, options ...Option) *Reconciler {
	t.Helper()
	r, err := New(api.start(t), planner, append(options, WithEventRecorder(&record.FakeRecorder{}))...)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Start(t.Context(), &recorded{}); err != nil {
		t.Fatal(err)
	}
	if err := r.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

// parents are the trace contexts that an apiserver has received.
type parents struct {
	mu   sync.Mutex
	sent []string
}

func (p *parents) add(traceparent string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = append(p.sent, traceparent)
}

// sorted returns all of them, in order.
func (p *parents) sorted() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(slices.Values(p.sent))
}
