// Package apply applies a plan, phase by phase and batch by batch, and returns the outcome of every action.
//
// It decides only what the contract leaves to the executor: whether a phase runs, stopping after a failed batch, and the meaning of a refused
// write.
package apply

import (
	"context"

	"golang.org/x/sync/errgroup"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
)

// OwnWrite is a write of the executor that the caches must show before the next snapshot (D-109).
type OwnWrite struct {
	Resource cluster.Resource
	// ResourceVersion that the write returned. Never empty.
	ResourceVersion string
	// ExpectedByName is true for the create of a pod whose name was known before. An expectation waits for it, too.
	ExpectedByName bool
}

// Applied is the result of applying a plan.
type Applied struct {
	// Outcomes has one outcome for each action of the plan, in the plan's order.
	Outcomes []*nodewisev1.Outcome
	// Writes are the writes that the caches must show before the next plan: creates of pods, adoptions, status writes.
	Writes []OwnWrite
	// Colliding are existing ControllerRevisions, as JSON, with the name of a new revision. The next plan is made at once, with them.
	Colliding [][]byte
	// Created are the names of the created revisions.
	Created []string
	// Vanished are orphans that an adoption did not find. The next plan is made at once, without them.
	Vanished []write.Key
	// Sealed are revisions, and pods to adopt, that the apiserver does not let anybody change. The next plan is made at once, and does not
	// change them.
	Sealed []write.Key
	// TakenNames are names of new pods that other pods have. The executor reports that, and the next plan is made at once. This is no failure.
	TakenNames []string
	// Batches is how many batches were begun.
	Batches int
	// Failed is true if an action outside the events phase failed.
	Failed bool
	// FirstFailure is the error of the first failed action, in the plan's order.
	FirstFailure error
	// Aborted is true if the plan was ended early: a phase failed, or an object was not as it was planned.
	Aborted bool
}

// IsOutdated reports whether an object was not as it was planned, without an action having failed.
func (a *Applied) IsOutdated() bool { return len(a.Vanished) > 0 || len(a.Sealed) > 0 }

func (a *Applied) add(phase nodewisev1.PhaseKind, done *done) (failed bool) {
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

// IsFailure reports whether a result is a failure. A taken name is none: the next plan follows at once, and has another name.
func IsFailure(result nodewisev1.Result) bool { return result == nodewisev1.Result_RESULT_FAILED }

// Settings are the settings of [Apply].
type Settings struct {
	// Concurrency is how many calls may be under way at the same time.
	Concurrency int
	// MaxTracedCalls is up to how many actions of a batch each call has a span.
	MaxTracedCalls int
	// AnnotatesPods adds the trace context of the batch to created pods.
	AnnotatesPods bool
	// LeftOut are the actions that are not executed, by their ids, and why: their objects have changed since the snapshot.
	LeftOut map[uint32]string
}

// Apply applies a plan for the workload whose cached JSON is object. It returns when every call has ended.
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
				failed := applied.add(phase.GetKind(), done)
				phaseFailed = phaseFailed || failed
			}
			// The batches after an adoption depend on the adopted object.
			stopped = stopped || phaseFailed || applied.IsOutdated()
		}
		// Events are best effort: the plan goes on if they fail.
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

// batch executes a batch. The results are in the order of the actions.
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
	_ = calls.Wait() // Failures are in the outcomes.
	return dones
}
