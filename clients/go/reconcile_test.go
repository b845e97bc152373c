package nodewise

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
)

func noop(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
	return &nodewisev1.Plan{Verdict: nodewisev1.Verdict_VERDICT_NOOP, State: &nodewisev1.ReconcileState{}}, nil
}

func createPod(name, node string) *nodewisev1.Action {
	return &nodewisev1.Action{Kind: &nodewisev1.Action_CreatePod{
		CreatePod: &nodewisev1.CreatePod{PodName: name, NodeName: node},
	}}
}

// podNamed makes a pod name in the planner's form from a few characters.
func podNamed(short string) string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	hash := strings.Map(func(letter rune) rune { return rune(letters[int(letter)%len(letters)]) }, short)
	return "agent-" + hash + strings.Repeat("z", 10-len(hash))
}

// nodeOf is the node for which a plan creates this pod.
func nodeOf(pod string) string { return "n-" + strings.TrimPrefix(pod, "agent-") }

// creating is a plan that creates pods and expects them.
func creating(pods ...string) *nodewisev1.Plan {
	var actions []*nodewisev1.Action
	expectations := &nodewisev1.Expectations{SetAt: timestamppb.Now()}
	for _, pod := range pods {
		node := nodeOf(pod)
		actions = append(actions, createPod(pod, node))
		expectations.Creates = append(expectations.Creates, &nodewisev1.ExpectedCreate{PodName: pod, NodeName: node})
	}
	plan := planOf(nodewisev1.PhaseKind_PHASE_KIND_CREATES, actions...)
	plan.PodManifest = []byte(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"app": "agent", "controller-revision-hash": "h1"}, "ownerReferences":
		[{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "d1", "controller": true}]},
		"spec": {"containers": [{"name": "a", "image": "agent:1"}], "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
		{"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [""]}]}]}}}}}`)
	plan.NodeNamePointers = []string{
		"/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchFields/0/values/0",
	}
	plan.State = &nodewisev1.ReconcileState{Expectations: expectations}
	return plan
}

// Without an answer nothing is written, and the workload has not failed.
func TestWithoutAnAnswerNothingIsWritten(t *testing.T) {
	planner := &scripted{plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		return nil, &planclient.UnreachableError{Reason: "the service is away"}
	}}
	r := newRig(t, planner)
	r.apply("agent:1")
	err := r.Reconcile(t.Context(), key)
	var unreachable *planclient.UnreachableError
	if !errors.Is(err, ErrNotYet) || !errors.As(err, &unreachable) {
		t.Errorf("got %v", err)
	}
	if len(r.cluster.writes) > 0 || r.queue.delays[key] != 5*time.Second {
		t.Errorf("wrote %v, comes back after %s", r.cluster.writes, r.queue.delays[key])
	}
}

// W12: a request that takes the whole deadline at every replica does not keep a worker busy for ever.
func TestASlowFailureIsRetriedLater(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(100, 0))
	var took time.Duration
	planner := &scripted{plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		clock.SetTime(clock.Now().Add(took))
		return nil, &planclient.UnreachableError{Reason: "it does not answer"}
	}}
	r := newRig(t, planner, WithUnreachableDelay(7*time.Second))
	r.enqueuer.clock = clock
	r.apply("agent:1")
	for _, test := range []struct{ took, want time.Duration }{
		{0, 7 * time.Second}, {3 * time.Second, 7 * time.Second}, {4 * time.Second, 8 * time.Second}, {time.Minute, 2 * time.Minute},
	} {
		took = test.took
		if err := r.Reconcile(t.Context(), key); !errors.Is(err, ErrNotYet) || r.queue.delays[key] != test.want {
			t.Errorf("it took %s and comes back after %s, want %s: %v", took, r.queue.delays[key], test.want, err)
		}
	}
}

// A refusal is a failure of the workload. An old report may be the cause, so it is not sent again.
func TestARefusalIsRetriedWithoutOldReports(t *testing.T) {
	planner := &scripted{plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		return nil, &planclient.RefusedError{Reason: "it is wrong"}
	}}
	r := newRig(t, planner)
	r.apply("agent:1")
	r.state.keepReport(key, &nodewisev1.ReportRequest{Workload: &nodewisev1.WorkloadReference{Uid: "d1"}})
	for range 2 {
		err := r.Reconcile(t.Context(), key)
		if err == nil || !strings.Contains(err.Error(), "reconciling DaemonSet ns/agent") {
			t.Fatalf("got %v", err)
		}
	}
	if len(planner.asked[0].GetUndeliveredReports()) != 1 || len(planner.asked[1].GetUndeliveredReports()) != 0 {
		t.Error("the report was not dropped")
	}
}

