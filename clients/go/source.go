package nodewise

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/served"
)

// resourceCache says how the objects of one resource are put into the caches and removed from them.
type resourceCache struct {
	resource cluster.Resource
	// put puts an object into the store. The error says that the object cannot be read.
	put func(store *cluster.Store, object any) (*cluster.Transition, error)
	// remove removes an object, which is given in its last state.
	remove func(store *cluster.Store, object any) *cluster.Transition
	// slim removes the fields that are not read.
	slim cache.TransformFunc
	// isCached reports whether the caches keep an object. The error says that the object cannot be read.
	isCached func(store *cluster.Store, object any) (bool, error)
	// isForeign is a quick check that recognizes most objects that are not kept; nil if there are hardly any. It needs no lock.
	isForeign func(store *cluster.Store, object any) bool
}

// stagedRevision is a revision of a list that is not complete yet. Only what the caches will keep is kept of it.
type stagedRevision struct {
	metav1.PartialObjectMetadata

	revision *cluster.Revision
}

// stage reduces a revision of a list as soon as it is read: all revisions together may be larger than the memory.
func (c *caches) stage(object *served.Object) *stagedRevision {
	staged := &stagedRevision{revision: cluster.NewRevision(object)}
	staged.Namespace, staged.Name, staged.ResourceVersion = object.Namespace, object.Name, object.ResourceVersion
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store.StageRevision(staged.revision)
	return staged
}

// listBegins is called when a list begins.
func (c *caches) listBegins(resource cluster.Resource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if resource == cluster.Revisions {
		c.store.ForgetStaged()
	}
}

// feed is the store of a client-go reflector. It puts the objects of a watch into the caches, in the order of the watch, and with them the
// version that the watch has reached. The own-write gate needs both at the same time. An informer reports its objects and its version
// separately, see [Reconciler.followInformer].
type feed struct {
	resourceCache
	caches *caches
	// onUnreadable is called with objects that cannot be read.
	onUnreadable func(resource cluster.Resource, err error)
}

var (
	_ cache.TransformingStore      = (*feed)(nil)
	_ cache.ReflectorBookmarkStore = (*feed)(nil)
)

// Transformer implements [cache.TransformingStore]. Fields that are not read are removed as an object arrives.
func (f *feed) Transformer() cache.TransformFunc { return f.slim }

// Add implements [cache.ReflectorStore].
func (f *feed) Add(object any) error { return f.take(object, f.putReadable) }

// Update implements [cache.ReflectorStore].
func (f *feed) Update(object any) error { return f.take(object, f.putReadable) }

// Delete implements [cache.ReflectorStore].
func (f *feed) Delete(object any) error { return f.take(object, f.remove) }

// Resync implements [cache.ReflectorStore]. The caches miss nothing, so a resync has nothing to do.
func (f *feed) Resync() error { return nil }

// Bookmark implements [cache.ReflectorBookmarkStore].
func (f *feed) Bookmark(version string) error {
	f.caches.change(func(store *cluster.Store, _ func(*cluster.Transition)) {
		store.Advance(f.resource, version)
	})
	return nil
}

// Replace implements [cache.ReflectorStore] for a complete list. Objects that it does not have are removed.
func (f *feed) Replace(objects []any, version string) error {
	listed := make(map[types.NamespacedName]bool, len(objects))
	for _, object := range objects {
		key, err := keyOf(object)
		if err != nil {
			return fmt.Errorf("a list of %s: %w", f.resource, err)
		}
		listed[key] = true
	}
	f.caches.change(func(store *cluster.Store, changed func(*cluster.Transition)) {
		if f.caches.listed(f.resource, version) {
			store.ForgetVersions(f.resource)
		}
		for _, key := range store.Missing(f.resource, func(key types.NamespacedName) bool { return listed[key] }) {
			changed(store.Remove(f.resource, key))
		}
		for _, object := range objects {
			changed(f.putReadable(store, object))
		}
	})
	f.caches.listBegins(f.resource)
	return nil
}

func (f *feed) take(object any, into func(*cluster.Store, any) *cluster.Transition) error {
	_, version, err := identify(object)
	if err != nil {
		return err
	}
	f.caches.change(func(store *cluster.Store, changed func(*cluster.Transition)) {
		changed(into(store, object))
		store.Advance(f.resource, version)
	})
	return nil
}

