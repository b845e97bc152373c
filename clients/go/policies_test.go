package nodewise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"google.golang.org/protobuf/types/known/timestamppb"

	"nodewise.dev/clients/go/analysis"
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
		"resourceVersion":%q},"spec":%s,"status":{"targets":[{"name":"agent","state":"Soaking"}]}}`, name, name, version, spec)
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
				Patch: fmt.Appendf(nil, `{"metadata":{"uid":"uid-p","resourceVersion":%q},"status":{"targets":[{"name":"agent","state":"New"}]}}`, version),
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

// scriptedMeasurer returns values that the test sends.
type scriptedMeasurer struct {
	hosts  []string
	values chan string

	mu    sync.Mutex
	asked []*analysis.Request
	ended int
}

func (m *scriptedMeasurer) Hosts() []string { return m.hosts }

func (m *scriptedMeasurer) Measure(ctx context.Context, request *analysis.Request) (*nodewisev1.Measurement, error) {
	m.mu.Lock()
	m.asked = append(m.asked, request)
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.ended++
	}()
	select {
	case value := <-m.values:
		return &nodewisev1.Measurement{Result: &nodewisev1.Measurement_Value{Value: value}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *scriptedMeasurer) counts() (asked, ended int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.asked), m.ended
}

const withCheck = `{"targets":{"names":["agent"]},"stages":[{"name":"s","analysis":[{"name":"c","interval":"1m30s","webhook":{"url":"https://checks"}}]}]}`

// measuring asks for a measurement, and writes the status before if that has a version.
func measuring(version string) func(*nodewisev1.PlanRequest) *nodewisev1.Plan {
	return func(request *nodewisev1.PlanRequest) *nodewisev1.Plan {
		measure := &nodewisev1.Measure{
			Id:         &nodewisev1.MeasurementId{PolicyUid: "uid-p", RevisionHash: "h1", Stage: "s", Check: "c"},
			PolicyName: "p", Provider: &nodewisev1.Measure_Webhook{Webhook: &nodewisev1.WebhookCall{Url: "https://checks"}},
		}
		plan := heeding(planOf(nodewisev1.PhaseKind_PHASE_KIND_ANALYSIS, &nodewisev1.Action{Kind: &nodewisev1.Action_Measure{Measure: measure}}))
		if version != "" {
			plan.Phases = append(patching(version)(request).GetPhases(), plan.GetPhases()...)
			plan.Phases[1].Batches[0].Actions[0].Id = 2
		}
		return plan
	}
}

// L-31: the result of a measurement is in the snapshots until a plan that had it was carried out.
func TestAMeasurementIsSentUntilItIsCounted(t *testing.T) {
	planner := plans(measuring(""), measuring(""), patching("7"), patching("7"), noopPlan)
	planner.report = backingOff
	measurer := &scriptedMeasurer{values: make(chan string)}
	r := newRig(t, planner, WithMeasurer(measurer))
	r.apply("agent:1")
	r.addPolicy("p", "7", withCheck)
	r.cluster.objects[write.Key{Resource: cluster.RolloutPolicies, Namespace: "ns", Name: "p"}] = map[string]any{
		"metadata": map[string]any{"namespace": "ns", "name": "p", "uid": "uid-p"},
	}
	reconcile := func() error { return r.Reconcile(t.Context(), key) }
	for range 2 {
		if err := reconcile(); err != nil {
			t.Fatal(err)
		}
	}
	r.queue.take()
	measurer.values <- `{"a": 1}`
	testkit.Eventually(t, "the workload is enqueued", r.queue.take)
	if asked, _ := measurer.counts(); asked != 1 {
		t.Errorf("%d measurements were made", asked)
	}
	request := measurer.asked[0]
	if request.Workload.GetName() != "agent" || string(request.Status) != `{"name":"agent","state":"Soaking"}` || request.GetWebhook().GetUrl() != "https://checks" {
		t.Errorf("asked for %v", request)
	}
	r.cluster.refuse = func(string, write.Key) error {
		return &write.Error{Refusal: write.Conflict, Status: 409, Message: "modified"}
	}
	if err := reconcile(); !errors.Is(err, errConflict) {
		t.Errorf("got %v", err)
	}
	r.cluster.refuse = nil
	if err := reconcile(); err != nil {
		t.Fatal(err)
	}
	if err := r.feed(policies).Bookmark("1000"); err != nil {
		t.Fatal(err)
	}
	if err := reconcile(); err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{0, 0, 1, 1, 0} {
		sent := planner.asked[i].GetSnapshot().GetWorkload().GetDaemonSet().GetMeasurements()
		if len(sent) != want {
			t.Fatalf("snapshot %d has %v", i, sent)
		}
		if want > 0 && (sent[0].GetValue() != `{"a": 1}` || sent[0].GetTime() == nil || sent[0].GetId().GetCheck() != "c") {
			t.Errorf("sent %v", sent)
		}
	}
}

// The one who is asked gets the status that the same plan has written.
func TestAMeasurementHasTheStatusThatWasJustWritten(t *testing.T) {
	measurer := &scriptedMeasurer{values: make(chan string)}
	r := newRig(t, plans(measuring("7")), WithMeasurer(measurer))
	r.apply("agent:1")
	r.addPolicy("p", "7", withCheck)
	r.cluster.objects[write.Key{Resource: cluster.RolloutPolicies, Namespace: "ns", Name: "p"}] = map[string]any{
		"metadata": map[string]any{"namespace": "ns", "name": "p", "uid": "uid-p"},
	}
	if err := r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	measurer.values <- "1"
	if status := string(measurer.asked[0].Status); status != `{"name":"agent","state":"New"}` {
		t.Errorf("the status is %s", status)
	}
	if interval := measurer.asked[0].Interval; interval != 90*time.Second {
		t.Errorf("the interval is %s", interval)
	}
}

// The name of a wave begins with that of its stage. Without an interval it is a minute.
func TestTheIntervalIsThatOfTheCheck(t *testing.T) {
	const policy = `{"spec":{"stages":[7,{"name":"canary","analysis":[{"name":"errors","interval":"5s"},{"name":"others"},{"name":"odd","interval":"x"}]},
		{"name":"zones","groupBy":"zone","analysis":[{"name":"errors","interval":"1h1m7s"},{"name":"none","interval":""}]}]}}`
	for _, test := range []struct {
		policy, stage, check string
		want                 time.Duration
	}{
		{policy, "canary", "errors", 5 * time.Second}, {policy, "zones/a", "errors", time.Hour + 67*time.Second},
		{policy, "canary", "others", time.Minute}, {policy, "canaryx", "errors", time.Minute}, {policy, "canary", "odd", time.Minute},
		{policy, "zones/a", "none", time.Minute}, {"{", "canary", "errors", time.Minute},
	} {
		if got := intervalOf([]byte(test.policy), &nodewisev1.MeasurementId{Stage: test.stage, Check: test.check}); got != test.want {
			t.Errorf("%s %s: got %s, want %s", test.stage, test.check, got, test.want)
		}
	}
}

// A value that the service does not take is an error, also if a measurer of the program returns it.
func TestALongValueIsAnError(t *testing.T) {
	for _, test := range []struct {
		bytes int
		want  string
	}{{64 << 10, ""}, {64<<10 + 1, "the value has 65537 bytes, and 65536 are allowed"}} {
		value := &nodewisev1.Measurement{Result: &nodewisev1.Measurement_Value{Value: strings.Repeat("1", test.bytes)}}
		if got := resultOf(value, nil).GetError(); got != test.want {
			t.Errorf("%d bytes: got %q", test.bytes, got)
		}
	}
}

// Measurements end with their workload, and when it has no policy any more.
func TestMeasurementsEndWithTheirWorkload(t *testing.T) {
	measurer := &scriptedMeasurer{}
	r := newRig(t, plans(measuring(""), noopWithoutPolicies), WithMeasurer(measurer))
	r.apply("agent:1")
	r.addPolicy("p", "7", withCheck)
	if err := r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the measurement is under way", func() bool { asked, _ := measurer.counts(); return asked == 1 })
	if err := r.feed(policies).Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	if err := r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the measurement has ended", func() bool { _, ended := measurer.counts(); return ended == 1 })
}

func noopWithoutPolicies(*nodewisev1.PlanRequest) *nodewisev1.Plan {
	return &nodewisev1.Plan{Verdict: nodewisev1.Verdict_VERDICT_NOOP, State: &nodewisev1.ReconcileState{}}
}

// Without a measurer a measurement cannot be made, and its result says so.
func TestWithoutAMeasurerNoMeasurementCanBeMade(t *testing.T) {
	planner := plans(measuring(""), noopPlan)
	r := newRig(t, planner)
	r.apply("agent:1")
	r.addPolicy("p", "7", withCheck)
	r.queue.take()
	if err := r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the workload is enqueued", r.queue.take)
	if err := r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	sent := planner.asked[1].GetSnapshot().GetWorkload().GetDaemonSet().GetMeasurements()
	if len(sent) != 1 || sent[0].GetError() != "this executor makes no measurements" {
		t.Errorf("sent %v", sent)
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
