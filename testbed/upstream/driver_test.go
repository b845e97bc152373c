package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// old makes a pod one of an earlier revision.
var old = hashed("old")

// A rolling update deletes any one of four old pods. Enough syncs show all four outcomes.
func TestDistinctOutcomesAreToldOnce(t *testing.T) {
	f := fixture{
		nodes:  []*core.Node{newNode("a"), newNode("b"), newNode("c"), newNode("d")},
		pods:   []*core.Pod{newPod("a1", "a", old), newPod("b1", "b", old), newPod("c1", "c", old), newPod("d1", "d", old)},
		change: func(s *spec) { s.Revisions = []revisionSpec{newRevision(t, newDaemonSet(), "logs-"+hashMark, 1)} },
	}
	var deleted []string
	// The probability that 200 syncs miss one of the four is 10⁻²⁴.
	for _, outcome := range askAll(t, f.request(t, 200, orderGiven)) {
		for _, call := range outcome.Calls {
			if call.Op == "delete-pod" {
				deleted = append(deleted, call.Name)
			}
		}
	}
	slices.Sort(deleted)
	if want := []string{"a1", "b1", "c1", "d1"}; !slices.Equal(deleted, want) {
		t.Errorf("deleted in turn %q, want %q", deleted, want)
	}
}

// Each create fails, and the errors occur in any order.
func TestErrorsThatDifferInOrderAreTheSame(t *testing.T) {
	f := fixture{
		pods: []*core.Pod{
			newPod("a1", "", func(p *core.Pod) { p.Spec.Affinity = targeting("a") }),
			newPod("b1", "", func(p *core.Pod) { p.Spec.Affinity = targeting("b") }),
			newPod("c1", "", func(p *core.Pod) { p.Spec.Affinity = targeting("c") }),
		},
		change: func(s *spec) {
			for _, pod := range []string{"a1", "b1", "c1"} {
				s.Faults = append(s.Faults, fault{Op: "delete-pod", Name: pod, Code: 500, Reason: "Because" + pod})
			}
		},
	}
	outcomes := askAll(t, f.request(t, 50, orderGiven))
	if len(outcomes) != 1 || !strings.Contains(outcomes[0].Error, "Becausea1") {
		t.Errorf("%d outcomes, the first with the error %q", len(outcomes), outcomes[0].Error)
	}
}

