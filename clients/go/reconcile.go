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
	// maxPlans is how many plans one reconcile may ask for in a row because what one rested on was not so: a name was taken, an
	// orphan was gone.
	maxPlans = 4
	// expectationsExpired is when expectations have expired for certain: five minutes, as the contract says, and one second.
	expectationsExpired = 301 * time.Second
)

// ending is how a reconcile ended, if not with an error.
type ending struct {
	// after is when to come back; nil when there is no need.
	after *time.Duration
	// gone: there is no such workload.
	gone bool
	// nothing: it has come to nothing.
	nothing bool
}

// isAtOnce tells whether another plan is to follow at once.
func (e ending) isAtOnce() bool { return e.after != nil && *e.after == 0 }

// failure is a reconcile that failed and comes back by back-off.
type failure struct {
	// after is when to come back besides.
	after  *time.Duration
	reason error
}

func (f *failure) Error() string { return f.reason.Error() }

func (f *failure) Unwrap() error { return f.reason }

// planned is a plan, and what it was made from.
type planned struct {
	plan     *nodewisev1.Plan
	workload *cluster.DaemonSet
	sent     *nodewisev1.ReconcileState
	// own are the cached revisions of the snapshot that the workload controls.
	own []*cluster.Revision
	// asOf is the number of the last change of the caches that the snapshot shows.
	asOf uint64
}

// ErrNotYet is in the error of a reconcile that could not be made yet: a cache does not show our own last write, or the service
// cannot be reached. That is no failure of the workload, which comes back by itself.
var ErrNotYet = errors.New("not yet")

// errBehind says that the caches do not show our own last write yet.
var errBehind = errors.New("a cache is behind")

// Reconcile looks at one DaemonSet, if it is one that is owned: it takes a snapshot, asks for a plan, applies it and reports. Whatever else is to wake the
// workload wakes it through the queue that was given to [Reconciler.Start]. It is not called twice at a time for the same workload.
//
// An error is to be followed by another try with the workload's own back-off, which begins anew without one; but for [ErrNotYet],
// after which there is nothing to do, and the back-off stays what it is. When the context ends the service is asked no more; the
// writes that are under way by then are brought to their end, and reported.
func (r *Reconciler) Reconcile(ctx context.Context, key types.NamespacedName) error {
	if _, _, err := r.look(context.WithoutCancel(ctx), ctx, key); err != nil {
		return fmt.Errorf("reconciling DaemonSet %s: %w", key, err)
	}
	return nil
}

// look looks at one DaemonSet. It asks for plans as long as asking lasts, and writes as long as ctx does. The logger is for what is
// still to be said of this reconcile; after is when the workload comes back by itself, where that is known.
func (r *Reconciler) look(ctx, asking context.Context, key types.NamespacedName) (logger logr.Logger, after *time.Duration, err error) {
	ctx, span := r.startReconcile(ctx, key)
	defer span.End()
	logger = withTrace(klog.FromContext(ctx).WithValues("daemonSet", key), span)
	asking = trace.ContextWithSpan(klog.NewContext(asking, logger), span)
	ended, err := r.turn(klog.NewContext(ctx, logger), asking, key)
	outcome := outcomeOf(err)
	tellOutcome(span, outcome, err)
	var failure *failure
	switch {
	case outcome == settled:
		r.comeBack(key, ended.after)
	case outcome == unreachable:
		r.waker.wakeAfter(key, r.config.unreachable)
	case errors.As(err, &failure):
		after = failure.after
		r.comeBack(key, after)
	default:
		// Who is behind is woken by the event that brings the caches up to date.
	}
	if r.waitsForWatches(key) {
		// Should what is expected never show, no event would tell.
		r.waker.wakeAfter(key, expectationsExpired)
		if r.config.pods != nil {
			r.waker.wakeAfter(key, hiddenDelay)
		}
	}
	if outcome == behind || outcome == unreachable {
		err = fmt.Errorf("%w: %w", ErrNotYet, err)
		logger.V(4).Info("Nothing could be done", "reason", err.Error())
	}
	return logger, after, err
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
		// Whatever it is made from: after a report that did not arrive, much was done.
		return failed
	case errors.As(err, &away):
		return unreachable
	default:
		return failed
	}
}

