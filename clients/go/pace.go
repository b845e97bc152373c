package nodewise

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"nodewise.dev/clients/go/internal/apply"
	"nodewise.dev/clients/go/internal/plancheck"
	"nodewise.dev/clients/go/nodewisev1"
)

// soonest is when the next plan is asked for at the earliest after one that created and deleted no pod, whatever the service says.
const soonest = 100 * time.Millisecond

// later is when to come back after a plan of which nothing is known, or that did nothing: another one does not follow at once.
func later(after *time.Duration) *time.Duration {
	if after == nil || *after == 0 {
		return nil
	}
	return notTooSoon(after)
}

// answered is when to come back as the answer to a report says.
func answered(response *nodewisev1.ReportResponse, hasChanged bool) *time.Duration {
	after := duration(response.GetRequeueAfter())
	if hasChanged && response.GetRequeue() != nodewisev1.Requeue_REQUEUE_BACKOFF {
		return after
	}
	return notTooSoon(after)
}

func notTooSoon(after *time.Duration) *time.Duration {
	if after == nil || *after > soonest {
		return after
	}
	return new(soonest)
}

// duration is nil where there is none, or a negative one.
func duration(wire *durationpb.Duration) *time.Duration {
	after := wire.AsDuration()
	if wire == nil || after < 0 {
		return nil
	}
	return &after
}

// hasChanged tells whether a plan has created or deleted a pod, or found the name of a pod taken: then the next one is another. Patches, a
// status and Events can be written again and again, and so can revisions.
func hasChanged(plan *nodewisev1.Plan, applied *apply.Applied) bool {
	actions := plancheck.ActionsOf(plan)
	for i, outcome := range applied.Outcomes {
		switch outcome.GetResult() {
		case nodewisev1.Result_RESULT_SUCCEEDED:
			switch actions[i].GetKind().(type) {
			case *nodewisev1.Action_CreatePod, *nodewisev1.Action_DeletePod:
				return true
			default:
			}
		case nodewisev1.Result_RESULT_NAME_TAKEN:
			return true
		default:
		}
	}
	return false
}
