package nodewise

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/internal/apply"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/nodewisev1"
)

// maxAhead is how old a plan may be that was asked for while the one before it was applied.
const maxAhead = time.Second

// nextPlans are plans that were asked for while the ones before them were applied: what comes next is known when these are done.
type nextPlans struct {
	mu    sync.Mutex
	plans map[types.NamespacedName]nextPlan
}

type nextPlan struct {
	planned *planned
	asked   time.Time
}

func (n *nextPlans) keep(key types.NamespacedName, next nextPlan) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.plans[key] = next
}

// take is the plan that is there for a workload, if it was made from the workload as it is now, and not long ago; nil if not.
func (n *nextPlans) take(workload *cluster.DaemonSet) *planned {
	n.mu.Lock()
	defer n.mu.Unlock()
	next, isThere := n.plans[workload.Key]
	delete(n.plans, workload.Key)
	if !isThere || time.Since(next.asked) > maxAhead {
		return nil
	}
	from := next.planned.workload
	if from.UID != workload.UID || from.ResourceVersion != workload.ResourceVersion {
		return nil
	}
	return next.planned
}

func (n *nextPlans) forget(key types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.plans, key)
}

// goesOnByItself tells whether the plan that follows at once can be asked for before this one is done: pods are created, all of
// which the state holds by name, and nothing else is done. With several batches the slow start has not come to its end, and
// what these lead to decides about the next.
func goesOnByItself(plan *nodewisev1.Plan) bool {
	isAtOnce := plan.RequeueAfter != nil && plan.GetRequeueAfter().AsDuration() == 0
	if !isAtOnce || !onlyCreates(plan) || len(plan.GetPhases()[0].GetBatches()) != 1 {
		return false
	}
	return !slices.ContainsFunc(plan.GetPhases()[0].GetBatches()[0].GetActions(), func(action *nodewisev1.Action) bool {
		return action.GetCreatePod().GetPodName() == ""
	})
}

func onlyCreates(plan *nodewisev1.Plan) bool {
	phases := plan.GetPhases()
	return len(phases) == 1 && phases[0].GetKind() == nodewisev1.PhaseKind_PHASE_KIND_CREATES
}

// applyAndLookAhead applies a plan and, where that can be, asks for the one that follows meanwhile.
func (r *Reconciler) applyAndLookAhead(
	ctx, asking context.Context, now *planned, leftOut map[uint32]string,
) (*apply.Applied, *nextPlan) {
	if !goesOnByItself(now.plan) || !r.writer.Writes() {
		return r.apply(ctx, now, leftOut), nil
	}
	asked := time.Now()
	answers := make(chan *planned, 1)
	go func() { answers <- r.planAhead(asking, now.workload) }()
	applied := r.apply(ctx, now, leftOut)
	next := <-answers
	if next == nil || applied.Failed {
		return applied, nil
	}
	return applied, &nextPlan{planned: next, asked: asked}
}

// planAhead is the plan that follows one that is being applied, if it comes soon and creates and does nothing else: what else there
// may be to do rests on pods, and these may have changed by then. Without it the next reconcile asks again.
func (r *Reconciler) planAhead(ctx context.Context, workload *cluster.DaemonSet) *planned {
	// A deadline would be taken for that of the call, and blame the replica.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(maxAhead, cancel).Stop()
	next, err := r.plan(ctx, workload, nil)
	if err != nil || !onlyCreates(next.plan) {
		return nil
	}
	return next
}
