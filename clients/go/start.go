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

// Start begins to watch, and from now on puts workloads that are to be looked at into the queue. It returns at once; see
// [Reconciler.WaitForSync]. The watches end with the context. It is called once.
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
	r.waker.start(queue)
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

// resync looks at everything, again and again.
func (r *Reconciler) resync(ctx context.Context) {
	if r.config.resync > 0 {
		wait.UntilWithContext(ctx, func(context.Context) { r.wakeEverybody() }, r.config.resync)
	}
}

func (r *Reconciler) wakeEverybody() {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	for _, key := range r.state.store.Keys() {
		r.waker.wake(key)
	}
}

// sources are what keeps the caches up to date.
func (r *Reconciler) sources(ctx context.Context) ([]func(context.Context), error) {
	raw, err := served.NewClient(r.rest, r.client)
	if err != nil {
		return nil, err
	}
	if r.typed, err = r.typedClient(); err != nil {
		return nil, err
	}
	namespace, logger := r.config.namespace, klog.FromContext(ctx)
	unread := func(resource cluster.Resource, err error) {
		logger.Error(brief.Error(err), "Passed over an object that cannot be read", "resource", resource)
	}
	r.state.sayCuts(func(cut cluster.CutObject) {
		logger.Info("Labels that DaemonSets may read are not sent, since the object has too many", "resource", cut.Resource,
			"namespace", cut.Namespace, "name", cut.Name, "labels", cut.Labels)
	})
	reflector := func(kept kept, listWatch cache.ListerWatcher, example runtime.Object) func(context.Context) {
		feed := &feed{kept: kept, state: r.state, unread: unread}
		followed := r.watches.followed(kept.resource, cache.ToListerWatcherWithContext(listWatch), r.state.begins)
		made := cache.NewReflectorWithOptions(followed, example, feed, cache.ReflectorOptions{Name: string(kept.resource)})
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
		sources = append(sources, r.informed(pods, r.config.pods, unread))
	}
	if r.config.nodes == nil {
		sources = append(sources, reflector(nodes, nodeListWatch(r.typed), &corev1.Node{}))
	} else {
		sources = append(sources, r.informed(nodes, r.config.nodes, unread))
	}
	return sources, nil
}

// afterDaemonSets waits for the first list of DaemonSets: which revisions are kept whole depends on them.
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

// typedClient reads pods and nodes, of which there are thousands, as Protobuf: it is the quickest to read, and any time that an
// apiserver keeps can be read of it.
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