// W12: a state from a wrong service that a right one refuses is not sent again. Used names and expected creates are still sent. That is logged
// once, and not for a request without a state. Nothing is dropped while the service cannot be reached.
func TestAStateThatIsRefusedIsDropped(t *testing.T) {
	negative := &nodewisev1.FailedPodBackoff{NodeName: "n1", Delay: durationpb.New(-time.Second), Last: timestamppb.Now()}
	leaving := creating(podNamed("new"))
	leaving.State.FailedPodBackoffs = []*nodewisev1.FailedPodBackoff{negative}
	leaving.State.Expectations.SetAt = timestamppb.New(time.Now().Add(time.Hour))
	leaving.State.Expectations.Creates = append(leaving.State.Expectations.Creates, &nodewisev1.ExpectedCreate{PodName: podNamed("x"), NodeName: "n1"})
	nothing, err := noop(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		plan           *nodewisev1.Plan
		told, expected int
	}{
		"a state":  {leaving, 1, 1},
		"no state": {nothing, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			planner := &scripted{}
			planner.plan = func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
				switch len(planner.asked) {
				case 1:
					test.plan.State.UsedPodNames = request.GetSnapshot().GetState().GetUsedPodNames()
					return test.plan, nil
				case 2:
					return nil, &planclient.UnreachableError{Reason: "the service is away"}
				case 3, 4:
					if refused := request.GetSnapshot().GetState().GetFailedPodBackoffs(); len(refused) > 0 || name == "no state" {
						return nil, &planclient.RefusedError{Reason: "it is wrong"}
					}
				}
				return noop(request)
			}
			r := newRig(t, planner)
			r.addNodes("n1")
			r.apply("agent:1")
			r.cluster.unseen = true
			r.state.holdings.RetireName(key, "d1", "n1", podNamed("old"))
			var lines []string
			logger := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
			ctx := klog.NewContext(t.Context(), logger)
			planned, away, refused := r.Reconcile(ctx, key), r.Reconcile(ctx, key), r.Reconcile(ctx, key)
			if planned != nil || !errors.Is(away, ErrNotYet) || refused == nil || errors.Is(refused, ErrNotYet) {
				t.Fatalf("got %v, then %v, then %v", planned, away, refused)
			}
			if err := r.Reconcile(ctx, key); (err == nil) != (name == "a state") {
				t.Error(err)
			}
			sent := planner.asked[3].GetSnapshot().GetState()
			if len(sent.GetFailedPodBackoffs()) > 0 || len(usedIn(sent)) != 1 {
				t.Errorf("sent %v", sent)
			}
			expected := sent.GetExpectations()
			if len(expected.GetCreates()) != test.expected || expected.GetSetAt().AsTime().After(time.Now()) {
				t.Errorf("sent as expected %v", expected)
			}
			told := slices.DeleteFunc(lines, func(line string) bool {
				return !strings.Contains(line, "the state from earlier plans is dropped") || !strings.Contains(line, "it is wrong")
			})
			if len(told) != test.told {
				t.Errorf("told %v", told)
			}
		})
	}
}

// As upstream, the back-off of a DaemonSet stays when the DaemonSet is gone and cannot be planned for.
func TestWhatIsRefusedForAnotherFieldLeavesTheState(t *testing.T) {
	const reason = "snapshot.workload.daemon_set.object: spec.selector is wrong"
	planner := &scripted{}
	planner.plan = func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		switch len(planner.asked) {
		case 1:
			plan := planOf(nodewisev1.PhaseKind_PHASE_KIND_DELETES)
			plan.State = &nodewisev1.ReconcileState{FailedPodBackoffs: []*nodewisev1.FailedPodBackoff{{NodeName: "n1"}}}
			return plan, nil
		case 2:
			return nil, &planclient.RefusedError{Reason: reason, Err: status.Error(codes.InvalidArgument, reason)}
		default:
			return noop(request)
		}
	}
	r := newRig(t, planner)
	r.addNodes("n1")
	r.apply("agent:1")
	planned, refused, last := r.Reconcile(t.Context(), key), r.Reconcile(t.Context(), key), r.Reconcile(t.Context(), key)
	if planned != nil || refused == nil || last != nil {
		t.Fatalf("got %v, then %v, then %v", planned, refused, last)
	}
	for _, request := range planner.asked[1:] {
		if sent := request.GetSnapshot().GetState().GetFailedPodBackoffs(); len(sent) != 1 {
			t.Errorf("sent %v", sent)
		}
	}
}

