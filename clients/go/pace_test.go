package nodewise

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	clocktesting "k8s.io/utils/clock/testing"

	"nodewise.dev/clients/go/nodewisev1"
)

// Whatever a service says, a workload comes back at once as often as there are tokens, and then no sooner than ten times a second.
func TestAWorkloadComesBackAtOnceOnlySoOften(t *testing.T) {
	event := planOf(nodewisev1.PhaseKind_PHASE_KIND_EVENTS, &nodewisev1.Action{Kind: &nodewisev1.Action_EmitEvent{
		EmitEvent: &nodewisev1.EmitEvent{Type: "Normal", Reason: "Reason"},
	}})
	nothing := planOf(nodewisev1.PhaseKind_PHASE_KIND_EVENTS)
	nothing.RequeueAfter = durationpb.New(1)
	const after, backOff = nodewisev1.Requeue_REQUEUE_AFTER, nodewisev1.Requeue_REQUEUE_BACKOFF
	for name, test := range map[string]struct {
		plan    *nodewisev1.Plan
		requeue nodewisev1.Requeue
		says    time.Duration
		// slow is when it comes back without a token.
		slow time.Duration
	}{
		"an event":                 {event, after, 0, soonest},
		"an event, and later":      {event, after, time.Hour, time.Hour},
		"an event, and no earlier": {event, after, soonest, soonest},
		"nothing to do":            {nothing, after, 1, soonest},
		"a failure":                {event, backOff, 0, soonest},
	} {
		t.Run(name, func(t *testing.T) {
			planner := &scripted{plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) { return test.plan, nil }}
			planner.report = func(*nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
				return &nodewisev1.ReportResponse{Requeue: test.requeue, RequeueAfter: durationpb.New(test.says), Message: "m"}, nil
			}
			r := newRig(t, planner)
			r.apply("agent:1")
			now := clocktesting.NewFakeClock(time.Now())
			r.waker.clock = now
			comesBack := func(want time.Duration) {
				t.Helper()
				ended, err := r.reconcile(t.Context(), t.Context(), key)
				got := ended.after
				var failed *failure
				if errors.As(err, &failed) {
					got = failed.after
				}
				if got == nil || *got != want {
					t.Fatalf("it comes back after %v: %v", got, err)
				}
			}
			for range mostTokens {
				comesBack(test.says)
			}
			comesBack(test.slow)
			now.Step(soonest)
			comesBack(test.says)
			comesBack(test.slow)
			r.pace.forget(key)
			comesBack(test.says)
		})
	}
}

// After a plan that did nothing there is nothing to go on from at once.
func TestNothingIsFollowedAtOnceByNothing(t *testing.T) {
	plan := planOf(nodewisev1.PhaseKind_PHASE_KIND_EVENTS)
	plan.RequeueAfter = durationpb.New(0)
	r := newRig(t, saying(plan))
	r.apply("agent:1")
	if ended, err := r.reconcile(t.Context(), t.Context(), key); err != nil || ended.after != nil {
		t.Errorf("it comes back after %v: %v", ended.after, err)
	}
}
