package nodewise

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"google.golang.org/protobuf/types/known/timestamppb"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
	"nodewise.dev/clients/go/served"
)

// policyText is a RolloutPolicy as JSON, with this spec. Its uid is "uid-" and the name.
func policyText(name, version, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"nodewise.dev/v1alpha1","kind":"RolloutPolicy","metadata":{"namespace":"ns","name":%q,"uid":"uid-%s",
		"resourceVersion":%q},"spec":%s,"status":{"targets":[{"name":"agent","uid":"before"},{"name":"agent","uid":"d1","state":"Soaking"}]}}`, name, name, version, spec)
}

func (r *rig) addPolicy(name, version, spec string) {
	r.t.Helper()
	object, err := served.Parse([]byte(policyText(name, version, spec)))
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.feed(policies).Add(object); err != nil {
		r.t.Fatal(err)
	}
}

// heeding confirms the policy p.
func heeding(plan *nodewisev1.Plan) *nodewisev1.Plan {
	plan.RolloutPolicyUids = []string{"uid-p"}
	if plan.State == nil {
		plan.State = &nodewisev1.ReconcileState{}
	}
	return plan
}

// plans is a planner that returns these plans one after the other.
func plans(all ...func(*nodewisev1.PlanRequest) *nodewisev1.Plan) *scripted {
	return &scripted{plan: func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		next := all[0]
		if len(all) > 1 {
			all = all[1:]
		}
		return next(request), nil
	}}
}

func noopPlan(*nodewisev1.PlanRequest) *nodewisev1.Plan {
	return heeding(&nodewisev1.Plan{Verdict: nodewisev1.Verdict_VERDICT_NOOP})
}

const ofAgent = `{"targets":{"names":["agent"]}}`

func sentPolicies(request *nodewisev1.PlanRequest) []*nodewisev1.RolloutPolicy {
	return request.GetSnapshot().GetWorkload().GetDaemonSet().GetRolloutPolicies()
}

// A snapshot has the policies of its workload as they were served, and one without policies has nothing of them.
func TestTheSnapshotHasThePolicies(t *testing.T) {
	planner := &scripted{plan: noop}
	measurer := &scriptedMeasurer{hosts: []string{"prometheus:9090"}}
	r := newRig(t, planner, WithMeasurer(measurer))
	r.apply("agent:1")
	if err := r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	daemonSet := planner.asked[0].GetSnapshot().GetWorkload().GetDaemonSet()
	if len(daemonSet.GetRolloutPolicies())+len(daemonSet.GetAnalysisHosts())+len(daemonSet.GetMeasurements()) > 0 {
		t.Errorf("without policies got %v", daemonSet)
	}
	r.queue.take()
	r.addPolicy("p", "7", ofAgent)
	r.addPolicy("of-another", "8", `{"targets":{"names":["other"]}}`)
	if !r.queue.take() {
		t.Error("a new policy does not enqueue its target")
	}
	planner.plan = func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) { return noopPlan(request), nil }
	if err := r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	daemonSet = planner.asked[1].GetSnapshot().GetWorkload().GetDaemonSet()
	if sent := daemonSet.GetRolloutPolicies(); len(sent) != 1 || string(sent[0].GetObject()) != policyText("p", "7", ofAgent) {
		t.Errorf("sent %v", sent)
	}
	if !slices.Equal(daemonSet.GetAnalysisHosts(), measurer.hosts) {
		t.Errorf("the hosts are %v", daemonSet.GetAnalysisHosts())
	}
}

// A service that does not know policies does not confirm them, and nothing is rolled out without them.
func TestAPlanThatIgnoresAPolicyIsRefused(t *testing.T) {
	planner := &scripted{plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		return planOf(nodewisev1.PhaseKind_PHASE_KIND_EVENTS, emitted("A")), nil
	}}
	r := newRig(t, planner)
	r.apply("agent:1")
	r.addPolicy("p", "7", ofAgent)
	if err := r.Reconcile(t.Context(), key); !errors.Is(err, ErrPlanRefused) || !strings.Contains(err.Error(), "does not confirm each RolloutPolicy") {
		t.Errorf("got %v", err)
	}
}

// L-44: nothing is rolled out by a service that is too old for policies, and people are told. What is remembered is not the cause.
func TestAServiceThatIsTooOldForPoliciesIsNoFaultOfTheRequest(t *testing.T) {
	remembered := &nodewisev1.FailedPodBackoff{NodeName: "n1"}
	planner := &scripted{plan: func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		plan := noopPlan(request)
		plan.State.FailedPodBackoffs = []*nodewisev1.FailedPodBackoff{remembered}
		return plan, nil
	}}
	r := newRig(t, planner)
	r.addNodes("n1")
	r.apply("agent:1")
	r.addPolicy("p", "7", ofAgent)
	if err := r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	old := &planclient.UnsupportedFeatureError{Feature: "RolloutPolicies", Reason: "its version does not know RolloutPolicies; upgrade it"}
	planner.plan = func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) { return nil, old }
	err := r.Reconcile(t.Context(), key)
	const want = "reconciling DaemonSet ns/agent: the planning service is too old: its version does not know RolloutPolicies; upgrade it"
	if errors.Is(err, ErrNotYet) || !isRefusal(err) || err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	if len(r.cluster.writes) > 0 {
		t.Errorf("wrote %v", r.cluster.writes)
	}
	if events := r.cluster.events; len(events) != 1 || !strings.Contains(fmt.Sprint(events[0]), "ServiceTooOld") ||
		!strings.Contains(fmt.Sprint(events[0]), "upgrade it") {
		t.Errorf("emitted %v", events)
	}
	if held := r.state.holdings.Get(key, "d1").GetFailedPodBackoffs(); len(held) != 1 || held[0].GetNodeName() != "n1" {
		t.Errorf("remembers %v", held)
	}
}

func emitted(reason string) *nodewisev1.Action {
	return &nodewisev1.Action{Kind: &nodewisev1.Action_EmitEvent{EmitEvent: &nodewisev1.EmitEvent{Type: "Normal", Reason: reason}}}
}

// evicting evicts a pod, and expects that.
func evicting(pod string) func(*nodewisev1.PlanRequest) *nodewisev1.Plan {
	return func(request *nodewisev1.PlanRequest) *nodewisev1.Plan {
		plan := heeding(planOf(nodewisev1.PhaseKind_PHASE_KIND_DELETES, &nodewisev1.Action{Kind: &nodewisev1.Action_EvictPod{
			EvictPod: &nodewisev1.EvictPod{Pod: &nodewisev1.ObjectReference{Name: pod, Uid: "uid-" + pod}, NodeName: "n1"},
		}}))
		plan.State = &nodewisev1.ReconcileState{
			Expectations:     &nodewisev1.Expectations{SetAt: timestamppb.Now(), DeleteUids: []string{"uid-" + pod}},
			BlockedEvictions: request.GetSnapshot().GetState().GetBlockedEvictions(),
		}
		return plan
	}
}

// L-24: a pod that a budget protects stays. That is no failure; the budget is remembered, and the eviction is tried again with back-off.
func TestABlockedEvictionIsTriedAgainLater(t *testing.T) {
	now := time.Unix(1000, 0)
	planner := plans(evicting("p1"))
	r := newRig(t, planner, WithClock(func() time.Time { return now }))
	r.apply("agent:1")
	r.addPolicy("p", "7", ofAgent)
	pod := podAt("p1", "50", "DaemonSet")
	pod.Spec.NodeName = "n1"
	if err := r.feed(pods).Add(&pod); err != nil {
		t.Fatal(err)
	}
	retryAfter := time.Duration(0)
	r.cluster.protects = func(string) *write.Blocked {
		return &write.Blocked{Message: "budget b needs 3 healthy pods", RetryAfter: retryAfter}
	}
	for attempt, test := range []struct{ retryAfter, wait time.Duration }{
		{0, 10 * time.Second}, {5 * time.Second, 20 * time.Second}, {90 * time.Second, 90 * time.Second}, {0, 80 * time.Second},
	} {
		retryAfter = test.retryAfter
		if err := r.Reconcile(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if delay := r.queue.delays[key]; delay != test.wait {
			t.Errorf("attempt %d: comes back after %s, want %s", attempt, delay, test.wait)
		}
		held := r.state.holdings.Get(key, "d1")
		if len(held.GetExpectations().GetDeleteUids()) > 0 {
			t.Errorf("it is expected that the pod goes: %v", held)
		}
		entries := held.GetBlockedEvictions()
		if len(entries) != 1 || entries[0].GetAttempts() != uint32(attempt+1) || entries[0].GetPodUid() != "uid-p1" ||
			!entries[0].GetRetryTime().AsTime().Equal(now.Add(test.wait)) || entries[0].GetMessage() != "budget b needs 3 healthy pods" {
			t.Errorf("attempt %d: held %v", attempt, entries)
		}
		outcome := planner.reports[attempt].GetOutcomes()[0]
		if outcome.GetResult() != nodewisev1.Result_RESULT_BLOCKED || outcome.GetHttpStatus() != 429 || outcome.GetDeletedPodUid() != "uid-p1" {
			t.Errorf("reported %v", outcome)
		}
	}
	if len(r.cluster.events) > 0 {
		t.Errorf("emitted %v", r.cluster.events)
	}
	r.cluster.protects = nil
	// The cluster in memory does not have the pod, which is no failure either.
	if err := r.Reconcile(t.Context(), key); err != nil || !slices.Equal(r.cluster.writes, []string{"delete pods"}) {
		t.Errorf("wrote %v, %v", r.cluster.writes, err)
	}
}

// patching writes the status of the policy p at a version.
func patching(version string) func(*nodewisev1.PlanRequest) *nodewisev1.Plan {
	return func(*nodewisev1.PlanRequest) *nodewisev1.Plan {
		return heeding(planOf(nodewisev1.PhaseKind_PHASE_KIND_ROLLOUT_POLICIES, &nodewisev1.Action{Kind: &nodewisev1.Action_PatchObject{
			PatchObject: &nodewisev1.PatchObject{
				Resource:    &nodewisev1.GroupVersionResource{Group: "nodewise.dev", Version: "v1alpha1", Resource: "rolloutpolicies"},
				Object:      &nodewisev1.ObjectReference{Name: "p", Uid: "uid-p"},
				Subresource: "status", PatchType: nodewisev1.PatchType_PATCH_TYPE_MERGE,
				Patch: fmt.Appendf(nil, `{"metadata":{"uid":"uid-p","resourceVersion":%q},"status":{"targets":[{"name":"agent","uid":"before"},{"name":"agent","uid":"d1","state":"New"}]}}`, version),
			},
		}}))
	}
}

func backingOff(report *nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
	requeue := nodewisev1.Requeue_REQUEUE_NONE
	for _, outcome := range report.GetOutcomes() {
		if outcome.GetResult() == nodewisev1.Result_RESULT_FAILED {
			requeue = nodewisev1.Requeue_REQUEUE_BACKOFF
		}
	}
	return &nodewisev1.ReportResponse{State: report.GetState(), Requeue: requeue}, nil
}

// L-34: the status is written with the version of the snapshot. If somebody else has changed the policy, that is no failure: another plan follows.
func TestAConflictOfAPolicyIsNoFailure(t *testing.T) {
	planner := plans(patching("7"))
	planner.report = backingOff
	r := newRig(t, planner)
	r.apply("agent:1")
	r.addPolicy("p", "7", ofAgent)
	r.cluster.refuse = func(_ string, at write.Key) error {
		if at.Resource == cluster.RolloutPolicies {
			return &write.Error{Refusal: write.Conflict, Status: 409, Message: "the object has been modified"}
		}
		return nil
	}
	r.queue.take()
	err := r.Reconcile(t.Context(), key)
	if !errors.Is(err, ErrNotYet) || !errors.Is(err, errConflict) || outcomeOf(err) != behind {
		t.Errorf("got %v", err)
	}
	if !r.queue.take() {
		t.Error("it is not enqueued again")
	}
	r.cluster.refuse = func(string, write.Key) error { return &write.Error{Refusal: write.Other, Status: 500, Message: "odd"} }
	if err := r.Reconcile(t.Context(), key); err == nil || errors.Is(err, ErrNotYet) {
		t.Errorf("another error: got %v", err)
	}
}

// The resource may be installed and removed while the program runs. While it is not there, there are no policies, and nothing waits for them.
func TestPoliciesMayBeInstalledAtAnyTime(t *testing.T) {
	apiserver := testkit.NewCluster(t)
	apiserver.Put(t, "daemonsets", `{"metadata":{"namespace":"ns","name":"agent","uid":"d1"},"spec":{}}`)
	reconciler, err := New(apiserver.Config(), &scripted{plan: noop})
	if err != nil {
		t.Fatal(err)
	}
	reconciler.discovery = 10 * time.Millisecond
	queue := &queueInMemory{delays: map[types.NamespacedName]time.Duration{}}
	if err := reconciler.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	if err := reconciler.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	hasPolicy := func() bool {
		reconciler.caches.mu.Lock()
		defer reconciler.caches.mu.Unlock()
		workload := reconciler.caches.store.Workload(cluster.DaemonSet, key)
		return workload != nil && reconciler.caches.store.HasPolicy(workload)
	}
	ready := func() bool { return reconciler.Ready(nil) == nil }
	for range 2 {
		apiserver.Install(t, true)
		apiserver.Put(t, "rolloutpolicies", policyText("p", "", ofAgent))
		testkit.Eventually(t, "the policy is there", func() bool { return hasPolicy() && ready() })
		apiserver.Install(t, false)
		testkit.Eventually(t, "the policy is gone", func() bool { return !hasPolicy() && ready() })
	}
}

// L-2: policies of a version that the program does not know hold the workloads, whether there were none before or others, until the program can read
// them or they are gone.
func TestPoliciesOfAnotherVersionHoldTheWorkloads(t *testing.T) {
	apiserver := testkit.NewCluster(t)
	apiserver.Put(t, "daemonsets", `{"metadata":{"namespace":"ns","name":"agent","uid":"d1"},"spec":{}}`)
	planner := &scripted{plan: func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		plan := &nodewisev1.Plan{Verdict: nodewisev1.Verdict_VERDICT_NOOP, State: &nodewisev1.ReconcileState{}}
		if len(sentPolicies(request)) > 0 {
			plan.RolloutPolicyUids = []string{"uid-p"}
		}
		return plan, nil
	}}
	reconciler, err := New(apiserver.Config(), planner)
	if err != nil {
		t.Fatal(err)
	}
	reconciler.discovery = 10 * time.Millisecond
	if err := reconciler.Start(t.Context(), &queueInMemory{delays: map[types.NamespacedName]time.Duration{}}); err != nil {
		t.Fatal(err)
	}
	if err := reconciler.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	const reason = "rolloutpolicies are not served as nodewise.dev/v1alpha1, but as nodewise.dev/v1beta1: this program does not know that version; upgrade it"
	isHeld := func() bool {
		err := reconciler.Reconcile(t.Context(), key)
		return err != nil && strings.Contains(err.Error(), "nothing is rolled out without knowing the rolloutpolicies: "+reason)
	}
	isReady := func() bool {
		err := reconciler.Ready(nil)
		return err == nil || !strings.Contains(err.Error(), reason)
	}
	for _, before := range []string{"", "v1alpha1"} {
		apiserver.InstallAs(t, before)
		testkit.Eventually(t, "it goes on", func() bool { return reconciler.Reconcile(t.Context(), key) == nil && isReady() })
		apiserver.InstallAs(t, "v1beta1")
		testkit.Eventually(t, "it is held", func() bool { return isHeld() && !isReady() })
		asked := len(planner.asked)
		if !isHeld() || len(planner.asked) != asked {
			t.Error("it was planned for")
		}
	}
	apiserver.InstallAs(t, "")
	testkit.Eventually(t, "it goes on", func() bool { return reconciler.Reconcile(t.Context(), key) == nil && isReady() })
}
