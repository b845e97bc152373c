package nodewise

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/analysis"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
)

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
	if request.Workload.GetName() != "agent" || string(request.Status) != `{"name":"agent","state":"Soaking","uid":"d1"}` || request.GetWebhook().GetUrl() != "https://checks" {
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
	if status := string(measurer.asked[0].Status); status != `{"name":"agent","state":"New","uid":"d1"}` {
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

func measurementOf(policy string, number uint32) *analysis.Request {
	return &analysis.Request{Measure: &nodewisev1.Measure{Id: &nodewisev1.MeasurementId{PolicyUid: policy, Number: number}}}
}

// A wrong service asks and never counts. The error counts as one of the check, so that the rollout waits.
func TestTheResultsOfAWorkloadHaveALimitedSize(t *testing.T) {
	const size = 64 << 10
	measurer, ended := &scriptedMeasurer{values: make(chan string)}, make(chan struct{})
	made := newMeasurements(measurer, func(types.NamespacedName) { ended <- struct{}{} })
	workload := &cluster.Workload{Key: key, UID: "d1"}
	for number := range uint32(100) {
		made.start(workload, measurementOf("p1", number))
		measurer.values <- strings.Repeat("x", size)
		<-ended
	}
	results, bytes, values := made.results(workload), 0, 0
	for _, result := range results {
		bytes += proto.Size(result)
		if result.GetValue() != "" {
			values++
		}
	}
	if len(results) != 100 || bytes > maxResultBytes+100*300 || values != maxResultBytes/size-1 {
		t.Errorf("%d results have %d bytes and %d values", len(results), bytes, values)
	}
	if err := results[99].GetError(); !strings.Contains(err, "at most 4194304 are held") {
		t.Errorf("got %q", err)
	}
	made.counted(key, results)
	made.start(workload, measurementOf("p1", 0))
	measurer.values <- "1"
	<-ended
	if results := made.results(workload); len(results) != 1 || results[0].GetValue() != "1" {
		t.Errorf("got %v", results)
	}
}

func TestWhatWasMeasuredForOtherPoliciesIsForgotten(t *testing.T) {
	measurer, ended := &scriptedMeasurer{values: make(chan string)}, make(chan struct{})
	made := newMeasurements(measurer, func(types.NamespacedName) { ended <- struct{}{} })
	workload := &cluster.Workload{Key: key, UID: "d1"}
	made.start(workload, measurementOf("p1", 0))
	measurer.values <- "1"
	<-ended
	made.start(workload, measurementOf("p2", 0))
	measurer.values <- "2"
	<-ended
	made.start(workload, measurementOf("p1", 1))
	testkit.Eventually(t, "the third call", func() bool { asked, _ := measurer.counts(); return asked == 3 })
	made.retain(key, []*cluster.Policy{{UID: "p1"}, {UID: "p2"}})
	if results := made.results(workload); len(results) != 2 {
		t.Errorf("got %v", results)
	}
	made.retain(key, []*cluster.Policy{{UID: "p2"}})
	if results := made.results(workload); len(results) != 1 || results[0].GetValue() != "2" {
		t.Errorf("got %v", results)
	}
	testkit.Eventually(t, "the third call has ended", func() bool { _, ended := measurer.counts(); return ended == 3 })
}

// A policy of another name or uid never counts them.
func TestMeasurementsEndWithTheirPolicy(t *testing.T) {
	heedingAnother := func(*nodewisev1.PlanRequest) *nodewisev1.Plan {
		return &nodewisev1.Plan{Verdict: nodewisev1.Verdict_VERDICT_NOOP, State: &nodewisev1.ReconcileState{}, RolloutPolicyUids: []string{"uid-q"}}
	}
	measurer := &scriptedMeasurer{}
	r := newRig(t, plans(measuring(""), heedingAnother), WithMeasurer(measurer))
	r.apply("agent:1")
	r.addPolicy("p", "7", withCheck)
	if err := r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the measurement is under way", func() bool { asked, _ := measurer.counts(); return asked == 1 })
	if err := r.feed(policies).Replace(nil, ""); err != nil {
		t.Fatal(err)
	}
	r.addPolicy("q", "8", withCheck)
	if err := r.Reconcile(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the measurement has ended", func() bool { _, ended := measurer.counts(); return ended == 1 })
}
