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
	// CreatedPod is the name of the created pod, if it was in the plan. An expectation also waits for that name.
	CreatedPod string
}

// Colliding is an existing object that has the name of a new one.
type Colliding struct {
	Resource cluster.Resource
	// Object is the object as JSON.
	Object []byte
}

// Blocked is an eviction that a PodDisruptionBudget did not allow.
type Blocked struct {
	write.Blocked

	PodUID string
}

// Applied is the result of applying a plan.
type Applied struct {
	// Outcomes has one outcome for each action of the plan, in the plan's order.
	Outcomes []*nodewisev1.Outcome
	// Writes are the writes that the caches must show before the next plan: creates of pods, adoptions, status writes.
	Writes []OwnWrite
	// Colliding are existing objects with the name of a new one. The next plan is made at once, with them.
	Colliding []Colliding
	// Created are the names of the created revisions.
	Created []string
	// Vanished are orphans that an adoption did not find. The next plan is made at once, without them.
	Vanished []write.Key
	// Sealed are revisions, and pods to adopt, that the apiserver does not let anybody change. The next plan is made at once, and does not
	// change them.
	Sealed []write.Key
	// Blocked are evictions that a PodDisruptionBudget did not allow. This is no failure.
	Blocked []Blocked
	// TakenNames are names of new pods that other pods have. The executor reports that, and the next plan is made at once. This is no failure.
	TakenNames []string
	// Batches is how many batches were begun.
	Batches int
	// Failed is true if an action failed, of a phase whose failures count.
	Failed bool
	// FirstFailure is the error of the first failed action, in the plan's order. Failures that do not count are left out.
	FirstFailure error
	// Aborted is true if the plan was ended early: a phase failed, an object was not as it was planned, or a create found its name taken or its
	// namespace terminating.
	Aborted bool
}

// IsOutdated reports whether an object was not as it was planned, without an action having failed.
func (a *Applied) IsOutdated() bool { return len(a.Vanished) > 0 || len(a.Sealed) > 0 }

func (a *Applied) add(phase *nodewisev1.Phase, done *done) (failed bool) {
	failed = IsFailure(done.outcome.GetResult())
	if failed && phase.GetIgnoresFailure() {
		done.outcome.Ignored = true
	}
	a.Failed = a.Failed || failed && countsFailures(phase)
	if failed && !done.outcome.GetIgnored() && a.FirstFailure == nil {
		a.FirstFailure = done.err
	}
	a.Outcomes = append(a.Outcomes, done.outcome)
	if done.write != nil {
		a.Writes = append(a.Writes, *done.write)
	}
	if done.colliding != nil {
		a.Colliding = append(a.Colliding, *done.colliding)
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
	if done.blocked != nil {
		a.Blocked = append(a.Blocked, *done.blocked)
	}
	if done.outcome.GetResult() == nodewisev1.Result_RESULT_NAME_TAKEN && done.colliding == nil {
		a.TakenNames = append(a.TakenNames, done.outcome.GetCreatedPod().GetPodName())
	}
	return failed
}

// countsFailures reports whether a failure in a phase counts. Events are best effort: the plan goes on if they fail.
func countsFailures(phase *nodewisev1.Phase) bool {
	return phase.GetKind() != nodewisev1.PhaseKind_PHASE_KIND_EVENTS && !phase.GetIgnoresFailure()
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
	// Measure starts a measurement, and does not wait for its end. An observer starts none.
	Measure func(*nodewisev1.Measure)
}

// Apply applies a plan for the workload of this kind whose cached JSON is object. It returns when every call has ended.
func Apply(
	ctx context.Context, writer write.Writer, plan *nodewisev1.Plan, kind *cluster.Kind, object []byte, settings Settings,
) *Applied {
	run := newRun(writer, plan, kind, object, settings)
	applied := &Applied{}
	// anyFailure is true after a failure that counts. endsPlan is true after an action without which the rest of the plan makes no sense.
	var anyFailure, endsPlan bool
	logPlan(ctx, plan, writer.Writes())
	for _, phase := range plan.GetPhases() {
		isNeedless := phase.GetRequiresFailure() && !anyFailure && !applied.Aborted
		stopped := applied.Aborted || phase.GetRequiresSuccess() && anyFailure || isNeedless
		phaseFailed := false
		for _, batch := range phase.GetBatches() {
			var dones []*done
			if stopped {
				dones = skip(batch, isNeedless)
			} else if len(batch.GetActions()) > 0 {
				applied.Batches++
				dones = run.tracedBatch(ctx, phase.GetKind(), batch, applied.FirstFailure)
			}
			logActions(ctx, plan.GetPlanId(), batch, dones)
			for _, done := range dones {
				failed := applied.add(phase, done)
				phaseFailed = phaseFailed || failed
				endsPlan = endsPlan || done.endsPlan
			}
			// The batches after an adoption depend on the adopted object.
			endsPlan = endsPlan || applied.IsOutdated()
			stopped = stopped || phaseFailed || endsPlan
		}
		failureCounts := phaseFailed && countsFailures(phase)
		anyFailure = anyFailure || failureCounts
		applied.Aborted = applied.Aborted || failureCounts && phase.GetAbortsOnFailure() || endsPlan
	}
	return applied
}

// skip returns the results of a batch that is not executed. If it is ignored, that is no reason to retry.
func skip(batch *nodewisev1.Batch, isIgnored bool) []*done {
	dones := make([]*done, 0, len(batch.GetActions()))
	for _, action := range batch.GetActions() {
		done := ended(action, nodewisev1.Result_RESULT_SKIPPED)
		done.outcome.Ignored = isIgnored
		dones = append(dones, done)
	}
	return dones
}

// batch executes a batch. The results are in the order of the actions. The argument failure is the first error of earlier batches; nil for none.
func (r *run) batch(ctx context.Context, batch *nodewisev1.Batch, failure error) []*done {
	message := ""
	if failure != nil {
		message = failure.Error()
	}
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
			case unconfirmed != nil && isCreate(action):
				dones[i] = failed(action, unconfirmed).ending()
			default:
				dones[i] = r.action(ctx, action, message)
			}
			return nil
		})
	}
	_ = calls.Wait() // Failures are in the outcomes.
	return dones
}
