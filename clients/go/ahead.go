package nodewise

import (
	"context"
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
	if plan.RequeueAfter == nil || plan.GetRequeueAfter().AsDuration() != 0 || len(plan.GetPhases()) != 1 {
		return false
	}
	phase := plan.GetPhases()[0]
	return phase.GetKind() == nodewisev1.PhaseKind_PHASE_KIND_CREATES && len(phase.GetBatches()) == 1
}

// applyAndLookAhead applies a plan and, where that can be, asks for the one that follows meanwhile.
func (r *Reconciler) applyAndLookAhead(ctx context.Context, now *planned) (*apply.Applied, *nextPlan) {
	if !goesOnByItself(now.plan) || !r.writer.Writes() {
		return r.apply(ctx, now), nil
	}
	asked := time.Now()
	answers := make(chan *planned, 1)
	go func() {
		// Without it the next reconcile asks again.
		next, err := r.plan(ctx, now.workload, nil)
		if err != nil {
			next = nil
		}
		answers <- next
	}()
	applied := r.apply(ctx, now)
	next := <-answers
	if next == nil || applied.Failed {
		return applied, nil
	}
	return applied, &nextPlan{planned: next, asked: asked}
}
