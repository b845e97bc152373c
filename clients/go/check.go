package nodewise

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/klog/v2"

	"nodewise.dev/clients/go/internal/brief"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/plancheck"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
)

// ErrPlanRefused is in the error of a reconcile whose plan was not applied because it breaks a rule of docs/writing-an-executor.md. The
// service is wrong then. The Reconciler logs the violation and emits the Warning Event PlanRefused for the workload.
var ErrPlanRefused = errors.New("the service sent a plan that must not be applied")

// cacheView is the view of package plancheck on the caches of nodes and of one workload's namespace. Each method takes the lock by itself, so
// that no watch waits while a manifest is parsed.
type cacheView struct {
	state    *state
	workload *cluster.Workload
	// own are the workload's revisions in the snapshot. The caches may have dropped the data of some of them since.
	own []*cluster.Revision
}

func (c cacheView) Object(resource cluster.Resource, name string) *cluster.Identity {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	return c.state.store.Identity(resource, c.workload.Key.Namespace, name)
}

func (c cacheView) OwnRevisions() [][]byte {
	revisions := make([][]byte, len(c.own))
	for i, revision := range c.own {
		revisions[i] = revision.JSON
	}
	return revisions
}

func (c cacheView) Claimable() []*cluster.Workload {
	if c.workload.Kind.Controls == nil {
		return nil
	}
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	return c.state.store.Claimable(c.workload.Kind.Controls, c.workload)
}

func (c cacheView) HasHash(hash string) bool {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	revisions := c.state.store.Revisions(c.workload)
	return slices.ContainsFunc(revisions, func(revision *cluster.Revision) bool { return revision.Hash() == hash })
}

func (c cacheView) RevisionsChanged() uint64 {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	return c.state.store.RevisionsChanged(c.workload.Key.Namespace)
}

func (c cacheView) HasNode(name string) bool {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	return c.state.store.HasNode(name)
}

func (c cacheView) Changed(resource cluster.Resource, name string) uint64 {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	return c.state.store.Changed(resource, c.workload.Key.Namespace, name)
}

func (c cacheView) LivePods(nodes []string) map[string]cluster.LivePods {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	return c.state.store.LivePods(c.workload, nodes)
}

func (c cacheView) LivePodsBeyond(most int) (cluster.LivePods, bool) {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	return c.state.store.LivePodsBeyond(c.workload, most)
}

func (c cacheView) UnseenCreates() []string {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	return c.state.gate.UnseenCreates(c.workload.Key, c.workload.UID, c.state.store.Reached)
}

// check checks a plan before its state is held and before the first write (rule W15). It returns the actions to leave out, by their ids, and
// why. The argument live are the live revisions of the snapshot.
func (r *controller) check(ctx context.Context, planned *planned, live []*cluster.Revision) (leftOut map[uint32]string, err error) {
	options := r.config.options
	burst := plancheck.Burst(r.kind.Kind)
	if options.GetBurst() > 0 {
		burst = int(options.GetBurst())
	}
	asked := &plancheck.Asked{
		Workload: planned.workload, Scope: options.GetScope(), Live: live, Policies: planned.policies, AsOf: planned.asOf, Sent: planned.sent,
		DeletesWithUID:  isEnabled(options, nodewisev1.Deviation_DEVIATION_DELETE_WITH_UID),
		Burst:           burst,
		DecidesAfterCut: isEnabled(options, nodewisev1.Deviation_DEVIATION_DECIDE_AFTER_CUT),
	}
	checked, err := plancheck.Check(planned.plan, asked, cacheView{r.state, planned.workload, planned.own})
	if err != nil {
		return nil, r.refuse(ctx, planned.workload, err)
	}
	if len(checked.Unseen) > plancheck.MaxUnseen {
		return nil, &failure{reason: fmt.Errorf(
			"the plan names %d objects that the caches do not show; the snapshot it was made from is too old", len(checked.Unseen))}
	}
	for _, named := range checked.Unseen {
		key := write.Key{Resource: named.Resource, Namespace: planned.workload.Key.Namespace, Name: named.Reference.GetName()}
		object, err := r.writer.Read(ctx, key)
		if err != nil {
			if write.AsError(err).Refusal == write.NotFound {
				continue
			}
			return nil, &failure{reason: fmt.Errorf("reading %s, which the plan names: %w", key, err)}
		}
		if err := checked.Read(named, object); err != nil {
			return nil, r.refuse(ctx, planned.workload, err)
		}
	}
	leftOut = checked.LeftOut()
	for id, why := range leftOut {
		klog.FromContext(ctx).V(1).Info("An action is left out", "planId", planned.plan.GetPlanId(), "id", id, "why", why)
	}
	return leftOut, nil
}

// refuse returns the error of a reconcile whose plan must not be applied. It logs the violation and emits an Event.
func (r *controller) refuse(ctx context.Context, workload *cluster.Workload, refused error) error {
	klog.FromContext(ctx).Error(refused, "The service sent a plan that must not be applied")
	r.writer.Emit(ctx, write.Event{
		Workload: workload.Reference(), Type: "Warning", Reason: "PlanRefused",
		Message: brief.Text(refused.Error()),
	})
	return &failure{reason: refusedPlan{refused}}
}

// tellTooOld returns the error of a reconcile for which no replica of the service knows what the snapshot needs. It emits an Event: nothing is rolled
// out until somebody upgrades the service (L-44).
func (r *controller) tellTooOld(ctx context.Context, workload *cluster.Workload, err error) error {
	r.writer.Emit(ctx, write.Event{
		Workload: workload.Reference(), Type: "Warning", Reason: "ServiceTooOld", Message: brief.Text(err.Error()),
	})
	return &failure{reason: err}
}

// isTooOld reports whether no replica of the service knows what the snapshot needs.
func isTooOld(err error) bool {
	var old *planclient.UnsupportedFeatureError
	return errors.As(err, &old)
}

// isRefusal reports whether the service refused the request or is too old for it, or its plan was refused, and nothing was written.
func isRefusal(err error) bool {
	var refused *planclient.RefusedError
	return errors.Is(err, ErrPlanRefused) || isTooOld(err) || errors.As(err, &refused) && isReported(err)
}

// refusedPlan is a violation that errors.Is finds as [ErrPlanRefused].
type refusedPlan struct{ error }

func (refusedPlan) Is(target error) bool { return target == ErrPlanRefused }
