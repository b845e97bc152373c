package nodewise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/klog/v2"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/internal/apply"
	"nodewise.dev/clients/go/internal/brief"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/expect"
	"nodewise.dev/clients/go/internal/plancheck"
	"nodewise.dev/clients/go/internal/traces"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
)

const (
	// maxPlans is how many plans one reconcile may request in a row because the cluster was not as planned: a name was taken, or an
	// orphan was gone.
	maxPlans = 4
	// expectationsExpired is when expectations have certainly expired: five minutes, as the contract says, and one second.
	expectationsExpired = 301 * time.Second
)

// result is the result of a reconcile.
type result struct {
	// after is when to reconcile again; nil if that is not needed.
	after *time.Duration
	// gone is true if the workload does not exist.
	gone bool
	// failed is true if the reconcile returned an error or panicked.
	failed bool
}

// isAtOnce reports whether the next plan is due at once.
func (r result) isAtOnce() bool { return r.after != nil && *r.after == 0 }

// failure is the error of a reconcile that is retried with back-off.
type failure struct {
	// after is when to reconcile again even if the back-off is longer; nil if only the back-off counts.
	after  *time.Duration
	reason error
}

func (f *failure) Error() string { return f.reason.Error() }

func (f *failure) Unwrap() error { return f.reason }

// planned is a plan, and the snapshot that it was made from.
type planned struct {
	plan     *nodewisev1.Plan
	workload *cluster.Workload
	sent     *nodewisev1.ReconcileState
	// own are the cached revisions of the snapshot that the workload controls.
	own []*cluster.Revision
	// asOf is the number of the last cache change that the snapshot includes.
	asOf uint64
	// policies are the RolloutPolicies of the snapshot.
	policies []*cluster.Policy
	// measured are the measurements of the snapshot.
	measured []*nodewisev1.Measurement
}

// ErrNotYet is in the error of a reconcile that was not possible yet: a cache does not show the Reconciler's own last write, or the service
// cannot be reached, or it does not plan for this kind of workload. This is no failure of the workload. The Reconciler enqueues the workload again by itself.
var ErrNotYet = errors.New("not yet")

// errConflict says that somebody else has changed a RolloutPolicy since the snapshot. So its status was not written, and nothing that depends on it
// was done.
var errConflict = fmt.Errorf("%w: a RolloutPolicy has changed since the snapshot", errBehind)

// errBehind says that the caches do not show the Reconciler's own last write yet.
var errBehind = errors.New("a cache is behind")

// Reconcile reconciles one workload, if it is owned: it takes a snapshot, requests a plan, applies it and reports the outcomes. A requeue
// goes through the queue that was given to [Reconciler.Start]. Reconcile must not be called concurrently for the same workload. With several
// kinds, see [Reconciler.ReconcileKind].
//
// After an error the caller retries with the workload's back-off, and after success it resets the back-off. After [ErrNotYet] the caller
// does neither. When the context ends, Reconcile requests no more plans, but completes and reports the plan that it has begun to apply.
func (r *Reconciler) Reconcile(ctx context.Context, key types.NamespacedName) error {
	if len(r.controllers) > 1 {
		return fmt.Errorf("the Reconciler owns %v: call ReconcileKind, which also says of which kind the workload is", r.Kinds())
	}
	return r.controllers[0].Reconcile(ctx, key)
}

// ReconcileKind is Reconcile for several kinds: it reconciles the workload of this kind. It may be called concurrently for workloads of different
// kinds that have the same name.
func (r *Reconciler) ReconcileKind(ctx context.Context, of Kind, key types.NamespacedName) error {
	controller := r.controllerOf(of)
	if controller == nil {
		return fmt.Errorf("the Reconciler owns %v, and not kind %q: see WithKinds", r.Kinds(), of)
	}
	return controller.Reconcile(ctx, key)
}

// Reconcile reconciles one workload of the controller's kind.
func (r *controller) Reconcile(ctx context.Context, key types.NamespacedName) error {
	if _, _, err := r.reconcileAndRequeue(context.WithoutCancel(ctx), ctx, key); err != nil {
		return fmt.Errorf("reconciling %s %s: %w", r.kind.Name, key, err)
	}
	return nil
}

