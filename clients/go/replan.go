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
	// colliding are existing revisions that have the name of a new revision.
	colliding []*cluster.Revision
	// outdated is true if an object is not as it was planned.
	outdated bool
	// takenNames is true if other pods have the names of new pods.
	takenNames bool
}

func (r *Reconciler) replanAfter(ctx context.Context, applied *apply.Applied) replan {
	again := replan{
		colliding:  r.readable(ctx, applied.Colliding),
		outdated:   !applied.Failed && applied.IsOutdated(),
		takenNames: len(applied.TakenNames) > 0,
	}
	logger := klog.FromContext(ctx)
	switch {
	case again.outdated:
		logger.Info("An object is gone or cannot be changed; planning again without it")
	case len(again.colliding) > 0:
		logger.Info("The name of a new revision is taken; planning again with the object of that name")
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
	if len(p.colliding) > 0 || p.outdated {
		return err == nil || isReported(err)
	}
	return p.takenNames && err == nil && ended.isAtOnce()
}

// isForNamesOnly reports whether taken pod names are the only reason.
func (p replan) isForNamesOnly() bool { return p.takenNames && len(p.colliding) == 0 && !p.outdated }

// recordApplied leaves orphans that an adoption did not find out of the next snapshots (D-23), and marks objects that cannot be changed.
func (r *Reconciler) recordApplied(applied *apply.Applied) {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	for _, key := range applied.Vanished {
		r.state.store.ForgetOrphan(key.Resource, key.Namespace, key.Name)
	}
	for _, key := range applied.Sealed {
		r.state.store.Seal(key.Resource, key.Namespace, key.Name)
	}
}

// readable returns the revisions that can be read. The others are skipped, as the watch skips them. If a skipped one has the name of a new
// revision, the next plan does not know it either, and the reconcile fails because the name is taken.
func (r *Reconciler) readable(ctx context.Context, objects [][]byte) []*cluster.Revision {
	var revisions []*cluster.Revision
	for _, object := range objects {
		parsed, err := served.Parse(object)
		if err != nil {
			klog.FromContext(ctx).Error(brief.Error(err), "Skipped a ControllerRevision that cannot be read")
			continue
		}
		revisions = append(revisions, cluster.NewRevision(parsed))
	}
	return revisions
}

// createdRevisions reads the revisions that a plan has created, because the caches need not show them yet. If one cannot be read, the next plan
// finds its name taken, and the plan after that knows it.
func (r *Reconciler) createdRevisions(ctx context.Context, namespace string, applied *apply.Applied) []*cluster.Revision {
	var created [][]byte
	for _, name := range applied.Created {
		if object, err := r.writer.Read(ctx, revisionKey(namespace, name)); err == nil {
			created = append(created, object)
		}
	}
	return r.readable(ctx, created)
}