// The expectations of a plan are held before the first write. Those that a watch has met by then, or whose write was refused, are not
// reported. Unclear writes stay expected.
func TestHoldsBeforeItWritesAndReportsWhatIsLeft(t *testing.T) {
	planner := &scripted{}
	planner.plan = func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		if len(planner.asked) == 1 {
			return creating(podNamed("a"), podNamed("b"), podNamed("c")), nil
		}
		return noop(request)
	}
	r := newRig(t, planner)
	r.apply("agent:1")
	r.cluster.refuse = func(_ string, at write.Key) error {
		if creates, _ := r.state.holdings.Outstanding(key); creates == 0 {
			t.Error("nothing is expected before the write")
		}
		if at.Name == podNamed("b") {
			return &write.Error{Status: http.StatusForbidden, Message: "a quota"}
		}
		if at.Name == podNamed("c") {
			return &write.Error{Status: http.StatusGatewayTimeout, Message: "too late"}
		}
		return nil
	}
	planner.report = func(report *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
		return &nodewisev1.ReportResponse{State: report.GetState(), Requeue: nodewisev1.Requeue_REQUEUE_BACKOFF}, nil
	}
	if err := r.Reconcile(t.Context(), key); err == nil || !strings.Contains(err.Error(), "1 of 3 actions were done, 2 failed, 0 were not tried; the first failure: a quota") {
		t.Errorf("got %v", err)
	}
	report := planner.reports[0]
	if left := report.GetState().GetExpectations().GetCreates(); len(left) != 1 || left[0].GetPodName() != podNamed("c") {
		t.Errorf("reported as held: %v", left)
	}
	results := map[string]nodewisev1.Result{}
	for _, outcome := range report.GetOutcomes() {
		results[outcome.GetCreatedPod().GetPodName()] = outcome.GetResult()
	}
	if results[podNamed("a")] != nodewisev1.Result_RESULT_SUCCEEDED || results[podNamed("b")] != nodewisev1.Result_RESULT_FAILED {
		t.Errorf("reported as done: %v", results)
	}
	if r.queue.delays[key] != expectationsExpired {
		t.Errorf("it comes back after %s: should what is expected never show, no event would tell", r.queue.delays[key])
	}
}

// A report that cannot be delivered is sent with the next request for a plan, which comes soon.
func TestAnUndeliveredReportRidesOnTheNextPlan(t *testing.T) {
	planner := &scripted{}
	planner.plan = func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		if len(planner.asked) == 1 {
			return creating(podNamed("a")), nil
		}
		return noop(request)
	}
	planner.report = func(*nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
		return nil, &planclient.UnreachableError{Reason: "the service is away"}
	}
	r := newRig(t, planner)
	r.apply("agent:1")
	if err := r.Reconcile(t.Context(), key); err == nil {
		t.Fatal("it comes back as if all were well")
	}
	if err := r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	carried := planner.asked[1].GetUndeliveredReports()
	if len(carried) != 1 || carried[0].GetPlanId() != "p" {
		t.Fatalf("carried %v", carried)
	}
	if err := r.Reconcile(t.Context(), key); err != nil || len(planner.asked[2].GetUndeliveredReports()) > 0 {
		t.Error("it was delivered once and is sent again")
	}
}

// D-109, D-110: no plan until the caches show the own status write. Then the workload is enqueued.
func TestWaitsForItsOwnWrites(t *testing.T) {
	planner := &scripted{}
	planner.plan = func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		if len(planner.asked) > 1 {
			return noop(request)
		}
		return planOf(nodewisev1.PhaseKind_PHASE_KIND_STATUS, &nodewisev1.Action{Kind: &nodewisev1.Action_UpdateStatus{
			UpdateStatus: &nodewisev1.UpdateStatus{Status: &nodewisev1.DaemonSetStatus{ObservedGeneration: 1}},
		}}), nil
	}
	r := newRig(t, planner)
	r.apply("agent:1")
	r.cluster.unseen = true
	if err := r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.Reconcile(t.Context(), key); !errors.Is(err, ErrNotYet) || !errors.Is(err, errBehind) {
			t.Fatalf("got %v", err)
		}
	}
	if len(planner.asked) != 1 {
		t.Fatalf("asked %d times while the cache is behind", len(planner.asked))
	}
	r.queue.take()
	if err := r.feed(workloadCaches[cluster.DaemonSets]).Bookmark(r.cluster.next()); err != nil || !r.queue.take() {
		t.Fatalf("nobody is woken by the version that was waited for: %v", err)
	}
	if err := r.Reconcile(t.Context(), key); err != nil || len(planner.asked) != 2 {
		t.Errorf("asked %d times: %v", len(planner.asked), err)
	}
}

