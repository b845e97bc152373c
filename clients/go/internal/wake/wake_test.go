package wake_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/wake"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/served"
)

var mended = wake.Rules{ClearReplacedOwnWrites: true, WakeOnNodeDelete: true}

// store has two DaemonSets: foo (d1), which waits 30 seconds for a ready pod, and bar (d2). Both select app=x.
func store(t *testing.T) *cluster.Store {
	t.Helper()
	made := cluster.NewStore(1, cluster.DaemonSet)
	for name, uid := range map[string]string{"foo": "d1", "bar": "d2"} {
		made.PutWorkload(daemonSet(t, name, uid))
	}
	return made
}

func daemonSet(t *testing.T, name, uid string) *cluster.Workload {
	t.Helper()
	object, err := served.Parse(fmt.Appendf(nil, `{"metadata":{"namespace":"ns","name":%q,"uid":%q},
		"spec":{"selector":{"matchLabels":{"app":"x"}},"minReadySeconds":%d}}`, name, uid, map[string]int{"foo": 30}[name]))
	if err != nil {
		t.Fatal(err)
	}
	read, err := cluster.NewWorkload(cluster.DaemonSet, object)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

type set func(*cluster.Pod)

func pod(changes ...set) *cluster.Pod {
	made := &cluster.Pod{Namespace: "ns", Pod: &nodewisev1.Pod{
		Name: "p", Uid: "u", NodeName: "n1", Controller: controller("foo", "d1"),
		Labels: []*nodewisev1.Label{{Key: "app", Value: "x"}},
	}}
	for _, change := range changes {
		change(made)
	}
	return made
}

func controller(name, uid string) *nodewisev1.ControllerReference {
	if name == "" {
		return nil
	}
	return &nodewisev1.ControllerReference{Kind: "DaemonSet", Name: name, Uid: uid}
}

func of(name, uid string) set { return func(p *cluster.Pod) { p.Controller = controller(name, uid) } }
func ready(p *cluster.Pod)    { p.Ready = nodewisev1.ConditionStatus_CONDITION_STATUS_TRUE }
func meant(p *cluster.Pod)    { p.NodeName, p.TargetNodeName = "", "n7" }
func nowhere(p *cluster.Pod)  { p.NodeName = "" }
func going(p *cluster.Pod)    { p.DeletionTime = timestamppb.Now() }
func another(p *cluster.Pod)  { p.Uid = "u2" }
func labelled(value string) set {
	return func(p *cluster.Pod) { p.Labels = []*nodewisev1.Label{{Key: "app", Value: value}} }
}

// told prints the reactions: pods that are created (+), deleted (-) and gone (!), and the enqueued workloads.
func told(r *wake.Reactions) string {
	var parts []string
	for _, going := range r.Deletions {
		parts = append(parts, fmt.Sprintf("-%s/%s", going.Key.Name, going.PodUID))
	}
	for _, gone := range r.Gone {
		parts = append(parts, fmt.Sprintf("!%s(%s)/%s@%s", gone.Key.Name, gone.WorkloadUID, gone.PodName, gone.NodeName))
	}
	for _, coming := range r.Creates {
		parts = append(parts, fmt.Sprintf("+%s/%s@%s", coming.Key.Name, coming.PodName, coming.NodeName))
	}
	if r.Forget != nil {
		parts = append(parts, fmt.Sprintf("forget %s of %s", r.Forget.Key.Name, r.Forget.OwnWritesOf))
	}
	if r.First != nil {
		parts = append(parts, "first "+r.First.Name)
	}
	for _, key := range r.Enqueue {
		parts = append(parts, key.Name)
	}
	if r.After != nil {
		parts = append(parts, fmt.Sprintf("%s in %s", r.After.Key.Name, r.After.After))
	}
	switch {
	case r.Everyone && r.Urgent:
		parts = append(parts, "everyone first")
	case r.Everyone:
		parts = append(parts, "everyone")
	}
	return strings.Join(parts, ", ")
}

// D-103, D-104, one row for each event.
func TestPods(t *testing.T) {
	for _, test := range []struct {
		name      string
		old, next *cluster.Pod
		want      string
	}{
		{"a new one", nil, pod(), "+foo/p@n1, foo"},
		{"a new one that is being deleted", nil, pod(going), "-foo/u, foo"},
		{"a new one of a workload by that name before", nil, pod(of("foo", "d9")), ""},
		{"a new orphan", nil, pod(of("", "")), "bar, foo"},
		{"a new orphan that nobody selects", nil, pod(of("", ""), labelled("y")), ""},
		{"a change", pod(), pod(labelled("y")), "foo"},
		{"nothing", pod(), pod(), ""},
		{"it is ready", pod(), pod(ready), "foo, foo in 31s"},
		{"it is ready no more", pod(ready), pod(), "foo"},
		{"it is deleted", pod(), pod(going), "-foo/u, foo"},
		{"it is gone", pod(), nil, "-foo/u, !foo(d1)/p@n1, foo"},
		{"it is gone after it was deleted", pod(going), nil, "-foo/u, !foo(d1)/p@n1, foo"},
		{"it is gone before it was on its node", pod(meant), nil, "-foo/u, !foo(d1)/p@n7, foo"},
		{"it is gone and was for no node", pod(nowhere), nil, "-foo/u, foo"},
		{"one of a workload by that name before is gone", pod(of("foo", "d9")), nil, ""},
		{"another by its name", pod(), pod(another), "-foo/u, !foo(d1)/p@n1, +foo/p@n1, foo, foo"},
		{"another workload's by its name", pod(), pod(another, of("bar", "d2")), "-foo/u, !foo(d1)/p@n1, +bar/p@n1, foo, bar"},
		{"it changes hands", pod(), pod(of("bar", "d2")), "foo, bar"},
		{"it is released", pod(), pod(of("", "")), "foo, bar, foo"},
		{"it is adopted", pod(of("", "")), pod(), "foo"},
		{"an orphan is labelled", pod(of("", ""), labelled("y")), pod(of("", "")), "bar, foo"},
		{"an orphan is ready", pod(of("", "")), pod(of("", ""), ready), ""},
		{"an orphan is gone", pod(of("", "")), nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			change := &cluster.Transition{Pod: &cluster.Change[cluster.Pod]{Old: test.old, New: test.next}}
			if got := told(wake.React(cluster.DaemonSet, store(t), change, mended)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// with upstream each event of a pod that is being deleted counts.
func TestRepeatedDeletionsCountAsUpstreamDoes(t *testing.T) {
	change := &cluster.Transition{Pod: &cluster.Change[cluster.Pod]{Old: pod(going), New: pod(going)}}
	if got := told(wake.React(cluster.DaemonSet, store(t), change, wake.Rules{CountRepeatedDeletions: true})); got != "-foo/u, foo" {
		t.Errorf("got %q", got)
	}
}

func TestDaemonSets(t *testing.T) {
	for _, test := range []struct {
		name      string
		old, next *cluster.Workload
		rules     wake.Rules
		want      string
	}{
		{"a new one", nil, daemonSet(t, "foo", "d1"), mended, "first foo"},
		{"a change", daemonSet(t, "foo", "d1"), daemonSet(t, "foo", "d1"), mended, "foo"},
		{"it is gone", daemonSet(t, "foo", "d1"), nil, mended, "forget foo of d1, foo"},
		{"it is replaced", daemonSet(t, "foo", "d1"), daemonSet(t, "foo", "d9"), mended, "forget foo of d1, first foo"},
		{"as upstream does", daemonSet(t, "foo", "d1"), daemonSet(t, "foo", "d9"), wake.Rules{}, "forget foo of d9, first foo"},
	} {
		t.Run(test.name, func(t *testing.T) {
			change := &cluster.Transition{Workload: &cluster.Change[cluster.Workload]{Old: test.old, New: test.next}}
			if got := told(wake.React(cluster.DaemonSet, store(t), change, test.rules)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestNodes(t *testing.T) {
	plain := &cluster.Node{Node: &nodewisev1.Node{Name: "n1"}}
	labelled := &cluster.Node{Node: &nodewisev1.Node{Name: "n1", Labels: []*nodewisev1.Label{{Key: "a"}}}}
	tainted := &cluster.Node{Node: &nodewisev1.Node{Name: "n1", Taints: []*nodewisev1.Taint{{Key: "a"}}}}
	ready := &cluster.Node{Node: &nodewisev1.Node{Name: "n1", Ready: nodewisev1.ConditionStatus_CONDITION_STATUS_TRUE}}
	for _, test := range []struct {
		old, next *cluster.Node
		rules     wake.Rules
		want      string
	}{
		{nil, plain, mended, "everyone first"},
		{plain, labelled, mended, "everyone first"},
		{tainted, plain, mended, "everyone first"},
		{plain, ready, mended, ""},
		{plain, nil, mended, "everyone"},
		{plain, nil, wake.Rules{}, ""},
	} {
		change := &cluster.Transition{Node: &cluster.Change[cluster.Node]{Old: test.old, New: test.next}}
		if got := told(wake.React(cluster.DaemonSet, store(t), change, test.rules)); got != test.want {
			t.Errorf("%v to %v: got %q, want %q", test.old, test.next, got, test.want)
		}
	}
}

func TestRevisions(t *testing.T) {
	revision := func(owner, value string, deleting bool) *cluster.Revision {
		made := &cluster.Revision{Namespace: "ns", Name: "r", Labels: map[string]string{"app": value}, Deleting: deleting}
		if owner != "" {
			made.Controller = controller(owner, map[string]string{"foo": "d1", "bar": "d2"}[owner])
		}
		return made
	}
	for _, test := range []struct {
		name      string
		old, next *cluster.Revision
		want      string
	}{
		{"a new one", nil, revision("foo", "x", false), ""},
		{"a new one that is being deleted", nil, revision("foo", "x", true), "foo"},
		{"a new orphan", nil, revision("", "x", false), "bar, foo"},
		{"a change", revision("foo", "x", false), revision("foo", "y", false), "foo"},
		{"it changes hands", revision("foo", "x", false), revision("bar", "x", false), "foo, bar"},
		{"it is released", revision("foo", "x", false), revision("", "x", false), "foo, bar, foo"},
		{"an orphan is labelled", revision("", "y", false), revision("", "x", false), "bar, foo"},
		{"an orphan changes otherwise", revision("", "x", false), revision("", "x", false), ""},
		{"it is gone", revision("foo", "x", false), nil, "foo"},
	} {
		t.Run(test.name, func(t *testing.T) {
			change := &cluster.Transition{Revision: &cluster.Change[cluster.Revision]{Old: test.old, New: test.next}}
			if got := told(wake.React(cluster.DaemonSet, store(t), change, mended)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
