package nodewise

import (
	"context"
	"slices"

	"google.golang.org/protobuf/proto"

	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
)

// scripted is a planner with scripted answers.
type scripted struct {
	plan func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error)
	// shows, if it is set, is called with a plan before the plan is returned.
	shows func(plan *nodewisev1.Plan)
	// hangs, if it is set, is called before a plan is made.
	hangs   func(ctx context.Context) error
	report  func(report *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error)
	asked   []*nodewisev1.PlanRequest
	reports []*nodewisev1.ReportRequest
}

func (s *scripted) Plan(ctx context.Context, uid string, build planclient.BuildRequest) (*planclient.Answer, error) {
	request, err := build(planclient.Receiver{})
	if err != nil {
		return nil, err
	}
	s.asked = append(s.asked, request)
	if s.hangs != nil {
		if err := s.hangs(ctx); err != nil {
			return nil, &planclient.UnreachableError{Reason: err.Error()}
		}
	}
	plan, err := s.plan(request)
	if err != nil {
		return nil, err
	}
	if s.shows != nil {
		s.shows(plan)
	}
	if plan.Workload == nil {
		plan.Workload = &nodewisev1.WorkloadReference{Kind: "DaemonSet", Namespace: key.Namespace, Name: key.Name, Uid: uid}
	}
	return &planclient.Answer{Plan: plan}, nil
}

func (s *scripted) Report(_ context.Context, report *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
	s.reports = append(s.reports, proto.CloneOf(report))
	if s.report != nil {
		return s.report(report)
	}
	return &nodewisev1.ReportResponse{State: report.GetState(), Requeue: nodewisev1.Requeue_REQUEUE_NONE}, nil
}

// planOf is a plan of these actions, in one phase and one batch.
func planOf(kind nodewisev1.PhaseKind, actions ...*nodewisev1.Action) *nodewisev1.Plan {
	for i, action := range actions {
		action.Id = uint32(i + 1)
	}
	plan := &nodewisev1.Plan{Verdict: nodewisev1.Verdict_VERDICT_APPLY, PlanId: "p"}
	if len(actions) > 0 {
		batch := &nodewisev1.Batch{Actions: slices.Clone(actions)}
		plan.Phases = []*nodewisev1.Phase{{Kind: kind, Batches: []*nodewisev1.Batch{batch}, AbortsOnFailure: true}}
	}
	return plan
}