// D-62: the object with the taken name is sent with the next plan, at once.
func TestPlansAgainWithTheRevisionWhoseNameIsTaken(t *testing.T) {
	planner := &scripted{}
	planner.plan = func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		if len(planner.asked) > 1 {
			return noop(request)
		}
		return planOf(nodewisev1.PhaseKind_PHASE_KIND_REVISIONS, &nodewisev1.Action{Kind: &nodewisev1.Action_CreateRevision{
			CreateRevision: &nodewisev1.CreateRevision{Name: "agent-rrrrrrrrrr", Manifest: []byte(`{"apiVersion": "apps/v1",
				"kind": "ControllerRevision", "revision": 1, "metadata": {"name": "agent-rrrrrrrrrr", "labels": {"app": "agent"}, "ownerReferences":
				[{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "d1", "controller": true}]}, "data": {"spec":
				{"template": {"$patch": "replace", "metadata": {"labels": {"app": "agent"}},
				"spec": {"containers": [{"name": "a", "image": "agent:1"}]}}}}}`)},
		}}), nil
	}
	r := newRig(t, planner)
	r.apply("agent:1")
	r.cluster.unseen = true
	r.cluster.objects[write.Key{Resource: cluster.Revisions, Namespace: "ns", Name: "agent-rrrrrrrrrr"}] = map[string]any{
		"metadata": map[string]any{"namespace": "ns", "name": "agent-rrrrrrrrrr"}, "data": "other",
	}
	if err := r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if len(planner.asked) != 2 {
		t.Fatalf("asked %d times", len(planner.asked))
	}
	sent := planner.asked[1].GetSnapshot().GetRevisions()
	if len(sent) != 1 || !sent[0].GetReadAfterNameCollision() || !strings.Contains(string(sent[0].GetObject()), `"other"`) {
		t.Errorf("sent %v", sent)
	}
}

// D-23: an orphan that is gone is left out of the next plan, which comes at once. The back-off of failed pods stays as before.
func TestPlansAgainWithoutAnOrphanThatIsGone(t *testing.T) {
	planner := &scripted{}
	planner.plan = func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		if len(planner.asked) > 1 {
			return noop(request)
		}
		plan := planOf(nodewisev1.PhaseKind_PHASE_KIND_CLAIMS, &nodewisev1.Action{Kind: &nodewisev1.Action_AdoptPod{
			AdoptPod: &nodewisev1.AdoptPod{Pod: &nodewisev1.ObjectReference{Name: "orphan", Uid: "o"}, Patch: []byte(`{"metadata":
				{"uid": "o", "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "d1",
				"controller": true}]}}`)},
		}})
		creates := creating(podNamed("a"))
		plan.Phases = append(plan.Phases, creates.GetPhases()...)
		plan.PodManifest, plan.NodeNamePointers = creates.GetPodManifest(), creates.GetNodeNamePointers()
		plan.State = &nodewisev1.ReconcileState{FailedPodBackoffs: []*nodewisev1.FailedPodBackoff{{NodeName: "n9"}}}
		return plan, nil
	}
	r := newRig(t, planner, WithBuckets(1))
	r.addNodes("n9")
	r.apply("agent:1")
	at := write.Key{Resource: cluster.Pods, Namespace: "ns", Name: "orphan"}
	r.cluster.mu.Lock()
	r.cluster.keep(at, map[string]any{
		"metadata": map[string]any{"namespace": "ns", "name": "orphan", "uid": "o",
			"labels": map[string]any{"app": "agent"}}, "spec": map[string]any{},
	})
	delete(r.cluster.objects, at)
	r.cluster.mu.Unlock()
	if err := r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if len(planner.asked) != 2 || r.cluster.count("create pods") != 0 {
		t.Fatalf("asked %d times, wrote %v", len(planner.asked), r.cluster.writes)
	}
	second := planner.asked[1].GetSnapshot()
	if len(second.GetPodBuckets()[0].GetData()) > 0 || len(second.GetState().GetFailedPodBackoffs()) > 0 {
		t.Errorf("sent %v", second)
	}
}

