package nodewise

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/gate"
)

// catchUpPeriod is how often the Reconciler checks whether an informer has reached a version that a workload waits for.
const catchUpPeriod = 100 * time.Millisecond

// followInformer takes the objects of a resource from an informer of the program.
//
// An informer notifies its handlers of one object at a time, after a list in any order, and not of the version that its watch has reached. So
// followInformer takes a sample of the informer's store and the store's version. The version counts as reached when every object of the
// sample has arrived here, in the sampled state or a newer one. Handlers are notified of all changes in order, so that always happens.
// Samples are taken only while a workload waits.
func (r *Reconciler) followInformer(
	of resourceCache, informer cache.SharedIndexInformer, onUnreadable func(cluster.Resource, error),
) func(context.Context) {
	feed := &feed{resourceCache: of, caches: r.caches, onUnreadable: onUnreadable}
	return func(ctx context.Context) {
		handler := cache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { feed.handle(object, feed.putReadable) },
			UpdateFunc: func(_, object any) { feed.handle(object, feed.putReadable) },
			DeleteFunc: func(object any) { feed.handle(object, feed.remove) },
		}
		var logged sync.Once
		note := func(err error) {
			r.watches.setError(of.resource, err)
			if err != nil {
				logged.Do(func() { klog.FromContext(ctx).Error(err, "An informer cannot be used", "resource", of.resource) })
			}
		}
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			note(fmt.Errorf("following an informer: %w", err))
			return
		}
		defer func() { _ = informer.RemoveEventHandler(registration) }()
		if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
			return
		}
		var awaited *sample
		isFirst := true
		wait.UntilWithContext(ctx, func(context.Context) {
			if awaited == nil && (isFirst || feed.isWaitedFor()) {
				awaited, err = feed.sample(informer.GetStore())
				note(err)
			}
			if awaited != nil && feed.hasArrived(awaited) {
				awaited, isFirst = nil, false
			}
		}, catchUpPeriod)
	}
}

// sample is the content of an informer's store at one time. Objects that have arrived here are removed from it.
type sample struct {
	store   cache.Store
	version string
	// beginsAnew is true if the version is older than the one that was reached before: then versions cannot be compared (D-112).
	beginsAnew bool
	// missing are the versions of the objects that have not arrived; empty for objects that were deleted.
	missing map[types.NamespacedName]string
}

// errNoVersion says that the informer's store has no version. Without one the own-write gate would never hold a workload back.
var errNoVersion = errors.New("the informer does not tell which version its store has reached: is client-go's feature AtomicFIFO off?")

// handle applies an object of an informer to the caches. For an object that was deleted while the informer did not watch, the informer has only
// an old state. The caches have a newer one, so only the key is used.
func (f *feed) handle(object any, into func(*cluster.Store, any) *cluster.Transition) {
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
	f.caches.change(func(store *cluster.Store, changed func(*cluster.Transition)) {
		changed(into(store, object))
	})
}

func (f *feed) isWaitedFor() bool {
	f.caches.mu.Lock()
	defer f.caches.mu.Unlock()
	return f.caches.waits() || f.caches.store.Relisting()
}

// sample takes a sample of a store.
func (f *feed) sample(store cache.Store) (*sample, error) {
	// The version is read before the objects, so these are at least as new as the version.
	taken := &sample{store: store, version: store.LastStoreSyncResourceVersion(), missing: map[types.NamespacedName]string{}}
	if taken.version == "" {
		return nil, errNoVersion
	}
	had := map[types.NamespacedName]string{}
	// Foreign pods are found without the lock: they may be most pods of a cluster, and everything under the lock delays the reconciles.
	foreign := map[types.NamespacedName]bool{}
	for _, object := range store.List() {
		if key, version, err := identify(object); err == nil {
			had[key] = version
			if f.isForeign != nil && f.isForeign(f.caches.store, object) {
				foreign[key] = true
			}
		}
	}
	f.caches.mu.Lock()
	defer f.caches.mu.Unlock()
	taken.beginsAnew = gate.IsBehind(f.caches.store.Reached(f.resource), taken.version)
	isListed := func(key types.NamespacedName) bool { return had[key] != "" }
	for _, key := range f.caches.store.Missing(f.resource, isListed) {
		taken.missing[key] = ""
	}
	for key, version := range had {
		if known, isKept := f.caches.store.Version(f.resource, key); known != version && (isKept || !foreign[key]) {
			taken.missing[key] = version
		}
	}
	return taken, nil
}

// hasArrived reports whether all objects of a sample have arrived. If so, it records that the sample's version is reached.
func (f *feed) hasArrived(sample *sample) bool {
	f.caches.change(func(store *cluster.Store, _ func(*cluster.Transition)) {
		maps.DeleteFunc(sample.missing, func(key types.NamespacedName, version string) bool {
			return f.isHere(store, sample, key, version)
		})
		if len(sample.missing) == 0 {
			f.caches.listed(f.resource, sample.version)
		}
	})
	return len(sample.missing) == 0
}

// isHere reports whether the caches have an object in the sampled state or a newer one.
func (f *feed) isHere(store *cluster.Store, sample *sample, key types.NamespacedName, then string) bool {
	known, isKept := store.Version(f.resource, key)
	if order, isOrdered := gate.Compare(known, then); isKept && isOrdered && (order == 0 || order > 0 && !sample.beginsAnew) {
		return true
	}
	object, exists, err := sample.store.GetByKey(cache.NewObjectName(key.Namespace, key.Name).String())
	if err != nil || !exists {
		return !isKept
	}
	isCached, err := f.isCached(store, object)
	if err != nil || !isCached {
		// An object that cannot be read is not waited for.
		return err != nil || !isKept
	}
	_, now, err := identify(object)
	return err == nil && isKept && known == now
}