// turn reconciles while the waker knows of it, also for who recovers from a panic, as controller-runtime does.
func (r *Reconciler) turn(ctx, asking context.Context, key types.NamespacedName) (ended ending, err error) {
	r.waker.begin(key)
	// So it ends with a panic.
	ended.nothing = true
	defer func() { r.waker.end(key, ended) }()
	ended, err = r.reconcile(ctx, asking, key)
	ended.nothing = err != nil
	return ended, err
}

func (r *Reconciler) comeBack(key types.NamespacedName, after *time.Duration) {
	if after != nil {
		r.waker.wakeAfter(key, *after)
	}
}

func (r *Reconciler) waitsForWatches(key types.NamespacedName) bool {
	r.state.mu.Lock()
	defer r.state.mu.Unlock()
	creates, deletes := r.state.holdings.Outstanding(key)
	return creates+deletes > 0
}

func (r *Reconciler) reconcile(ctx, asking context.Context, key types.NamespacedName) (ending, error) {
	// Revisions that the caches need not show, as they were read.
	var live []*cluster.Revision
	var last replan
	for range maxPlans {
		workload, err := r.admit(key, &live)
		if workload == nil || err != nil {
			r.next.forget(key)
			if workload == nil && err == nil {
				r.pace.forget(key)
			}
			return ending{gone: workload == nil && err == nil}, err
		}
		planned, err := r.nextPlan(asking, workload, live)
		if errors.Is(err, errNotSelected) {
			r.leaveAlone(workload)
			return ending{}, nil
		}
		if err != nil {
			return ending{}, err
		}
		leftOut, err := r.check(ctx, planned, live)
		if err != nil {
			return ending{}, err
		}
		if err := r.requireShown(ctx, planned); err != nil {
			return ending{}, err
		}
		// Nothing of it is carried out, so what it expects would never be seen.
		if planned.plan.GetVerdict() == nodewisev1.Verdict_VERDICT_STALE {
			return ending{}, &failure{reason: errors.New("the plan is stale: the caches are older than our own writes")}
		}
		r.hold(planned)
		applied, next := r.applyAndLookAhead(ctx, asking, planned, leftOut)
		again := r.replanAfter(ctx, applied)
		r.heed(applied)
		if again.outdated {
			live = append(live, r.createdRevisions(ctx, key.Namespace, applied)...)
		}
		ended, err := r.report(ctx, asking, planned, applied, leftOut)
		ended, err = r.slow(key, ended, err)
		if !again.follows(ended, err) {
			// One that was asked for ahead does not know of anything that was not as planned, so it is kept here alone.
			if next != nil && err == nil && ended.isAtOnce() {
				r.next.keep(key, *next)
			}
			return ended, err
		}
		live = append(live, again.colliding...)
		last = again
	}
	if last.isForNamesOnly() {
		// Names that others took cost no back-off, also when they are many.
		after := soonest
		return ending{after: &after}, nil
	}
	return ending{}, &failure{reason: fmt.Errorf(
		"a revision's name was still taken, or another object gone, after %d plans", maxPlans)}
}

