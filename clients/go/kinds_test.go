package nodewise

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
)

var web = types.NamespacedName{Namespace: "ns", Name: "web"}

// manager is a Reconciler of several kinds on a cluster in memory, with a queue for each kind.
type manager struct {
	*rig
	queues map[Kind]*keyQueue
	// retries reports whether an error is expected, so that the workload is enqueued again.
	retries func(error) bool
}

// keyQueue records the enqueued keys. All delays but long ones are over at once.
type keyQueue struct {
	queueInMemory

	keys map[types.NamespacedName]bool
}

func (q *keyQueue) Add(key types.NamespacedName) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.keys[key] = true
}

func (q *keyQueue) AddAfter(key types.NamespacedName, delay time.Duration) {
	if delay < time.Second {
		q.Add(key)
	}
}

func (q *keyQueue) takeAll() []types.NamespacedName {
	q.mu.Lock()
	defer q.mu.Unlock()
	var keys []types.NamespacedName
	for key := range q.keys {
		keys = append(keys, key)
	}
	clear(q.keys)
	slices.SortFunc(keys, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

func newManager(t *testing.T, planner Planner, options ...Option) *manager {
	t.Helper()
	made := &manager{rig: newRig(t, planner, options...)}
	made.takeQueues()
	return made
}

// restart continues with a new Reconciler, as a restart of the program does. It has no state, and lists everything.
func (m *manager) restart(planner Planner, options ...Option) {
	m.t.Helper()
	reconciler, err := New(&rest.Config{Host: "http://127.0.0.1:0"}, planner, options...)
	if err != nil {
		m.t.Fatal(err)
	}
	m.attach(reconciler, planner)
	m.takeQueues()
	m.cluster.mu.Lock()
	defer m.cluster.mu.Unlock()
	for at, object := range m.cluster.objects {
		m.cluster.show(at, object, (*feed).Update)
	}
}

func (m *manager) takeQueues() {
	m.queues = map[Kind]*keyQueue{}
	for _, controller := range m.controllers {
		queue := &keyQueue{keys: map[types.NamespacedName]bool{}}
		m.queues[Kind(controller.kind.Name)] = queue
		controller.enqueuer.mu.Lock()
		controller.enqueuer.queue = queue
		controller.enqueuer.mu.Unlock()
	}
}

// settle reconciles until nothing is enqueued any more.
func (m *manager) settle() {
	m.t.Helper()
	m.run(func() bool { return false })
}

// run reconciles until nothing is enqueued any more, or until ended returns true. Errors count only until then.
func (m *manager) run(ended func() bool) {
	m.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for isBusy := true; isBusy; {
		isBusy = false
		for _, kind := range m.Kinds() {
			for _, key := range m.queues[kind].takeAll() {
				isBusy = true
				err := m.ReconcileKind(m.t.Context(), kind, key)
				if ended() {
					return
				}
				switch {
				case err == nil || errors.Is(err, ErrNotYet):
				case m.retries != nil && m.retries(err):
					m.queues[kind].Add(key)
				default:
					m.t.Fatal(err)
				}
			}
		}
		if time.Now().After(deadline) {
			m.t.Fatal("it does not settle")
		}
	}
}

// put creates or changes an object, given as JSON.
func (m *manager) put(resource cluster.Resource, text string) {
	m.t.Helper()
	var object map[string]any
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		m.t.Fatal(err)
	}
	meta := object["metadata"].(map[string]any)
	m.cluster.mu.Lock()
	defer m.cluster.mu.Unlock()
	at := write.Key{Resource: resource, Namespace: meta["namespace"].(string), Name: meta["name"].(string)}
	m.cluster.keep(at, object)
}

// change changes the members of the object web as a merge patch does, and counts its generation.
func (m *manager) change(resource cluster.Resource, patch string) {
	m.t.Helper()
	var changes map[string]any
	if err := json.Unmarshal([]byte(patch), &changes); err != nil {
		m.t.Fatal(err)
	}
	m.cluster.mu.Lock()
	defer m.cluster.mu.Unlock()
	at := write.Key{Resource: resource, Namespace: web.Namespace, Name: web.Name}
	object := runtime.DeepCopyJSON(m.cluster.objects[at])
	merge(object, changes)
	meta := object["metadata"].(map[string]any)
	generation, _ := meta["generation"].(float64)
	meta["generation"] = generation + 1
	m.cluster.keep(at, object)
}

// objects are the objects of a resource, by name.
func objectsOf[T any](m *manager, resource cluster.Resource) map[string]*T {
	m.t.Helper()
	m.cluster.mu.Lock()
	defer m.cluster.mu.Unlock()
	found := map[string]*T{}
	for at, object := range m.cluster.objects {
		if at.Resource == resource {
			found[at.Name] = new(T)
			convertTo(m.t, object, found[at.Name])
		}
	}
	return found
}

// sizes are the sizes of the ReplicaSets by the images of their templates, with those of their pods.
func (m *manager) sizes() string {
	pods := objectsOf[corev1.Pod](m, cluster.Pods)
	var sizes []string
	for _, set := range objectsOf[appsv1.ReplicaSet](m, cluster.ReplicaSets) {
		own := 0
		for _, pod := range pods {
			if owners := pod.OwnerReferences; len(owners) > 0 && owners[0].UID == set.UID {
				own++
			}
		}
		sizes = append(sizes, fmt.Sprintf("%s %d/%d", set.Spec.Template.Spec.Containers[0].Image, own, *set.Spec.Replicas))
	}
	slices.Sort(sizes)
	return strings.Join(sizes, ", ")
}

func workloadOf(kind, name, image string, replicas int) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":%q,"metadata":{"namespace":"ns","name":%q,"uid":"uid-of-%s","generation":1,
		"creationTimestamp":"2026-01-01T00:00:00Z"},
		"spec":{"replicas":%d,"selector":{"matchLabels":{"app":"web"}},
		"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"a","image":%q}]}}}}`, kind, name, name, replicas, image)
}