// After a plan with a full burst of creates the next plan follows at once, if the response to the report still says so.
func TestGoesOnAfterAFullBurst(t *testing.T) {
	planner := &scripted{}
	planner.plan = func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		if len(planner.asked) > 2 {
			return noop(request)
		}
		plan := creating(podNamed(fmt.Sprint("a", len(planner.asked))))
		plan.RequeueAfter = durationpb.New(0)
		return plan, nil
	}
	planner.report = func(report *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
		if len(planner.reports) > 1 {
			return &nodewisev1.ReportResponse{State: report.GetState()}, nil
		}
		return &nodewisev1.ReportResponse{State: report.GetState(), RequeueAfter: report.GetRequeueAfter()}, nil
	}
	r := newRig(t, planner)
	r.apply("agent:1")
	r.cluster.unseen = true
	r.queue.take()
	if err := r.Reconcile(t.Context(), key); err != nil || !r.queue.take() {
		t.Errorf("it waits for the watches: %v", err)
	}
	if err := r.Reconcile(t.Context(), key); err != nil || r.queue.take() {
		t.Errorf("it goes on though the service does not say so: %v", err)
	}
}

// The service says when to reconcile again, and whether that is a failure.
func TestComesBackAsTheReportSays(t *testing.T) {
	planner := &scripted{plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) { return creating(podNamed("a")), nil }}
	planner.report = func(*nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
		return &nodewisev1.ReportResponse{
			State: &nodewisev1.ReconcileState{}, Requeue: nodewisev1.Requeue_REQUEUE_BACKOFF,
			RequeueAfter: durationpb.New(7 * time.Second), Message: "come back",
		}, nil
	}
	r := newRig(t, planner)
	r.apply("agent:1")
	r.cluster.unseen = true
	err := r.Reconcile(t.Context(), key)
	if err == nil || !strings.Contains(err.Error(), "come back") || r.queue.delays[key] != 7*time.Second {
		t.Errorf("got %v, after %s", err, r.queue.delays[key])
	}
}

func TestStalePlansAreRetried(t *testing.T) {
	planner := &scripted{plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		plan := creating(podNamed("a"))
		plan.Verdict, plan.Phases = nodewisev1.Verdict_VERDICT_STALE, nil
		return plan, nil
	}}
	r := newRig(t, planner)
	r.apply("agent:1")
	if err := r.Reconcile(t.Context(), key); err == nil || !strings.Contains(err.Error(), "stale") || len(r.cluster.writes) > 0 {
		t.Errorf("got %v, wrote %v", err, r.cluster.writes)
	}
	if creates, deletes := r.state.holdings.Outstanding(key); creates+deletes > 0 {
		t.Errorf("it expects %d creates and %d deletes of what it does not do", creates, deletes)
	}
}

// D-71.2: nothing is kept of a workload that is gone.
func TestAWorkloadThatIsGoneIsForgotten(t *testing.T) {
	planner := &scripted{plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) { return creating(podNamed("a")), nil }}
	r := newRig(t, planner)
	r.apply("agent:1")
	r.cluster.unseen = true
	if err := r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if err := r.feed(workloadCaches[cluster.DaemonSets]).Replace(nil, "900"); err != nil {
		t.Fatal(err)
	}
	if creates, _ := r.state.holdings.Outstanding(key); creates != 0 {
		t.Error("expectations are left")
	}
	if err := r.Reconcile(t.Context(), key); err != nil || len(planner.asked) != 1 {
		t.Errorf("asked %d times: %v", len(planner.asked), err)
	}
}

// An observer expects and reports nothing.
func TestAnObserverExpectsNothing(t *testing.T) {
	planner := &scripted{plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) { return creating(podNamed("a")), nil }}
	r := newRig(t, planner)
	r.writer = write.NewObserver(r.cluster)
	r.apply("agent:1")
	if err := r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if creates, _ := r.state.holdings.Outstanding(key); creates != 0 || len(planner.reports) != 0 || len(r.cluster.writes) != 0 {
		t.Errorf("%d creates are expected, %v was written", creates, r.cluster.writes)
	}
}

