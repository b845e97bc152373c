package nodewise

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
)

// atOnce requests another plan at once, as the service answers a report of taken names.
func atOnce(report *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
	return &nodewisev1.ReportResponse{
		State: report.GetState(), Requeue: nodewisev1.Requeue_REQUEUE_AFTER, RequeueAfter: durationpb.New(0),
	}, nil
}

// taking gives other pods the names that begin like this.
func taking(r *rig, short string) {
	prefix := strings.TrimRight(podNamed(short), "z")
	r.cluster.refuse = func(verb string, at write.Key) error {
		if verb == "create" && strings.HasPrefix(at.Name, prefix) {
			r.cluster.objects[at] = map[string]any{"metadata": map[string]any{"name": at.Name, "uid": "u-" + at.Name}}
		}
		return nil
	}
}

// A taken name is reported, and another plan follows in the same reconcile. This is no failure.
func TestPlansAgainAtOnceWhenANameIsTaken(t *testing.T) {
	planner := &scripted{report: atOnce}
	planner.plan = func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		switch len(planner.asked) {
		case 1:
			plan := creating(podNamed("theirs1"), podNamed("ours1"))
			plan.Phases = append(plan.Phases, planOf(nodewisev1.PhaseKind_PHASE_KIND_CREATES, createPod(podNamed("ours2"), "n2")).GetPhases()...)
			plan.Phases[1].RequiresSuccess = true
			return plan, nil
		case 2:
			return creating(podNamed("ours3")), nil
		default:
			return noop(request)
		}
	}
	r := newRig(t, planner)
	r.apply("agent:1")
	r.cluster.unseen = true
	taking(r, "theirs")
	r.queue.take()
	planner.report = func(report *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
		if len(planner.reports) > 1 {
			return &nodewisev1.ReportResponse{State: report.GetState()}, nil
		}
		return atOnce(report)
	}
	if err := r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	// One of the pods is the one with the taken name.
	if len(planner.asked) != 2 || len(planner.reports) != 2 || len(r.cluster.pods()) != 4 {
		t.Errorf("asked %d times, reported %d times, %d pods", len(planner.asked), len(planner.reports), len(r.cluster.pods()))
	}
	if outcome := planner.reports[0].GetOutcomes()[0]; outcome.GetResult() != nodewisev1.Result_RESULT_NAME_TAKEN ||
		outcome.GetCreatedPod().GetPodName() != podNamed("theirs1") {
		t.Errorf("reported %v", outcome)
	}
	for _, event := range r.cluster.events {
		if event.Reason == "FailedCreate" {
			t.Errorf("said %v", event)
		}
	}
}

// However many names are taken, the workload is reconciled again at once, without back-off.
func TestManyTakenNamesCostNoBackOff(t *testing.T) {
	planner := &scripted{report: atOnce}
	planner.plan = func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		return creating(podNamed(fmt.Sprint("theirs", len(planner.asked)))), nil
	}
	r := newRig(t, planner)
	r.apply("agent:1")
	taking(r, "theirs")
	for _, want := range []int{maxPlans, 2 * maxPlans} {
		r.queue.take()
		if err := r.Reconcile(t.Context(), key); err != nil || !r.queue.take() {
			t.Fatalf("it does not come back at once: %v", err)
		}
		if len(planner.asked) != want || len(planner.reports) != want {
			t.Errorf("asked %d times and reported %d times, want %d", len(planner.asked), len(planner.reports), want)
		}
	}
}