// Pods are created and deleted concurrently, all other writes are sequential.
func TestSequence(t *testing.T) {
	outdated := newDaemonSet(func(ds *apps.DaemonSet) { ds.Spec.Template.Spec.Containers[0].Image = "logs:0" })
	f := fixture{
		nodes: []*core.Node{newNode("a"), newNode("b"), newNode("c"), newNode("d")},
		pods: []*core.Pod{
			newPod("a1", "a", failed), newPod("b1", "b", failed), newPod("c1", "c", orphaned),
		},
		change: func(s *spec) {
			s.Revisions = []revisionSpec{newRevision(t, outdated, "logs-old", 1)}
			limit := newDaemonSet(func(ds *apps.DaemonSet) { ds.Spec.RevisionHistoryLimit = ptr.To[int32](0) })
			s.DaemonSets = encodedAll(t, []*apps.DaemonSet{limit})
		},
	}
	want := []string{"create-revision", "adopt-pod", "pods", "delete-revision", "update-status"}
	if got := ask(t, f).Sequence; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Upstream prints the addresses of two numbers instead of the numbers.
func TestAddressesAreNoDifference(t *testing.T) {
	f := fixture{change: func(s *spec) {
		outdated := newDaemonSet(func(ds *apps.DaemonSet) { ds.Spec.Template.Spec.Containers[0].Image = "logs:0" })
		s.Live.Revisions = []revisionSpec{newRevision(t, outdated, "logs-"+hashMark, 1)}
		s.Live.Subject = encoded(t, newDaemonSet(func(ds *apps.DaemonSet) { ds.Status.CollisionCount = ptr.To[int32](3) }))
	}}
	outcomes := askAll(t, f.request(t, 20, orderShuffled))
	if len(outcomes) != 1 || !strings.Contains(outcomes[0].Error, "stale collision count") {
		t.Errorf("%d outcomes, the first with the error %q", len(outcomes), outcomes[0].Error)
	}
}

// The given order is kept, and random orders cover all others.
func TestOrderOfCaches(t *testing.T) {
	pods := []*core.Pod{newPod("p3", "a"), newPod("p1", "a"), newPod("p2", "a")}
	listed := func(chance *rand.Rand) (names []string) {
		caches := newCaches(&cluster{pods: pods}, chance)
		found, err := caches.pods.indexer.Index("namespace", pods[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range found {
			names = append(names, pod.(*core.Pod).Name)
		}
		return names
	}
	if got := listed(nil); !slices.Equal(got, []string{"p3", "p1", "p2"}) {
		t.Errorf("as given: %q", got)
	}
	seen := map[string]bool{}
	for seed := range uint64(100) {
		first := listed(rand.New(rand.NewPCG(7, seed)))
		if again := listed(rand.New(rand.NewPCG(7, seed))); !slices.Equal(first, again) {
			t.Errorf("the same chance: %q, then %q", first, again)
		}
		seen[fmt.Sprint(first)] = true
	}
	if len(seen) != 6 {
		t.Errorf("%d of 6 orders", len(seen))
	}
}

// Runs share the objects of a case, so a sync must not modify them.
func TestASyncLeavesItsCaseAlone(t *testing.T) {
	f := fixture{
		ds:    newDaemonSet(surging),
		nodes: []*core.Node{newNode("a"), newNode("b")},
		pods:  []*core.Pod{newPod("a1", "a", old), newPod("b1", "b", orphaned), newPod("b2", "b", failed)},
	}
	line := f.request(t, 1, orderGiven)
	_, used, err := readRequest(line)
	if err != nil {
		t.Fatal(err)
	}
	_, fresh, err := readRequest(line)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := testDriver(t).sync(used, nil); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(used, fresh) {
		t.Errorf("the case is now\n%+v\nand was\n%+v", used, fresh)
	}
}

func TestNothingKeepsRunning(t *testing.T) {
	driver := testDriver(t)
	line := fixture{nodes: []*core.Node{newNode("a")}}.request(t, 50, orderGiven)
	if _, err := driver.outcomes(line); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for runtime.NumGoroutine() > 20 {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines are left", runtime.NumGoroutine())
		}
		runtime.Gosched()
	}
}

func TestRefusals(t *testing.T) {
	request := func(change func(*spec)) []byte { return fixture{change: change}.request(t, 1, orderGiven) }
	tests := []struct {
		name string
		line []byte
		want string
	}{
		{"no JSON", []byte("{"), "unexpected EOF"},
		{"an unknown member", []byte(`{"case":{"podz":[]}}`), `unknown field "podz"`},
		{"an unknown order", []byte(`{"case":{},"order":"any"}`), `order: "any"`},
		{"no runs", []byte(`{"case":{},"runs":0}`), "runs: 0"},
		{"no DaemonSet", request(func(s *spec) { s.DaemonSets = nil }), "daemonSets: there is none"},
		{"no object", request(func(s *spec) { s.Nodes = []json.RawMessage{[]byte("3")} }), "nodes[0]: "},
		{
			"two of a name", request(func(s *spec) { s.Pods = encodedAll(t, []*core.Pod{newPod("a1", "a"), newPod("a1", "b")}) }),
			"pods[1]: there is another default/a1",
		},
		{"an unknown gate", request(func(s *spec) { s.FeatureGates = []string{"Fairness"} }), `featureGates: there is no "Fairness"`},
		{"an unknown operation", request(func(s *spec) { s.Faults = []fault{{Op: "eat", Code: 500}} }), `faults[0].op: "eat"`},
		{"a fault that is none", request(func(s *spec) { s.Faults = []fault{{Op: "get-pod", Code: 200}} }), "faults[0].code: 200"},
		{"an impossible delay", request(func(s *spec) { s.Backoff = []backoffEntry{{DelaySeconds: 3}} }), "backoff[0].delaySeconds: 3"},
		{"what cannot be gone", request(func(s *spec) { s.Live.Gone = []string{"nodes/a"} }), `live.gone[0]: "nodes/a"`},
		{"data that is none", request(func(s *spec) {
			s.Revisions = []revisionSpec{{Object: encoded(t, newNode("r")), Data: "{"}}
		}), "revisions[0].data: "},
		{"a template with its own hash", request(func(s *spec) {
			ds := newDaemonSet(func(ds *apps.DaemonSet) { ds.Spec.Template.Annotations = map[string]string{"hash": hashMark} })
			s.DaemonSets = encodedAll(t, []*apps.DaemonSet{ds})
		}), "cannot contain its own hash"},
	}
	driver := testDriver(t)
	for _, test := range tests {
		t.Run(strings.ReplaceAll(test.name, " ", "_"), func(t *testing.T) {
			if outcomes, err := driver.outcomes(test.line); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s and the error %v, want %q", outcomes, err, test.want)
			}
		})
	}
}

// A rejected request gets a response, and the next request is served.
func TestServe(t *testing.T) {
	good := fixture{}.request(t, 1, orderGiven)
	input := slices.Concat(good, []byte("\n{\n\n"), good)
	var output bytes.Buffer
	if err := serve(bytes.NewReader(input), &output); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(output.String()), "\n")
	if len(lines) != 3 || lines[0] != lines[2] || !strings.HasPrefix(lines[1], `{"refused":`) {
		t.Errorf("answers:\n%s", output.String())
	}
}

