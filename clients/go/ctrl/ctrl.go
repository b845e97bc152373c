// Package ctrl runs a [nodewise.Reconciler] under a manager of controller-runtime: with its queue, its workers, its leader election
// and its metrics.
package ctrl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	nodewise "nodewise.dev/clients/go"
)

// first is the priority of workloads that are not to wait behind others.
const first = 100

// workers is how many workloads are reconciled at the same time: as many as [nodewise.Reconciler.Run] does, with the one that it keeps
// for what is urgent, which is not to be had here.
const workers = 3

// planViolations is served with the other metrics of the manager.
var planViolations = prometheus.NewCounter(prometheus.CounterOpts{
	Name: "nodewise_plan_violations_total",
	Help: "Plans of which nothing was written, since they were not for the workload that was asked about or named what is not its own.",
})

func init() { metrics.Registry.MustRegister(planViolations) }

// SetupWithManager lets a manager run the Reconciler, which is then not run otherwise. A manager that loses its leadership ends, and
// so whoever leads again starts with a new Reconciler, as must be.
//
// Three workloads are reconciled at the same time, unless the options or the manager say otherwise: controller-runtime's own default
// is one, which lets all wait for the slowest.
//
// A DaemonSet that failed is tried again with its own back-off, after [nodewise.Reconciler.MaxBackoff] at the latest, unless the options have
// a RateLimiter.
//
// A manager may run several Reconcilers that own different DaemonSets. Each has a name of its own then: [nodewise.WithName].
//
// What is set up besides, such as predicates, only saves work: a Reconciler owns all DaemonSets of the cluster where
// [nodewise.WithNamespace], [nodewise.WithSelector] and [nodewise.WithPredicate] do not say otherwise.
func SetupWithManager(mgr manager.Manager, reconciler *nodewise.Reconciler, options controller.Options) error {
	switch {
	case mgr == nil:
		return errors.New("there is no manager: give the one that ctrl.NewManager of controller-runtime makes, and look at its error first")
	case reconciler == nil:
		return errors.New("there is no Reconciler: give the one that nodewise.New makes, and look at its error first")
	}
	name := reconciler.Name()
	options.MaxConcurrentReconciles = cmp.Or(
		options.MaxConcurrentReconciles, mgr.GetControllerOptions().MaxConcurrentReconciles, workers)
	if options.RateLimiter == nil {
		options.RateLimiter = newLimiter(reconciler.MaxBackoff())
	}
	patient := newPatient(options.RateLimiter)
	options.RateLimiter, options.Reconciler = patient, patient.reconciler(reconciler.Reconcile)
	made, err := controller.New(name, mgr, options)
	if err != nil && strings.Contains(err.Error(), "already exists") {
		return fmt.Errorf("there is a controller %s already: give this Reconciler another name with nodewise.WithName: %w", name, err)
	}
	if err != nil {
		return fmt.Errorf("making the controller %s: %w", name, err)
	}
	if err := made.Watch(watches{reconciler}); err != nil {
		return fmt.Errorf("watching for the controller %s: %w", name, err)
	}
	return nil
}

// patient is a rate limiter that keeps the back-off of a workload for which nothing could be done yet. controller-runtime forgets it
// after whatever is no error, and an error would make it grow.
type patient struct {
	workqueue.TypedRateLimiter[reconcile.Request]

	mu sync.Mutex
	// notYet are those in work for which nothing could be done.
	notYet map[reconcile.Request]bool
}

// newLimiter makes what controller-runtime takes for a queue with priorities, but for the longest delay: each workload has a back-off of
// its own, and they do not slow down one another.
func newLimiter(maxBackoff time.Duration) workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, maxBackoff)
}

func newPatient(limiter workqueue.TypedRateLimiter[reconcile.Request]) *patient {
	return &patient{TypedRateLimiter: limiter, notYet: map[reconcile.Request]bool{}}
}

// reconciler has the shape that controller-runtime asks for. When to come back is told through the queue that the watches were given.
func (p *patient) reconciler(look func(context.Context, types.NamespacedName) error) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		err := look(ctx, request.NamespacedName)
		if errors.Is(err, nodewise.ErrPlanRefused) {
			planViolations.Inc()
		}
		if !errors.Is(err, nodewise.ErrNotYet) {
			return reconcile.Result{}, err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.notYet[request] = true
		return reconcile.Result{}, nil
	})
}

// Forget implements [workqueue.TypedRateLimiter].
func (p *patient) Forget(request reconcile.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.notYet[request] {
		p.TypedRateLimiter.Forget(request)
	}
	delete(p.notYet, request)
}

// watches are what wakes the workloads: those of the Reconciler.
type watches struct {
	reconciler *nodewise.Reconciler
}

var _ source.SyncingSource = watches{}

// Start implements [source.Source].
func (w watches) Start(ctx context.Context, requests workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	return w.reconciler.Start(ctx, queue{requests})
}

// WaitForSync implements [source.SyncingSource].
func (w watches) WaitForSync(ctx context.Context) error {
	return w.reconciler.WaitForSync(ctx)
}

// queue puts workloads into a queue of controller-runtime.
type queue struct {
	requests workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func (q queue) Add(key types.NamespacedName) {
	q.requests.Add(reconcile.Request{NamespacedName: key})
}

func (q queue) AddAfter(key types.NamespacedName, delay time.Duration) {
	q.requests.AddAfter(reconcile.Request{NamespacedName: key}, delay)
}

// AddFirst adds a workload before others, after a delay, if the queue has priorities.
func (q queue) AddFirst(key types.NamespacedName, delay time.Duration) {
	request := reconcile.Request{NamespacedName: key}
	if ordered, isOrdered := q.requests.(priorityqueue.PriorityQueue[reconcile.Request]); isOrdered {
		priority := first
		ordered.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: delay}, request)
		return
	}
	q.requests.AddAfter(request, delay)
}