// Another plan follows only if the service says so: another action may have failed, or the report may not have been delivered.
func TestATakenNameIsFollowedAsTheReportSays(t *testing.T) {
	for name, test := range map[string]struct {
		create string
		report func(*nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error)
		want   string
	}{
		"something else failed": {
			create: podNamed("broken"),
			report: func(report *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
				return &nodewisev1.ReportResponse{State: report.GetState(), Requeue: nodewisev1.Requeue_REQUEUE_BACKOFF}, nil
			},
			want: "0 of 2 actions were done, 2 failed, 0 were not tried; the first failure: broken",
		},
		"the report does not arrive": {
			create: podNamed("ours"),
			report: func(*nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
				return nil, &planclient.UnreachableError{Reason: "away"}
			},
			want: "the report was not delivered, and is sent again",
		},
		"the report is refused": {
			create: podNamed("ours"),
			report: func(*nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
				return nil, &planclient.RefusedError{Reason: "it is wrong"}
			},
			want: "it is wrong",
		},
	} {
		t.Run(name, func(t *testing.T) {
			planner := &scripted{report: test.report}
			planner.plan = func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
				return creating(podNamed("theirs"), test.create), nil
			}
			r := newRig(t, planner)
			r.apply("agent:1")
			taking(r, "theirs")
			refuse := r.cluster.refuse
			r.cluster.refuse = func(verb string, at write.Key) error {
				if at.Name == podNamed("broken") {
					return &write.Error{Status: http.StatusForbidden, Message: "broken"}
				}
				return refuse(verb, at)
			}
			err := r.Reconcile(t.Context(), key)
			if err == nil || !strings.Contains(err.Error(), test.want) || len(planner.asked) != 1 {
				t.Errorf("asked %d times: %v", len(planner.asked), err)
			}
		})
	}
}

// A prefetched plan does not know which names are taken.
func TestAPlanAheadIsNotAppliedWhenANameIsTaken(t *testing.T) {
	planner := bursts(1)
	r := newRig(t, planner)
	r.apply("agent:1")
	taking(r, "p1")
	planned := planner.plan
	planner.plan = func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		if len(planner.asked) == 2 {
			return creating(podNamed("ahead")), nil
		}
		return planned(request)
	}
	if err := r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	// The only pod is the one with the taken name.
	if len(planner.asked) != 3 || len(r.cluster.pods()) != 1 {
		t.Errorf("asked %d times, %d pods", len(planner.asked), len(r.cluster.pods()))
	}
}

// Creates are expected by name, or by node if they have no name. Until unnamed creates are observed there is no next plan, and none is
// prefetched.
func TestCreatesWithAndWithoutNames(t *testing.T) {
	planner := &scripted{report: atOnce}
	planner.plan = func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		if len(planner.asked) > 1 {
			return noop(request)
		}
		plan := planOf(nodewisev1.PhaseKind_PHASE_KIND_CREATES, createPod(podNamed("named"), "n1"), createPod("", "n2"))
		plan.PodManifest, plan.NodeNamePointers = creating().GetPodManifest(), creating().GetNodeNamePointers()
		plan.RequeueAfter = durationpb.New(0)
		plan.State = &nodewisev1.ReconcileState{Expectations: &nodewisev1.Expectations{
			SetAt:   timestamppb.Now(),
			Creates: []*nodewisev1.ExpectedCreate{{PodName: podNamed("named"), NodeName: "n1"}, {NodeName: "n2"}},
		}}
		return plan, nil
	}
	r := newRig(t, planner)
	r.apply("agent:1")
	r.cluster.unseen = true
	if err := r.Reconcile(t.Context(), key); err != nil || len(planner.asked) != 1 {
		t.Fatalf("asked %d times: %v", len(planner.asked), err)
	}
	if err := r.Reconcile(t.Context(), key); !errors.Is(err, errBehind) {
		t.Fatalf("the pod without a name is not waited for: %v", err)
	}
	for _, pod := range r.cluster.pods() {
		// The apiserver generates the name, which the cluster in memory derives from the manifest's node name.
		pod.Spec.NodeName = map[bool]string{true: "n1", false: "n2"}[pod.Name == podNamed("named")]
		if err := r.feed(pods).Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	if creates, _ := r.state.holdings.Outstanding(key); creates != 0 {
		t.Errorf("%d creates are outstanding", creates)
	}
	if err := r.Reconcile(t.Context(), key); err != nil || len(planner.asked) != 2 {
		t.Errorf("asked %d times: %v", len(planner.asked), err)
	}
}