// admit is the workload, if it exists and the caches show our last writes to it (D-71, steps 1 and 2). While they do not, what
// was read live is kept, and is there again when the workload is admitted.
func (r *Reconciler) admit(key types.NamespacedName, live *[]*cluster.Revision) (*cluster.DaemonSet, error) {
	s := r.state
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.store.Synced() && !s.store.Relisting() {
		return nil, &failure{reason: r.unsynced()}
	}
	workload := s.store.DaemonSet(key)
	if workload == nil {
		s.forget(key)
		return nil, nil
	}
	if s.store.Relisting() {
		return nil, fmt.Errorf("%w: etcd was restored, and %v not listed since", errBehind, s.store.Unsynced())
	}
	if behind := s.gate.Check(key, s.store.Reached); behind != nil {
		s.keepLive(key, workload.UID, *live)
		return nil, fmt.Errorf("%w: %w", errBehind, behind)
	}
	*live = append(*live, s.takeLive(key, workload.UID)...)
	return workload, nil
}

// unsynced is why nothing can be reconciled yet. The lock is held.
func (r *Reconciler) unsynced() error {
	if !r.started.Load() {
		return errors.New("the Reconciler was not started, and knows nothing of the cluster: call Start and then WaitForSync before " +
			"Reconcile, or leave that to Run or to ctrl.SetupWithManager")
	}
	return fmt.Errorf("the caches of %v are not filled: call WaitForSync before Reconcile", r.state.store.Unsynced())
}

// nextPlan is the plan that was asked for ahead, or else a new one; neither when asking is over: queues give out after the stop what
// was in them by then, and nothing new is begun. It is [errNotSelected] for a workload that is not selected, or not any more when the
// plan is there.
func (r *Reconciler) nextPlan(
	ctx context.Context, workload *cluster.DaemonSet, live []*cluster.Revision,
) (*planned, error) {
	if err := r.requireSelected(workload); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, &planclient.UnreachableError{
			Reason: context.Cause(ctx).Error(), Err: errors.Join(ctx.Err(), context.Cause(ctx)),
		}
	}
	next := r.next.take(workload)
	if next == nil || len(live) > 0 {
		asked, err := r.plan(ctx, workload, live)
		if err != nil {
			return nil, r.heedRefusal(ctx, workload, err)
		}
		next = asked
	}
	if len(r.config.selection) == 0 {
		return next, nil
	}
	return next, r.requireSelected(r.newest(workload))
}

