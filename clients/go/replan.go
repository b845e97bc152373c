package nodewise

import (
	"context"

	"k8s.io/klog/v2"

	"nodewise.dev/clients/go/internal/apply"
	"nodewise.dev/clients/go/internal/brief"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/served"
)

// replan says why another plan must follow in the same reconcile, if so.
type replan struct {
	// colliding are existing objects that have the name of a new one.
	colliding *liveObjects
	// outdated is true if an object is not as it was planned.
	outdated bool
	// takenNames is true if other pods have the names of new pods.
	takenNames bool
}

func (r *controller) replanAfter(ctx context.Context, applied *apply.Applied) replan {
	again := replan{
		colliding:  r.readable(ctx, applied.Colliding),
		outdated:   !applied.Failed && applied.IsOutdated(),
		takenNames: len(applied.TakenNames) > 0,
	}
	logger := klog.FromContext(ctx)
	switch {
	case again.outdated:
		logger.Info("An object is gone or cannot be changed; planning again without it")
	case !again.colliding.isEmpty():
		logger.Info("The name of a new object is taken; planning again with the object of that name")
	case again.takenNames:
		logger.Info("Names of new pods are taken by other pods; planning again for other names",
			"count", len(applied.TakenNames), "first", applied.TakenNames[0])
	default:
	}
	return again
}

// follows reports whether another plan follows in this reconcile, after a report with this result. After taken pod names the service decides
// that in its response: if another action failed, the workload is retried with back-off.
func (p replan) follows(ended result, err error) bool {
	if !p.colliding.isEmpty() || p.outdated {
		return err == nil || isReported(err)
	}
	return p.takenNames && err == nil && ended.isAtOnce()
}

// isForNamesOnly reports whether taken pod names are the only reason.
func (p replan) isForNamesOnly() bool { return p.takenNames && p.colliding.isEmpty() && !p.outdated }

// recordApplied leaves orphans that an adoption did not find out of the next snapshots (D-23), and marks objects that cannot be changed.
func (r *controller) recordApplied(applied *apply.Applied) {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	for _, key := range applied.Vanished {
		r.state.store.ForgetOrphan(key.Resource, key.Namespace, key.Name)
	}
	for _, key := range applied.Sealed {
		r.state.store.Seal(key.Resource, key.Namespace, key.Name)
	}
}

// readable returns the objects that can be read. The others are skipped, as the watch skips them. If a skipped one has the name of a new
// object, the next plan does not know it either, and the reconcile fails because the name is taken.
func (r *controller) readable(ctx context.Context, objects []apply.Colliding) *liveObjects {
	live := &liveObjects{}
	for _, object := range objects {
		parsed, err := served.Parse(object.Object)
		switch {
		case err != nil:
		case object.Resource == cluster.Revisions:
			live.revisions = append(live.revisions, cluster.NewRevision(parsed))
		case r.kind.Controls != nil && object.Resource == r.kind.Controls.Resource:
			var read *cluster.Workload
			if read, err = cluster.NewWorkload(r.kind.Controls, parsed); err == nil {
				live.workloads = append(live.workloads, read)
			}
		}
		if err != nil {
			klog.FromContext(ctx).Error(brief.Error(err), "Skipped an object that cannot be read", "resource", object.Resource)
		}
	}
	return live
}

// createdRevisions reads the revisions that a plan has created, because the caches need not show them yet. If one cannot be read, the next plan
// finds its name taken, and the plan after that knows it.
func (r *controller) createdRevisions(ctx context.Context, namespace string, applied *apply.Applied) *liveObjects {
	var created []apply.Colliding
	for _, name := range applied.Created {
		if object, err := r.writer.Read(ctx, revisionKey(namespace, name)); err == nil {
			created = append(created, apply.Colliding{Resource: cluster.Revisions, Object: object})
		}
	}
	return r.readable(ctx, created)
}