// reconcileAndRequeue reconciles one workload in a trace of its own, and enqueues it again when it is due. The context asking ends requests
// for plans, and ctx ends writes. The returned logger has the values of this reconcile. The returned delay is when a failed workload is enqueued
// even if its back-off is longer; nil if only the back-off counts.
func (r *controller) reconcileAndRequeue(ctx, asking context.Context, key types.NamespacedName) (logger logr.Logger, after *time.Duration, err error) {
	ctx, span := r.startReconcile(ctx, key)
	defer span.End()
	logger = withTrace(klog.FromContext(ctx).WithValues(r.kind.logKey, key), span)
	asking = trace.ContextWithSpan(klog.NewContext(asking, logger), span)
	began := r.enqueuer.clock.Now()
	ended, err := r.reconcileTracked(klog.NewContext(ctx, logger), asking, key)
	outcome := outcomeOf(err)
	setOutcome(span, outcome, err)
	var failure *failure
	switch {
	case outcome == settled:
		r.conflicts.Forget(key)
		r.requeueAfter(key, ended.after)
	case errors.Is(err, errConflict):
		// The event of the change enqueues the workload, too.
		r.enqueuer.enqueueAfter(key, r.conflicts.When(key))
	case outcome == unreachable:
		// A request that takes the whole deadline at every replica must not keep a worker busy for ever.
		r.enqueuer.enqueueAfter(key, max(r.config.unreachable, 2*r.enqueuer.clock.Since(began)))
	case errors.As(err, &failure):
		after = failure.after
		r.requeueAfter(key, after)
	default:
		// A workload whose caches are behind is enqueued by the event that brings them up to date.
	}
	if r.waitsForWatches(key) {
		// If an expected create or delete is never observed, no event enqueues the workload.
		r.enqueuer.enqueueAfter(key, expectationsExpired)
		if r.config.pods != nil {
			r.enqueuer.enqueueAfter(key, hiddenDelay)
		}
	}
	if isUnsupported(err) && r.state.mayLogUnsupported() {
		logger.Error(err, "The service does not plan for this kind: upgrade it, or leave the kind out of WithKinds", "kind", r.kind.Name)
	}
	if outcome == behind || outcome == unreachable {
		err = fmt.Errorf("%w: %w", ErrNotYet, err)
		logger.V(4).Info("Nothing could be done", "reason", err.Error())
	}
	return logger, after, err
}

// isUnsupported reports whether the service does not plan for the kind.
func isUnsupported(err error) bool {
	var unsupported *planclient.UnsupportedKindError
	return errors.As(err, &unsupported)
}

func outcomeOf(err error) outcome {
	var away *planclient.UnreachableError
	var failure *failure
	switch {
	case err == nil:
		return settled
	case errors.Is(err, errBehind):
		return behind
	case errors.As(err, &failure):
		// Before UnreachableError, which a failure may wrap: if a report was not delivered, the plan was applied all the same.
		return failed
	case errors.As(err, &away), isUnsupported(err):
		// Only a newer service helps, so this is no failure of the workload either.
		return unreachable
	default:
		return failed
	}
}

// reconcileTracked reconciles between [enqueuer.begin] and [enqueuer.end]. The end is recorded also after a panic, from which
// controller-runtime recovers.
func (r *controller) reconcileTracked(ctx, asking context.Context, key types.NamespacedName) (ended result, err error) {
	r.enqueuer.begin(key)
	// This is the result after a panic.
	ended.failed = true
	defer func() { r.enqueuer.end(key, ended) }()
	ended, err = r.reconcile(ctx, asking, key)
	ended.failed = err != nil
	return ended, err
}

func (r *controller) requeueAfter(key types.NamespacedName, after *time.Duration) {
	if after != nil {
		r.enqueuer.enqueueAfter(key, *after)
	}
}

func (r *controller) waitsForWatches(key types.NamespacedName) bool {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	creates, deletes := r.state.holdings.Outstanding(key)
	return creates+deletes > 0
}