func (r *Reconciler) plan(
	ctx context.Context, workload *cluster.DaemonSet, live []*cluster.Revision,
) (*planned, error) {
	s, current := r.state, workload
	if err := r.readRevisions(ctx, workload, live); err != nil {
		return nil, err
	}
	// What each request was made from: the plan need not answer the last one.
	var origins []planned
	// Of the last request.
	var leftOut int
	// unbuilt is why no request could be built, if so.
	var unbuilt error
	build := func(known func(planclient.Digest) bool) (*nodewisev1.PlanRequest, error) {
		_, span := traces.Start(ctx, "snapshot")
		defer span.End()
		// A retry takes what is known by now, unless the workload was replaced: then it finishes with what it had.
		current = r.newest(current)
		if unbuilt = r.requireSelected(current); unbuilt != nil {
			return nil, unbuilt
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		chosen := choose(s.store, current, live)
		var revisions []*nodewisev1.ControllerRevision
		if revisions, leftOut, unbuilt = chosen.sent(s.store); unbuilt != nil {
			return nil, unbuilt
		}
		held := s.holdings.Get(workload.Key, workload.UID)
		origins = append(origins, planned{workload: current, sent: held, own: chosen.own(), asOf: s.store.LastChange()})
		return &nodewisev1.PlanRequest{
			Snapshot:           takeSnapshot(s.store, current, held, revisions, r.config.clock(), known),
			Options:            r.config.options,
			UndeliveredReports: s.undeliveredOf(workload.Key, workload.UID),
		}, nil
	}
	answer, err := r.planner.Plan(ctx, string(workload.UID), build)
	if _, tells := r.planner.(HealthChecker); !tells && unbuilt == nil {
		s.noteAnswer(ctx, workload.Key, err)
	}
	if leftOut > 0 && s.mayTellLeftOut(workload.Key) {
		klog.FromContext(ctx).Info("The revisions of the workload are too large together; those that rank last are not sent",
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

// heedRefusal drops what a request may have been refused for: old reports, and what earlier plans left to remember, unless it is another part
// of the request that is wrong. Both are dispensable, and a wrong service may have made them. Another error it gives back.
func (r *Reconciler) heedRefusal(ctx context.Context, workload *cluster.DaemonSet, err error) error {
	var refused *planclient.RefusedError
	if !errors.As(err, &refused) {
		return err
	}
	isOfAnotherField := status.Code(err) == codes.InvalidArgument && !strings.Contains(refused.Reason, "snapshot.state")
	r.state.mu.Lock()
	delete(r.state.undelivered, workload.Key)
	dropped := !isOfAnotherField && r.state.holdings.DropPlanned(workload.Key, workload.UID, r.config.clock())
	r.state.mu.Unlock()
	if dropped {
		klog.FromContext(ctx).Info("The service refused the request; what earlier plans left to remember is dropped, since it may be the cause",
			"reason", refused.Error())
	}
	return &failure{reason: err}
}

// hold holds what the plan says, before its first write.
func (r *Reconciler) hold(planned *planned) {
	s, workload := r.state, planned.workload
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.undelivered, workload.Key)
	if planned.plan.GetState() == nil {
		return
	}
	next := proto.CloneOf(planned.plan.GetState())
	expect.LeaveOutForeign(next, plancheck.ActionsOf(planned.plan), planned.sent)
	plancheck.RetainRememberable(next, planned.sent, s.store.HasNode)
	if !r.writer.Writes() {
		// What is not done is never observed.
		next.Expectations = nil
	}
	s.holdings.Replace(workload.Key, workload.UID, next, planned.sent, s.sighted(workload.Key.Namespace, workload.UID))
}

func (r *Reconciler) apply(ctx context.Context, planned *planned, leftOut map[uint32]string) *apply.Applied {
	if len(plancheck.ActionsOf(planned.plan)) == 0 {
		return &apply.Applied{}
	}
	ctx, span := startApply(ctx, planned.plan)
	defer span.End()
	applied := apply.Apply(ctx, r.writer, planned.plan, planned.workload.JSON, apply.Settings{
		Concurrency:    r.config.concurrency,
		MaxTracedCalls: r.config.maxTracedCalls,
		AnnotatesPods:  r.config.annotatesPods,
		LeftOut:        leftOut,
	})
	tellApplied(span, applied)
	s, workload := r.state, planned.workload
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, write := range applied.Writes {
		// Creates that expectations tell by name need not be seen before more is created: until they are, only nodes that
		// are not among theirs get pods.
		if !r.goesAhead() || !write.ExpectedByName {
			s.gate.Record(workload.Key, workload.UID, write.Resource, write.ResourceVersion)
		}
	}
	s.holdings.Lower(workload.Key, workload.UID, applied.Outcomes)
	if applied.Aborted {
		s.holdings.RestoreBackoffs(workload.Key, workload.UID, planned.sent)
	}
	return applied
}

// goesAhead tells whether pods are created while earlier creates are not seen yet.
func (r *Reconciler) goesAhead() bool {
	return isEnabled(r.config.options, nodewisev1.Deviation_DEVIATION_SLOW_START_ACROSS_PLANS)
}

// telling are the outcomes that a report needs: nothing depends on what succeeded without a subject. A plan may adopt every pod of
// a large cluster, and a report of as many outcomes with next to nothing in them would be refused. What was left out is for the service as if
// it had not been planned: it is no reason to come back later.
func telling(outcomes []*nodewisev1.Outcome, leftOut map[uint32]string) []*nodewisev1.Outcome {
	return slices.DeleteFunc(slices.Clone(outcomes), func(outcome *nodewisev1.Outcome) bool {
		return leftOut[outcome.GetActionId()] != "" || outcome.GetResult() == nodewisev1.Result_RESULT_SUCCEEDED && outcome.GetSubject() == nil
	})
}
