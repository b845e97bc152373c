package nodewise

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
)

// The waiting time of a workload begins when it can be taken from the queue. Of several delays the shortest counts.
func TestWaitsAreMeasured(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(100, 0))
	w := newEnqueuer(0, clock)
	w.start(&recorded{})
	step := func(by time.Duration) { clock.SetTime(clock.Now().Add(by)) }
	expect := func(when string, want time.Duration) {
		t.Helper()
		switch got := w.takeReasons(key).waited; {
		case want < 0 && got != nil:
			t.Errorf("%s: waited %s", when, *got)
		case want >= 0 && (got == nil || *got != want):
			t.Errorf("%s: waited %v, want %s", when, got, want)
		}
	}
	expect("put in by somebody else", -1)
	w.enqueue(key)
	step(time.Second)
	w.enqueue(key)
	step(time.Second)
	expect("woken twice", 2*time.Second)
	expect("taken already", -1)
	w.enqueueAfter(key, time.Minute)
	w.enqueueAfter(key, 5*time.Second)
	step(time.Second)
	expect("before it is due", -1)
	step(6 * time.Second)
	expect("delayed", 2*time.Second)
	w.enqueueAfter(key, 5*time.Second)
	step(6 * time.Second)
	w.enqueueAfter(key, time.Hour)
	w.enqueue(key)
	step(time.Second)
	expect("due and woken", 2*time.Second)
	step(time.Hour + 3*time.Second)
	expect("the long delay", 4*time.Second)
	if len(w.causes) != 0 {
		t.Errorf("%v is kept", w.causes)
	}
}

// links are the span contexts that a span is linked to for this reason.
func links(span sdktrace.ReadOnlySpan, why string) []trace.SpanID {
	var linked []trace.SpanID
	for _, link := range span.Links() {
		if told(link.Attributes)["nodewise.link"] == why {
			linked = append(linked, link.SpanContext.SpanID())
		}
	}
	return linked
}

