package nodewise

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/plancheck"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
)

// shown are the caches of the namespace of one workload. Each look takes the lock anew, so that no watch waits while a manifest is read.
type shown struct {
	state    *state
	workload *cluster.DaemonSet
}

func (c shown) Object(resource cluster.Resource, name string) *cluster.Identity {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	return c.state.store.Identity(resource, c.workload.Key.Namespace, name)
}

func (c shown) OwnRevisions() [][]byte {
	c.state.mu.Lock()
	defer c.state.mu.Unlock()
	var revisions [][]byte
	for _, revision := range c.state.store.Revisions(c.workload) {
		if revision.Controller != nil {
			revisions = append(revisions, revision.JSON)
		}
	}
	return revisions
}

// check checks a plan before anything of it is held or written (rule W15). Live are the revisions of the snapshot that were read live.
func (r *Reconciler) check(ctx context.Context, planned *planned, live []*cluster.Revision) error {
	options := r.config.options
	asked := &plancheck.Asked{
		Workload: planned.workload, Scope: options.GetScope(), Live: live,
		DeletesWithUID: isEnabled(options, nodewisev1.Deviation_DEVIATION_DELETE_WITH_UID),
	}
	unseen, err := plancheck.Check(planned.plan, asked, shown{r.state, planned.workload})
	if err != nil {
		return r.refuse(ctx, planned.workload, err)
	}
	if len(unseen) > plancheck.MaxUnseen {
		return &failure{reason: fmt.Errorf(
			"the plan names %d objects that the caches do not show; the snapshot it was made from is too old", len(unseen))}
	}
	for _, named := range unseen {
		key := write.Key{Resource: named.Resource, Namespace: planned.workload.Key.Namespace, Name: named.Reference.GetName()}
		object, err := r.writer.Read(ctx, key)
		if err != nil {
			if write.AsError(err).Refusal == write.NotFound {
				continue
			}
			return &failure{reason: fmt.Errorf("reading %s, which the plan names: %w", key, err)}
		}
		if err := named.CheckLive(asked, object); err != nil {
			return r.refuse(ctx, planned.workload, err)
		}
	}
	return nil
}

// refuse tells of a violation, which ends the reconcile as a refused request does.
func (r *Reconciler) refuse(ctx context.Context, workload *cluster.DaemonSet, violation error) error {
	klog.FromContext(ctx).Error(violation, "The service sent a plan that must not be applied")
	r.writer.Emit(ctx, write.Event{
		Workload: &nodewisev1.WorkloadReference{
			Kind: cluster.Kind, Namespace: workload.Key.Namespace, Name: workload.Key.Name,
			Uid: string(workload.UID), ResourceVersion: workload.ResourceVersion,
		},
		Type: "Warning", Reason: "PlanRefused", Message: violation.Error(),
	})
	return &failure{reason: violation}
}
