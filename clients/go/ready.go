package nodewise

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"nodewise.dev/clients/go/internal/brief"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/gate"
	"nodewise.dev/clients/go/planclient"
)

// Ready is a readiness check with the signature of controller-runtime's healthz.Checker. It returns an error if the service cannot be reached
// or a watch fails. Do not use it as a liveness check. Before [Reconciler.Start], as in a replica that is not the leader, it checks only the
// service.
//
// If the Planner is a [HealthChecker], its Health decides whether the service can be reached. Otherwise the result of the last call of Plan
// decides. Before the first call, and when the workload of the last call is no longer owned, Ready assumes that the service can be reached.
func (r *Reconciler) Ready(*http.Request) error {
	unready := []error{r.health()}
	if r.started.Load() {
		unready = append(unready, r.watches.failing())
		r.caches.mu.Lock()
		unsynced := r.caches.store.Unsynced()
		r.caches.mu.Unlock()
		if len(unsynced) > 0 {
			unready = append(unready, fmt.Errorf("waiting for the first lists of %v", unsynced))
		}
	}
	return errors.Join(unready...)
}

// health returns an error if the service cannot be reached.
func (r *Reconciler) health() error {
	if planner, tells := r.planner.(HealthChecker); tells {
		return planner.Health()
	}
	r.caches.mu.Lock()
	defer r.caches.mu.Unlock()
	for _, state := range r.caches.states {
		if err := state.unanswered.err; err != nil {
			return err
		}
	}
	return nil
}

// unanswered is the error of the last call of Plan, and its workload. The error is nil if the service answered.
type unanswered struct {
	key types.NamespacedName
	err error
}

// recordAnswer records the result of a call of Plan. A refusal counts as an answer. A call that the Reconciler cancelled does not count.
func (s *state) recordAnswer(ctx context.Context, key types.NamespacedName, err error) {
	var refused *planclient.RefusedError
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil || errors.As(err, &refused) || isUnsupported(err):
		s.unanswered = unanswered{}
	case ctx.Err() == nil:
		s.unanswered = unanswered{key, err}
	default:
	}
}

// watches tracks the watches of the Reconciler.
type watches struct {
	mu sync.Mutex
	// errors are the last errors of the resources; nil for a watch that works.
	errors map[cluster.Resource]error
	// outdated are the resources that must be listed again before the watch goes on.
	outdated map[cluster.Resource]bool
	// open are the open watches.
	open map[cluster.Resource]watch.Interface
	// begun is closed when every resource must be listed again, and then replaced.
	begun chan struct{}
}

func newWatches() watches {
	return watches{
		errors: map[cluster.Resource]error{}, outdated: map[cluster.Resource]bool{}, open: map[cluster.Resource]watch.Interface{},
		begun: make(chan struct{}),
	}
}

// beginsAnew is closed when every resource must be listed again.
func (w *watches) beginsAnew() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.begun
}

// restored makes every other resource be listed again, after the list of one has shown that etcd was restored from a backup. The watches of
// the others need not fail by themselves: the apiserver may have passed their versions by now, and they would miss what was deleted.
func (w *watches) restored(shown cluster.Resource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, resource := range cluster.Resources {
		w.outdated[resource] = resource != shown
		if open := w.open[resource]; open != nil && resource != shown {
			open.Stop()
		}
	}
	close(w.begun)
	w.begun = make(chan struct{})
}

func (w *watches) listing(resource cluster.Resource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outdated[resource] = false
}

// opened records an open watch. It returns an error if the resource must be listed again first.
func (w *watches) opened(resource cluster.Resource, watching watch.Interface) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.outdated[resource] {
		watching.Stop()
		return apierrors.NewResourceExpired("etcd was restored from a backup")
	}
	w.open[resource] = watching
	return nil
}

func (w *watches) failing() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var failing []error
	for _, resource := range cluster.Resources {
		if err := w.errors[resource]; err != nil {
			failing = append(failing, fmt.Errorf("watching %s: %w", resource, err))
		}
	}
	return errors.Join(failing...)
}

func (w *watches) setError(resource cluster.Resource, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errors[resource] = err
}

// track wraps a ListerWatcher, and records its errors. It calls listBegins when a list begins.
//
// An apiserver whose etcd was restored from a backup may be at a lower version than a watch has reached. It does not refuse such a watch, but
// shows nothing until it reaches the version. So before a watch goes on, the apiserver is asked for its version. If that is lower, the watch
// fails as expired, and every resource is listed again (D-112).
func (w *watches) track(
	resource cluster.Resource, of cache.ListerWatcherWithContext, listBegins func(cluster.Resource),
) cache.ListerWatcher {
	// listed is the version of the last list: a watch from there need not ask. A reflector never lists and watches at the same time.
	var listed string
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			w.listing(resource)
			if options.Continue == "" {
				listBegins(resource)
			}
			list, err := of.ListWithContext(ctx, options)
			err = brief.Error(err)
			w.setError(resource, err)
			if err == nil {
				listed = versionOf(list)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents != nil {
				// This is a list, too.
				w.listing(resource)
				listBegins(resource)
			} else if options.ResourceVersion != listed {
				if err := brief.Error(confirm(ctx, of, options.ResourceVersion)); err != nil {
					w.setError(resource, err)
					return nil, err
				}
			}
			listed = ""
			watching, err := of.WatchWithContext(ctx, options)
			err = brief.Error(err)
			w.setError(resource, err)
			if err != nil {
				return nil, err
			}
			if err := w.opened(resource, watching); err != nil {
				return nil, err
			}
			return watching, nil
		},
	}
}

// confirm returns an error if the apiserver is at a lower version.
func confirm(ctx context.Context, of cache.ListerWatcherWithContext, version string) error {
	list, err := of.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return fmt.Errorf("asking for the version: %w", err)
	}
	if now := versionOf(list); gate.IsBehind(version, now) {
		return apierrors.NewResourceExpired(fmt.Sprintf("the apiserver is at resourceVersion %s, and the watch had reached %s", now, version))
	}
	return nil
}

func versionOf(list runtime.Object) string {
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return ""
	}
	return accessor.GetResourceVersion()
}
