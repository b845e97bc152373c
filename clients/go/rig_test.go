package nodewise

import (
	"errors"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/plancheck"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/served"
)

var key = types.NamespacedName{Namespace: "ns", Name: "agent"}

// rig is a Reconciler on a cluster in memory. Its watches show changes at once, unless they are held back.
type rig struct {
	*controller
	t       *testing.T
	queue   *queueInMemory
	cluster *clusterInMemory
}

func newRig(t *testing.T, planner Planner, options ...Option) *rig {
	t.Helper()
	reconciler, err := New(&rest.Config{Host: "http://127.0.0.1:0"}, planner, options...)
	if err != nil {
		t.Fatal(err)
	}
	made := &rig{t: t, queue: &queueInMemory{delays: map[types.NamespacedName]time.Duration{}}}
	made.cluster = &clusterInMemory{t: t, rig: made, version: 100, objects: map[write.Key]map[string]any{}}
	made.attach(reconciler, planner)
	return made
}

// attach attaches a new Reconciler to the cluster, as a restart of the program does.
func (r *rig) attach(reconciler *Reconciler, planner Planner) {
	made, t := r, r.t
	t.Helper()
	made.controller = reconciler.controllers[0]
	for _, controller := range reconciler.controllers {
		controller.writer = made.cluster
		controller.enqueuer.start(made.queue)
	}
	for _, resource := range reconciler.caches.store.Watched() {
		if err := made.feed(cacheOf(resource)).Replace(nil, "100"); err != nil {
			t.Fatal(err)
		}
	}
	if planner, isScripted := planner.(*scripted); isScripted {
		planner.shows = func(plan *nodewisev1.Plan) { showFor(made.controller, plan) }
	}
}

// showFor puts the objects into the caches that a plan needs for creating pods: the nodes, and the revision of the pods. It enqueues nothing.
func showFor(r *controller, plan *nodewisev1.Plan) {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	for _, action := range plancheck.ActionsOf(plan) {
		name := action.GetCreatePod().GetNodeName()
		if _, isKept := r.state.store.Version(cluster.Nodes, types.NamespacedName{Name: name}); name != "" && !isKept {
			r.state.store.PutNode(&cluster.Node{ResourceVersion: "1", Node: &nodewisev1.Node{Name: name, Uid: name}})
		}
		if name != "" {
			r.state.store.PutRevision(currentRevision())
		}
	}
}

// currentRevision is the revision of the pods in scripted plans.
func currentRevision() *cluster.Revision {
	const object = `{"metadata":{"namespace":"ns","name":"agent-h1","uid":"r1","resourceVersion":"1","labels":{"controller-revision-hash":"h1"},
		"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"agent","uid":"d1","controller":true}]},"revision":1}`
	parsed, err := served.Parse([]byte(object))
	if err != nil {
		panic(err)
	}
	return cluster.NewRevision(parsed)
}

func (r *rig) feed(of resourceCache) *feed {
	return &feed{resourceCache: of, caches: r.caches, onUnreadable: func(resource cluster.Resource, err error) {
		r.t.Errorf("%s: %v", resource, err)
	}}
}

// cacheOf says how the objects of a resource are cached.
func cacheOf(resource cluster.Resource) resourceCache {
	switch resource {
	case cluster.Pods:
		return pods
	case cluster.Nodes:
		return nodes
	case cluster.Revisions:
		return revisions
	case cluster.RolloutPolicies:
		return policies
	default:
		return workloadCaches[resource]
	}
}

func (r *rig) addNodes(names ...string) {
	r.t.Helper()
	for _, name := range names {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: r.cluster.next()}}
		if err := r.feed(nodes).Add(node); err != nil {
			r.t.Fatal(err)
		}
	}
}

// apply sets the image of the DaemonSet's template.
func (r *rig) apply(image string) {
	r.t.Helper()
	at := write.Key{Resource: cluster.DaemonSets, Namespace: key.Namespace, Name: key.Name}
	r.cluster.mu.Lock()
	defer r.cluster.mu.Unlock()
	daemonSet := r.cluster.objects[at]
	if daemonSet == nil {
		daemonSet = map[string]any{
			"apiVersion": "apps/v1", "kind": "DaemonSet",
			"metadata": map[string]any{"namespace": key.Namespace, "name": key.Name, "uid": "d1", "generation": 0.0},
			"spec": map[string]any{
				"selector":       map[string]any{"matchLabels": map[string]any{"app": "agent"}},
				"updateStrategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxUnavailable": 2.0}},
				"template": map[string]any{
					"metadata": map[string]any{"labels": map[string]any{"app": "agent"}},
					"spec":     map[string]any{"containers": []any{map[string]any{"name": "a"}}},
				},
			},
		}
	}
	meta := daemonSet["metadata"].(map[string]any)
	meta["generation"] = meta["generation"].(float64) + 1
	template := daemonSet["spec"].(map[string]any)["template"].(map[string]any)
	template["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["image"] = image
	r.cluster.keep(at, daemonSet)
}

// annotateTemplate adds an annotation to the DaemonSet's template.
func (r *rig) annotateTemplate(name, value string) {
	r.t.Helper()
	at := write.Key{Resource: cluster.DaemonSets, Namespace: key.Namespace, Name: key.Name}
	r.cluster.mu.Lock()
	defer r.cluster.mu.Unlock()
	daemonSet := r.cluster.objects[at]
	template := daemonSet["spec"].(map[string]any)["template"].(map[string]any)
	template["metadata"].(map[string]any)["annotations"] = map[string]any{name: value}
	r.cluster.keep(at, daemonSet)
}

// addOrphan creates a copy of the pod on another node, without a controller.
func (r *rig) addOrphan(name, like, node string) {
	r.t.Helper()
	r.cluster.mu.Lock()
	defer r.cluster.mu.Unlock()
	for at, object := range r.cluster.objects {
		if at.Resource != cluster.Pods || object["spec"].(map[string]any)["nodeName"] != like {
			continue
		}
		orphan := runtime.DeepCopyJSON(object)
		meta := orphan["metadata"].(map[string]any)
		meta["name"], meta["uid"] = name, "uid-"+name
		delete(meta, "ownerReferences")
		orphan["spec"].(map[string]any)["nodeName"] = node
		at.Name = name
		r.cluster.keep(at, orphan)
		return
	}
	r.t.Fatalf("no pod is on %s", like)
}

// settle reconciles until nothing is enqueued any more.
func (r *rig) settle() {
	r.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for r.queue.take() {
		if err := r.Reconcile(r.t.Context(), key); err != nil && !errors.Is(err, ErrNotYet) {
			r.t.Fatal(err)
		}
		if time.Now().After(deadline) {
			r.t.Fatal("it does not settle")
		}
	}
}

// pods are the live pods' images by node.
func (r *rig) podImages() map[string][]string {
	images := map[string][]string{}
	for _, pod := range r.cluster.pods() {
		images[pod.Spec.NodeName] = append(images[pod.Spec.NodeName], pod.Spec.Containers[0].Image)
	}
	return images
}

// queueInMemory records the enqueued workloads. All delays but long ones are over at once.
type queueInMemory struct {
	mu     sync.Mutex
	woken  bool
	delays map[types.NamespacedName]time.Duration
}

func (q *queueInMemory) Add(types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.woken = true
}

func (q *queueInMemory) AddAfter(key types.NamespacedName, delay time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if delay < time.Second {
		q.woken = true
		return
	}
	q.delays[key] = delay
}

func (q *queueInMemory) take() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	woken := q.woken
	q.woken = false
	return woken
}
