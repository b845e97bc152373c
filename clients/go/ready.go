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

// Ready says why nothing can be done, if so: the service cannot be reached, or a watch does not work. It is a check for readiness, in
// the shape of package healthz of controller-runtime and of apiservers; whether the program lives does not depend on it. Before the
// start, as while another replica leads, only the service counts.
//
// Whether the service can be reached is told by the Planner, if it is a [HealthChecker]. Of another one the last call for a plan counts:
// before the first, and when the DaemonSet that it was for is not owned any more, the service is taken for one that can be reached.
func (r *Reconciler) Ready(*http.Request) error {
	unready := []error{r.health()}
	if r.started.Load() {
		unready = append(unready, r.watches.failing())
		r.state.mu.Lock()
		unsynced := r.state.store.Unsynced()
		r.state.mu.Unlock()
		if len(unsynced) > 0 {
			unready = append(unready, fmt.Errorf("waiting for the first lists of %v", unsynced))
		}
	}
	return errors.Join(unready...)
}

// health is why the service cannot be reached, if so.
func (r *Reconciler) health() error {
	if planner, tells := r.planner.(HealthChecker); tells {
		return planner.Health()
	}
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	return r.state.unanswered.err
}

// unanswered is why the last call for a plan was not answered, and for which workload it was; no error if it was answered.
type unanswered struct {
	key types.NamespacedName
	err error
}

// noteAnswer notes what became of a call for a plan. A refusal is an answer. What ended by our own doing tells nothing.
func (s *state) noteAnswer(ctx context.Context, key types.NamespacedName, err error) {
	var refused *planclient.RefusedError
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil || errors.As(err, &refused):
		s.unanswered = unanswered{}
	case ctx.Err() == nil:
		s.unanswered = unanswered{key, err}
	default:
	}
}

// watches tells of the watches that do not work.
type watches struct {
	mu     sync.Mutex
	errors map[cluster.Resource]error
	// outdated are the resources that are to be listed again before they are watched on.
	outdated map[cluster.Resource]bool
	// open are the watches under way.
	open map[cluster.Resource]watch.Interface
}

// restored lets every other resource be listed again, since the list of one has shown that etcd was restored from a backup: the
// apiserver may have passed the versions of the others by now, or just not show what is gone.
func (w *watches) restored(shown cluster.Resource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, resource := range cluster.Resources {
		w.outdated[resource] = resource != shown
		if open := w.open[resource]; open != nil && resource != shown {
			open.Stop()
		}
	}
}

func (w *watches) listing(resource cluster.Resource) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outdated[resource] = false
}

// opened notes a watch that has begun, unless a list is needed by now.
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

func (w *watches) note(resource cluster.Resource, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errors[resource] = err
}

// followed lists and watches a resource, and notes whether that works.
//
// An apiserver whose etcd was restored from a backup may be at a lower version than a watch has reached. It does not refuse such a
// watch, and shows nothing until it gets there. So before a watch goes on it is asked where it is, and one that is behind is told
// as one that does not know the version any more: then everything is listed again, of every resource (D-112).
//
// Begins is told when a list begins.
func (w *watches) followed(
	resource cluster.Resource, of cache.ListerWatcherWithContext, begins func(cluster.Resource),
) cache.ListerWatcher {
	// listed is the version of the last list: a watch from there need not ask. Lists and watches come one after the other.
	var listed string
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			w.listing(resource)
			if options.Continue == "" {
				begins(resource)
			}
			list, err := of.ListWithContext(ctx, options)
			err = brief.Error(err)
			w.note(resource, err)
			if err == nil {
				listed = versionOf(list)
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.SendInitialEvents != nil {
				// This is a list, too.
				w.listing(resource)
				begins(resource)
			} else if options.ResourceVersion != listed {
				if err := brief.Error(confirm(ctx, of, options.ResourceVersion)); err != nil {
					w.note(resource, err)
					return nil, err
				}
			}
			listed = ""
			watching, err := of.WatchWithContext(ctx, options)
			err = brief.Error(err)
			w.note(resource, err)
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

// confirm fails where an apiserver is at a lower version than this.
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
