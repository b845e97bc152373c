package nodewise

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
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
// [Reconciler.WaitForSync]. The watches end with the context. Start may be called once.
func (r *Reconciler) Start(ctx context.Context, queue Queue) error {
	if queue == nil {
		return errors.New("there is no queue: give Start the one whose keys go to Reconcile, or call Run, which has its own")
	}
	if r.started.Swap(true) {
		return errors.New("a Reconciler is started once: make a new one, what this one remembers is not true any more")
	}
	if err := r.makeWriter(ctx); err != nil {
		return err
	}
	sources, err := r.sources(ctx)
	if err != nil {
		return err
	}
	r.enqueuer.start(queue)
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
		r.state.mu.Lock()
		defer r.state.mu.Unlock()
		return fmt.Errorf("waiting for the caches of %v: %w", r.state.store.Unsynced(), err)
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
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	for _, key := range r.state.store.Keys() {
		r.enqueuer.enqueue(key)
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
	r.state.onCut(func(cut cluster.CutObject) {
		logger.Info("Labels that DaemonSets may read are not sent, since the object has too many", "resource", cut.Resource,
			"namespace", cut.Namespace, "name", cut.Name, "labels", cut.Labels)
	})
	reflector := func(of resourceCache, listWatch cache.ListerWatcher, example runtime.Object) func(context.Context) {
		feed := &feed{resourceCache: of, state: r.state, onUnreadable: onUnreadable}
		tracked := r.watches.track(of.resource, cache.ToListerWatcherWithContext(listWatch), r.state.listBegins)
		made := cache.NewReflectorWithOptions(tracked, example, feed, cache.ReflectorOptions{Name: string(of.resource)})
		return made.RunWithContext
	}
	listWatch := func(resource cluster.Resource, reduce func(*served.Object) runtime.Object) cache.ListerWatcher {
		return raw.ListWatch(appsv1.SchemeGroupVersion.WithResource(string(resource)), namespace, reduce)
	}
	stage := func(object *served.Object) runtime.Object { return r.state.stage(object) }
	staged := revisions
	staged.slim = func(object any) (any, error) {
		if shown, isShown := object.(*served.Object); isShown {
			return stage(shown), nil
		}
		return object, nil
	}
	sources := []func(context.Context){
		reflector(daemonSets, listWatch(cluster.DaemonSets, nil), &served.Object{}),
		r.afterDaemonSets(reflector(staged, listWatch(cluster.Revisions, stage), &served.Object{})),
	}
	if r.config.pods == nil {
		sources = append(sources, reflector(pods, podListWatch(r.typed, namespace), &corev1.Pod{}))
	} else {
		sources = append(sources, r.followInformer(pods, r.config.pods, onUnreadable))
	}
	if r.config.nodes == nil {
		sources = append(sources, reflector(nodes, nodeListWatch(r.typed), &corev1.Node{}))
	} else {
		sources = append(sources, r.followInformer(nodes, r.config.nodes, onUnreadable))
	}
	return sources, nil
}

// afterDaemonSets delays a source until DaemonSets have been listed: they decide which revisions are kept with their data.
func (r *Reconciler) afterDaemonSets(source func(context.Context)) func(context.Context) {
	return func(ctx context.Context) {
		areListed := func(context.Context) (bool, error) {
			r.state.mu.Lock()
			defer r.state.mu.Unlock()
			return r.state.store.Reached(cluster.DaemonSets) != "", nil
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
