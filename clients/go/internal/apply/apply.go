// Package apply applies a plan: its phases in order, batch by batch, and says what became of every action.
//
// Nothing is decided here but what the contract leaves to the executor: run conditions, stopping after a failed batch, and
// what a refusal means for the kind of write that was refused.
package apply

import (
	"context"

	"golang.org/x/sync/errgroup"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
)

// OwnWrite is a write of ours whose trace a later snapshot must show (D-109).
type OwnWrite struct {
	Resource cluster.Resource
	// ResourceVersion that the write returned. Never empty.
	ResourceVersion string
	// ExpectedByName: it created a pod whose name was known before, by which an expectation waits for it, too.
	ExpectedByName bool
}

// Applied is what became of a plan.
type Applied struct {
	// Outcomes has one per action of the plan, in the plan's order.
	Outcomes []*nodewisev1.Outcome
	// Writes are those that the caches have to show before the next plan: pod creates, adoptions, status writes.
	Writes []OwnWrite
	// Colliding are ControllerRevisions, as live JSON, whose names a CreateRevision found taken: plan again at once with them.
	Colliding [][]byte
	// Created are the names of the revisions that were created.
	Created []string
	// Vanished are orphans that an adoption did not find: plan again at once without them.
	Vanished []write.Key
	// Sealed are revisions, and pods to adopt, that cannot be changed: plan again at once with nothing to change in them.
	Sealed []write.Key
	// TakenNames are names of new pods that are taken by other pods: report, and plan again at once. Nothing failed for it.
	TakenNames []string
	// Batches is how many batches were begun.
	Batches int
	// Failed: some action outside the events phase failed.
	Failed bool
	// FirstFailure is why the first action that failed did, in the plan's order.
	FirstFailure error
	// Aborted: a failed phase, or something that is not as it was planned, ended the plan.
	Aborted bool
}

// IsOutdated tells whether something is not as it was planned, though nothing failed for it.
func (a *Applied) IsOutdated() bool { return len(a.Vanished) > 0 || len(a.Sealed) > 0 }

func (a *Applied) take(phase nodewisev1.PhaseKind, done *done) (failed bool) {
	failed = IsFailure(done.outcome.GetResult())
	a.Failed = a.Failed || failed && phase != nodewisev1.PhaseKind_PHASE_KIND_EVENTS
	if failed && a.FirstFailure == nil {
		a.FirstFailure = done.err
	}
	a.Outcomes = append(a.Outcomes, done.outcome)
	if done.write != nil {
		a.Writes = append(a.Writes, *done.write)
	}
	if done.colliding != nil {
		a.Colliding = append(a.Colliding, done.colliding)
	}
	if done.created != "" {
		a.Created = append(a.Created, done.created)
	}
	if done.vanished != nil {
		a.Vanished = append(a.Vanished, *done.vanished)
	}
	if done.sealed != nil {
		a.Sealed = append(a.Sealed, *done.sealed)
	}
	if done.outcome.GetResult() == nodewisev1.Result_RESULT_NAME_TAKEN {
		a.TakenNames = append(a.TakenNames, done.outcome.GetCreatedPod().GetPodName())
	}
	return failed
}

// IsFailure tells whether an action that ended so has failed. A name that is taken is no failure: the next plan, which follows at once,
// has another one.
func IsFailure(result nodewisev1.Result) bool { return result == nodewisev1.Result_RESULT_FAILED }

// Settings are how plans are applied.
type Settings struct {
	// Concurrency is the most calls at a time.
	Concurrency int
	// MaxTracedCalls is the most actions of a batch whose calls have spans.
	MaxTracedCalls int
	// AnnotatesPods lets created pods carry the trace context of their batch.
	AnnotatesPods bool
	// LeftOut is why actions are not carried out, by their ids: what they are about has changed since the snapshot.
	LeftOut map[uint32]string
}

// Apply applies a plan for the workload whose cached JSON is object. It returns when every call has been answered or has timed out.
func Apply(
	ctx context.Context, writer write.Writer, plan *nodewisev1.Plan, object []byte, settings Settings,
) *Applied {
	run := newRun(writer, plan, object, settings)
	applied := &Applied{}
	anyFailure := false
	logPlan(ctx, plan, writer.Writes())
	for _, phase := range plan.GetPhases() {
		stopped := applied.Aborted || phase.GetRequiresSuccess() && anyFailure
		phaseFailed := false
		for _, batch := range phase.GetBatches() {
			var dones []*done
			if stopped {
				dones = skip(batch)
			} else if len(batch.GetActions()) > 0 {
				applied.Batches++
				dones = run.tracedBatch(ctx, phase.GetKind(), batch)
			}
			logActions(ctx, plan.GetPlanId(), batch, dones)
			for _, done := range dones {
				failed := applied.take(phase.GetKind(), done)
				phaseFailed = phaseFailed || failed
			}
			// What follows an adoption rests on the object being there.
			stopped = stopped || phaseFailed || applied.IsOutdated()
		}
		// Events are best effort: whatever becomes of them, the plan goes on.
		if phase.GetKind() != nodewisev1.PhaseKind_PHASE_KIND_EVENTS {
			anyFailure = anyFailure || phaseFailed
			applied.Aborted = applied.Aborted || phaseFailed && phase.GetAbortsOnFailure() || applied.IsOutdated()
		}
	}
	return applied
}

func skip(batch *nodewisev1.Batch) []*done {
	dones := make([]*done, 0, len(batch.GetActions()))
	for _, action := range batch.GetActions() {
		dones = append(dones, ended(action, nodewisev1.Result_RESULT_SKIPPED))
	}
	return dones
}

// batch runs a batch; it answers in the batch's order.
func (r *run) batch(ctx context.Context, batch *nodewisev1.Batch) []*done {
	var unconfirmed *write.Error
	if batch.GetConfirmWorkload() {
		unconfirmed = r.confirmWorkload(ctx)
	}
	dones := make([]*done, len(batch.GetActions()))
	var calls errgroup.Group
	calls.SetLimit(max(r.settings.Concurrency, 1))
	for i, action := range batch.GetActions() {
		calls.Go(func() error {
			why, isLeftOut := r.settings.LeftOut[action.GetId()]
			switch {
			case isLeftOut:
				dones[i] = ended(action, nodewisev1.Result_RESULT_SKIPPED)
				dones[i].outcome.Message = why
			case unconfirmed != nil && isAdoption(action):
				dones[i] = failed(action, unconfirmed)
			default:
				dones[i] = r.action(ctx, action)
			}
			return nil
		})
	}
	_ = calls.Wait() // What failed is in the outcomes.
	return dones
}
