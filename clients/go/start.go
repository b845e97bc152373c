package nodewise

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"nodewise.dev/clients/go/internal/brief"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/served"
)

// Start begins to watch, and enqueues workloads that must be reconciled. It returns at once, before the caches are filled: see
// [Reconciler.WaitForSync]. The watches end with the context. Start may be called once. With several kinds, see [Reconciler.StartKinds].
func (r *Reconciler) Start(ctx context.Context, queue Queue) error {
	if len(r.controllers) > 1 {
		return fmt.Errorf("the Reconciler owns %v: call StartKinds, with a queue for each kind", r.Kinds())
	}
	return r.StartKinds(ctx, func(Kind) Queue { return queue })
}

// StartKinds is Start for several kinds: queueOf returns the queue of each kind. Keys of its queue are given to [Reconciler.ReconcileKind].
func (r *Reconciler) StartKinds(ctx context.Context, queueOf func(Kind) Queue) error {
	queues := make([]Queue, 0, len(r.controllers))
	for _, owned := range r.Kinds() {
		queue := queueOf(owned)
		if queue == nil {
			return errors.New("there is no queue: give Start the one whose keys go to Reconcile, or call Run, which has its own")
		}
		queues = append(queues, queue)
	}
	if r.started.Swap(true) {
		return errors.New("a Reconciler is started once: make a new one, what this one remembers is not true any more")
	}
	if err := r.makeWriters(ctx); err != nil {
		return err
	}
	sources, err := r.sources(ctx)
	if err != nil {
		return err
	}
	for i, controller := range r.controllers {
		controller.measurements.endWith(ctx)
		controller.enqueuer.start(queues[i])
	}
	for _, source := range sources {
		go source(ctx)
	}
	go r.resync(ctx)
	return nil
}

// WaitForSync waits until every cache is filled.
func (r *Reconciler) WaitForSync(ctx context.Context) error {
	synced := func(context.Context) (bool, error) { return r.Synced(), nil }
	if err := wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, synced); err != nil {
		r.caches.mu.Lock()
		defer r.caches.mu.Unlock()
		return fmt.Errorf("waiting for the caches of %v: %w", r.caches.store.Unsynced(), err)
	}
	return nil
}

// resync enqueues all workloads after each resync period.
func (r *Reconciler) resync(ctx context.Context) {
	if r.config.resync > 0 {
		wait.UntilWithContext(ctx, func(context.Context) { r.enqueueAll() }, r.config.resync)
	}
}

func (r *Reconciler) enqueueAll() {
	r.caches.mu.Lock()
	defer r.caches.mu.Unlock()
	for _, controller := range r.controllers {
		for _, key := range r.caches.store.Keys(controller.kind.Kind) {
			controller.enqueuer.enqueue(key)
		}
	}
}

// sources returns the functions that keep the caches up to date.
func (r *Reconciler) sources(ctx context.Context) ([]func(context.Context), error) {
	raw, err := served.NewClient(r.rest, r.client)
	if err != nil {
		return nil, err
	}
	if r.typed, err = r.typedClient(); err != nil {
		return nil, err
	}
	namespace, logger := r.config.namespace, klog.FromContext(ctx)
	onUnreadable := func(resource cluster.Resource, err error) {
		logger.Error(brief.Error(err), "Skipped an object that cannot be read", "resource", resource)
	}
	r.caches.onCut(func(cut cluster.CutObject) {
		logger.Info("Labels that workloads may read are not sent, since the object has too many", "resource", cut.Resource,
			"namespace", cut.Namespace, "name", cut.Name, "labels", cut.Labels)
	})
	reflector := func(of resourceCache, listWatch cache.ListerWatcher, example runtime.Object) func(context.Context) {
		feed := &feed{resourceCache: of, caches: r.caches, onUnreadable: onUnreadable}
		tracked := r.watches.track(of.resource, cache.ToListerWatcherWithContext(listWatch), r.caches.listBegins)
		made := cache.NewReflectorWithOptions(tracked, example, feed, cache.ReflectorOptions{Name: string(of.resource)})
		return made.RunWithContext
	}
	listWatch := func(resource cluster.Resource, reduce func(*served.Object) runtime.Object) cache.ListerWatcher {
		return raw.ListWatch(resource.InAPI(), namespace, reduce)
	}
	stage := func(object *served.Object) runtime.Object { return r.caches.stage(object) }
	staged := revisions
	staged.slim = func(object any) (any, error) {
		if shown, isShown := object.(*served.Object); isShown {
			return stage(shown), nil
		}
		return object, nil
	}
	var sources []func(context.Context)
	for _, resource := range r.caches.store.Watched() {
		var source func(context.Context)
		switch {
		case resource == cluster.Revisions:
			source = r.afterDaemonSets(reflector(staged, listWatch(resource, stage), &served.Object{}))
		case resource == cluster.Pods && r.config.pods != nil:
			source = r.followInformer(pods, r.config.pods, onUnreadable)
		case resource == cluster.Pods:
			source = reflector(pods, podListWatch(r.typed, namespace), &corev1.Pod{})
		case resource == cluster.Nodes && r.config.nodes != nil:
			source = r.followInformer(nodes, r.config.nodes, onUnreadable)
		case resource == cluster.Nodes:
			source = reflector(nodes, nodeListWatch(r.typed), &corev1.Node{})
		case resource == cluster.RolloutPolicies:
			source = r.whileInstalled(policies, raw, func(gone func()) func(context.Context) {
				return reflector(policies, reportGone(listWatch(resource, nil), gone), &served.Object{})
			})
		default:
			source = reflector(workloadCaches[resource], listWatch(resource, nil), &served.Object{})
		}
		sources = append(sources, source)
	}
	return sources, nil
}

// afterDaemonSets delays a source until DaemonSets have been listed: they decide which revisions are kept with their data.
func (r *Reconciler) afterDaemonSets(source func(context.Context)) func(context.Context) {
	return func(ctx context.Context) {
		areListed := func(context.Context) (bool, error) {
			r.caches.mu.Lock()
			defer r.caches.mu.Unlock()
			return r.caches.store.Reached(cluster.DaemonSets) != "", nil
		}
		if wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, areListed) == nil {
			source(ctx)
		}
	}
}

// typedClient makes a client that reads pods and nodes as Protobuf. That is the fastest way, and it can read every time that an apiserver
// stores, see [nodewise.dev/clients/go/convert.PodJSON].
func (r *Reconciler) typedClient() (kubernetes.Interface, error) {
	config := rest.CopyConfig(r.rest)
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	clients, err := kubernetes.NewForConfigAndClient(config, r.client)
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", config.Host, err)
	}
	return clients, nil
}

func podListWatch(clients kubernetes.Interface, namespace string) cache.ListerWatcher {
	return served.MostRecent(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return clients.CoreV1().Pods(namespace).List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return clients.CoreV1().Pods(namespace).Watch(ctx, options)
		},
	})
}

func nodeListWatch(clients kubernetes.Interface) cache.ListerWatcher {
	return served.MostRecent(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return clients.CoreV1().Nodes().List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return clients.CoreV1().Nodes().Watch(ctx, options)
		},
	})
}