// Each delay that a case can have is reached by a number of failures.
func TestBackoffIsToldAsItWasGiven(t *testing.T) {
	for _, delay := range []int64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900} {
		want := backoffEntry{ObservedGeneration: 3, Node: "a", DelaySeconds: delay, Last: now.Add(-time.Minute)}
		got := ask(t, fixture{change: func(s *spec) { s.Backoff = []backoffEntry{want} }}).Backoff
		if len(got) != 1 || got[0].compare(want) != 0 {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestAnUnknownFieldIsToldApart(t *testing.T) {
	type changed struct{ queue int }
	if _, err := field[string](&changed{}, "queues"); err == nil || !strings.Contains(err.Error(), `has no field "queues"`) {
		t.Errorf("a missing field: %v", err)
	}
	if _, err := field[string](&changed{}, "queue"); err == nil || !strings.Contains(err.Error(), "is a int, not a string") {
		t.Errorf("another type: %v", err)
	}
	value := &changed{}
	if err := errors.Join(setField(value, "queue", 3)); err != nil || value.queue != 3 {
		t.Errorf("set to %d, error %v", value.queue, err)
	}
}

// Every function in the sync path of a kind exists.
func TestSyncPath(t *testing.T) {
	source, err := kubernetesSource()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		for file, names := range kind.syncPath {
			extents, err := functionExtents(source + "/" + file)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				if _, ok := extents[name]; !ok {
					t.Errorf("%s has no %s", file, name)
				}
			}
		}
	}
}

func targeting(node string) *core.Affinity {
	return &core.Affinity{NodeAffinity: &core.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &core.NodeSelector{NodeSelectorTerms: []core.NodeSelectorTerm{{
			MatchFields: []core.NodeSelectorRequirement{{Key: "metadata.name", Operator: core.NodeSelectorOpIn, Values: []string{node}}},
		}}},
	}}
}

// A rolling update in a small cluster, one sync per iteration.
func BenchmarkCase(b *testing.B) {
	var nodes []*core.Node
	var pods []*core.Pod
	for i := range 8 {
		nodes = append(nodes, newNode(fmt.Sprint("n", i)))
		if i%2 == 0 {
			pods = append(pods, newPod(fmt.Sprint("p", i), nodes[i].Name, old))
		}
	}
	ds := newDaemonSet(func(ds *apps.DaemonSet) {
		ds.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromString("50%"))
	})
	line := fixture{ds: ds, nodes: nodes, pods: pods}.request(b, 1, orderShuffled)
	driver := testDriver(b)
	for b.Loop() {
		if _, err := driver.outcomes(line); err != nil {
			b.Fatal(err)
		}
	}
}
