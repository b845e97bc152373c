package nodewise

import (
	"context"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/internal/apply"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/traces"
	"nodewise.dev/clients/go/nodewisev1"
)

// tracedReconcile is a recorded reconcile of the workload of this uid and generation.
type tracedReconcile struct {
	uid        types.UID
	generation int64
	span       trace.SpanContext
}

// outcome is the value of the span attribute nodewise.reconcile.outcome.
type outcome string

const (
	settled outcome = "settled"
	failed  outcome = "failed"
	// behind: a cache does not show the Reconciler's own last write yet.
	behind outcome = "behind"
	// unreachable: the service cannot be reached.
	unreachable outcome = "unreachable"
)

// startReconcile begins the trace of a reconcile. The span has the events that caused the reconcile as events, and is linked to their traces
// and to the previous reconcile.
func (r *controller) startReconcile(ctx context.Context, key types.NamespacedName) (context.Context, trace.Span) {
	reasons := r.enqueuer.takeReasons(key)
	ctx, span := r.tracer.Start(ctx, "reconcile", trace.WithNewRoot(), trace.WithAttributes(
		semconv.K8SNamespaceName(key.Namespace), r.kind.named(key.Name)))
	if !span.IsRecording() {
		return ctx, span
	}
	if reasons.waited != nil {
		span.SetAttributes(attribute.Float64("nodewise.queue.duration", reasons.waited.Seconds()))
	}
	var parents []string
	if workload, before := r.state.follow(key, span.SpanContext()); workload != nil {
		span.SetAttributes(r.kind.identified(string(workload.UID)))
		if before.IsValid() {
			span.AddLink(linkTo(before, "previous"))
		}
		parents = append(parents, workload.Traceparent)
	}
	for _, trigger := range reasons.triggers {
		span.AddEvent("trigger", trace.WithTimestamp(trigger.seen), trace.WithAttributes(
			attribute.String("nodewise.trigger.resource", string(trigger.resource)),
			attribute.String("nodewise.trigger.name", trigger.name()),
		))
		parents = append(parents, trigger.traceparent)
	}
	linkTriggers(span, parents)
	return ctx, span
}

// follow stores the span of a recorded reconcile. It returns the workload, nil if that is gone, and the span of the previous reconcile of the
// same workload and generation.
func (s *state) follow(key types.NamespacedName, span trace.SpanContext) (workload *cluster.Workload, before trace.SpanContext) {
	s.mu.Lock()
	defer s.mu.Unlock()
	workload = s.store.Workload(s.kind.Kind, key)
	if workload == nil {
		return nil, before
	}
	now, last := tracedReconcile{uid: workload.UID, generation: workload.Generation, span: span}, s.traced[key]
	s.traced[key] = now
	if last.uid == now.uid && last.generation == now.generation {
		before = last.span
	}
	return workload, before
}

// linkTriggers links a span to trace contexts, to each once: the pods of one batch have the same.
func linkTriggers(span trace.Span, parents []string) {
	linked := map[string]bool{"": true}
	for _, parent := range parents {
		if linked[parent] || len(linked) > maxTriggers {
			continue
		}
		if context := traces.ParseParent(parent); context.IsValid() {
			linked[parent] = true
			span.AddLink(linkTo(context, "trigger"))
		}
	}
}

func linkTo(to trace.SpanContext, why string) trace.Link {
	return trace.Link{SpanContext: to, Attributes: []attribute.KeyValue{attribute.String("nodewise.link", why)}}
}

// setOutcome sets the outcome of a reconcile, and the status of the span if it failed.
func setOutcome(span trace.Span, ended outcome, reason error) {
	span.SetAttributes(attribute.String("nodewise.reconcile.outcome", string(ended)))
	if ended == failed {
		span.SetStatus(codes.Error, reason.Error())
	}
}

// startApply begins the span of a plan's application.
func startApply(ctx context.Context, plan *nodewisev1.Plan) (context.Context, trace.Span) {
	return traces.Start(ctx, "apply", trace.WithAttributes(attribute.String("nodewise.plan.id", plan.GetPlanId())))
}

// setApplied sets the outcomes of a plan.
func setApplied(span trace.Span, applied *apply.Applied) {
	if !span.IsRecording() {
		return
	}
	failed := 0
	for _, outcome := range applied.Outcomes {
		if apply.IsFailure(outcome.GetResult()) {
			failed++
		}
	}
	span.SetAttributes(
		attribute.Int("nodewise.apply.actions", len(applied.Outcomes)),
		attribute.Int("nodewise.apply.failed", failed),
		attribute.Int("nodewise.apply.batches", applied.Batches),
	)
}

// withTrace adds the trace and span id to a logger, if there is a span.
func withTrace(logger logr.Logger, span trace.Span) logr.Logger {
	of := span.SpanContext()
	if !of.IsValid() {
		return logger
	}
	return logger.WithValues("trace_id", of.TraceID().String(), "span_id", of.SpanID().String())
}
