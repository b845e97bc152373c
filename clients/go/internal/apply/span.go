package apply

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"nodewise.dev/clients/go/internal/plancheck"
	"nodewise.dev/clients/go/internal/traces"
	"nodewise.dev/clients/go/nodewisev1"
)

// tracedBatch executes a batch in a span. Each call has a span, too, unless the batch has more than MaxTracedCalls actions: then the calls are
// sent as not sampled, so that the apiserver records none either.
func (r *run) tracedBatch(
	ctx context.Context, phase nodewisev1.PhaseKind, batch *nodewisev1.Batch, failure error,
) []*done {
	ctx, span := traces.Start(ctx, "batch")
	defer span.End()
	if span.IsRecording() {
		span.SetAttributes(actionsOf(phase, batch)...)
	}
	// A trace context that is not sampled leads to no trace.
	r.parent = ""
	if r.settings.AnnotatesPods && span.SpanContext().IsSampled() {
		r.parent = traces.Parent(ctx)
	}
	if len(batch.GetActions()) > r.settings.MaxTracedCalls {
		ctx = traces.WithoutSpans(ctx)
	}
	dones := r.batch(ctx, batch, failure)
	if span.IsRecording() {
		failed := 0
		for _, done := range dones {
			if IsFailure(done.outcome.GetResult()) {
				failed++
			}
		}
		span.SetAttributes(
			attribute.Int("nodewise.batch.succeeded", len(dones)-failed),
			attribute.Int("nodewise.batch.failed", failed),
		)
	}
	return dones
}

// actionsOf are the attributes of a batch: its phase, and the number of its actions, in total and of each kind.
func actionsOf(phase nodewisev1.PhaseKind, batch *nodewisev1.Batch) []attribute.KeyValue {
	counts := map[string]int{}
	for _, action := range batch.GetActions() {
		if kind := plancheck.KindOf(action); kind != nil {
			counts[string(kind.Name())]++
		}
	}
	attributes := []attribute.KeyValue{
		attribute.String("nodewise.phase", strings.TrimPrefix(phase.String(), "PHASE_KIND_")),
		attribute.Int("nodewise.batch.actions", len(batch.GetActions())),
	}
	for kind, count := range counts {
		attributes = append(attributes, attribute.Int("nodewise.batch."+kind, count))
	}
	return attributes
}
