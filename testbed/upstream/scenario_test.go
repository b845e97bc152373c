package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// Upstream's behaviour in known scenarios. If this program reports something else, it is wrong.
func TestScenarios(t *testing.T) {
	current := func(t *testing.T, ds *apps.DaemonSet) []revisionSpec {
		return []revisionSpec{newRevision(t, ds, "logs-"+hashMark, 1)}
	}
	outdated := newDaemonSet(func(ds *apps.DaemonSet) { ds.Spec.Template.Spec.Containers[0].Image = "logs:0" })
	noSchedule := core.Taint{Key: "dedicated", Value: "2", Effect: core.TaintEffectNoSchedule}
	tests := []struct {
		name    string
		fixture fixture
		want    []string
	}{
		{
			"five nodes, no pods",
			fixture{nodes: []*core.Node{newNode("a"), newNode("b"), newNode("c"), newNode("d"), newNode("e")}},
			[]string{
				"create-pod a", "create-pod b", "create-pod c", "create-pod d", "create-pod e", "create-revision logs-@hash as 1",
				"event SuccessfulCreate", "event SuccessfulCreate", "event SuccessfulCreate", "event SuccessfulCreate",
				"event SuccessfulCreate", "expects 5, 0",
				"update-status logs of 1: desired 5 current 0 misscheduled 0 ready 0 updated 0",
			},
		},
		{
			"no nodes",
			fixture{change: func(s *spec) { s.Revisions = current(t, newDaemonSet()) }},
			[]string{"update-status logs of 1: desired 0 current 0 misscheduled 0 ready 0 updated 0"},
		},
		{
			"an untolerated NoSchedule taint under a running pod",
			fixture{
				nodes:  []*core.Node{newNode("a", noSchedule)},
				pods:   []*core.Pod{newPod("a1", "a")},
				change: func(s *spec) { s.Revisions = current(t, newDaemonSet()) },
			},
			[]string{"update-status logs of 1: desired 0 current 0 misscheduled 1 ready 0 updated 0"},
		},
		{
			"a matching orphan",
			fixture{
				nodes:  []*core.Node{newNode("a")},
				pods:   []*core.Pod{newPod("a1", "a", orphaned)},
				change: func(s *spec) { s.Revisions = current(t, newDaemonSet()) },
			},
			[]string{"adopt-pod a1", "update-status logs of 1: desired 1 current 1 misscheduled 0 ready 1 updated 1"},
		},
		{
			"a matching orphan, while the cache does not show the adoption",
			fixture{
				nodes:  []*core.Node{newNode("a")},
				pods:   []*core.Pod{newPod("a1", "a", orphaned)},
				change: func(s *spec) { s.Revisions, s.Echo = current(t, newDaemonSet()), false },
			},
			[]string{
				"adopt-pod a1", "adopt-pod a1", "adopt-pod a1", "adopt-pod a1",
				"update-status logs of 1: desired 1 current 1 misscheduled 0 ready 1 updated 1",
			},
		},
		{
			"an orphan, and a DaemonSet that is being deleted according to the API only",
			fixture{
				pods: []*core.Pod{newPod("a1", "a", orphaned)},
				change: func(s *spec) {
					s.Revisions = current(t, newDaemonSet())
					s.Live.Subject = encoded(t, newDaemonSet(func(ds *apps.DaemonSet) {
						ds.DeletionTimestamp = ptr.To(newPod("", "").CreationTimestamp)
					}))
				},
			},
			[]string{"error"},
		},
		{
			"a failed pod",
			fixture{
				nodes:  []*core.Node{newNode("a")},
				pods:   []*core.Pod{newPod("a1", "a", failed)},
				change: func(s *spec) { s.Revisions = current(t, newDaemonSet()) },
			},
			[]string{
				"backs off a 1s since 0s", "delete-pod a1", "event FailedDaemonPod", "event SuccessfulDelete", "expects 0, 1",
				"update-status logs of 1: desired 1 current 1 misscheduled 0 ready 0 updated 1",
			},
		},
		{
			"surge, and a failed pod in back-off",
			fixture{
				ds:    newDaemonSet(surging),
				nodes: []*core.Node{newNode("a")},
				pods:  []*core.Pod{newPod("a1", "a", failed)},
				change: func(s *spec) {
					s.Revisions = current(t, newDaemonSet())
					s.Backoff = []backoffEntry{{Node: "a", DelaySeconds: 8, Last: now.Add(-7 * time.Second)}}
				},
			},
			[]string{
				"again in 8s", "backs off a 8s since 7s", "create-pod a", "event SuccessfulCreate", "expects 1, 0",
				"update-status logs of 1: desired 1 current 1 misscheduled 0 ready 0 updated 1",
			},
		},
		{
			"creates that are not observed yet",
			fixture{
				nodes: []*core.Node{newNode("a"), newNode("b")},
				change: func(s *spec) {
					s.Revisions = current(t, newDaemonSet())
					s.Expectations = &expectationsSpec{Adds: 2, AgeSeconds: 10}
				},
			},
			[]string{"expects 2, 0", "update-status logs of 0: desired 2 current 0 misscheduled 0 ready 0 updated 0"},
		},
		{
			"expectations of more than five minutes ago",
			fixture{
				nodes: []*core.Node{newNode("a")},
				change: func(s *spec) {
					s.Revisions = current(t, newDaemonSet())
					s.Expectations = &expectationsSpec{Adds: 5, AgeSeconds: 360}
				},
			},
			[]string{
				"create-pod a", "event SuccessfulCreate", "expects 1, 0",
				"update-status logs of 1: desired 1 current 0 misscheduled 0 ready 0 updated 0",
			},
		},
		{
			"a namespace that is terminating",
			fixture{
				nodes: []*core.Node{newNode("a"), newNode("b")},
				change: func(s *spec) {
					s.Revisions = current(t, newDaemonSet())
					s.Faults = []fault{{Op: "create-pod", Code: 403, Reason: "Forbidden", Cause: string(core.NamespaceTerminatingCause)}}
				},
			},
			[]string{
				"create-pod a refused 403", "create-pod b refused 403", "expects 2, 0",
				"update-status logs of 1: desired 2 current 0 misscheduled 0 ready 0 updated 0",
			},
		},
		{
			"two revisions with the current data, and an old one with a higher number",
			fixture{
				nodes: []*core.Node{newNode("a")},
				pods:  []*core.Pod{newPod("a1", "a", hashed("one"))},
				change: func(s *spec) {
					ds := newDaemonSet()
					s.Revisions = []revisionSpec{
						newRevision(t, ds, "logs-one", 1), newRevision(t, ds, "logs-two", 2), newRevision(t, outdated, "logs-old", 5),
					}
				},
			},
			[]string{
				"delete-revision logs-one", "relabel-pod a1", "update-revision logs-two as 6",
				"update-status logs of 1: desired 1 current 1 misscheduled 0 ready 1 updated 1",
			},
		},
		{
			"the next revision's name is taken",
			fixture{
				change: func(s *spec) {
					s.Live.Revisions = []revisionSpec{newRevision(t, outdated, "logs-"+hashMark, 1)}
				},
			},
			[]string{
				"create-revision logs-@hash as 1 refused 409", "error",
				"update-status logs of 0: desired 0 current 0 misscheduled 0 ready 0 updated 0 collisions 1",
			},
		},
		{
			"a revision without any label crashes upstream",
			fixture{
				change: func(s *spec) {
					revision := newRevision(t, newDaemonSet(), "logs-one", 1)
					ds := newDaemonSet(func(ds *apps.DaemonSet) { ds.Spec.Selector.MatchLabels = map[string]string{} })
					ds.Spec.Selector.MatchExpressions = append(ds.Spec.Selector.MatchExpressions, doesNotExist("none"))
					s.DaemonSets = encodedAll(t, []*apps.DaemonSet{ds})
					object, err := decode[apps.ControllerRevision]("revision", revision.Object)
					if err != nil {
						t.Fatal(err)
					}
					object.Labels = nil
					revision.Object = encoded(t, object)
					s.Revisions = []revisionSpec{revision}
				},
			},
			[]string{"panic: assignment to entry in nil map"},
		},
		{
			"pods that match by generation, not by hash",
			fixture{
				ds: newDaemonSet(func(ds *apps.DaemonSet) {
					ds.Annotations = map[string]string{apps.DeprecatedTemplateGeneration: "3"}
				}),
				nodes: []*core.Node{newNode("a")},
				pods: []*core.Pod{newPod("a1", "a", hashed("other"), func(pod *core.Pod) {
					pod.Labels["pod-template-generation"] = "3"
				})},
				change: func(s *spec) { s.Revisions = current(t, newDaemonSet()) },
			},
			[]string{"update-status logs of 1: desired 1 current 1 misscheduled 0 ready 1 updated 1"},
		},
		{
			"the status cannot be stored the first time",
			fixture{
				change: func(s *spec) {
					s.Revisions = current(t, newDaemonSet())
					s.Faults = []fault{{Op: "update-status", Code: 500, Reason: "InternalError", Times: 1}}
				},
			},
			[]string{
				"update-status logs of 1: desired 0 current 0 misscheduled 0 ready 0 updated 0",
				"update-status logs of 1: desired 0 current 0 misscheduled 0 ready 0 updated 0 refused 500",
			},
		},
	}
	for _, test := range tests {
		t.Run(strings.ReplaceAll(test.name, " ", "_"), func(t *testing.T) {
			slices.Sort(test.want)
			if got := said(t, ask(t, test.fixture)); !slices.Equal(got, test.want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(test.want, "\n  "))
			}
		})
	}
}

// `Gt` in a toleration requires its feature gate, which is off again for the next case.
func TestGatesAreOnForOneCase(t *testing.T) {
	tolerant := newDaemonSet(func(ds *apps.DaemonSet) {
		ds.Spec.Template.Spec.Tolerations = []core.Toleration{{Key: "a", Operator: core.TolerationOpGt, Value: "1"}}
	})
	f := fixture{ds: tolerant, nodes: []*core.Node{newNode("a", core.Taint{Key: "a", Value: "2", Effect: core.TaintEffectNoSchedule})}}
	on := f
	on.change = func(s *spec) { s.FeatureGates = []string{"TaintTolerationComparisonOperators"} }
	for i, test := range []struct {
		fixture fixture
		creates bool
	}{{f, false}, {on, true}, {f, false}} {
		if got := slices.Contains(said(t, ask(t, test.fixture)), "create-pod a"); got != test.creates {
			t.Errorf("case %d: a pod is created: %t, want %t", i, got, test.creates)
		}
	}
}
