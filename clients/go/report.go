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

// reportGrace is how long whoever has written waits for the answer to a report when the service is otherwise asked no more.
const reportGrace = 2 * time.Second

var errStops = errors.New("the controller stops")

// report tells the service what became of the plan, and learns when to come back. Without actions there is nothing to tell.
//
// A report that is refused ends the reconcile: what it would settle stays as it is until it expires.
func (r *Reconciler) report(
	ctx, asking context.Context, planned *planned, applied *apply.Applied, leftOut map[uint32]string,
) (ending, error) {
	plan, workload, s := planned.plan, planned.workload, r.state
	reason := reasonToRetry(plan, applied)
	after := unlessAtOnce(duration(plan.GetRequeueAfter()))
	if len(applied.Outcomes) == 0 || !r.writer.Writes() {
		return endWith(after, reason)
	}
	s.mu.Lock()
	held := s.holdings.Get(workload.Key, workload.UID)
	s.mu.Unlock()
	report := &nodewisev1.ReportRequest{
		Workload:     plan.GetWorkload(),
		PlanId:       plan.GetPlanId(),
		State:        held,
		Outcomes:     telling(applied.Outcomes, leftOut),
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
		plancheck.RetainRememberable(response.GetState(), held, s.store.HasNode)
		s.holdings.Settle(workload.Key, workload.UID, response.GetState())
		s.mu.Unlock()
	}
	after = duration(response.GetRequeueAfter())
	switch {
	case response.GetRequeue() == nodewisev1.Requeue_REQUEUE_BACKOFF && reason == nil:
		return endWith(after, errors.New(brief.Text(response.GetMessage())))
	case response.GetRequeue() == nodewisev1.Requeue_REQUEUE_BACKOFF:
		return endWith(after, reason)
	case len(leftOut) > 0:
		// It may still be due, in another plan.
		return ending{after: new(time.Duration)}, nil
	default:
		return ending{after: after}, nil
	}
}

// deliver gives a report to the service: a service that hangs is not waited for much longer than asking lasts.
func (r *Reconciler) deliver(
	ctx, asking context.Context, report *nodewisev1.ReportRequest,
) (*nodewisev1.ReportResponse, error) {
	// A deadline would be taken for that of the call, and blame the replica.
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

// undelivered ends a reconcile whose report did not arrive.
func (r *Reconciler) undelivered(
	planned *planned, report *nodewisev1.ReportRequest, after *time.Duration, reason, err error,
) (ending, error) {
	var refused *planclient.RefusedError
	if errors.As(err, &refused) {
		// It would be refused again with the next plan, and the plan with it.
		if reason == nil {
			reason = err
		}
		return ending{}, &refusedReport{&failure{after: after, reason: reason}}
	}
	r.state.mu.Lock()
	r.state.keepReport(planned.workload.Key, report)
	r.state.mu.Unlock()
	if reason == nil {
		// Ask again soon: what the report would settle must not be waited for.
		reason = fmt.Errorf("the report rides on the next plan: %w", err)
	}
	return endWith(after, reason)
}

// refusedReport ends a reconcile whatever else there would be to do.
type refusedReport struct{ *failure }

func (r *refusedReport) Unwrap() error { return r.failure }

// isReported tells whether an error leaves room for another plan at once: the service has the report, or will have it with that
// plan.
func isReported(err error) bool {
	var refused *refusedReport
	return !errors.As(err, &refused)
}

func endWith(after *time.Duration, reason error) (ending, error) {
	if reason != nil {
		return ending{}, &failure{after: after, reason: reason}
	}
	return ending{after: after}, nil
}

// reasonToRetry is why a plan has to be retried, if so.
func reasonToRetry(plan *nodewisev1.Plan, applied *apply.Applied) error {
	if applied.Failed {
		count := map[nodewisev1.Result]int{}
		for _, outcome := range applied.Outcomes {
			count[outcome.GetResult()]++
		}
		all, skipped := len(applied.Outcomes), count[nodewisev1.Result_RESULT_SKIPPED]
		done := count[nodewisev1.Result_RESULT_SUCCEEDED] + count[nodewisev1.Result_RESULT_ALREADY_EXISTS] +
			count[nodewisev1.Result_RESULT_NOT_FOUND]
		return fmt.Errorf("%d of %d actions were done, %d failed, %d were not tried; the first failure: %w",
			done, all, all-done-skipped, skipped, applied.FirstFailure)
	}
	if plan.GetError() != "" {
		return errors.New(plan.GetError())
	}
	return nil
}
