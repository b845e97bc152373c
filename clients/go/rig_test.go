package nodewise

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"google.golang.org/protobuf/proto"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
	"nodewise.dev/clients/go/served"
)

var key = types.NamespacedName{Namespace: "ns", Name: "agent"}

// rig is a Reconciler on a cluster in memory, whose watches show what happens at once, unless they are held back.
type rig struct {
	*Reconciler
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
	made := &rig{Reconciler: reconciler, t: t, queue: &queueInMemory{delays: map[types.NamespacedName]time.Duration{}}}
	made.cluster = &clusterInMemory{t: t, rig: made, version: 100, objects: map[write.Key]map[string]any{}}
	reconciler.writer = made.cluster
	reconciler.waker.start(made.queue)
	for _, kept := range []kept{daemonSets, revisions, pods, nodes} {
		if err := made.feed(kept).Replace(nil, "100"); err != nil {
			t.Fatal(err)
		}
	}
	return made
}

func (r *rig) feed(kept kept) *feed {
	return &feed{kept: kept, state: r.state, unread: func(resource cluster.Resource, err error) {
		r.t.Errorf("%s: %v", resource, err)
	}}
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

// apply sets the DaemonSet's template to one of this image.
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

// settle reconciles until nothing is woken any more.
func (r *rig) settle() {
	r.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for r.queue.take() {
		if err := r.Reconcile(r.t.Context(), key); err != nil {
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

// queueInMemory remembers what is woken. Delays are over at once, but for long ones.
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

// clusterInMemory keeps objects as an apiserver does, and plays the kubelets: pods run as soon as they are made, and go as soon as
// they are deleted.
type clusterInMemory struct {
	t       *testing.T
	rig     *rig
	mu      sync.Mutex
	version int
	objects map[write.Key]map[string]any
	writes  []string
	events  []write.Event
	// refuse is what a write is answered with; nil lets it pass.
	refuse func(verb string, key write.Key) error
	// unseen holds the watches back.
	unseen bool
	fewest int
}

func (c *clusterInMemory) next() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	return strconv.Itoa(c.version)
}

func (c *clusterInMemory) pods() []*corev1.Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	var live []*corev1.Pod
	for key, object := range c.objects {
		if key.Resource == cluster.Pods {
			pod := new(corev1.Pod)
			convertTo(c.t, object, pod)
			live = append(live, pod)
		}
	}
	return live
}

// keep stores an object under a new version, and shows it to the watch.
func (c *clusterInMemory) keep(at write.Key, object map[string]any) write.Written {
	c.version++
	version := strconv.Itoa(c.version)
	object["metadata"].(map[string]any)["resourceVersion"] = version
	c.objects[at] = object
	c.show(at, object, (*feed).Update)
	return write.Written{Name: at.Name, ResourceVersion: version}
}

func (c *clusterInMemory) show(at write.Key, object map[string]any, how func(*feed, any) error) {
	if c.unseen {
		return
	}
	text, err := json.Marshal(object)
	if err != nil {
		c.t.Error(err)
	}
	var seen any
	var of kept
	switch at.Resource {
	case cluster.Pods:
		pod := new(corev1.Pod)
		convertTo(c.t, object, pod)
		seen, of = pod, pods
	case cluster.DaemonSets, cluster.Revisions:
		if seen, err = served.Parse(text); err != nil {
			c.t.Error(err)
		}
		of = daemonSets
		if at.Resource == cluster.Revisions {
			of = revisions
		}
	default:
		c.t.Errorf("nobody writes %s", at)
	}
	if err := how(c.rig.feed(of), seen); err != nil {
		c.t.Error(err)
	}
}

func (c *clusterInMemory) begin(verb string, at write.Key) error {
	c.writes = append(c.writes, verb+" "+string(at.Resource))
	if c.refuse != nil {
		return c.refuse(verb, at)
	}
	return nil
}

func (c *clusterInMemory) Writes() bool { return true }

func (c *clusterInMemory) Create(
	_ context.Context, resource cluster.Resource, namespace string, manifest []byte,
) (write.Written, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var object map[string]any
	if err := json.Unmarshal(manifest, &object); err != nil {
		return write.Written{}, err
	}
	meta := object["metadata"].(map[string]any)
	at := write.Key{Resource: resource, Namespace: namespace, Name: meta["name"].(string)}
	if err := c.begin("create", at); err != nil {
		return write.Written{}, err
	}
	if c.objects[at] != nil {
		return write.Written{}, &write.Error{Refusal: write.AlreadyExists, Status: 409, Message: "it exists"}
	}
	meta["namespace"], meta["uid"] = namespace, fmt.Sprintf("uid-%d", c.version)
	if resource == cluster.Pods {
		pod := new(corev1.Pod)
		convertTo(c.t, object, pod)
		pod.UID = types.UID(meta["uid"].(string))
		projected, err := convert.Pod(pod)
		if err != nil {
			return write.Written{}, err
		}
		object["spec"].(map[string]any)["nodeName"] = projected.GetTargetNodeName()
		object["status"] = map[string]any{
			"phase": "Running",
			"conditions": []any{map[string]any{
				"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z",
			}},
		}
	}
	return c.keep(at, object), nil
}

func (c *clusterInMemory) Patch(_ context.Context, at write.Key, _ types.PatchType, patch []byte) (write.Written, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.begin("patch", at); err != nil {
		return write.Written{}, err
	}
	object := c.objects[at]
	if object == nil {
		return write.Written{}, &write.Error{Refusal: write.NotFound, Status: 404, Message: "it is gone"}
	}
	var changes map[string]any
	if err := json.Unmarshal(patch, &changes); err != nil {
		return write.Written{}, err
	}
	merge(object, changes)
	return c.keep(at, object), nil
}

func (c *clusterInMemory) Delete(_ context.Context, at write.Key, _ types.UID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.begin("delete", at); err != nil {
		return err
	}
	object := c.objects[at]
	if object == nil {
		return &write.Error{Refusal: write.NotFound, Status: 404, Message: "it is gone"}
	}
	c.version++
	object["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(c.version)
	delete(c.objects, at)
	c.show(at, object, (*feed).Delete)
	left := 0
	for key := range c.objects {
		if key.Resource == cluster.Pods {
			left++
		}
	}
	c.fewest = min(c.fewest, left)
	return nil
}

func (c *clusterInMemory) ReplaceStatus(_ context.Context, at write.Key, body []byte) (write.Written, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.begin("update", at); err != nil {
		return write.Written{}, err
	}
	var object map[string]any
	if err := json.Unmarshal(body, &object); err != nil {
		return write.Written{}, err
	}
	live := c.objects[at]
	if live["metadata"].(map[string]any)["resourceVersion"] != object["metadata"].(map[string]any)["resourceVersion"] {
		return write.Written{}, &write.Error{Refusal: write.Conflict, Status: 409, Message: "it has changed"}
	}
	live["status"] = object["status"]
	return c.keep(at, live), nil
}

func (c *clusterInMemory) Read(_ context.Context, at write.Key) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.objects[at] == nil {
		return nil, &write.Error{Refusal: write.NotFound, Status: 404, Message: "it is gone"}
	}
	return json.Marshal(c.objects[at])
}

func (c *clusterInMemory) Emit(event write.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.events = append(c.events, event)
}

func (c *clusterInMemory) count(writes string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	count := 0
	for _, write := range c.writes {
		if write == writes {
			count++
		}
	}
	return count
}

func merge(object, changes map[string]any) {
	for name, value := range changes {
		inner, isObject := value.(map[string]any)
		present, hasObject := object[name].(map[string]any)
		switch {
		case isObject && hasObject:
			merge(present, inner)
		case value == nil:
			delete(object, name)
		default:
			object[name] = value
		}
	}
}

func convertTo(t *testing.T, object map[string]any, into any) {
	t.Helper()
	text, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// scripted is a planner that answers as it is told.
type scripted struct {
	plan    func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error)
	report  func(report *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error)
	asked   []*nodewisev1.PlanRequest
	reports []*nodewisev1.ReportRequest
}

func (s *scripted) Plan(_ context.Context, _ string, build planclient.BuildRequest) (*planclient.Answer, error) {
	request, err := build(func(planclient.Digest) bool { return false })
	if err != nil {
		return nil, err
	}
	s.asked = append(s.asked, request)
	plan, err := s.plan(request)
	if err != nil {
		return nil, err
	}
	if plan.Workload == nil {
		plan.Workload = &nodewisev1.WorkloadReference{Kind: "DaemonSet", Namespace: key.Namespace, Name: key.Name, Uid: "d1"}
	}
	return &planclient.Answer{Plan: plan}, nil
}

func (s *scripted) Report(_ context.Context, report *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
	s.reports = append(s.reports, proto.CloneOf(report))
	if s.report != nil {
		return s.report(report)
	}
	return &nodewisev1.ReportResponse{State: report.GetState(), Requeue: nodewisev1.Requeue_REQUEUE_NONE}, nil
}

// planOf is a plan of these actions, in one phase and one batch.
func planOf(kind nodewisev1.PhaseKind, actions ...*nodewisev1.Action) *nodewisev1.Plan {
	for i, action := range actions {
		action.Id = uint32(i + 1)
	}
	batch := &nodewisev1.Batch{Actions: slices.Clone(actions)}
	return &nodewisev1.Plan{
		Verdict: nodewisev1.Verdict_VERDICT_APPLY,
		PlanId:  "p",
		Phases:  []*nodewisev1.Phase{{Kind: kind, Batches: []*nodewisev1.Batch{batch}, AbortsOnFailure: true}},
	}
}
