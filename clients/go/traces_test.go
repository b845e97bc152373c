package nodewise

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"k8s.io/klog/v2"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
)

const (
	planSpan   = "nodewise.v1.ReconcileService/Plan"
	reportSpan = "nodewise.v1.ReconcileService/Report"
	createSpan = "POST /api/v1/namespaces/{namespace}/pods"
	statusSpan = "PUT /apis/apps/v1/namespaces/{namespace}/daemonsets/{name}/status"
)

func updateStatus() *nodewisev1.Action {
	return &nodewisev1.Action{Id: 99, Kind: &nodewisev1.Action_UpdateStatus{
		UpdateStatus: &nodewisev1.UpdateStatus{Status: &nodewisev1.DaemonSetStatus{ObservedGeneration: 1}},
	}}
}

func deletePod(name string) *nodewisev1.Action {
	return &nodewisev1.Action{Id: 98, Kind: &nodewisev1.Action_DeletePod{
		DeletePod: &nodewisev1.DeletePod{Pod: &nodewisev1.ObjectReference{Name: name, Uid: "u"}, UidPrecondition: true},
	}}
}

// creates answers each create of a pod, and records the trace contexts.
func (p *parents) creates(w http.ResponseWriter, r *http.Request) {
	p.add(r.Header.Get("traceparent"))
	_, _ = fmt.Fprint(w, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"10"}}`)
}

// One reconcile is one trace: the names, kinds, parents and attributes of all spans.
func TestTheTraceOfAReconcile(t *testing.T) {
	plan := creating(podNamed("a"), podNamed("b"))
	plan.Phases = append(plan.Phases,
		&nodewisev1.Phase{Kind: nodewisev1.PhaseKind_PHASE_KIND_DELETES, Batches: []*nodewisev1.Batch{{
			Actions: []*nodewisev1.Action{deletePod("old")},
		}}},
		&nodewisev1.Phase{Kind: nodewisev1.PhaseKind_PHASE_KIND_STATUS, Batches: []*nodewisev1.Batch{{
			Actions: []*nodewisev1.Action{updateStatus()},
		}}})
	spans, sent := collect(t), &parents{}
	r := started(t, &apiserver{creates: sent.creates}, serve(t, plan, spans), WithTracerProvider(spans))
	showFor(r.controllers[0], plan)
	// A trace in the context of the caller is not continued.
	ctx, _ := spans.Tracer("test").Start(t.Context(), "another")
	if err := r.Reconcile(ctx, key); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"reconcile internal", "\tsnapshot internal",
		// The replica is asked once whether it reads shared labels. The snapshot is made again, with them.
		"\tnodewise.v1.ReconcileService/GetCapabilities client", "\tsnapshot internal", "\t" + planSpan + " client",
		// The caches do not show the pod that is deleted.
		"\tGET /api/v1/namespaces/{namespace}/pods/{name} client", "\tapply internal",
		"\t\tbatch internal", "\t\t\t" + createSpan + " client", "\t\t\t" + createSpan + " client",
		"\t\tbatch internal", "\t\t\tDELETE /api/v1/namespaces/{namespace}/pods/{name} client",
		"\t\tbatch internal", "\t\t\t" + statusSpan + " client", "\t" + reportSpan + " client", "",
	}, "\n")
	if diff := cmp.Diff(want, spans.tree()); diff != "" {
		t.Fatal(diff)
	}
	root := spans.one("reconcile")
	for _, span := range spans.ended.Ended() {
		if span.SpanContext().TraceID() != root.SpanContext().TraceID() {
			t.Errorf("%s is of another trace", span.Name())
		}
		if span.Status().Code != codes.Unset {
			t.Errorf("%s has the status %v", span.Name(), span.Status())
		}
	}
	requireTold(t, root, map[string]any{
		"k8s.namespace.name": "ns", "k8s.daemonset.name": "agent", "k8s.daemonset.uid": "d1",
		"nodewise.reconcile.outcome": "settled", "nodewise.queue.duration": above(0),
	})
	for _, snapshot := range spans.all("snapshot") {
		requireTold(t, snapshot, map[string]any{})
	}
	service := map[string]any{
		"rpc.system.name": "grpc", "rpc.method": reportSpan, "rpc.response.status_code": "OK",
		"server.address": "127.0.0.1", "server.port": above(0),
	}
	requireTold(t, spans.one(reportSpan), service)
	service["rpc.method"], service["nodewise.request.bytes"] = planSpan, above(100)
	service["nodewise.plan.actions"], service["nodewise.plan.verdict"] = int64(4), "APPLY"
	requireTold(t, spans.one(planSpan), service)
	requireTold(t, spans.one("apply"), map[string]any{
		"nodewise.plan.id": "p", "nodewise.apply.actions": int64(4), "nodewise.apply.failed": int64(0), "nodewise.apply.batches": int64(3),
	})
	batches := spans.all("batch")
	for i, want := range []struct {
		phase, kind string
		count       int64
	}{{"CREATES", "create_pod", 2}, {"DELETES", "delete_pod", 1}, {"STATUS", "update_status", 1}} {
		requireTold(t, batches[i], map[string]any{
			"nodewise.phase": want.phase, "nodewise.batch.actions": want.count, "nodewise.batch." + want.kind: want.count,
			"nodewise.batch.succeeded": want.count, "nodewise.batch.failed": int64(0),
		})
	}
	at, err := url.Parse(r.rest.Host)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseInt(at.Port(), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	call := func(method, template, path string) map[string]any {
		return map[string]any{
			"http.request.method": method, "url.template": template, "url.full": r.rest.Host + path,
			"server.address": "127.0.0.1", "server.port": port, "http.response.status_code": int64(200), "k8s.namespace.name": "ns",
		}
	}
	_, template, _ := strings.Cut(statusSpan, " ")
	requireTold(t, spans.one(statusSpan),
		call("PUT", template, "/apis/apps/v1/namespaces/ns/daemonsets/agent/status?fieldManager=nodewise-go"))
	remove := call("DELETE", "/api/v1/namespaces/{namespace}/pods/{name}", "/api/v1/namespaces/ns/pods/old")
	remove["k8s.pod.name"] = "old"
	requireTold(t, spans.one("DELETE /api/v1/namespaces/{namespace}/pods/{name}"), remove)
	var below []string
	create := call("POST", "/api/v1/namespaces/{namespace}/pods", "/api/v1/namespaces/ns/pods?fieldManager=nodewise-go")
	// This apiserver calls every generated pod a.
	create["k8s.pod.name"] = "a"
	for _, span := range spans.all(createSpan) {
		requireTold(t, span, create)
		below = append(below, traceparent(span.SpanContext()))
	}
	if slices.Sort(below); !slices.Equal(sent.sorted(), below) || !strings.HasSuffix(below[0], "-01") {
		t.Errorf("the apiserver was sent %v, want %v", sent.sorted(), below)
	}
	events := root.Events()
	if len(events) != 1 || events[0].Name != "trigger" || !events[0].Time.Before(root.StartTime()) {
		t.Fatalf("it tells of %v", events)
	}
	if diff := cmp.Diff(map[string]any{
		"nodewise.trigger.resource": "daemonsets", "nodewise.trigger.name": "ns/agent",
	}, told(events[0].Attributes)); diff != "" {
		t.Error(diff)
	}
}

// above is a number that is larger than this.
type above float64

func requireTold(t *testing.T, span sdktrace.ReadOnlySpan, want map[string]any) {
	t.Helper()
	got := told(span.Attributes())
	for name, value := range want {
		least, isLeast := value.(above)
		if !isLeast {
			continue
		}
		number, err := strconv.ParseFloat(fmt.Sprint(got[name]), 64)
		if err != nil || number <= float64(least) {
			t.Errorf("%s tells %s: %v", span.Name(), name, got[name])
		}
		got[name] = value
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", span.Name(), diff)
	}
}

// A failed call has its error in its span, and so have its batch, its plan and the reconcile. Actions that are not begun have no span.
func TestTheTraceOfAFailedCall(t *testing.T) {
	for kind, test := range map[string]struct {
		creates http.HandlerFunc
		status  any
		says    string
	}{
		"403": {status: int64(403), says: "a quota", creates: func(w http.ResponseWriter, _ *http.Request) {
			testkit.Refuse(w, http.StatusForbidden, "Forbidden", "a quota")
		}},
		"503": {status: int64(503), says: "the server is currently unable to handle the request", creates: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}},
		"connection": {says: "EOF", creates: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		"timeout":    {says: "deadline exceeded", creates: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }},
	} {
		t.Run(kind, func(t *testing.T) {
			plan := creating(podNamed("a"))
			skipped := &nodewisev1.Batch{Actions: []*nodewisev1.Action{createPod(podNamed("b"), nodeOf(podNamed("b")))}}
			plan.Phases[0].Batches = append(plan.Phases[0].Batches, skipped)
			spans := collect(t)
			options := []Option{WithTracerProvider(spans)}
			if kind == "timeout" {
				options = append(options, WithCallTimeout(50*time.Millisecond))
			}
			r := started(t, &apiserver{creates: test.creates}, serve(t, plan, spans), options...)
			showFor(r.controllers[0], plan)
			if err := r.Reconcile(t.Context(), key); err == nil {
				t.Fatal("it was taken for done")
			}
			call := spans.one(createSpan)
			got := told(call.Attributes())
			if got["error.type"] != kind || got["http.response.status_code"] != test.status || got["k8s.pod.name"] != podNamed("a") {
				t.Errorf("it tells %v", got)
			}
			if said := call.Status(); said.Code != codes.Error || !strings.Contains(said.Description, test.says) {
				t.Errorf("it says %v", said)
			}
			batch := told(spans.one("batch").Attributes())
			if batch["nodewise.batch.failed"] != int64(1) || batch["nodewise.batch.succeeded"] != int64(0) {
				t.Errorf("the batch tells %v", batch)
			}
			requireTold(t, spans.one("apply"), map[string]any{
				"nodewise.plan.id": "p", "nodewise.apply.actions": int64(2), "nodewise.apply.failed": int64(1), "nodewise.apply.batches": int64(1),
			})
			root := spans.one("reconcile")
			if said := root.Status(); said.Code != codes.Error || !strings.Contains(said.Description, "of 2 actions were done, 1 failed") {
				t.Errorf("the reconcile says %v", said)
			}
			if got := told(root.Attributes())["nodewise.reconcile.outcome"]; got != "failed" {
				t.Errorf("the outcome is %v", got)
			}
		})
	}
}

// A batch with more calls than the limit has one span for all of them, and the apiserver records none.
func TestLargeBatchesHaveOneSpan(t *testing.T) {
	for _, test := range []struct {
		actions int
		options []Option
		want    int
	}{
		{actions: 32, want: 32},
		{actions: 33, want: 0},
		{actions: 2, options: []Option{WithMaxTracedCalls(2)}, want: 2},
		{actions: 3, options: []Option{WithMaxTracedCalls(2)}, want: 0},
		{actions: 1, options: []Option{WithMaxTracedCalls(0)}, want: 0},
	} {
		var pods []string
		for i := range test.actions {
			pods = append(pods, podNamed(fmt.Sprint("p", i)))
		}
		spans, sent := collect(t), &parents{}
		options := append([]Option{WithTracerProvider(spans)}, test.options...)
		plan := creating(pods...)
		r := started(t, &apiserver{creates: sent.creates}, serve(t, plan, spans), options...)
		showFor(r.controllers[0], plan)
		if err := r.Reconcile(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if got := len(spans.all(createSpan)); got != test.want {
			t.Errorf("%d calls have %d spans", test.actions, got)
		}
		batch := spans.one("batch")
		if got := told(batch.Attributes())["nodewise.batch.create_pod"]; got != int64(test.actions) {
			t.Errorf("the batch tells of %v", got)
		}
		if test.want > 0 {
			continue
		}
		unsampled := strings.TrimSuffix(traceparent(batch.SpanContext()), "-01") + "-00"
		if !slices.Equal(slices.Compact(sent.sorted()), []string{unsampled}) {
			t.Errorf("the apiserver was sent %v, want %s", sent.sorted(), unsampled)
		}
	}
}

// A trace that is not sampled is sent to the apiserver as not sampled. Without an SDK nothing is sent or logged.
func TestWhatIsNotSampledAndWithoutAnSDK(t *testing.T) {
	for name, test := range map[string]struct {
		options []Option
		suffix  string
	}{
		"not sampled": {options: []Option{WithTracerProvider(collect(t, sdktrace.WithSampler(sdktrace.NeverSample())))}, suffix: "-00"},
		"without":     {suffix: ""},
	} {
		t.Run(name, func(t *testing.T) {
			sent, lines := &parents{}, &parents{}
			planner := &scripted{plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) { return creating(podNamed("a")), nil }}
			r := started(t, &apiserver{creates: sent.creates}, planner, test.options...)
			showFor(r.controllers[0], creating(podNamed("a")))
			log := funcr.New(func(_, line string) { lines.add(line) }, funcr.Options{Verbosity: 9})
			if err := r.Reconcile(klog.NewContext(t.Context(), log), key); err != nil {
				t.Fatal(err)
			}
			got := sent.sorted()
			if len(got) != 1 || !strings.HasSuffix(got[0], test.suffix) || (got[0] == "") != (test.suffix == "") {
				t.Errorf("the apiserver was sent %q", got)
			}
			if test.suffix == "" && strings.Contains(fmt.Sprint(lines.sorted()), "trace_id") {
				t.Errorf("it logged %v", lines.sorted())
			}
			if len(r.controllers[0].state.traced) != 0 {
				t.Error("it remembers a reconcile that nobody recorded")
			}
		})
	}
}

// The span of a reconcile has the outcome. Only a failure sets the status to an error.
func TestTheOutcomeOfAReconcile(t *testing.T) {
	spans, planner := collect(t), &scripted{}
	r := newRig(t, planner, WithTracerProvider(spans))
	r.apply("agent:1")
	for _, step := range []struct {
		plan   *nodewisev1.Plan
		err    error
		behind bool
		want   outcome
		says   string
	}{
		{plan: &nodewisev1.Plan{Verdict: nodewisev1.Verdict_VERDICT_NOOP}, want: settled},
		{err: &planclient.UnreachableError{Reason: "away"}, want: unreachable},
		{err: &planclient.RefusedError{Reason: "it is wrong"}, want: failed, says: "it is wrong"},
		{err: errors.New("broken"), want: failed, says: "broken"},
		{plan: &nodewisev1.Plan{Verdict: nodewisev1.Verdict_VERDICT_STALE}, want: failed, says: "the plan is stale"},
		{behind: true, want: behind},
	} {
		planner.plan = func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) { return step.plan, step.err }
		if step.behind {
			r.state.gate.Record(key, "d1", cluster.Pods, "999")
		}
		_ = r.Reconcile(t.Context(), key)
		span := spans.last()
		if got := told(span.Attributes())["nodewise.reconcile.outcome"]; got != string(step.want) {
			t.Errorf("got %v, want %s", got, step.want)
		}
		said := span.Status()
		if (said.Code == codes.Error) != (step.want == failed) || !strings.Contains(said.Description, step.says) {
			t.Errorf("%s: it says %v", step.want, said)
		}
	}
	if len(spans.all("apply")) > 0 {
		t.Errorf("plans without actions were applied:\n%s", spans.tree())
	}
}

// Every log line of a reconcile has the ids of its span.
func TestLogLinesNameTheSpan(t *testing.T) {
	lines, spans := &parents{}, collect(t)
	ctx := klog.NewContext(t.Context(), funcr.New(func(_, line string) { lines.add(line) }, funcr.Options{Verbosity: 9}))
	planner := &scripted{plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		plan := creating(podNamed("a"))
		plan.Error = "it went wrong"
		return plan, nil
	}}
	r := newRig(t, planner, WithTracerProvider(spans))
	r.writer = write.NewObserver(r.cluster)
	r.apply("agent:1")
	queue := newWorkQueue("test", 1)
	defer queue.ShutDown()
	r.workOn(ctx, ctx, queue, key)
	planner.plan = func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		return nil, &planclient.UnreachableError{Reason: "away"}
	}
	r.workOn(ctx, ctx, queue, key)
	logged := lines.sorted()
	for i, span := range spans.all("reconcile") {
		of := span.SpanContext()
		about := [][]string{{"Would create", "Would emit an event", "Trying again"}, {"Nothing could be done"}}[i]
		for _, line := range about {
			names := fmt.Sprintf(`"trace_id"=%q "span_id"=%q`, of.TraceID(), of.SpanID())
			if !slices.ContainsFunc(logged, func(got string) bool {
				return strings.Contains(got, line) && strings.Contains(got, names)
			}) {
				t.Errorf("no line has %q and %s: %v", line, names, logged)
			}
		}
	}
	if slices.ContainsFunc(logged, func(line string) bool { return !strings.Contains(line, "trace_id") }) {
		t.Errorf("a line names none: %v", logged)
	}
}
