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

// maxPrefetchAge is the longest time between the request for a prefetched plan and its use.
const maxPrefetchAge = time.Second

// prefetchedPlans are plans that were requested while the plans before them were applied. The next reconcile of the workload can use them
// at once.
type prefetchedPlans struct {
	mu    sync.Mutex
	plans map[types.NamespacedName]prefetchedPlan
}

type prefetchedPlan struct {
	planned   *planned
	requested time.Time
}

func (p *prefetchedPlans) keep(key types.NamespacedName, plan prefetchedPlan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plans[key] = plan
}

// take removes and returns the prefetched plan of a workload; nil if there is none, if it is too old, or if the workload has changed since.
func (p *prefetchedPlans) take(workload *cluster.Workload) *planned {
	p.mu.Lock()
	defer p.mu.Unlock()
	plan, isThere := p.plans[workload.Key]
	delete(p.plans, workload.Key)
	if !isThere || time.Since(plan.requested) > maxPrefetchAge {
		return nil
	}
	from := plan.planned.workload
	if from.UID != workload.UID || from.ResourceVersion != workload.ResourceVersion {
		return nil
	}
	return plan.planned
}

func (p *prefetchedPlans) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.plans, key)
}

// canPrefetch reports whether the plan that follows at once may be requested before this one is applied. It may if this plan only creates
// pods, and the state holds all of them by name. With several batches the slow start has not ended, and the outcomes of these batches
// decide what comes next.
func canPrefetch(plan *nodewisev1.Plan) bool {
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

// applyAndPrefetch applies a plan. If [canPrefetch] allows it, it requests the next plan meanwhile.
func (r *controller) applyAndPrefetch(
	ctx, asking context.Context, now *planned, leftOut map[uint32]string,
) (*apply.Applied, *prefetchedPlan) {
	if !canPrefetch(now.plan) || !r.writer.Writes() {
		return r.apply(ctx, now, leftOut), nil
	}
	requested := time.Now()
	answers := make(chan *planned, 1)
	go func() { answers <- r.prefetch(asking, now.workload) }()
	applied := r.apply(ctx, now, leftOut)
	next := <-answers
	if next == nil || applied.Failed {
		return applied, nil
	}
	return applied, &prefetchedPlan{planned: next, requested: requested}
}

// prefetch requests the plan that follows one that is being applied. It returns nil if the plan takes longer than [maxPrefetchAge], or does
// more than to create pods: other actions depend on pods that may have changed by the time the plan is applied. Then the next
// reconcile requests a plan again.
func (r *controller) prefetch(ctx context.Context, workload *cluster.Workload) *planned {
	// Cancel, and set no deadline: the client would count an expired deadline as a failure of the replica.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(maxPrefetchAge, cancel).Stop()
	next, err := r.plan(ctx, workload, &liveObjects{})
	if err != nil || !onlyCreates(next.plan) {
		return nil
	}
	return next
}