// putReadable skips an object that cannot be read, so that the others are not affected.
func (f *feed) putReadable(store *cluster.Store, object any) *cluster.Transition {
	transition, err := f.put(store, object)
	if err != nil {
		f.onUnreadable(f.resource, err)
	}
	return transition
}

func keyOf(object any) (types.NamespacedName, error) {
	key, _, err := identify(object)
	return key, err
}

// workloadCaches are how workloads are cached, by their resource.
var workloadCaches = map[cluster.Resource]resourceCache{
	cluster.DaemonSets:  workloadsOf(cluster.DaemonSet),
	cluster.ReplicaSets: workloadsOf(cluster.ReplicaSet),
	cluster.Deployments: workloadsOf(cluster.Deployment),
}

func workloadsOf(kind *cluster.Kind) resourceCache {
	return resourceCache{
		resource: kind.Resource,
		put: func(store *cluster.Store, object any) (*cluster.Transition, error) {
			// A workload whose spec cannot be read is cached, too, see [cluster.NewWorkload].
			workload, err := cluster.NewWorkload(kind, object.(*served.Object))
			return store.PutWorkload(workload), err
		},
		remove: func(store *cluster.Store, object any) *cluster.Transition {
			gone := object.(*served.Object)
			return store.RemoveWorkload(kind, types.NamespacedName{Namespace: gone.Namespace, Name: gone.Name})
		},
	}
}

var revisions = resourceCache{
	resource: cluster.Revisions,
	put: func(store *cluster.Store, object any) (*cluster.Transition, error) {
		if staged, isStaged := object.(*stagedRevision); isStaged {
			return store.PutRevision(staged.revision), nil
		}
		return store.PutRevision(cluster.NewRevision(object.(*served.Object))), nil
	},
	remove: func(store *cluster.Store, object any) *cluster.Transition {
		gone := cluster.NewRevision(object.(*served.Object))
		return store.RemoveRevision(gone.Namespace, gone.Name, gone)
	},
}

var pods = resourceCache{
	resource: cluster.Pods,
	slim:     convert.SlimPod,
	put: func(store *cluster.Store, object any) (*cluster.Transition, error) {
		pod, err := projectPod(object.(*corev1.Pod))
		if err != nil {
			return nil, err
		}
		return store.PutPod(pod), nil
	},
	remove: func(store *cluster.Store, object any) *cluster.Transition {
		gone := object.(*corev1.Pod)
		// A pod that cannot be read was not cached.
		last, _ := projectPod(gone)
		return store.RemovePod(gone.Namespace, gone.Name, last)
	},
	isCached: func(store *cluster.Store, object any) (bool, error) {
		pod, err := projectPod(object.(*corev1.Pod))
		return err == nil && !store.IsForeign(pod.Controller), err
	},
	isForeign: func(store *cluster.Store, object any) bool {
		return store.IsForeign(convert.Controller(object.(*corev1.Pod).OwnerReferences))
	},
}

var nodes = resourceCache{
	resource: cluster.Nodes,
	slim:     convert.SlimNode,
	put: func(store *cluster.Store, object any) (*cluster.Transition, error) {
		node := object.(*corev1.Node)
		projection, err := convert.Node(node)
		if err != nil {
			return nil, err
		}
		return store.PutNode(&cluster.Node{ResourceVersion: node.ResourceVersion, Node: projection}), nil
	},
	remove: func(store *cluster.Store, object any) *cluster.Transition {
		return store.RemoveNode(object.(*corev1.Node).Name)
	},
	isCached: func(_ *cluster.Store, object any) (bool, error) {
		_, err := convert.Node(object.(*corev1.Node))
		return err == nil, err
	},
}

// policies are kept also if their spec cannot be read, see [cluster.NewPolicy].
var policies = resourceCache{
	resource: cluster.RolloutPolicies,
	put: func(store *cluster.Store, object any) (*cluster.Transition, error) {
		return store.PutPolicy(cluster.NewPolicy(object.(*served.Object))), nil
	},
	remove: func(store *cluster.Store, object any) *cluster.Transition {
		gone := cluster.NewPolicy(object.(*served.Object))
		return store.RemovePolicy(gone.Key, gone)
	},
}

func projectPod(pod *corev1.Pod) (*cluster.Pod, error) {
	projection, err := convert.Pod(pod)
	if err != nil {
		return nil, err
	}
	return &cluster.Pod{
		Namespace: pod.Namespace, ResourceVersion: pod.ResourceVersion,
		Traceparent: pod.Annotations[convert.TraceparentAnnotation], Pod: projection,
	}, nil
}
