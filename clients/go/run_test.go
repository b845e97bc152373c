package nodewise

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
)

// running is a Reconciler that runs until it is stopped.
type running struct {
	*Reconciler
	stop  context.CancelFunc
	ended chan error
}

func run(t *testing.T, api *apiserver, planner Planner, options ...Option) *running {
	t.Helper()
	r, err := New(api.start(t), planner, options...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	running := &running{r, stop, make(chan error, 1)}
	go func() { running.ended <- r.Run(ctx) }()
	return running
}

// within receives a value, and fails the test if none comes in time.
func within[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(15 * time.Second):
		t.Fatalf("not in time: %s", what)
		panic("unreachable")
	}
}

// hanging is a service that never answers, or that does not answer requests for plans.
type hanging struct {
	nodewisev1.UnimplementedReconcileServiceServer
	plan        *nodewisev1.Plan
	asked, left chan struct{}
}

// startHanging starts such a service, and makes a client of it with a long timeout.
func startHanging(t *testing.T, plan *nodewisev1.Plan) (*hanging, *planclient.Client) {
	t.Helper()
	service := &hanging{plan: plan, asked: make(chan struct{}, 100), left: make(chan struct{}, 100)}
	planner, err := planclient.New(t.Context(), []string{testkit.Serve(t, service)}, planclient.WithTimeout(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = planner.Close() })
	return service, planner
}

func (h *hanging) Plan(ctx context.Context, _ *nodewisev1.PlanRequest) (*nodewisev1.PlanResponse, error) {
	if h.plan != nil {
		return &nodewisev1.PlanResponse{Plan: h.plan}, nil
	}
	return nil, h.hang(ctx)
}

func (h *hanging) Report(ctx context.Context, _ *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
	return nil, h.hang(ctx)
}

func (h *hanging) hang(ctx context.Context) error {
	h.asked <- struct{}{}
	<-ctx.Done()
	h.left <- struct{}{}
	return ctx.Err()
}

// W14: after the stop Run does not wait for a service that hangs.
func TestAStopDoesNotWaitForTheService(t *testing.T) {
	service, planner := startHanging(t, nil)
	running := run(t, &apiserver{}, planner, WithDrainTimeout(time.Hour))
	within(t, "the service is asked", service.asked)
	running.stop()
	if err := within(t, "it ends", running.ended); err != nil {
		t.Error(err)
	}
	within(t, "the service is told", service.left)
}

// W14: after the stop a reconcile that has written waits for a service that hangs only for the grace period, and keeps the report. The replica
// is not evicted.
func TestAReportThatHangsIsNotWaitedForAfterTheStop(t *testing.T) {
	plan := creating(podNamed("a"))
	plan.Workload = &nodewisev1.WorkloadReference{Kind: "DaemonSet", Namespace: key.Namespace, Name: key.Name, Uid: "d1"}
	service, planner := startHanging(t, plan)
	writing, stopped := make(chan struct{}), make(chan struct{})
	api := &apiserver{nodes: []string{nodeOf(podNamed("a"))}, creates: func(w http.ResponseWriter, _ *http.Request) {
		close(writing)
		<-stopped
		_, _ = fmt.Fprint(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"10"}}`)
	}}
	running := run(t, api, planner)
	within(t, "a write", writing)
	running.stop()
	close(stopped)
	within(t, "it reports", service.asked)
	if err := within(t, "it ends", running.ended); err != nil {
		t.Error(err)
	}
	within(t, "the service is told", service.left)
	if kept := running.controllers[0].state.undeliveredOf(key, "d1"); len(kept) != 1 || kept[0].GetPlanId() != "p" {
		t.Errorf("kept %v", kept)
	}
	if err := planner.Health(); err != nil {
		t.Error(err)
	}
}

// W14: a plan that is being applied at the stop is completed and reported, and nothing new is begun.
func TestAStopLetsWritesEndAndReportsThem(t *testing.T) {
	writing, stopped, reports := make(chan struct{}), make(chan struct{}), make(chan *nodewisev1.ReportRequest, 1)
	planner := &scripted{plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		plan := creating(podNamed("a"))
		plan.RequeueAfter = durationpb.New(0)
		return plan, nil
	}}
	planner.hangs = func(ctx context.Context) error {
		if len(planner.asked) == 1 {
			return nil
		}
		// The prefetch is cancelled at the stop.
		<-ctx.Done()
		close(stopped)
		return ctx.Err()
	}
	planner.report = func(report *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
		reports <- report
		return &nodewisev1.ReportResponse{}, nil
	}
	api := &apiserver{nodes: []string{nodeOf(podNamed("a"))}, creates: func(w http.ResponseWriter, r *http.Request) {
		close(writing)
		select {
		case <-r.Context().Done():
			return
		case <-stopped:
		}
		_, _ = fmt.Fprint(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"10"}}`)
	}}
	running := run(t, api, planner)
	within(t, "a write", writing)
	running.stop()
	if err := within(t, "it ends", running.ended); err != nil {
		t.Error(err)
	}
	report := within(t, "the report", reports)
	if outcomes := report.GetOutcomes(); len(outcomes) != 1 || outcomes[0].GetResult() != nodewisev1.Result_RESULT_SUCCEEDED {
		t.Errorf("reported %v", outcomes)
	}
	if len(planner.asked) != 2 {
		t.Errorf("asked %d times", len(planner.asked))
	}
}

// Writes that go on for too long after the stop are cancelled: another replica may be the leader by then.
func TestWritesAreCutOffIfTheyDoNotEnd(t *testing.T) {
	writing, cut := make(chan struct{}), make(chan struct{})
	api := &apiserver{nodes: []string{nodeOf(podNamed("a"))}, creates: func(_ http.ResponseWriter, r *http.Request) {
		close(writing)
		<-r.Context().Done()
		close(cut)
	}}
	planner := &scripted{plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) { return creating(podNamed("a")), nil }}
	running := run(t, api, planner, WithDrainTimeout(time.Millisecond))
	within(t, "a write", writing)
	running.stop()
	if err := within(t, "it ends", running.ended); !errors.Is(err, ErrNotDrained) {
		t.Errorf("got %v", err)
	}
	within(t, "the write is cut off", cut)
}

// No goroutine is left, including the one that sends Events.
func TestNothingIsLeftAfterTheEnd(t *testing.T) {
	ours := func() (left []string) {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		for stack := range strings.SplitSeq(string(stacks), "\n\n") {
			if strings.Contains(stack, "watch.(*Broadcaster)") || strings.Contains(stack, "record.(*eventBroadcasterImpl)") ||
				strings.Contains(stack, "cache.(*Reflector)") || strings.Contains(stack, "workqueue.") {
				left = append(left, stack)
			}
		}
		return left
	}
	testkit.Eventually(t, "what other tests left is gone", func() bool { return len(ours()) == 0 })
	asked := make(chan struct{}, 100)
	running := run(t, &apiserver{}, &scripted{plan: func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		asked <- struct{}{}
		return noop(request)
	}})
	within(t, "work", asked)
	if len(ours()) == 0 {
		t.Error("nothing is going on while it works")
	}
	running.stop()
	if err := within(t, "it ends", running.ended); err != nil {
		t.Error(err)
	}
	testkit.Eventually(t, "all has ended", func() bool { return len(ours()) == 0 })
}