func (r *controller) reconcile(ctx, asking context.Context, key types.NamespacedName) (result, error) {
	// live are objects that were read from the apiserver, which the caches need not show.
	live := &liveObjects{}
	var last replan
	for range maxPlans {
		workload, err := r.admit(key, live)
		if workload == nil || err != nil {
			r.prefetched.forget(key)
			if workload == nil && err == nil {
				r.requeues.forget(key)
				r.conflicts.Forget(key)
				r.measurements.forget(key)
			}
			return result{gone: workload == nil && err == nil}, err
		}
		planned, err := r.obtainPlan(asking, workload, live)
		if errors.Is(err, errNotSelected) {
			r.forgetUnselected(workload)
			return result{}, nil
		}
		if err != nil {
			return result{}, err
		}
		leftOut, err := r.check(ctx, planned, live.revisions)
		if err != nil {
			return result{}, err
		}
		if err := r.requireShown(ctx, planned); err != nil {
			return result{}, err
		}
		// A stale plan is not applied, so its expectations must not be held: they would never be observed.
		if planned.plan.GetVerdict() == nodewisev1.Verdict_VERDICT_STALE {
			return result{}, &failure{reason: errors.New("the plan is stale: the caches are older than our own writes")}
		}
		r.holdState(planned)
		applied, next := r.applyAndPrefetch(ctx, asking, planned, leftOut)
		again := r.replanAfter(ctx, applied)
		r.recordApplied(applied)
		if again.outdated {
			live.add(r.createdRevisions(ctx, key.Namespace, applied))
		}
		ended, err := r.report(ctx, asking, planned, applied, leftOut)
		ended, err = r.throttle(key, ended, err)
		if !again.follows(ended, err) {
			// A prefetched plan is kept only here: it does not know of anything that was not as planned.
			if next != nil && err == nil && ended.isAtOnce() {
				r.prefetched.keep(key, *next)
			}
			return ended, err
		}
		live.add(again.colliding)
		last = again
	}
	if last.isForNamesOnly() {
		// Names that other pods have taken cost no back-off, however many there are.
		after := minRequeueDelay
		return result{after: &after}, nil
	}
	return result{}, &failure{reason: fmt.Errorf(
		"an object's name was still taken, or another object gone, after %d plans", maxPlans)}
}

// admit returns the workload, if it exists and the caches show the Reconciler's last writes to it (D-71, steps 1 and 2). If the caches do
// not, the live objects are kept, and returned when the workload is admitted.
func (r *controller) admit(key types.NamespacedName, live *liveObjects) (*cluster.Workload, error) {
	s := r.state
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.store.Synced() && !s.store.Relisting() {
		return nil, &failure{reason: r.unsynced()}
	}
	workload := s.store.Workload(r.kind.Kind, key)
	if workload == nil {
		s.forget(key)
		return nil, nil
	}
	for _, resource := range r.kind.Inputs {
		if unknown := s.store.Unknown(resource); unknown != "" {
			return nil, &failure{reason: fmt.Errorf("nothing is rolled out without knowing the %s: %s", resource, unknown)}
		}
	}
	if s.store.Relisting() {
		return nil, fmt.Errorf("%w: etcd was restored, and %v not listed since", errBehind, s.store.Unsynced())
	}
	if behind := s.gate.Check(key, s.store.Reached); behind != nil {
		s.keepLive(key, workload.UID, live)
		return nil, fmt.Errorf("%w: %w", errBehind, behind)
	}
	live.add(s.takeLive(key, workload.UID))
	return workload, nil
}

// unsynced says why nothing can be reconciled yet. The caller holds the lock.
func (r *controller) unsynced() error {
	if !r.started.Load() {
		return errors.New("the Reconciler was not started, and knows nothing of the cluster: call Start and then WaitForSync before " +
			"Reconcile, or leave that to Run or to ctrl.SetupWithManager")
	}
	return fmt.Errorf("the caches of %v are not filled: call WaitForSync before Reconcile", r.state.store.Unsynced())
}

// obtainPlan returns the prefetched plan, or else requests one. When the context has ended it returns an error: after the stop a queue still
// gives out the keys that it has, and no new plan is begun. It returns [errNotSelected] if the workload is not selected, also if that
// changed while the plan was requested.
func (r *controller) obtainPlan(
	ctx context.Context, workload *cluster.Workload, live *liveObjects,
) (*planned, error) {
	if err := r.requireSelected(workload); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, &planclient.UnreachableError{
			Reason: context.Cause(ctx).Error(), Err: errors.Join(ctx.Err(), context.Cause(ctx)),
		}
	}
	next := r.prefetched.take(workload)
	if next == nil || !live.isEmpty() {
		asked, err := r.plan(ctx, workload, live)
		if err != nil {
			return nil, r.dropAfterRefusal(ctx, workload, err)
		}
		next = asked
	}
	if len(r.config.selection) == 0 {
		return next, nil
	}
	return next, r.requireSelected(r.newest(workload))
}

