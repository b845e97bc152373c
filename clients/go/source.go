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

// kept is how the objects of one resource enter and leave the caches.
type kept struct {
	resource cluster.Resource
	// put takes in an object; an error says why it cannot be read.
	put func(store *cluster.Store, object any) (*cluster.Transition, error)
	// remove takes out an object, given in its last state.
	remove func(store *cluster.Store, object any) *cluster.Transition
	// slim leaves of an object what is read.
	slim cache.TransformFunc
	// concerns tells whether an object is one that is kept; an error says why it cannot be read.
	concerns func(object any) (bool, error)
	// isForeign tells at a glance of most objects that are not kept; nil where there are hardly any such.
	isForeign func(object any) bool
}

// stagedRevision is a revision of a list that is not complete, as far as it will be kept.
type stagedRevision struct {
	metav1.PartialObjectMetadata

	revision *cluster.Revision
}

// stage reduces a revision of a list as it is read: all together may be larger than what there is of memory.
func (s *state) stage(object *served.Object) *stagedRevision {
	staged := &stagedRevision{revision: cluster.NewRevision(object)}
	staged.Namespace, staged.Name, staged.ResourceVersion = object.Namespace, object.Name, object.ResourceVersion
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store.StageRevision(staged.revision)
	return staged
}

// begins is told that a list begins.
func (s *state) begins(resource cluster.Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if resource == cluster.Revisions {
		s.store.ForgetStaged()
	}
}

// feed is where a watch puts what it sees: the store that a reflector of client-go keeps up to date. Everything arrives in the
// order of the watch, and with it the version that the watch has reached; an informer would show its objects first and tell of
// its version by the way, which the own-write gate cannot use.
type feed struct {
	kept
	state *state
	// unread is told of objects that cannot be read.
	unread func(resource cluster.Resource, err error)
}

var (
	_ cache.TransformingStore      = (*feed)(nil)
	_ cache.ReflectorBookmarkStore = (*feed)(nil)
)

// Transformer implements [cache.TransformingStore]: what is not read of an object is let go as it arrives.
func (f *feed) Transformer() cache.TransformFunc { return f.slim }

// Add implements [cache.ReflectorStore].
func (f *feed) Add(object any) error { return f.take(object, f.putReadable) }

// Update implements [cache.ReflectorStore].
func (f *feed) Update(object any) error { return f.take(object, f.putReadable) }

// Delete implements [cache.ReflectorStore].
func (f *feed) Delete(object any) error { return f.take(object, f.remove) }

// Resync implements [cache.ReflectorStore]. Nothing is missed that a resync would find.
func (f *feed) Resync() error { return nil }

// Bookmark implements [cache.ReflectorBookmarkStore].
func (f *feed) Bookmark(version string) error {
	f.state.change(func(store *cluster.Store, _ func(*cluster.Transition)) {
		store.Advance(f.resource, version)
	})
	return nil
}

// Replace implements [cache.ReflectorStore]: a complete list. What is missing in it is gone.
func (f *feed) Replace(objects []any, version string) error {
	listed := make(map[types.NamespacedName]bool, len(objects))
	for _, object := range objects {
		key, err := keyOf(object)
		if err != nil {
			return fmt.Errorf("a list of %s: %w", f.resource, err)
		}
		listed[key] = true
	}
	f.state.change(func(store *cluster.Store, tell func(*cluster.Transition)) {
		if f.state.listed(f.resource, version) {
			store.ForgetVersions(f.resource)
		}
		for _, key := range store.Missing(f.resource, func(key types.NamespacedName) bool { return listed[key] }) {
			tell(store.Remove(f.resource, key))
		}
		for _, object := range objects {
			tell(f.putReadable(store, object))
		}
	})
	f.state.begins(f.resource)
	return nil
}

func (f *feed) take(object any, into func(*cluster.Store, any) *cluster.Transition) error {
	_, version, err := identify(object)
	if err != nil {
		return err
	}
	f.state.change(func(store *cluster.Store, tell func(*cluster.Transition)) {
		tell(into(store, object))
		store.Advance(f.resource, version)
	})
	return nil
}

// putReadable passes over an object that cannot be read: the others must not suffer for it.
func (f *feed) putReadable(store *cluster.Store, object any) *cluster.Transition {
	transition, err := f.put(store, object)
	if err != nil {
		f.unread(f.resource, err)
	}
	return transition
}

func keyOf(object any) (types.NamespacedName, error) {
	key, _, err := identify(object)
	return key, err
}

var daemonSets = kept{
	resource: cluster.DaemonSets,
	put: func(store *cluster.Store, object any) (*cluster.Transition, error) {
		// One whose spec cannot be read is taken in all the same.
		daemonSet, err := cluster.NewDaemonSet(object.(*served.Object))
		return store.PutDaemonSet(daemonSet), err
	},
	remove: func(store *cluster.Store, object any) *cluster.Transition {
		gone := object.(*served.Object)
		return store.RemoveDaemonSet(types.NamespacedName{Namespace: gone.Namespace, Name: gone.Name})
	},
}

var revisions = kept{
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

var pods = kept{
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
		// What cannot be read was not kept.
		last, _ := projectPod(gone)
		return store.RemovePod(gone.Namespace, gone.Name, last)
	},
	concerns: func(object any) (bool, error) {
		pod, err := projectPod(object.(*corev1.Pod))
		return err == nil && !cluster.IsForeign(pod.Controller), err
	},
	isForeign: func(object any) bool {
		return cluster.IsForeign(convert.Controller(object.(*corev1.Pod).OwnerReferences))
	},
}

var nodes = kept{
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
	concerns: func(object any) (bool, error) {
		_, err := convert.Node(object.(*corev1.Node))
		return err == nil, err
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
