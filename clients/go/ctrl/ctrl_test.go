package ctrl

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	nodewise "nodewise.dev/clients/go"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
)

func named(name string) types.NamespacedName { return types.NamespacedName{Name: name} }

// Workloads that are not to wait come first where the queue has priorities, and come at all where it has none.
func TestQueues(t *testing.T) {
	ordered := priorityqueue.New[reconcile.Request]("test")
	plain := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	for want, requests := range map[string]workqueue.TypedRateLimitingInterface[reconcile.Request]{"b": ordered, "a": plain} {
		queue := queue{requests}
		queue.Add(named("a"))
		queue.AddFirst(named("b"))
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

// A workload that does not exist is no failure, and a source that is never filled ends with its context.
func TestShapes(t *testing.T) {
	made, err := nodewise.New(&rest.Config{Host: "http://127.0.0.1:1"}, nobody{})
	if err != nil {
		t.Fatal(err)
	}
	if result, err := Reconciler(made).Reconcile(t.Context(), reconcile.Request{NamespacedName: named("x")}); err != nil || !result.IsZero() {
		t.Errorf("got %v, %v", result, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	plain := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer plain.ShutDown()
	source := Source(made)
	if err := source.Start(ctx, plain); err != nil {
		t.Fatal(err)
	}
	if err := source.WaitForSync(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
