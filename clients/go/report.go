package nodewise

import (
	"context"
	"errors"
	"fmt"
	"time"

	"nodewise.dev/clients/go/internal/apply"
	"nodewise.dev/clients/go/internal/brief"
	"nodewise.dev/clients/go/internal/plancheck"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
)

// reportGrace is how long a reconcile waits for the response to a report after the stop.
const reportGrace = 2 * time.Second

var errStops = errors.New("the controller stops")

// report sends the outcomes of a plan to the service, which answers when to reconcile again. Without outcomes that matter there is no report:
// the service would return the same state and the plan's own time.
//
// A refused report ends the reconcile. The expectations that it would have lowered stay until they expire.
func (r *controller) report(
	ctx, asking context.Context, planned *planned, applied *apply.Applied, leftOut map[uint32]string,
) (result, error) {
	plan, workload, s := planned.plan, planned.workload, r.state
	reason := reasonToRetry(plan, applied)
	// An eviction that was not allowed is asked for again, whatever the service says.
	blocked := r.untilNextEviction(workload, applied)
	after := sooner(unlessAtOnce(duration(plan.GetRequeueAfter())), blocked)
	if len(applied.Outcomes) == 0 || !r.writer.Writes() {
		return endWith(after, reason)
	}
	outcomes := reportable(applied.Outcomes, leftOut)
	if len(outcomes) == 0 && len(leftOut) == 0 {
		return endWith(duration(plan.GetRequeueAfter()), reason)
	}
	s.mu.Lock()
	held := s.holdings.Get(workload.Key, workload.UID)
	s.mu.Unlock()
	report := &nodewisev1.ReportRequest{
		Workload:     plan.GetWorkload(),
		PlanId:       plan.GetPlanId(),
		State:        held,
		Outcomes:     outcomes,
		Options:      r.config.options,
		RequeueAfter: plan.GetRequeueAfter(),
		PlanError:    plan.GetError(),
	}
	response, err := r.deliver(ctx, asking, report)
	if err != nil {
		return r.undelivered(planned, report, after, errors.Join(reason), err)
	}
	if response.GetState() != nil {
		s.mu.Lock()
		plancheck.RetainRememberable(r.kind.Kind, response.GetState(), held, s.store.HasNode)
		s.holdings.Settle(workload.Key, workload.UID, response.GetState())
		s.mu.Unlock()
	}
	after = sooner(duration(response.GetRequeueAfter()), blocked)
	switch {
	case response.GetRequeue() == nodewisev1.Requeue_REQUEUE_BACKOFF && isConflict(plan, applied):
		return result{}, fmt.Errorf("%w: %w", errConflict, reason)
	case response.GetRequeue() == nodewisev1.Requeue_REQUEUE_BACKOFF && reason == nil:
		return endWith(after, errors.New(brief.Text(response.GetMessage())))
	case response.GetRequeue() == nodewisev1.Requeue_REQUEUE_BACKOFF:
		return endWith(after, reason)
	case len(leftOut) > 0:
		// The actions that were left out may still be needed, so another plan follows.
		return result{after: new(time.Duration)}, nil
	default:
		return result{after: after}, nil
	}
}

// deliver sends a report. After the context asking has ended, it waits no longer than [reportGrace].
func (r *controller) deliver(
	ctx, asking context.Context, report *nodewisev1.ReportRequest,
) (*nodewisev1.ReportResponse, error) {
	// Cancel, and set no deadline: the client would count an expired deadline as a failure of the replica.
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	defer context.AfterFunc(asking, func() {
		select {
		case <-ctx.Done():
		case <-time.After(reportGrace):
			giveUp(errStops)
		}
	})()
	return r.planner.Report(ctx, report)
}

// undelivered returns the result of a reconcile whose report was not delivered.
func (r *controller) undelivered(
	planned *planned, report *nodewisev1.ReportRequest, after *time.Duration, reason, err error,
) (result, error) {
	var refused *planclient.RefusedError
	if errors.As(err, &refused) {
		// The report is dropped: with the next request for a plan, that request would be refused, too.
		if reason == nil {
			reason = err
		}
		return result{}, &refusedReport{&failure{after: after, reason: reason}}
	}
	r.state.mu.Lock()
	r.state.keepReport(planned.workload.Key, report)
	r.state.mu.Unlock()
	if reason == nil {
		// A failure is retried soon. Otherwise the workload would wait until its expectations expire.
		reason = fmt.Errorf("the report was not delivered, and is sent again with the next request for a plan: %w", err)
	}
	return endWith(after, reason)
}

// refusedReport is a failure after which no other plan follows in the same reconcile.
type refusedReport struct{ *failure }

func (r *refusedReport) Unwrap() error { return r.failure }

// isReported reports whether another plan may follow at once after this error: the service has the report, or gets it with the next request
// for a plan.
func isReported(err error) bool {
	var refused *refusedReport
	return !errors.As(err, &refused)
}

func endWith(after *time.Duration, reason error) (result, error) {
	if reason != nil {
		return result{}, &failure{after: after, reason: reason}
	}
	return result{after: after}, nil
}

// reasonToRetry returns why a plan must be retried; nil if it need not be.
func reasonToRetry(plan *nodewisev1.Plan, applied *apply.Applied) error {
	if applied.Failed {
		count := map[nodewisev1.Result]int{}
		for _, outcome := range applied.Outcomes {
			count[outcome.GetResult()]++
		}
		all, skipped := len(applied.Outcomes), count[nodewisev1.Result_RESULT_SKIPPED]
		done := count[nodewisev1.Result_RESULT_SUCCEEDED] + count[nodewisev1.Result_RESULT_ALREADY_EXISTS] +
			count[nodewisev1.Result_RESULT_NOT_FOUND]
		failed := all - done - skipped - count[nodewisev1.Result_RESULT_BLOCKED]
		return fmt.Errorf("%d of %d actions were done, %d failed, %d were not tried; the first failure: %w",
			done, all, failed, skipped, applied.FirstFailure)
	}
	if plan.GetError() != "" {
		return errors.New(plan.GetError())
	}
	return nil
}