func (r *controller) plan(
	ctx context.Context, workload *cluster.Workload, live *liveObjects,
) (*planned, error) {
	s, current := r.state, workload
	if r.kind.reads(cluster.Revisions) {
		if err := r.readRevisions(ctx, workload, live.revisions); err != nil {
			return nil, err
		}
	}
	// origins are the snapshots of all requests: the plan need not answer the last request.
	var origins []planned
	// leftOut is how many revisions, or ReplicaSets of a Deployment, the last request left out.
	var leftOut int
	// unbuilt is the error of building the last request.
	var unbuilt error
	build := func(receiver planclient.Receiver) (*nodewisev1.PlanRequest, error) {
		_, span := traces.Start(ctx, "snapshot")
		defer span.End()
		// A retry uses the newest object, unless the workload was replaced by another one.
		current = r.newest(current)
		if unbuilt = r.requireSelected(current); unbuilt != nil {
			return nil, unbuilt
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		var chosen chosen
		var revisions []*nodewisev1.ControllerRevision
		leftOut = 0
		if r.kind.reads(cluster.Revisions) {
			chosen = choose(s.store, current, live.revisions)
			if revisions, leftOut, unbuilt = chosen.sent(s.store); unbuilt != nil {
				return nil, unbuilt
			}
		}
		held := s.holdings.Get(workload.Key, workload.UID)
		snapshot, others := takeSnapshot(s.store, r.kind, current, held, revisions, live, r.config.clock(), receiver)
		leftOut += others
		policies := s.store.Policies(current)
		origins = append(origins, planned{
			workload: current, sent: held, own: chosen.own(), asOf: s.store.LastChange(),
			policies: policies, measured: r.measurements.addTo(snapshot, current, policies),
		})
		return &nodewisev1.PlanRequest{
			Snapshot:           snapshot,
			Options:            r.config.options,
			UndeliveredReports: s.undeliveredOf(workload.Key, workload.UID),
		}, nil
	}
	answer, err := r.planner.Plan(ctx, string(workload.UID), build)
	if _, tells := r.planner.(HealthChecker); !tells && unbuilt == nil {
		s.recordAnswer(ctx, workload.Key, err)
	}
	if leftOut > 0 && s.mayLogLeftOut(workload.Key) {
		klog.FromContext(ctx).Info("The objects that the workload controls or may adopt are too large together; those that rank last are not sent",
			"namespace", workload.Key.Namespace, "leftOut", leftOut, "maxBytes", cluster.MaxRevisionBytes)
	}
	if err != nil {
		return nil, err
	}
	from := origins[answer.Request]
	from.plan = answer.Plan
	from.plan.Error, from.plan.PlanId = brief.Text(from.plan.GetError()), brief.Text(from.plan.GetPlanId())
	return &from, nil
}

// dropAfterRefusal drops the parts of a refused request that may be the cause: the undelivered reports, and also the state of earlier plans
// unless the refusal names another field. Both are dispensable, and a wrong service may have made them. It returns the error of the
// reconcile.
func (r *controller) dropAfterRefusal(ctx context.Context, workload *cluster.Workload, err error) error {
	var refused *planclient.RefusedError
	switch {
	case isTooOld(err):
		// The request is not the cause.
		return r.tellTooOld(ctx, workload, err)
	case !errors.As(err, &refused):
		return err
	}
	isOfAnotherField := status.Code(err) == codes.InvalidArgument && !strings.Contains(refused.Reason, "snapshot.state")
	r.state.mu.Lock()
	delete(r.state.undelivered, workload.Key)
	dropped := !isOfAnotherField && r.state.holdings.DropPlanned(workload.Key, workload.UID, r.config.clock())
	r.state.mu.Unlock()
	if dropped {
		klog.FromContext(ctx).Info("The service refused the request; the state from earlier plans is dropped, because it may be the cause",
			"reason", refused.Error())
	}
	return &failure{reason: err}
}

// holdState stores the state of the plan, before the first write.
func (r *controller) holdState(planned *planned) {
	s, workload := r.state, planned.workload
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.undelivered, workload.Key)
	if planned.plan.GetState() == nil {
		return
	}
	next := proto.CloneOf(planned.plan.GetState())
	expect.LeaveOutForeign(next, plancheck.ActionsOf(planned.plan), planned.sent)
	plancheck.RetainRememberable(r.kind.Kind, next, planned.sent, s.store.HasNode)
	if !r.writer.Writes() {
		// An observer writes nothing, so it would wait for the expected changes forever.
		next.Expectations = nil
	}
	s.holdings.Replace(workload.Key, workload.UID, next, planned.sent, s.podView(workload.Key.Namespace, workload.UID))
}

