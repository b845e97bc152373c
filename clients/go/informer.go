package nodewise

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"nodewise.dev/clients/go/internal/cluster"
)

// catchUpPeriod is how often it is looked whether an informer has reached a version that somebody waits for.
const catchUpPeriod = 100 * time.Millisecond

// informed takes the objects of a resource from an informer that somebody else runs.
//
// Its handlers are told of objects one by one, after a list in any order, and not of the version that the watch has reached. So
// nothing is taken for reached but what the informer's own store says, once everything in it has arrived here; that is
// compared, object by object, while somebody waits.
func (r *Reconciler) informed(
	kept kept, informer cache.SharedIndexInformer, unread func(cluster.Resource, error),
) func(context.Context) {
	feed := &feed{kept: kept, state: r.state, unread: unread}
	return func(ctx context.Context) {
		handler := cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { feed.hear(object, feed.putReadable) },
			UpdateFunc: func(_, object any) { feed.hear(object, feed.putReadable) },
			DeleteFunc: func(object any) { feed.hear(object, feed.remove) },
		}
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			unread(kept.resource, fmt.Errorf("following an informer: %w", err))
			return
		}
		defer func() { _ = informer.RemoveEventHandler(registration) }()
		if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			return
		}
		isFirst := true
		wait.UntilWithContext(ctx, func(context.Context) {
			if isFirst || feed.isWaitedFor() {
				isFirst = !feed.catchUp(informer) && isFirst
			}
		}, catchUpPeriod)
	}
}

// hear takes in an object of an informer. A pod that is gone while nobody watched is given in a state that may be long past: the
// caches know a better one.
func (f *feed) hear(object any, into func(*cluster.Store, any) *cluster.Transition) {
	if tombstone, isTombstone := object.(cache.DeletedFinalStateUnknown); isTombstone {
		into = func(store *cluster.Store, object any) *cluster.Transition {
			key, err := keyOf(object)
			if err != nil {
				return nil
			}
			return store.Remove(f.resource, key)
		}
		object = tombstone.Obj
	}
	f.state.change(func(store *cluster.Store, tell func(*cluster.Transition)) {
		tell(into(store, object))
	})
}

func (f *feed) isWaitedFor() bool {
	f.state.mu.Lock()
	defer f.state.mu.Unlock()
	return f.state.gate.Waits()
}

// catchUp advances to the version that an informer has reached, if everything that it has is here.
func (f *feed) catchUp(informer cache.SharedIndexInformer) bool {
	// First the version, then what it has: that is at least as new.
	version := informer.GetStore().LastStoreSyncResourceVersion()
	objects := map[types.NamespacedName]any{}
	for _, object := range informer.GetStore().List() {
		if key, err := keyOf(object); err == nil {
			objects[key] = object
		}
	}
	hasAll := false
	f.state.change(func(store *cluster.Store, _ func(*cluster.Transition)) {
		if hasAll = f.hasAll(store, objects); hasAll {
			store.Listed(f.resource, version)
		}
	})
	return hasAll
}

func (f *feed) hasAll(store *cluster.Store, objects map[types.NamespacedName]any) bool {
	gone := store.Missing(f.resource, func(key types.NamespacedName) bool { return objects[key] != nil })
	if len(gone) > 0 {
		return false
	}
	for key, object := range objects {
		known, isKept := store.Version(f.resource, key)
		_, version, err := identify(object)
		if err != nil || isKept && known != version || !isKept && f.concerns(object) {
			return false
		}
	}
	return true
}
