package nodewise

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"nodewise.dev/clients/go/internal/brief"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/served"
)

// A custom resource may be installed and removed at any time. While it is not there, there are no objects. A resource that is there and cannot be
// listed is another matter: then it is not known which objects there are, and nothing is planned until it is. The same is true for one that is served
// only in versions that this program does not know (L-2).

// discoveryPeriod is the time between two looks whether an optional resource is installed by now.
const discoveryPeriod = 10 * time.Second

// whileInstalled makes a source for a resource that need not be installed. While it is not, the caches have no object of it, and nothing waits
// for a list of them. The function watches makes a source that is used while the resource is installed; it calls gone when the apiserver does not
// serve the resource any more.
func (r *Reconciler) whileInstalled(
	of resourceCache, raw *served.Client, watches func(gone func()) func(context.Context),
) func(context.Context) {
	feed := &feed{resourceCache: of, caches: r.caches}
	return func(ctx context.Context) {
		logger := klog.FromContext(ctx).WithValues("resource", of.resource)
		isAbsent := false
		for ctx.Err() == nil {
			again := r.watches.beginsAnew()
			asking, cancel := context.WithTimeout(ctx, r.config.callTimeout)
			isInstalled, err := raw.IsInstalled(asking, of.resource.InAPI())
			cancel()
			pause := r.discovery
			var other *served.OtherVersionError
			r.watches.setError(of.resource, brief.Error(err))
			switch {
			case isInstalled:
				if isAbsent {
					logger.Info("The resource is installed by now")
				}
				isAbsent = false
				watching, gone := context.WithCancel(ctx)
				watches(gone)(watching)
				gone()
				// While the resource is being removed, discovery may still name it.
				pause = min(pause, time.Second)
			case errors.As(err, &other):
				if feed.unknown() == "" {
					logger.Error(err, "Nothing is rolled out without the objects of this resource")
				}
				isAbsent = false
				feed.setUnknown(err.Error())
			case err != nil:
				pause = min(pause, time.Second)
				logger.V(1).Info("Trying again", "reason", brief.Text(err.Error()))
			case !isAbsent || feed.isUnlisted() || feed.unknown() != "":
				if !isAbsent {
					logger.Info("The resource is not installed")
				}
				isAbsent = true
				r.watches.listing(of.resource)
				// There is nothing that could fail.
				_ = feed.Replace(nil, "")
			}
			select {
			case <-ctx.Done():
			case <-again:
			case <-time.After(pause):
			}
		}
	}
}

// policiesOnce reads the RolloutPolicies that target a DaemonSet, or may target it.
func policiesOnce(
	ctx context.Context, raw *served.Client, daemonSet *served.Object, timeout time.Duration,
) ([]*cluster.Policy, error) {
	// A DaemonSet whose spec cannot be read has policies, too.
	workload, _ := cluster.NewWorkload(cluster.DaemonSet, daemonSet)
	store := cluster.NewStore(1, cluster.DaemonSet)
	store.PutWorkload(workload)
	err := raw.Each(ctx, cluster.RolloutPolicies.InAPI(), daemonSet.Namespace, timeout, func(object *served.Object) {
		store.PutPolicy(cluster.NewPolicy(object))
	})
	if served.IsNotFound(err) {
		asking, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		_, err = raw.IsInstalled(asking, cluster.RolloutPolicies.InAPI())
	}
	if err != nil {
		return nil, err
	}
	return store.Policies(workload), nil
}

// setUnknown records why it is not known which objects of the resource there are, until the next list.
func (f *feed) setUnknown(reason string) {
	f.caches.mu.Lock()
	defer f.caches.mu.Unlock()
	f.caches.store.SetUnknown(f.resource, brief.Text(reason))
}

// unknown returns why it is not known which objects of the resource there are; empty if it is.
func (f *feed) unknown() string {
	f.caches.mu.Lock()
	defer f.caches.mu.Unlock()
	return f.caches.store.Unknown(f.resource)
}

// isUnlisted reports whether the caches wait for a list of the resource.
func (f *feed) isUnlisted() bool {
	f.caches.mu.Lock()
	defer f.caches.mu.Unlock()
	for _, resource := range f.caches.store.Unsynced() {
		if resource == f.resource {
			return true
		}
	}
	return false
}

// reportGone wraps a ListerWatcher. It calls gone when the apiserver does not serve the resource.
func reportGone(of cache.ListerWatcher, gone func()) cache.ListerWatcher {
	inner := cache.ToListerWatcherWithContext(of)
	noted := func(err error) error {
		if served.IsNotFound(err) {
			gone()
		}
		return err
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := inner.ListWithContext(ctx, options)
			return list, noted(err)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			watching, err := inner.WatchWithContext(ctx, options)
			return watching, noted(err)
		},
	}
}
