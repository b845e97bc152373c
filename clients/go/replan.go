package nodewise

import (
	"context"

	"k8s.io/klog/v2"

	"nodewise.dev/clients/go/internal/apply"
	"nodewise.dev/clients/go/internal/brief"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/served"
)

// replan is why another plan is to follow in the same reconcile, if so.
type replan struct {
	// colliding are revisions whose names a new revision was to have.
	colliding []*cluster.Revision
	// outdated: something is not as it was planned.
	outdated bool
	// takenNames: names of new pods are taken.
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

// follows tells whether another plan follows, after a report that ended so. After names of pods were taken the service says so in its
// answer: if something failed besides, the workload comes back by its back-off.
func (p replan) follows(ended ending, err error) bool {
	if len(p.colliding) > 0 || p.outdated {
		return err == nil || isReported(err)
	}
	return p.takenNames && err == nil && ended.isAtOnce()
}

// isForNamesOnly tells whether names of pods that are taken are the only reason.
func (p replan) isForNamesOnly() bool { return p.takenNames && len(p.colliding) == 0 && !p.outdated }

// heed leaves out from now on what an adoption did not find (D-23), and leaves alone what cannot be changed.
func (r *Reconciler) heed(applied *apply.Applied) {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	for _, key := range applied.Vanished {
		r.state.store.ForgetOrphan(key.Resource, key.Namespace, key.Name)
	}
	for _, key := range applied.Sealed {
		r.state.store.Seal(key.Resource, key.Namespace, key.Name)
	}
}

// readable are the revisions that can be read; the others are passed over, as by the watch. What the name of a new revision
// collides with is then not known to the next plan, so the workload fails and says that the name is taken.
func (r *Reconciler) readable(ctx context.Context, objects [][]byte) []*cluster.Revision {
	var revisions []*cluster.Revision
	for _, object := range objects {
		parsed, err := served.Parse(object)
		if err != nil {
			klog.FromContext(ctx).Error(brief.Error(err), "Passed over a ControllerRevision that cannot be read")
			continue
		}
		revisions = append(revisions, cluster.NewRevision(parsed))
	}
	return revisions
}

// createdRevisions are the revisions that a plan created, as they are: the caches need not show them yet, and their names are
// taken. Without one of them the next plan finds the name taken, and the one after that has it.
func (r *Reconciler) createdRevisions(ctx context.Context, namespace string, applied *apply.Applied) []*cluster.Revision {
	var created [][]byte
	for _, name := range applied.Created {
		if object, err := r.writer.Read(ctx, revisionKey(namespace, name)); err == nil {
			created = append(created, object)
		}
	}
	return r.readable(ctx, created)
}