func (r *controller) apply(ctx context.Context, planned *planned, leftOut map[uint32]string) *apply.Applied {
	if len(plancheck.ActionsOf(planned.plan)) == 0 {
		r.measurements.counted(planned.workload.Key, planned.measured)
		return &apply.Applied{}
	}
	ctx, span := startApply(ctx, planned.plan)
	defer span.End()
	r.state.mu.Lock()
	restarts := r.state.gate.Restarts()
	r.state.mu.Unlock()
	applied := apply.Apply(ctx, r.writer, planned.plan, r.kind.Kind, planned.workload.JSON, apply.Settings{
		Concurrency:    r.config.concurrency,
		MaxTracedCalls: r.config.maxTracedCalls,
		AnnotatesPods:  r.config.annotatesPods,
		LeftOut:        leftOut,
		//nolint:contextcheck // a measurement outlives the reconcile that starts it
		Measure: func(measure *nodewisev1.Measure) { r.measure(planned, measure) },
	})
	setApplied(span, applied)
	if areCounted(planned.plan, applied.Outcomes) {
		r.measurements.counted(planned.workload.Key, planned.measured)
	}
	s, workload := r.state, planned.workload
	s.mu.Lock()
	defer s.mu.Unlock()
	writes := applied.Writes
	if s.gate.Restarts() != restarts {
		// After a restore of etcd the versions of earlier writes mean nothing.
		writes = nil
	}
	for _, write := range writes {
		// Creates that are expected by name need not be observed before the next plan: until then it creates pods only for other nodes, and
		// the check of the plan counts them.
		if r.createsAcrossPlans() && write.CreatedPod != "" {
			s.gate.RecordCreate(workload.Key, workload.UID, write.CreatedPod, write.ResourceVersion)
		} else {
			s.gate.Record(workload.Key, workload.UID, write.Resource, write.ResourceVersion)
		}
	}
	if len(leftOut) > 0 {
		// The next plan would be cut again for the same reason, if that is a pod that no watch has shown yet.
		s.gate.AwaitCreates(workload.Key, workload.UID)
	}
	s.holdings.Lower(workload.Key, workload.UID, applied.Outcomes)
	s.holdings.Block(workload.Key, workload.UID, blockedOf(applied), planned.sent, r.config.clock())
	if applied.Aborted {
		s.holdings.RestoreBackoffs(workload.Key, workload.UID, planned.sent)
	}
	return applied
}

// createsAcrossPlans reports whether a plan may create pods while creates of earlier plans have not been observed yet.
func (r *controller) createsAcrossPlans() bool {
	return isEnabled(r.config.options, nodewisev1.Deviation_DEVIATION_SLOW_START_ACROSS_PLANS)
}

// reportable returns the outcomes that a report needs. Successes without a subject are left out: nothing depends on them, and a plan that
// adopts every pod of a large cluster would have so many that the report would be refused. Actions that the executor left out are not
// reported either: for the service they were not planned, so they cause no back-off.
func reportable(outcomes []*nodewisev1.Outcome, leftOut map[uint32]string) []*nodewisev1.Outcome {
	return slices.DeleteFunc(slices.Clone(outcomes), func(outcome *nodewisev1.Outcome) bool {
		return leftOut[outcome.GetActionId()] != "" || outcome.GetResult() == nodewisev1.Result_RESULT_SUCCEEDED && outcome.GetSubject() == nil
	})
}
