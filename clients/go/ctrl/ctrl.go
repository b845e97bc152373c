// Package ctrl runs a [nodewise.Reconciler] under a manager of controller-runtime: with its queue, its workers, its leader election
// and its metrics.
package ctrl

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	nodewise "nodewise.dev/clients/go"
)

// name is that of the controller, in metrics and logs, where options do not say another.
const name = "nodewise"

// first is the priority of workloads that are not to wait behind others.
const first = 100

// SetupWithManager lets a manager run the Reconciler, which is then not run otherwise. A manager that loses its leadership ends, and
// so whoever leads again starts with a new Reconciler, as must be.
func SetupWithManager(mgr manager.Manager, reconciler *nodewise.Reconciler, options controller.Options) error {
	options.Reconciler = Reconciler(reconciler)
	made, err := controller.New(name, mgr, options)
	if err != nil {
		return fmt.Errorf("making the controller %s: %w", name, err)
	}
	if err := made.Watch(Source(reconciler)); err != nil {
		return fmt.Errorf("watching for the controller %s: %w", name, err)
	}
	return nil
}

// Reconciler has the shape that controller-runtime asks for. When to come back is told through the queue that the [Source] was given.
func Reconciler(reconciler *nodewise.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, reconciler.Reconcile(ctx, request.NamespacedName)
	})
}

// Source is what wakes the workloads: the watches of the Reconciler.
func Source(reconciler *nodewise.Reconciler) source.SyncingSource {
	return watches{reconciler}
}

type watches struct {
	reconciler *nodewise.Reconciler
}

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

// AddFirst adds a workload before others, if the queue has priorities.
func (q queue) AddFirst(key types.NamespacedName) {
	request := reconcile.Request{NamespacedName: key}
	if ordered, isOrdered := q.requests.(priorityqueue.PriorityQueue[reconcile.Request]); isOrdered {
		priority := first
		ordered.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request)
		return
	}
	q.requests.Add(request)
}
