package nodewise

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/gate"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/served"
)

// maxReads is the most revisions that are read one by one, all at a time. For more of them the namespace is listed once.
const maxReads = 16

// readRevisions reads those revisions live that the next snapshot needs and that the caches do not keep as far as it needs them, in particular
// orphans that were there before the workload came.
func (r *Reconciler) readRevisions(ctx context.Context, workload *cluster.DaemonSet, live []*cluster.Revision) error {
	// Of those read first it is only known then whether they are sent.
	for range 2 {
		names := r.unread(workload, live)
		if err := r.readAll(ctx, workload, names); err != nil {
			return &failure{reason: err}
		}
	}
	return nil
}

// unread are the names of the revisions that have to be read live before a snapshot is taken. Data that takes their place is dropped.
func (r *Reconciler) unread(workload *cluster.DaemonSet, live []*cluster.Revision) sets.Set[string] {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	store, unread := r.state.store, sets.New[string]()
	for _, revision := range store.Undecided(workload) {
		unread.Insert(revision.Name)
	}
	chosen := choose(store, workload, live)
	for _, revision := range chosen.cached {
		if !revision.IsWhole() {
			unread.Insert(revision.Name)
		}
	}
	if len(unread) > 0 {
		for _, other := range chosen.others {
			store.DropData(other)
		}
	}
	return unread
}

func (r *Reconciler) readAll(ctx context.Context, workload *cluster.DaemonSet, names sets.Set[string]) error {
	namespace := workload.Key.Namespace
	if len(names) > maxReads {
		return r.readNamespace(ctx, workload, names)
	}
	var reads errgroup.Group
	for name := range names {
		reads.Go(func() error {
			key := revisionKey(namespace, name)
			object, err := r.writer.Read(ctx, key)
			if err != nil && write.AsError(err).Refusal == write.NotFound {
				r.takeRead(workload, name, nil)
				return nil
			}
			if err != nil {
				return fmt.Errorf("reading %s: %w", key, err)
			}
			for _, revision := range r.readable(ctx, [][]byte{object}) {
				r.takeRead(workload, name, revision)
			}
			return nil
		})
	}
	return reads.Wait()
}

// readNamespace reads these revisions with one list of their namespace.
func (r *Reconciler) readNamespace(ctx context.Context, workload *cluster.DaemonSet, names sets.Set[string]) error {
	gone := names.Clone()
	err := r.writer.EachRevision(ctx, workload.Key.Namespace, func(object *served.Object) {
		if names.Has(object.Name) {
			gone.Delete(object.Name)
			r.takeRead(workload, object.Name, cluster.NewRevision(object))
		}
	})
	if err != nil {
		return fmt.Errorf("listing the ControllerRevisions of namespace %s: %w", workload.Key.Namespace, err)
	}
	for name := range gone {
		r.takeRead(workload, name, nil)
	}
	return nil
}

// takeRead takes in a revision that was read live for a workload; nil if there is none of that name. What the watch has not shown yet is
// taken in as if it had: who changes a revision again and again must not hold up the workload.
func (r *Reconciler) takeRead(workload *cluster.DaemonSet, name string, read *cluster.Revision) {
	key := types.NamespacedName{Namespace: workload.Key.Namespace, Name: name}
	r.state.change(func(store *cluster.Store, tell func(*cluster.Transition)) {
		kept := store.Revision(key)
		switch {
		case kept == nil:
		case read == nil:
			tell(store.RemoveRevision(key.Namespace, key.Name, nil))
		case gate.IsBehind(read.ResourceVersion, kept.ResourceVersion) && read.UID == kept.UID:
			whole := *read
			tell(store.PutRevision(read))
			store.KeepWhole(workload, &whole)
		default:
			store.KeepWhole(workload, read)
		}
	})
}
