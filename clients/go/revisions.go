package nodewise

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/internal/apply"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/gate"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/served"
)

// maxReads is how many revisions are read one by one, at the same time. If more are needed, the namespace is listed once.
const maxReads = 16

// readRevisions reads from the apiserver the revisions that the next snapshot needs and that the caches do not keep with their data. These are
// mainly orphans that existed before the workload.
func (r *controller) readRevisions(ctx context.Context, workload *cluster.Workload, live []*cluster.Revision) error {
	// Two rounds: only when an undecided revision has been read is it known whether the snapshot needs its data.
	for range 2 {
		names := r.revisionsToRead(workload, live)
		if err := r.readAll(ctx, workload, names); err != nil {
			return &failure{reason: err}
		}
	}
	return nil
}

// revisionsToRead returns the names of the revisions that must be read from the apiserver before a snapshot is taken. To make room for their
// data, it drops the data of cached revisions that do not fit into the snapshot.
func (r *controller) revisionsToRead(workload *cluster.Workload, live []*cluster.Revision) sets.Set[string] {
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

func (r *controller) readAll(ctx context.Context, workload *cluster.Workload, names sets.Set[string]) error {
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
				r.storeRead(workload, name, nil)
				return nil
			}
			if err != nil {
				return fmt.Errorf("reading %s: %w", key, err)
			}
			for _, revision := range r.readable(ctx, []apply.Colliding{{Resource: cluster.Revisions, Object: object}}).revisions {
				r.storeRead(workload, name, revision)
			}
			return nil
		})
	}
	return reads.Wait()
}

// readNamespace reads revisions with one list of their namespace.
func (r *controller) readNamespace(ctx context.Context, workload *cluster.Workload, names sets.Set[string]) error {
	gone := names.Clone()
	err := r.writer.EachRevision(ctx, workload.Key.Namespace, func(object *served.Object) {
		if names.Has(object.Name) {
			gone.Delete(object.Name)
			r.storeRead(workload, object.Name, cluster.NewRevision(object))
		}
	})
	if err != nil {
		return fmt.Errorf("listing the ControllerRevisions of namespace %s: %w", workload.Key.Namespace, err)
	}
	for name := range gone {
		r.storeRead(workload, name, nil)
	}
	return nil
}

// storeRead stores a revision that was read from the apiserver for a workload; nil if the apiserver has none of that name. A newer version than
// the watch has shown is stored as if the watch had shown it: otherwise a client that changes a revision all the time could block the
// workload.
func (r *controller) storeRead(workload *cluster.Workload, name string, read *cluster.Revision) {
	key := types.NamespacedName{Namespace: workload.Key.Namespace, Name: name}
	r.state.change(func(store *cluster.Store, changed func(*cluster.Transition)) {
		kept := store.Revision(key)
		switch {
		case kept == nil:
		case read == nil:
			changed(store.RemoveRevision(key.Namespace, key.Name, nil))
		case gate.IsBehind(read.ResourceVersion, kept.ResourceVersion) && read.UID == kept.UID:
			whole := *read
			changed(store.PutRevision(read))
			store.KeepWhole(workload, &whole)
		default:
			store.KeepWhole(workload, read)
		}
	})
}
