package nodewise

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
)

// bursts is a planner whose first plans create a pod each, and are followed by another plan at once.
func bursts(count int) *scripted {
	planner := &scripted{}
	planner.plan = func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		if len(planner.asked) > count {
			return noop(request)
		}
		plan := creating(podNamed(fmt.Sprint("p", len(planner.asked))))
		plan.RequeueAfter = durationpb.New(0)
		return plan, nil
	}
	planner.report = func(report *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
		return &nodewisev1.ReportResponse{State: report.GetState(), RequeueAfter: report.GetRequeueAfter()}, nil
	}
	return planner
}

// The plan that follows at once is requested while the one before it is applied. The request has the creates of that one as expectations.
func TestTheNextPlanIsAskedForAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		planner := bursts(2)
		r := newRig(t, planner)
		r.apply("agent:1")
		r.cluster.unseen = true
		for want := 2; want <= 3; want++ {
			if err := r.Reconcile(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			if len(planner.asked) != want || r.cluster.count("create pods") != want-1 {
				t.Fatalf("asked %d times, wrote %v", len(planner.asked), r.cluster.writes)
			}
		}
		creates := planner.asked[1].GetSnapshot().GetState().GetExpectations().GetCreates()
		if len(creates) != 1 || creates[0].GetPodName() != podNamed("p1") {
			t.Errorf("it was asked with %v outstanding", creates)
		}
	})
}

// W14: a prefetched plan is not applied after the stop, although queues give out its workload once more.
func TestAPlanAheadIsNotBegunAfterTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		planner := bursts(2)
		r := newRig(t, planner)
		r.apply("agent:1")
		r.cluster.unseen = true
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		if err := r.Reconcile(ctx, key); err != nil {
			t.Fatal(err)
		}
		stop()
		err := r.Reconcile(ctx, key)
		var unreachable *planclient.UnreachableError
		if !errors.Is(err, ErrNotYet) || !errors.As(err, &unreachable) {
			t.Errorf("got %v", err)
		}
		if len(planner.asked) != 2 || r.cluster.count("create pods") != 1 {
			t.Errorf("asked %d times, wrote %v", len(planner.asked), r.cluster.writes)
		}
		// The plan was there: without the stop it is applied.
		if err := r.Reconcile(t.Context(), key); err != nil || r.cluster.count("create pods") != 2 {
			t.Errorf("wrote %v, and then %v", r.cluster.writes, err)
		}
	})
}

// A prefetched plan is not applied if the plan before it failed, if the workload has changed, if the plan comes too late or is too old, or if
// it does more than create pods.
func TestAPlanAheadIsNotAppliedWhenThingsAreOtherwise(t *testing.T) {
	for name, test := range map[string]struct {
		before, after func(*rig, *scripted)
		asked         int
	}{
		"all is well": {asked: 3},
		"a create failed": {
			before: func(r *rig, _ *scripted) {
				r.cluster.refuse = func(string, write.Key) error {
					return &write.Error{Status: http.StatusForbidden, Message: "a quota"}
				}
			},
			after: func(r *rig, _ *scripted) { r.cluster.refuse = nil },
			asked: 4,
		},
		"the workload has changed": {
			after: func(r *rig, _ *scripted) { r.apply("agent:1") },
			asked: 4,
		},
		"it is too old": {
			// In the synctest bubble this advances the fake clock.
			after: func(*rig, *scripted) { time.Sleep(maxPrefetchAge + time.Millisecond) },
			asked: 4,
		},
		"it comes late": {
			before: func(_ *rig, planner *scripted) {
				planner.hangs = func(ctx context.Context) error {
					if len(planner.asked) == 2 {
						<-ctx.Done()
					}
					return ctx.Err()
				}
			},
			asked: 4,
		},
		"it does more than to create": {
			before: func(_ *rig, planner *scripted) {
				plan := planner.plan
				planner.plan = func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
					made, err := plan(request)
					if len(planner.asked) == 2 {
						made.Phases = append(made.Phases, &nodewisev1.Phase{Kind: nodewisev1.PhaseKind_PHASE_KIND_DELETES})
					}
					return made, err
				}
			},
			asked: 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				planner := bursts(3)
				r := newRig(t, planner)
				r.apply("agent:1")
				r.cluster.unseen = name != "the workload has changed"
				for _, otherwise := range []func(*rig, *scripted){test.before, test.after} {
					if otherwise != nil {
						otherwise(r, planner)
					}
					if err := r.Reconcile(t.Context(), key); err != nil {
						t.Fatal(err)
					}
				}
				// The first plan, the prefetched one, perhaps a new one, and the prefetched one after that.
				if len(planner.asked) != test.asked {
					t.Errorf("asked %d times", len(planner.asked))
				}
			})
		})
	}
}
