package apply

import (
	"net/http"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/plancheck"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
)

// done is the result of one action.
type done struct {
	outcome *nodewisev1.Outcome
	// err is why the action did not succeed; nil if it did.
	err       error
	write     *OwnWrite
	colliding *Colliding
	created   string
	vanished  *write.Key
	sealed    *write.Key
	blocked   *Blocked
	// endsPlan is true if the rest of the plan must not be executed, whether or not the action failed.
	endsPlan bool
}

func ended(action *nodewisev1.Action, result nodewisev1.Result) *done {
	outcome := &nodewisev1.Outcome{ActionId: action.GetId(), Result: result}
	// The subject names the expectation that the outcome settles.
	switch kind := action.GetKind().(type) {
	case *nodewisev1.Action_CreatePod:
		outcome.Subject = &nodewisev1.Outcome_CreatedPod{CreatedPod: &nodewisev1.ExpectedCreate{
			PodName: kind.CreatePod.GetPodName(), NodeName: kind.CreatePod.GetNodeName(),
		}}
	default:
		if pod := plancheck.RemovedPod(action); pod != nil {
			outcome.Subject = &nodewisev1.Outcome_DeletedPodUid{DeletedPodUid: pod.GetUid()}
		}
	}
	return &done{outcome: outcome}
}

func succeeded(action *nodewisev1.Action) *done {
	return ended(action, nodewisev1.Result_RESULT_SUCCEEDED)
}

func refused(action *nodewisev1.Action, result nodewisev1.Result, err *write.Error) *done {
	done := ended(action, result)
	done.err = err
	done.outcome.Message, done.outcome.HttpStatus = err.Message, uint32(err.Status)
	return done
}

// ending ends the plan after an action.
func (d *done) ending() *done {
	d.endsPlan = true
	return d
}

func failed(action *nodewisev1.Action, err *write.Error) *done {
	return refused(action, nodewisev1.Result_RESULT_FAILED, err)
}

// notAllowed is the result of an eviction that a PodDisruptionBudget does not allow now. That is no failure.
func notAllowed(action *nodewisev1.Action, pod *nodewisev1.ObjectReference, why *write.Blocked) *done {
	done := ended(action, nodewisev1.Result_RESULT_BLOCKED)
	done.outcome.Message, done.outcome.HttpStatus = why.Message, http.StatusTooManyRequests
	done.blocked = &Blocked{PodUID: pod.GetUid(), Blocked: *why}
	return done
}

// recorded is the result of a successful write that the caches must show before the next plan.
func recorded(action *nodewisev1.Action, resource cluster.Resource, written write.Written) *done {
	done := succeeded(action)
	if written.ResourceVersion != "" {
		done.write = &OwnWrite{
			Resource:        resource,
			ResourceVersion: written.ResourceVersion,
			CreatedPod:      action.GetCreatePod().GetPodName(),
		}
	}
	return done
}

// isCreate reports whether an action creates an object.
func isCreate(action *nodewisev1.Action) bool {
	return action.GetCreatePod() != nil || action.GetCreateRevision() != nil || action.GetCreateObject() != nil
}

// isAdoption reports whether an action makes the workload the controller of an object. A workload that is being deleted must not adopt
// (D-27).
func isAdoption(action *nodewisev1.Action) bool {
	return action.GetAdoptPod() != nil || action.GetAdoptRevision() != nil || action.GetPatchObject().GetClaim() == nodewisev1.Claim_CLAIM_ADOPT
}
