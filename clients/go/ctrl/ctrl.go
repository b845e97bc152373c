// Package ctrl runs a [nodewise.Reconciler] under a manager of controller-runtime, with the manager's queue, workers, leader election and
// metrics.
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

// first is the priority of urgent workloads.
const first = 100

// workers is how many workloads are reconciled at the same time. It is the number of workers of [nodewise.Reconciler.Run], including the one
// for urgent workloads. controller-runtime has no such spare worker.
const workers = 3

// planViolations is registered with the manager's metrics.
var planViolations = prometheus.NewCounter(prometheus.CounterOpts{
	Name: "nodewise_plan_violations_total",
	Help: "Plans of which nothing was written, since they were not for the workload that was asked about or named what is not its own.",
})

func init() { metrics.Registry.MustRegister(planViolations) }

// SetupWithManager adds the Reconciler to a manager. The program must not also call Run. A manager ends when it loses the leadership, so a new
// leader starts with a new Reconciler, as it must. With several kinds each has a controller of its own: the first one has the name of the
// Reconciler, and the others have the kind at the end.
//
// Three workloads are reconciled at the same time, unless the options or the manager set another number. controller-runtime's default is one,
// with which every workload waits for the slowest one.
//
// A DaemonSet that failed is retried with a back-off of its own, of [nodewise.Reconciler.MaxBackoff] at most, unless the options have a
// RateLimiter.
//
// A manager may run several Reconcilers that own different DaemonSets. Give each a name with [nodewise.WithName].
//
// Only [nodewise.WithNamespace], [nodewise.WithSelector] and [nodewise.WithPredicate] limit which DaemonSets a Reconciler owns. Predicates of
// controller-runtime do not: they only save work.
func SetupWithManager(mgr manager.Manager, reconciler *nodewise.Reconciler, options controller.Options) error {
	switch {
	case mgr == nil:
		return errors.New("there is no manager: give the one that ctrl.NewManager of controller-runtime makes, and look at its error first")
	case reconciler == nil:
		return errors.New("there is no Reconciler: give the one that nodewise.New makes, and look at its error first")
	}
	options.MaxConcurrentReconciles = cmp.Or(
		options.MaxConcurrentReconciles, mgr.GetControllerOptions().MaxConcurrentReconciles, workers)
	starting := newStarter(reconciler)
	for i, kind := range reconciler.Kinds() {
		name := reconciler.Name()
		if i > 0 {
			name += "-" + strings.ToLower(string(kind))
		}
		if err := addKind(mgr, reconciler, starting, kind, name, options); err != nil {
			return err
		}
	}
	return nil
}

// addKind adds a controller for one kind of workload.
func addKind(
	mgr manager.Manager, reconciler *nodewise.Reconciler, starting *starter, kind nodewise.Kind, name string, options controller.Options,
) error {
	if options.RateLimiter == nil {
		options.RateLimiter = newLimiter(reconciler.MaxBackoff())
	}
	limiter := newKeepingLimiter(options.RateLimiter)
	reconcileKind := func(ctx context.Context, key types.NamespacedName) error {
		return reconciler.ReconcileKind(ctx, kind, key)
	}
	options.RateLimiter, options.Reconciler = limiter, limiter.reconciler(reconcileKind)
	made, err := controller.New(name, mgr, options)
	if err != nil && strings.Contains(err.Error(), "already exists") {
		return fmt.Errorf("there is a controller %s already: give this Reconciler another name with nodewise.WithName: %w", name, err)
	}
	if err != nil {
		return fmt.Errorf("making the controller %s: %w", name, err)
	}
	if err := made.Watch(watches{starting, kind}); err != nil {
		return fmt.Errorf("watching for the controller %s: %w", name, err)
	}
	return nil
}

// keepingLimiter is a rate limiter that keeps the back-off of a workload after [nodewise.ErrNotYet]. controller-runtime would reset the back-off
// if the reconcile returned no error, and increase it if the reconcile returned an error.
type keepingLimiter struct {
	workqueue.TypedRateLimiter[reconcile.Request]

	mu sync.Mutex
	// notYet are the requests in work whose reconcile has returned ErrNotYet.
	notYet map[reconcile.Request]bool
}

// newLimiter makes the same limiter as controller-runtime's default for priority queues, with another longest delay. Each workload has a back-off
// of its own.
func newLimiter(maxBackoff time.Duration) workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, maxBackoff)
}

func newKeepingLimiter(limiter workqueue.TypedRateLimiter[reconcile.Request]) *keepingLimiter {
	return &keepingLimiter{TypedRateLimiter: limiter, notYet: map[reconcile.Request]bool{}}
}

// reconciler wraps Reconcile for controller-runtime. The result never has a requeue time: the Reconciler requeues through its [nodewise.Queue].
func (l *keepingLimiter) reconciler(run func(context.Context, types.NamespacedName) error) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		err := run(ctx, request.NamespacedName)
		if errors.Is(err, nodewise.ErrPlanRefused) {
			planViolations.Inc()
		}
		if !errors.Is(err, nodewise.ErrNotYet) {
			return reconcile.Result{}, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.notYet[request] = true
		return reconcile.Result{}, nil
	})
}

// Forget implements [workqueue.TypedRateLimiter].
func (l *keepingLimiter) Forget(request reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.notYet[request] {
		l.TypedRateLimiter.Forget(request)
	}
	delete(l.notYet, request)
}

// starter starts the Reconciler when the queues of all its kinds are there. A manager starts the controllers of the kinds one by one.
type starter struct {
	reconciler *nodewise.Reconciler

	mu     sync.Mutex
	queues map[nodewise.Kind]nodewise.Queue
}

func newStarter(reconciler *nodewise.Reconciler) *starter {
	return &starter{reconciler: reconciler, queues: map[nodewise.Kind]nodewise.Queue{}}
}

func (s *starter) start(ctx context.Context, kind nodewise.Kind, queue nodewise.Queue) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queues[kind] = queue
	if len(s.queues) < len(s.reconciler.Kinds()) {
		return nil
	}
	return s.reconciler.StartKinds(ctx, func(kind nodewise.Kind) nodewise.Queue { return s.queues[kind] })
}

// watches is one kind of the Reconciler as a source of controller-runtime.
type watches struct {
	starting *starter
	kind     nodewise.Kind
}

var _ source.SyncingSource = watches{}

// Start implements [source.Source].
func (w watches) Start(ctx context.Context, requests workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	return w.starting.start(ctx, w.kind, queue{requests})
}

// WaitForSync implements [source.SyncingSource].
func (w watches) WaitForSync(ctx context.Context) error {
	return w.starting.reconciler.WaitForSync(ctx)
}

// queue is a [nodewise.Queue] on a queue of controller-runtime.
type queue struct {
	requests workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func (q queue) Add(key types.NamespacedName) {
	q.requests.Add(reconcile.Request{NamespacedName: key})
}

func (q queue) AddAfter(key types.NamespacedName, delay time.Duration) {
	q.requests.AddAfter(reconcile.Request{NamespacedName: key}, delay)
}

// AddFirst adds a workload after a delay, with a high priority if the queue has priorities.
func (q queue) AddFirst(key types.NamespacedName, delay time.Duration) {
	request := reconcile.Request{NamespacedName: key}
	if ordered, isOrdered := q.requests.(priorityqueue.PriorityQueue[reconcile.Request]); isOrdered {
		priority := first
		ordered.AddWithOpts(priorityqueue.AddOpts{Priority: &priority, After: delay}, request)
		return
	}
	q.requests.AddAfter(request, delay)
}
