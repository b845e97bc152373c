package apply

import (
	"context"
	"maps"
	"slices"
	"strings"

	"k8s.io/klog/v2"

	"nodewise.dev/clients/go/internal/brief"
	"nodewise.dev/clients/go/internal/plancheck"
	"nodewise.dev/clients/go/nodewisev1"
)

// kindName is the kind of an action in logs.
func kindName(action *nodewisev1.Action) string {
	if kind := plancheck.KindOf(action); kind != nil {
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
	for _, action := range plancheck.ActionsOf(plan) {
		counts[kindName(action)]++
	}
	values := []any{"planId", plan.GetPlanId(), "verdict", strings.TrimPrefix(plan.GetVerdict().String(), "VERDICT_")}
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		values = append(values, kind, counts[kind])
	}
	if writes {
		logger.Info("Applying a plan", values...)
	} else {
		logger.Info("Would apply a plan", values...)
	}
}

// logActions logs the result of each action of a batch, and why the action was planned.
func logActions(ctx context.Context, planID string, batch *nodewisev1.Batch, dones []*done) {
	logger := klog.FromContext(ctx).V(1)
	if !logger.Enabled() {
		return
	}
	for i, done := range dones {
		action := batch.GetActions()[i]
		values := []any{
			"planId", planID, "id", action.GetId(), "kind", kindName(action),
			"reason", strings.TrimPrefix(action.GetReason().String(), "REASON_"), "why", brief.Text(action.GetMessage()),
			"result", strings.TrimPrefix(done.outcome.GetResult().String(), "RESULT_"),
		}
		if done.err != nil {
			values = append(values, "error", done.err.Error())
		}
		logger.Info("Action", values...)
	}
}
