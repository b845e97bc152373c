package apply

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/klog/v2"

	"nodewise.dev/clients/go/nodewisev1"
)

// kindOf is the field of an action that says what is to be done; nil for a kind that is not known here.
func kindOf(action *nodewisev1.Action) protoreflect.FieldDescriptor {
	message := action.ProtoReflect()
	return message.WhichOneof(message.Descriptor().Oneofs().ByName("kind"))
}

// kindName is the kind of an action as logs name it.
func kindName(action *nodewisev1.Action) string {
	if kind := kindOf(action); kind != nil {
		return kind.JSONName()
	}
	return "unknown"
}

// logPlan logs that a plan is about to be applied, with how many actions of each kind it has. The logger of the context names the
// workload.
func logPlan(ctx context.Context, plan *nodewisev1.Plan, writes bool) {
	logger := klog.FromContext(ctx)
	if !logger.Enabled() {
		return
	}
	counts := map[string]int{}
	var kinds []string
	for _, phase := range plan.GetPhases() {
		for _, batch := range phase.GetBatches() {
			for _, action := range batch.GetActions() {
				kind := kindName(action)
				if counts[kind] == 0 {
					kinds = append(kinds, kind)
				}
				counts[kind]++
			}
		}
	}
	slices.Sort(kinds)
	told := []any{"planId", plan.GetPlanId(), "verdict", strings.TrimPrefix(plan.GetVerdict().String(), "VERDICT_")}
	for _, kind := range kinds {
		told = append(told, kind, counts[kind])
	}
	if writes {
		logger.Info("Applying a plan", told...)
	} else {
		logger.Info("Would apply a plan", told...)
	}
}

// logActions logs what became of the actions of a batch, and why they were planned.
func logActions(ctx context.Context, planID string, batch *nodewisev1.Batch, dones []*done) {
	logger := klog.FromContext(ctx).V(1)
	if !logger.Enabled() {
		return
	}
	for i, done := range dones {
		action := batch.GetActions()[i]
		told := []any{
			"planId", planID, "id", action.GetId(), "kind", kindName(action),
			"reason", strings.TrimPrefix(action.GetReason().String(), "REASON_"), "why", action.GetMessage(),
			"result", strings.TrimPrefix(done.outcome.GetResult().String(), "RESULT_"),
		}
		if done.err != nil {
			told = append(told, "error", done.err.Error())
		}
		logger.Info("Action", told...)
	}
}