func TestIsStartedOnce(t *testing.T) {
	r := newRig(t, &scripted{plan: noop})
	r.started.Store(true)
	if err := r.Start(t.Context(), r.queue); err == nil {
		t.Error("it was started twice")
	}
}

func TestErrorsOfPlannersAreKept(t *testing.T) {
	broken := errors.New("broken")
	r := newRig(t, &scripted{plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) { return nil, broken }})
	r.apply("agent:1")
	if err := r.Reconcile(t.Context(), key); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// ErrNotYet is neither a failure nor a success: the back-off stays as it is.
func TestTheBackOffOutlastsWhatCouldNotBeDone(t *testing.T) {
	unreachable, refused := &planclient.UnreachableError{Reason: "away"}, &planclient.RefusedError{Reason: "wrong"}
	planner := &scripted{}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](time.Hour, time.Hour)
	r := newRig(t, planner, WithRateLimiter(limiter))
	r.apply("agent:1")
	queue := newWorkQueue("test", 1)
	defer queue.ShutDown()
	for i, step := range []struct {
		err    error
		behind bool
		want   int
	}{{refused, false, 1}, {unreachable, false, 1}, {nil, true, 1}, {refused, false, 2}, {nil, false, 0}} {
		planner.plan = func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
			if step.err != nil {
				return nil, step.err
			}
			return noop(request)
		}
		if step.behind {
			r.state.gate.Record(key, "d1", cluster.DaemonSets, "999")
		}
		queue.Add(key)
		taken, _ := queue.Get()
		r.workOn(t.Context(), t.Context(), queue, taken)
		r.state.gate.Clear(key)
		if got := limiter.NumRequeues(key); got != step.want {
			t.Errorf("step %d: %d failures are remembered, want %d", i, got, step.want)
		}
	}
}

// controller-runtime recovers from panics: after one the workload is enqueued as before.
func TestAWorkloadThatPanickedIsWokenAgain(t *testing.T) {
	r := newRig(t, &scripted{plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) { panic("a defect") }})
	r.apply("agent:1")
	r.queue.take()
	func() {
		defer func() { _ = recover() }()
		_ = r.Reconcile(t.Context(), key)
	}()
	if r.enqueuer.enqueue(key); !r.queue.take() {
		t.Error("it is not woken any more")
	}
}

// A workload that was urgent before a panic is urgent after it.
func TestAWorkloadThatPanickedStaysUrgent(t *testing.T) {
	r := newRig(t, &scripted{plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) { panic("a defect") }})
	r.apply("agent:1")
	for _, urgent := range []bool{false, true} {
		delete(r.enqueuer.urgent, key)
		if urgent {
			r.enqueuer.enqueueFirst(key)
		}
		func() {
			defer func() { _ = recover() }()
			_ = r.Reconcile(t.Context(), key)
		}()
		if r.enqueuer.urgent[key] != urgent {
			t.Errorf("urgent before: %t, and after: %t", urgent, !urgent)
		}
	}
}

// A write that a quota or a webhook refuses is retried within a minute; with upstream's profile after upstream's longest back-off.
func TestTheLongestBackOffIsThatOfTheProfile(t *testing.T) {
	for profile, want := range map[nodewisev1.Profile]time.Duration{
		nodewisev1.Profile_PROFILE_UNSPECIFIED:     time.Minute,
		nodewisev1.Profile_PROFILE_UPSTREAM_STRICT: 1000 * time.Second,
	} {
		planner := &scripted{
			plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) { return creating(podNamed("a")), nil },
			report: func(*nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
				return &nodewisev1.ReportResponse{State: &nodewisev1.ReconcileState{}, Requeue: nodewisev1.Requeue_REQUEUE_BACKOFF}, nil
			},
		}
		r := newRig(t, planner, WithPlanOptions(&nodewisev1.PlanOptions{Profile: profile}))
		r.apply("agent:1")
		r.cluster.refuse = func(string, write.Key) error { return &write.Error{Status: http.StatusForbidden, Message: "a quota"} }
		queue := newWorkQueue(t.Name(), 1)
		defer queue.ShutDown()
		for range 30 {
			r.workOn(t.Context(), t.Context(), queue, key)
		}
		if got := r.queue.delays[key]; got != want || r.cluster.count("create pods") != 30 {
			t.Errorf("%s: after %d creates it comes back after %s, want %s", profile, r.cluster.count("create pods"), got, want)
		}
	}
}