// A reconcile is linked to the previous one of the same workload and generation.
func TestReconcilesAreLinkedToThoseBefore(t *testing.T) {
	spans := collect(t)
	r := newRig(t, &scripted{plan: noop}, WithTracerProvider(spans))
	var before trace.SpanID
	for i, step := range []struct {
		what   string
		change func()
		linked bool
	}{
		{what: "the first", change: func() { r.apply("agent:1") }},
		{what: "the same generation", change: func() {}, linked: true},
		{what: "another generation", change: func() { r.apply("agent:2") }},
		{what: "that generation", change: func() {}, linked: true},
		{what: "another of that name", change: func() {
			object := r.cluster.objects[write.Key{Resource: cluster.DaemonSets, Namespace: key.Namespace, Name: key.Name}]
			object["metadata"].(map[string]any)["uid"] = "d2"
			r.apply("agent:3")
			object["metadata"].(map[string]any)["generation"] = 2.0
		}},
	} {
		step.change()
		if err := r.Reconcile(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		span := spans.last()
		if len(spans.all("reconcile")) != i+1 {
			t.Fatal(spans.tree())
		}
		var want []trace.SpanID
		if step.linked {
			want = []trace.SpanID{before}
		}
		if got := links(span, "previous"); !slices.Equal(got, want) {
			t.Errorf("%s: linked to %v, want %v", step.what, got, want)
		}
		before = span.SpanContext().SpanID()
	}
}

func annotated(i int) map[string]string {
	return map[string]string{convert.TraceparentAnnotation: fmt.Sprintf("00-%032x-%016x-01", i, i)}
}

func spanID(i byte) trace.SpanID { return trace.SpanID{7: i} }

// The events that enqueued a workload are in the span, with the time at which the watch showed them, and linked to their traces. There are at
// most eight of each.
func TestTriggersAreToldAndLinked(t *testing.T) {
	spans := collect(t)
	r := newRig(t, &scripted{plan: noop}, WithTracerProvider(spans), WithCooldown(0))
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	r.enqueuer.clock = clock
	r.apply("agent:1")
	look := func() sdktrace.ReadOnlySpan {
		t.Helper()
		if err := r.Reconcile(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		return spans.last()
	}
	triggers := func(span sdktrace.ReadOnlySpan) (lines []string) {
		for _, event := range span.Events() {
			attributes := told(event.Attributes)
			lines = append(lines, fmt.Sprint(event.Time.Unix(), " ", event.Name, " ",
				attributes["nodewise.trigger.resource"], " ", attributes["nodewise.trigger.name"]))
		}
		return lines
	}
	look()
	yes := true
	pod := func(name string, annotations map[string]string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: "u", ResourceVersion: r.cluster.next(), Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", UID: "d1", Controller: &yes}},
		}}
	}
	add := func(name string, annotations map[string]string) {
		t.Helper()
		slim, err := convert.SlimPod(pod(name, annotations))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.feed(pods).Add(slim); err != nil {
			t.Fatal(err)
		}
	}
	add("a", annotated(1))
	clock.SetTime(time.Unix(1001, 0))
	add("b", nil)
	add("c", map[string]string{convert.TraceparentAnnotation: "nonsense"})
	add("d", annotated(1))
	clock.SetTime(time.Unix(1002, 0))
	r.addNodes("n1")
	clock.SetTime(time.Unix(1003, 0))
	if err := r.feed(pods).Delete(pod("a", annotated(2))); err != nil {
		t.Fatal(err)
	}
	span := look()
	if diff := cmp.Diff([]string{
		"1000 trigger pods ns/a", "1001 trigger pods ns/b", "1001 trigger pods ns/c", "1001 trigger pods ns/d",
		"1002 trigger nodes n1", "1003 trigger pods ns/a",
	}, triggers(span)); diff != "" {
		t.Error(diff)
	}
	if got := links(span, "trigger"); !slices.Equal(got, []trace.SpanID{spanID(1), spanID(2)}) {
		t.Errorf("linked to %v", got)
	}
	if got := told(span.Attributes())["nodewise.queue.duration"]; got != 3.0 {
		t.Errorf("it waited for %v seconds", got)
	}
	// Each trace is linked once, and no more than eight are. The trace of the DaemonSet itself is always linked.
	object := r.cluster.objects[write.Key{Resource: cluster.DaemonSets, Namespace: key.Namespace, Name: key.Name}]
	object["metadata"].(map[string]any)["annotations"] = map[string]any{
		convert.TraceparentAnnotation: annotated(99)[convert.TraceparentAnnotation],
	}
	r.apply("agent:2")
	if got := look(); len(triggers(got)) != 1 || !slices.Equal(links(got, "trigger"), []trace.SpanID{spanID(99)}) {
		t.Errorf("it tells of %v, linked to %v", triggers(got), links(got, "trigger"))
	}
	for i := range 10 {
		add(fmt.Sprint("p", i), annotated(10+i))
	}
	span = look()
	if got := triggers(span); len(got) != 8 || !strings.HasSuffix(got[7], "ns/p7") {
		t.Errorf("it tells of %v", got)
	}
	if got := links(span, "trigger"); len(got) != 8 || got[0] != spanID(99) || got[7] != spanID(16) {
		t.Errorf("linked to %v", got)
	}
	if got := look(); len(triggers(got)) != 0 || !slices.Equal(links(got, "trigger"), []trace.SpanID{spanID(99)}) {
		t.Errorf("it tells of %v again", triggers(got))
	}
}

// With the option created pods carry the trace context of their batch, and reconciles that their events cause are linked to it. Other
// annotations stay.
func TestPodsCarryTheTraceThatCreatedThem(t *testing.T) {
	for _, isOn := range []bool{false, true} {
		spans, planner := collect(t), &scripted{}
		planner.plan = func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
			if len(planner.asked) > 1 {
				return noop(request)
			}
			plan := creating(podNamed("a"), podNamed("b"), podNamed("c"))
			plan.PodManifest = []byte(strings.Replace(string(plan.GetPodManifest()), `"metadata": {`, `"metadata": {"annotations": {"x": "y"},`, 1))
			return plan, nil
		}
		options := []Option{WithTracerProvider(spans), WithMaxTracedCalls(2)}
		if isOn {
			options = append(options, WithTraceparentAnnotation())
		}
		r := newRig(t, planner, options...)
		r.apply("agent:1")
		r.annotateTemplate("x", "y")
		for range 2 {
			if err := r.Reconcile(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
		// The batch is sampled, although its calls have no spans.
		batch := spans.one("batch").SpanContext()
		want := map[string]string{"x": "y"}
		if isOn {
			want[convert.TraceparentAnnotation] = traceparent(batch)
		}
		pods := r.cluster.pods()
		if len(pods) != 3 {
			t.Fatalf("there are %d pods", len(pods))
		}
		for _, pod := range pods {
			if diff := cmp.Diff(want, pod.Annotations); diff != "" {
				t.Error(diff)
			}
		}
		linked := links(spans.last(), "trigger")
		if isOn && !slices.Equal(linked, []trace.SpanID{batch.SpanID()}) || !isOn && linked != nil {
			t.Errorf("the next is linked to %v", linked)
		}
	}
}