func deploymentOf(replicas int) string {
	var object map[string]any
	if err := json.Unmarshal([]byte(workloadOf("Deployment", web.Name, "web:1", replicas)), &object); err != nil {
		panic(err)
	}
	merge(object, map[string]any{"spec": map[string]any{
		"revisionHistoryLimit": 10.0, "progressDeadlineSeconds": 600.0, "strategy": map[string]any{
			"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": 1.0, "maxUnavailable": 0.0},
		},
	}})
	text, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return string(text)
}

const imageOf = `{"spec":{"template":{"spec":{"containers":[{"name":"a","image":%q}]}}}}`

func service(t *testing.T) *planclient.Client {
	t.Helper()
	planner, err := planclient.New(context.WithoutCancel(t.Context()), []string{"http://" + testkit.StartServer(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = planner.Close() })
	return planner
}

// A Deployment is created, rolled out, undone and deleted, with the real service.
func TestADeploymentIsRolledOutAndUndone(t *testing.T) {
	m := newManager(t, service(t), WithKinds(Deployments, ReplicaSets))
	m.put(cluster.Deployments, deploymentOf(5))
	m.settle()
	if got := m.sizes(); got != "web:1 5/5" {
		t.Fatalf("created: %s", got)
	}
	m.cluster.fewest = 1000
	m.change(cluster.Deployments, fmt.Sprintf(imageOf, "web:2"))
	m.settle()
	if got := m.sizes(); got != "web:1 0/0, web:2 5/5" {
		t.Fatalf("rolled out: %s", got)
	}
	if m.cluster.fewest < 5 {
		t.Errorf("there were %d pods at some time, and maxUnavailable is 0", m.cluster.fewest)
	}
	m.change(cluster.Deployments, `{"metadata":{"annotations":{"deprecated.deployment.rollback.to":"1"}}}`)
	m.settle()
	if got := m.sizes(); got != "web:1 5/5, web:2 0/0" {
		t.Fatalf("undone: %s", got)
	}
	status := objectsOf[appsv1.Deployment](m, cluster.Deployments)["web"].Status
	if status.Replicas != 5 || status.UpdatedReplicas != 5 || status.AvailableReplicas != 5 {
		t.Errorf("its status is %+v", status)
	}
	writes := len(m.cluster.writes)
	m.queues[Deployments].Add(web)
	m.settle()
	if len(m.cluster.writes) != writes {
		t.Errorf("something was written that need not: %v", m.cluster.writes[writes:])
	}
}

// A ReplicaSet is scaled up and down, with the real service. New pods do not have the names of old ones.
func TestAReplicaSetIsScaled(t *testing.T) {
	m := newManager(t, service(t), WithKinds(ReplicaSets))
	m.put(cluster.ReplicaSets, workloadOf("ReplicaSet", "web", "web:1", 3))
	for _, size := range []int{3, 700, 2, 5, 0, 4} {
		m.change(cluster.ReplicaSets, fmt.Sprintf(`{"spec":{"replicas":%d}}`, size))
		m.settle()
		if got, want := m.sizes(), fmt.Sprintf("web:1 %d/%d", size, size); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	// 3 pods, 697 more, 3 more after the scale-down to 2, and 4 after that to 0.
	if created := m.cluster.count("create pods"); created != 3+697+3+4 {
		t.Errorf("%d pods were created", created)
	}
	// A pod that replaces another one has another name.
	for name, pod := range objectsOf[corev1.Pod](m, cluster.Pods) {
		at := write.Key{Resource: cluster.Pods, Namespace: web.Namespace, Name: name}
		if err := m.cluster.Delete(t.Context(), at, write.Preconditions{UID: pod.UID}); err != nil {
			t.Fatal(err)
		}
		m.settle()
		pods := objectsOf[corev1.Pod](m, cluster.Pods)
		if len(pods) != 4 || pods[name] != nil {
			t.Errorf("after the deletion of %s there are %d pods", name, len(pods))
		}
	}
}

// All old pods are gone before the first new one comes.
func TestADeploymentRecreatesItsPods(t *testing.T) {
	m := newManager(t, service(t), WithKinds(Deployments, ReplicaSets))
	m.put(cluster.Deployments, deploymentOf(3))
	m.change(cluster.Deployments, `{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}`)
	m.settle()
	m.cluster.refuse = func(verb string, at write.Key) error {
		if verb != "create" || at.Resource != cluster.Pods {
			return nil
		}
		for other, pod := range m.cluster.objects {
			spec, _ := pod["spec"].(map[string]any)
			if other.Resource == cluster.Pods && spec["containers"].([]any)[0].(map[string]any)["image"] == "web:1" {
				t.Errorf("%s still exists", other.Name)
			}
		}
		return nil
	}
	m.change(cluster.Deployments, fmt.Sprintf(imageOf, "web:2"))
	m.settle()
	if got := m.sizes(); got != "web:1 0/0, web:2 3/3" {
		t.Errorf("got %s", got)
	}
}

// P-27: another object has the name of the new ReplicaSet, and the caches do not show it. The next plan gets it and counts the collision, which is
// an error as upstream. The plan after that chooses another name.
func TestAnotherReplicaSetHasTheNameOfTheNewOne(t *testing.T) {
	m := newManager(t, service(t), WithKinds(Deployments, ReplicaSets))
	errs := 0
	m.retries = func(err error) bool {
		errs++
		return strings.Contains(err.Error(), "already exists")
	}
	var taken write.Key
	m.cluster.refuse = func(verb string, at write.Key) error {
		if verb == "create" && at.Resource == cluster.ReplicaSets && taken.Name == "" {
			taken = at
			var object map[string]any
			if err := json.Unmarshal([]byte(workloadOf("ReplicaSet", at.Name, "other:1", 0)), &object); err != nil {
				t.Error(err)
			}
			object["spec"].(map[string]any)["selector"] = map[string]any{"matchLabels": map[string]any{"app": "other"}}
			object["metadata"].(map[string]any)["resourceVersion"] = "1"
			m.cluster.objects[at] = object
		}
		return nil
	}
	m.put(cluster.Deployments, deploymentOf(2))
	m.settle()
	if got := m.sizes(); got != "other:1 0/0, web:1 2/2" {
		t.Errorf("got %s", got)
	}
	if count := objectsOf[appsv1.Deployment](m, cluster.Deployments)["web"].Status.CollisionCount; count == nil || *count != 1 {
		t.Errorf("the collision count is %v", count)
	}
	if errs != 1 {
		t.Errorf("there were %d errors", errs)
	}
}

// A program that is killed between two writes, and starts again without a state, creates nothing twice.
func TestAKillBetweenWritesDoublesNothing(t *testing.T) {
	planner := service(t)
	for killedAt := 1; killedAt <= 12; killedAt++ {
		m := newManager(t, planner, WithKinds(Deployments, ReplicaSets))
		writes, isDead := 0, false
		killed := errors.New("killed")
		m.cluster.refuse = func(verb string, _ write.Key) error {
			if verb != "read" {
				writes++
			}
			isDead = isDead || writes > killedAt
			if isDead {
				return killed
			}
			return nil
		}
		m.put(cluster.Deployments, deploymentOf(5))
		m.run(func() bool { return isDead })
		m.cluster.refuse = nil
		m.restart(planner, WithKinds(Deployments, ReplicaSets))
		m.settle()
		if got := m.sizes(); got != "web:1 5/5" {
			t.Errorf("killed after %d writes: %s", killedAt, got)
		}
		created := 0
		for _, event := range m.cluster.events {
			if event.Reason == "SuccessfulCreate" {
				created++
			}
		}
		if created > 5 {
			t.Errorf("killed after %d writes: %d pods were created", killedAt, created)
		}
	}
}

// An orphan that the Deployment selects and that has its template becomes its ReplicaSet.
func TestADeploymentAdoptsAReplicaSet(t *testing.T) {
	m := newManager(t, service(t), WithKinds(Deployments, ReplicaSets))
	m.put(cluster.ReplicaSets, strings.Replace(workloadOf("ReplicaSet", "orphan", "web:1", 2), `"uid":`, `"labels":{"app":"web"},"uid":`, 1))
	m.put(cluster.Deployments, deploymentOf(2))
	m.settle()
	sets := objectsOf[appsv1.ReplicaSet](m, cluster.ReplicaSets)
	if len(sets) != 1 || len(sets["orphan"].OwnerReferences) != 1 || sets["orphan"].OwnerReferences[0].UID != "uid-of-web" {
		t.Errorf("got %v", sets)
	}
}

// A kind that the service does not plan for is a clear error, and the other kinds go on.
func TestAKindThatTheServiceDoesNotPlanForStopsNoOther(t *testing.T) {
	planner := &scripted{plan: func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		if request.GetSnapshot().GetWorkload().GetDeployment() != nil {
			return nil, &planclient.UnsupportedKindError{Kind: "Deployment", Reason: "its version plans for DaemonSet"}
		}
		return noop(request)
	}}
	m := newManager(t, planner, WithKinds(DaemonSets, Deployments))
	m.apply("agent:1")
	m.put(cluster.Deployments, deploymentOf(2))
	var logged []string
	logger := funcr.New(func(_, line string) { logged = append(logged, line) }, funcr.Options{})
	for range 2 {
		err := m.ReconcileKind(klog.NewContext(t.Context(), logger), Deployments, web)
		const want = "reconciling Deployment ns/web: not yet: the planning service does not plan for a Deployment: its version plans for DaemonSet"
		if !errors.Is(err, ErrNotYet) || err.Error() != want {
			t.Errorf("got %v", err)
		}
	}
	if len(logged) != 1 || !strings.Contains(logged[0], "upgrade it, or leave the kind out") {
		t.Errorf("logged %q", logged)
	}
	if err := m.ReconcileKind(t.Context(), DaemonSets, key); err != nil {
		t.Error(err)
	}
}

func TestKindsThatAreNotOwned(t *testing.T) {
	for name, test := range map[string]struct {
		kinds []Kind
		want  string
	}{
		"none":    {nil, "WithKinds was given no kind"},
		"unknown": {[]Kind{DaemonSets, "Job"}, `WithKinds was given "Job"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := New(&rest.Config{}, &scripted{plan: noop}, WithKinds(test.kinds...)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	several := newManager(t, &scripted{plan: noop}, WithKinds(Deployments, ReplicaSets, Deployments))
	if owned := several.Kinds(); !slices.Equal(owned, []Kind{Deployments, ReplicaSets}) {
		t.Errorf("it owns %v", owned)
	}
	for _, err := range []error{
		several.Reconciler.Reconcile(t.Context(), web),
		several.Start(t.Context(), several.queue),
		several.ReconcileKind(t.Context(), DaemonSets, web),
	} {
		if err == nil || !strings.Contains(err.Error(), "owns [Deployment ReplicaSet]") {
			t.Errorf("got %v", err)
		}
	}
	options := &nodewisev1.PlanOptions{Scope: nodewisev1.Scope_SCOPE_ROLLOUTS}
	if _, err := New(&rest.Config{}, &scripted{plan: noop}, WithKinds(Deployments), WithPlanOptions(options)); err == nil {
		t.Error("rollouts alone are planned for DaemonSets only")
	}
}

// P-63: a Deployment that fails again and again waits for the next event at some time. A ReplicaSet does not, and nor does a workload that
// the service refuses.
func TestHowOftenAFailedWorkloadIsRetried(t *testing.T) {
	refused := false
	planner := &scripted{plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		if refused {
			return nil, &planclient.RefusedError{Reason: "it is wrong"}
		}
		return nil, errors.New("something failed")
	}}
	m := newManager(t, planner, WithKinds(Deployments, ReplicaSets))
	m.put(cluster.Deployments, deploymentOf(2))
	m.put(cluster.ReplicaSets, workloadOf("ReplicaSet", "web", "web:1", 1))
	retriesOf := func(controller *controller) int {
		queue := newWorkQueue("", 1)
		defer queue.ShutDown()
		retries := 0
		for range 20 {
			m.queues[Kind(controller.kind.Name)].takeAll()
			controller.workOn(t.Context(), t.Context(), queue, web)
			if len(m.queues[Kind(controller.kind.Name)].takeAll()) == 0 {
				break
			}
			retries++
		}
		return retries
	}
	for _, controller := range m.controllers {
		controller.limiter = workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](time.Millisecond, time.Millisecond)
		for _, refused = range []bool{true, false} {
			want := cmp.Or(controller.kind.maxRetries, 20)
			if refused {
				want = 20
			}
			if retries := retriesOf(controller); retries != want {
				t.Errorf("a %s was retried %d times, want %d; refused: %t", controller.kind.Name, retries, want, refused)
			}
		}
	}
}

// Run watches and reconciles all kinds, over HTTP, each with its own queue and workers. A watch event of one kind is seen by the others that depend
// on it.
func TestAllKindsRun(t *testing.T) {
	api := testkit.NewCluster(t)
	asked := make(chan string, 1000)
	planner := &scripted{plan: func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		workload := request.GetSnapshot().GetWorkload()
		name := fmt.Sprintf("%T", workload.GetKind())
		if deployment := workload.GetDeployment(); deployment != nil {
			name += fmt.Sprint(" of ", len(deployment.GetReplicaSets()))
		}
		asked <- strings.TrimPrefix(name, "*nodewisev1.Workload_")
		return nil, &planclient.UnreachableError{Reason: "it is away"}
	}}
	reconciler, err := New(api.Config(), &locked{Planner: planner}, WithKinds(DaemonSets, Deployments, ReplicaSets), WithUnreachableDelay(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- reconciler.Run(ctx) }()
	api.Put(t, "daemonsets", workloadOf("DaemonSet", "agent", "agent:1", 1))
	api.Put(t, "deployments", workloadOf("Deployment", "web", "web:1", 1))
	seen := map[string]bool{}
	wait := func(what string) {
		for !seen[what] {
			seen[within(t, what, asked)] = true
		}
	}
	wait("DaemonSet")
	wait("Deployment of 0")
	owned := strings.Replace(workloadOf("ReplicaSet", "web-1", "web:1", 1), `"uid":`,
		`"ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"uid-of-web","controller":true}],"uid":`, 1)
	api.Put(t, "replicasets", owned)
	wait("ReplicaSet")
	wait("Deployment of 1")
	if err := reconciler.Ready(nil); err == nil || !strings.Contains(err.Error(), "it is away") {
		t.Errorf("it is ready: %v", err)
	}
	stop()
	if err := within(t, "it ends", ended); err != nil {
		t.Error(err)
	}
}

// locked is a Planner that is called by one goroutine at a time.
type locked struct {
	Planner

	mu sync.Mutex
}

func (l *locked) Plan(ctx context.Context, uid string, build planclient.BuildRequest) (*planclient.Answer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Planner.Plan(ctx, uid, build)
}
