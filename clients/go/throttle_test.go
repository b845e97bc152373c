package nodewise

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	clocktesting "k8s.io/utils/clock/testing"

	"nodewise.dev/clients/go/nodewisev1"
)

// Whatever a service says, a workload is reconciled again at once only as often as it has tokens, and then at most ten times a second.
func TestAWorkloadComesBackAtOnceOnlySoOften(t *testing.T) {
	event := planOf(nodewisev1.PhaseKind_PHASE_KIND_EVENTS, &nodewisev1.Action{Kind: &nodewisev1.Action_EmitEvent{
		EmitEvent: &nodewisev1.EmitEvent{Type: "Normal", Reason: "Reason"},
	}})
	nothing := planOf(nodewisev1.PhaseKind_PHASE_KIND_EVENTS)
	for name, test := range map[string]struct {
		plan  *nodewisev1.Plan
		error string
		says  time.Duration
		// slow is the requeue delay without a token.
		slow time.Duration
	}{
		"an event":                 {event, "", 0, minRequeueDelay},
		"an event, and later":      {event, "", time.Hour, time.Hour},
		"an event, and no earlier": {event, "", minRequeueDelay, minRequeueDelay},
		"nothing to do":            {nothing, "", 1, minRequeueDelay},
		"a failure":                {event, "m", 0, minRequeueDelay},
	} {
		t.Run(name, func(t *testing.T) {
			plan := proto.CloneOf(test.plan)
			plan.RequeueAfter, plan.Error = durationpb.New(test.says), test.error
			planner := &scripted{plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) { return plan, nil }}
			r := newRig(t, planner)
			r.apply("agent:1")
			now := clocktesting.NewFakeClock(time.Now())
			r.enqueuer.clock = now
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
			for range maxTokens {
				comesBack(test.says)
			}
			comesBack(test.slow)
			now.Step(minRequeueDelay)
			comesBack(test.says)
			comesBack(test.slow)
			r.requeues.forget(key)
			comesBack(test.says)
			if len(planner.reports) != 0 {
				t.Error("its outcomes tell nothing, and were reported")
			}
		})
	}
}

// A plan without actions is not followed by another one at once.
func TestNothingIsFollowedAtOnceByNothing(t *testing.T) {
	plan := planOf(nodewisev1.PhaseKind_PHASE_KIND_EVENTS)
	plan.RequeueAfter = durationpb.New(0)
	r := newRig(t, saying(plan))
	r.apply("agent:1")
	if ended, err := r.reconcile(t.Context(), t.Context(), key); err != nil || ended.after != nil {
		t.Errorf("it comes back after %v: %v", ended.after, err)
	}
}
