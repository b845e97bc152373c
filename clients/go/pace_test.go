package nodewise

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"nodewise.dev/clients/go/internal/apply"
	"nodewise.dev/clients/go/nodewisev1"
)

// Whatever a service says, plans that create and delete no pods come no faster than ten a second.
func TestAPlanThatChangesNothingIsNotFollowedAtOnce(t *testing.T) {
	event := planOf(nodewisev1.PhaseKind_PHASE_KIND_EVENTS, &nodewisev1.Action{Kind: &nodewisev1.Action_EmitEvent{
		EmitEvent: &nodewisev1.EmitEvent{Type: "Normal", Reason: "Reason"},
	}})
	const after, backOff = nodewisev1.Requeue_REQUEUE_AFTER, nodewisev1.Requeue_REQUEUE_BACKOFF
	for name, test := range map[string]struct {
		plan    *nodewisev1.Plan
		requeue nodewisev1.Requeue
		says    time.Duration
		want    time.Duration
	}{
		"nothing to do":            {planOf(nodewisev1.PhaseKind_PHASE_KIND_DELETES), after, 0, soonest},
		"an event":                 {event, after, 0, soonest},
		"an event, and later":      {event, after, time.Hour, time.Hour},
		"a create":                 {creating(podNamed("a")), after, 0, 0},
		"a create that is retried": {creating(podNamed("a")), backOff, 0, soonest},
	} {
		t.Run(name, func(t *testing.T) {
			planner := saying(test.plan)
			test.plan.RequeueAfter = durationpb.New(1)
			planner.report = func(*nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
				return &nodewisev1.ReportResponse{Requeue: test.requeue, RequeueAfter: durationpb.New(test.says), Message: "m"}, nil
			}
			r := newRig(t, planner)
			r.apply("agent:1")
			ended, err := r.reconcile(t.Context(), t.Context(), key)
			got := ended.after
			var failed *failure
			if errors.As(err, &failed) {
				got = failed.after
			}
			if got == nil || *got != test.want {
				t.Errorf("it comes back after %v: %v", got, err)
			}
		})
	}
}

// What can be written again and again is no change, though it succeeds.
func TestWhatIsAChange(t *testing.T) {
	for action, changes := range map[*nodewisev1.Action]bool{
		createPod(podNamed("a"), "n"):                                true,
		removing("a", "1").GetPhases()[0].GetBatches()[0].Actions[0]: true,
		{Kind: &nodewisev1.Action_CreateRevision{}}:                  false,
		{Kind: &nodewisev1.Action_DeleteRevision{}}:                  false,
		{Kind: &nodewisev1.Action_AdoptPod{}}:                        false,
		{Kind: &nodewisev1.Action_RelabelPod{}}:                      false,
		{Kind: &nodewisev1.Action_UpdateStatus{}}:                    false,
		{Kind: &nodewisev1.Action_EmitEvent{}}:                       false,
	} {
		plan := planOf(nodewisev1.PhaseKind_PHASE_KIND_CREATES, action)
		for result, want := range map[nodewisev1.Result]bool{
			nodewisev1.Result_RESULT_SUCCEEDED: changes, nodewisev1.Result_RESULT_FAILED: false, nodewisev1.Result_RESULT_NAME_TAKEN: true,
		} {
			applied := &apply.Applied{Outcomes: []*nodewisev1.Outcome{{Result: result}}}
			if hasChanged(plan, applied) != want {
				t.Errorf("%v of %v", result, action)
			}
		}
	}
}
