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

// catchUpPeriod is how often it is looked whether an informer has reached a version that somebody waits for.
const catchUpPeriod = 100 * time.Millisecond

// informed takes the objects of a resource from an informer that somebody else runs.
//
// Its handlers are told of objects one by one, after a list in any order, and not of the version that the watch has reached. So a
// version is taken for reached when everything has arrived here that the informer's own store had when it was at that version,
// be it newer by now. That is looked after while somebody waits. However much happens meanwhile, what the store had at one time
// arrives, since handlers are told of everything in its order.
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
		var told sync.Once
		note := func(err error) {
			r.watches.note(kept.resource, err)
			if err != nil {
				told.Do(func() { klog.FromContext(ctx).Error(err, "An informer cannot be used", "resource", kept.resource) })
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

// sample is what an informer's own store had at one time, as far as it has not arrived here.
type sample struct {
	store   cache.Store
	version string
	// beginsAnew says that it is older than what was reached before: versions can no longer be put in order (D-112).
	beginsAnew bool
	// missing are the versions that objects had; empty for those that were gone.
	missing map[types.NamespacedName]string
}

// errNoVersion: were no version taken for one that is reached, the gate would hold nobody back.
var errNoVersion = errors.New("the informer does not tell which version its store has reached: is client-go's feature AtomicFIFO off?")

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
	return f.state.gate.Waits() || f.state.store.Relisting()
}

// sample takes a sample of a store.
func (f *feed) sample(store cache.Store) (*sample, error) {
	// First the version, then what it has: that is at least as new.
	taken := &sample{store: store, version: store.LastStoreSyncResourceVersion(), missing: map[types.NamespacedName]string{}}
	if taken.version == "" {
		return nil, errNoVersion
	}
	had := map[types.NamespacedName]string{}
	// All that is done under the lock holds up everybody else, and most pods of a cluster may be foreign.
	foreign := map[types.NamespacedName]bool{}
	for _, object := range store.List() {
		if key, version, err := identify(object); err == nil {
			had[key] = version
			if f.isForeign != nil && f.isForeign(object) {
				foreign[key] = true
			}
		}
	}
	f.state.mu.Lock()
	defer f.state.mu.Unlock()
	taken.beginsAnew = gate.IsBehind(f.state.store.Reached(f.resource), taken.version)
	isListed := func(key types.NamespacedName) bool { return had[key] != "" }
	for _, key := range f.state.store.Missing(f.resource, isListed) {
		taken.missing[key] = ""
	}
	for key, version := range had {
		if known, isKept := f.state.store.Version(f.resource, key); known != version && (isKept || !foreign[key]) {
			taken.missing[key] = version
		}
	}
	return taken, nil
}

// hasArrived tells whether everything of a sample has arrived, and if so notes that its version is reached.
func (f *feed) hasArrived(sample *sample) bool {
	f.state.change(func(store *cluster.Store, _ func(*cluster.Transition)) {
		maps.DeleteFunc(sample.missing, func(key types.NamespacedName, version string) bool {
			return f.isHere(store, sample, key, version)
		})
		if len(sample.missing) == 0 {
			f.state.listed(f.resource, sample.version)
		}
	})
	return len(sample.missing) == 0
}

// isHere tells whether an object is known here as it was then, or later: in particular as it is now.
func (f *feed) isHere(store *cluster.Store, sample *sample, key types.NamespacedName, then string) bool {
	known, isKept := store.Version(f.resource, key)
	if order, isOrdered := gate.Compare(known, then); isKept && isOrdered && (order == 0 || order > 0 && !sample.beginsAnew) {
		return true
	}
	object, exists, err := sample.store.GetByKey(cache.NewObjectName(key.Namespace, key.Name).String())
	if err != nil || !exists {
		return !isKept
	}
	concerns, err := f.concerns(object)
	if err != nil || !concerns {
		// What cannot be read stays what it was.
		return err != nil || !isKept
	}
	_, now, err := identify(object)
	return err == nil && isKept && known == now
}
