package ctrl

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	nodewise "nodewise.dev/clients/go"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
)

func named(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

// Urgent workloads come first in a queue with priorities, and are also added to a queue without.
func TestQueues(t *testing.T) {
	ordered := priorityqueue.New[reconcile.Request]("test")
	plain := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	for want, requests := range map[string]workqueue.TypedRateLimitingInterface[reconcile.Request]{"b": ordered, "a": plain} {
		queue := queue{requests}
		queue.Add(named("a"))
		queue.AddFirst(named("b"), 0)
		queue.AddAfter(named("c"), time.Millisecond)
		taken := map[string]bool{}
		for i := range 3 {
			request, _ := requests.Get()
			taken[request.Name] = true
			if i == 0 && request.Name != want {
				t.Errorf("got %s first, want %s", request.Name, want)
			}
			requests.Done(request)
		}
		if len(taken) != 3 {
			t.Errorf("got %v", taken)
		}
		requests.ShutDown()
	}
}

type nobody struct{}

func (nobody) Plan(context.Context, string, planclient.BuildRequest) (*planclient.Answer, error) {
	return nil, errors.New("asked before there was anything to ask")
}

func (nobody) Report(context.Context, *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
	return nil, errors.New("told before there was anything to tell")
}

// WaitForSync of a source that is never filled ends with its context.
func TestShapes(t *testing.T) {
	made, err := nodewise.New(&rest.Config{Host: "http://127.0.0.1:1"}, nobody{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	plain := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer plain.ShutDown()
	source := watches{newStarter(made), nodewise.DaemonSets}
	if err := source.Start(ctx, plain); err != nil {
		t.Fatal(err)
	}
	if err := source.WaitForSync(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// ErrNotYet is neither a failure nor a success: the back-off stays as it is.
func TestTheBackOffOutlastsWhatCouldNotBeDone(t *testing.T) {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Millisecond, time.Second)
	keeping, request := newKeepingLimiter(limiter), reconcile.Request{NamespacedName: named("x")}
	broken := errors.New("broken")
	for i, step := range []struct {
		err  error
		want int
	}{{broken, 1}, {nodewise.ErrNotYet, 1}, {fmt.Errorf("a cache: %w", nodewise.ErrNotYet), 1}, {broken, 2}, {nil, 0}} {
		look := func(context.Context, types.NamespacedName) error { return step.err }
		result, err := keeping.reconciler(look).Reconcile(t.Context(), request)
		// This is what the controllers of controller-runtime do.
		if err != nil {
			keeping.When(request)
		} else {
			keeping.Forget(request)
		}
		if got := limiter.NumRequeues(request); got != step.want || !result.IsZero() {
			t.Errorf("step %d: %d failures are remembered, want %d", i, got, step.want)
		}
	}
}

// Refused plans are counted in the manager's metrics.
func TestRefusedPlansAreCounted(t *testing.T) {
	before := refusedPlans(t)
	for _, err := range []error{fmt.Errorf("a plan: %w", nodewise.ErrPlanRefused), errors.New("broken"), nodewise.ErrNotYet, nil} {
		look := func(context.Context, types.NamespacedName) error { return err }
		if _, got := newKeepingLimiter(newLimiter(time.Minute)).reconciler(look).Reconcile(t.Context(), reconcile.Request{}); got != nil && !errors.Is(got, err) {
			t.Error(got)
		}
	}
	if counted := refusedPlans(t) - before; counted != 1 {
		t.Errorf("%g are counted", counted)
	}
}

func refusedPlans(t *testing.T) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "nodewise_plan_violations_total" {
			return family.GetMetric()[0].GetCounter().GetValue()
		}
	}
	t.Fatal("there is no such metric")
	return 0
}

// However many workloads fail, each has only its own back-off.
func TestWorkloadsDoNotSlowDownOneAnother(t *testing.T) {
	limiter := newKeepingLimiter(newLimiter(time.Minute))
	for i := range 1000 {
		if delay := limiter.When(reconcile.Request{NamespacedName: named(strconv.Itoa(i))}); delay != 5*time.Millisecond {
			t.Fatalf("workload %d waits %s after its first failure", i, delay)
		}
	}
}

// The longest back-off is that of the profile, unless the options have a rate limiter.
func TestTheLongestBackOffIsThatOfTheProfile(t *testing.T) {
	strict := nodewise.WithPlanOptions(&nodewisev1.PlanOptions{Profile: nodewisev1.Profile_PROFILE_UPSTREAM_STRICT})
	slower := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Hour, time.Hour)
	for _, test := range []struct {
		option  nodewise.Option
		limiter workqueue.TypedRateLimiter[reconcile.Request]
		want    time.Duration
	}{{nil, nil, time.Minute}, {strict, nil, 1000 * time.Second}, {nil, slower, time.Hour}} {
		made, err := nodewise.New(&rest.Config{Host: "http://127.0.0.1:1"}, nobody{}, test.option)
		if err != nil {
			t.Fatal(err)
		}
		mgr, unnamed := &managing{}, true
		err = SetupWithManager(mgr, made, controller.Options{RateLimiter: test.limiter, SkipNameValidation: &unnamed})
		if err != nil {
			t.Fatal(err)
		}
		limiter := reflect.ValueOf(mgr.took).Elem().FieldByName("RateLimiter").Interface().(workqueue.TypedRateLimiter[reconcile.Request])
		var last time.Duration
		for range 30 {
			last = limiter.When(reconcile.Request{NamespacedName: named("x")})
		}
		if last != test.want {
			t.Errorf("at last it waits for %s, want %s", last, test.want)
		}
	}
}

// managing is a manager that accepts controllers and does nothing with them.
type managing struct {
	manager.Manager
	options config.Controller
	took    manager.Runnable
}

func (m *managing) GetControllerOptions() config.Controller { return m.options }

func (m *managing) Add(runnable manager.Runnable) error {
	m.took = runnable
	return nil
}

// By default one slow workload does not block the others. Options override the default.
func TestSeveralWorkloadsAreReconciledAtATime(t *testing.T) {
	for _, test := range []struct {
		options  controller.Options
		managers config.Controller
		want     int64
	}{
		{want: workers},
		{managers: config.Controller{MaxConcurrentReconciles: 7}, want: 7},
		{controller.Options{MaxConcurrentReconciles: 1}, config.Controller{MaxConcurrentReconciles: 7}, 1},
	} {
		made, err := nodewise.New(&rest.Config{Host: "http://127.0.0.1:1"}, nobody{})
		if err != nil {
			t.Fatal(err)
		}
		mgr, unnamed := &managing{options: test.managers}, true
		test.options.SkipNameValidation = &unnamed
		if err := SetupWithManager(mgr, made, test.options); err != nil {
			t.Fatal(err)
		}
		if got := reflect.ValueOf(mgr.took).Elem().FieldByName("MaxConcurrentReconciles").Int(); got != test.want {
			t.Errorf("%d at a time, want %d", got, test.want)
		}
	}
}

// A manager runs several Reconcilers with different names. Missing arguments and duplicate names return an error that says what to do.
func TestMistakesAreSaidInFull(t *testing.T) {
	mgr := &managing{}
	// controller-runtime remembers names for the whole process, and this test may run more than once.
	unique := strconv.FormatInt(time.Now().UnixNano(), 10)
	first, second := nodewise.WithName("first-"+unique), nodewise.WithName("second-"+unique)
	made := func(options ...nodewise.Option) *nodewise.Reconciler {
		made, err := nodewise.New(&rest.Config{Host: "http://127.0.0.1:1"}, nobody{}, options...)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	for _, step := range []struct {
		mgr        manager.Manager
		reconciler *nodewise.Reconciler
		want       string
	}{
		{nil, made(), "there is no manager"},
		{mgr, nil, "there is no Reconciler"},
		{mgr, made(first), ""},
		{mgr, made(second), ""},
		{mgr, made(first), "give this Reconciler another name with nodewise.WithName"},
	} {
		err := SetupWithManager(step.mgr, step.reconciler, controller.Options{})
		if (err == nil) != (step.want == "") || err != nil && !strings.Contains(err.Error(), step.want) {
			t.Errorf("got %v, want %q", err, step.want)
		}
	}
}

// With several kinds the Reconciler is started when the queues of all kinds are there.
func TestSeveralKindsAreStartedTogether(t *testing.T) {
	made, err := nodewise.New(&rest.Config{Host: "http://127.0.0.1:1"}, nobody{}, nodewise.WithKinds(nodewise.Deployments, nodewise.ReplicaSets))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	starting := newStarter(made)
	for i, kind := range made.Kinds() {
		requests := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer requests.ShutDown()
		err := made.Ready(nil)
		if isStarted := err != nil && strings.Contains(err.Error(), "first lists"); isStarted {
			t.Errorf("it is started before kind %d is there", i)
		}
		if err := (watches{starting, kind}).Start(ctx, requests); err != nil {
			t.Fatal(err)
		}
	}
	if err := made.Ready(nil); err == nil || !strings.Contains(err.Error(), "first lists of [deployments replicasets pods]") {
		t.Errorf("it is not started: %v", err)
	}
}
