package wake_test

import (
	"fmt"
	"strings"
	"testing"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/wake"
	"nodewise.dev/clients/go/nodewisev1"
)

func finished(p *cluster.Pod) { p.Phase = nodewisev1.PodPhase_POD_PHASE_FAILED }
func meantFor(node string) set {
	return func(p *cluster.Pod) { p.NodeName, p.TargetNodeName = "", node }
}
func ofKind(kind string) set {
	return func(p *cluster.Pod) {
		p.Controller = &nodewisev1.ControllerReference{Kind: kind, Name: "foo", Uid: "d1"}
	}
}

// seen are the sights of pods, in short: active (+), inactive (-) or vanished (!).
func seen(sights []wake.PodSight) string {
	var parts []string
	for _, sight := range sights {
		state := []string{"+", "-", "!"}[sight.State]
		parts = append(parts, fmt.Sprintf("%s%s(%s)/%s@%s", state, sight.Key.Name, sight.WorkloadUID, sight.PodName, sight.NodeName))
	}
	return strings.Join(parts, ", ")
}

func TestPodSights(t *testing.T) {
	const active, inactive, vanished = "+foo(d1)/p@n1", "-foo(d1)/p@n1", "!foo(d1)/p@n1"
	for _, test := range []struct {
		name      string
		old, next *cluster.Pod
		want      string
	}{
		{"a new one", nil, pod(), active},
		{"a new one that is being deleted", nil, pod(going), inactive},
		{"a new one that has finished", nil, pod(finished), inactive},
		{"a new one of a workload by that name before", nil, pod(of("foo", "d9")), ""},
		{"a new orphan", nil, pod(of("", "")), ""},
		{"meant for a node", nil, pod(meantFor("n7"), going), "-foo(d1)/p@n7"},
		{"a change", pod(), pod(ready), active},
		{"nothing", pod(), pod(), ""},
		{"it finishes", pod(), pod(finished), inactive},
		{"it is deleted", pod(), pod(going), inactive},
		{"it is gone", pod(going), nil, vanished},
		{"it is gone at once", pod(), nil, vanished},
		{"an orphan is gone", pod(of("", "")), nil, ""},
		{"another by its name", pod(), pod(another), vanished + ", " + active},
		{"another by its name, of another workload", pod(), pod(another, of("bar", "d2")), vanished + ", +bar(d2)/p@n1"},
		{"another by its name, of another kind", pod(), pod(another, ofKind("ReplicaSet")), vanished},
		{"it changes hands", pod(), pod(of("bar", "d2")), "+bar(d2)/p@n1"},
		{"it is released", pod(), pod(of("", "")), ""},
		{"it is adopted", pod(of("", "")), pod(), active},
		{"it is adopted as it ends", pod(of("", ""), going), pod(going), inactive},
	} {
		t.Run(test.name, func(t *testing.T) {
			change := &cluster.Transition{Pod: &cluster.Change[cluster.Pod]{Old: test.old, New: test.next}}
			if got := seen(wake.PodSights(store(t), change)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Pods may be listed before the DaemonSets.
func TestANewDaemonSetShowsThePodsThatWereListedBefore(t *testing.T) {
	known := cluster.NewStore(1)
	for name, change := range map[string]set{
		"runs": func(*cluster.Pod) {}, "ends": going, "other": func(p *cluster.Pod) { going(p); of("foo", "d9")(p) },
	} {
		known.PutPod(pod(change, func(p *cluster.Pod) { p.Name, p.Uid = name, name }))
	}
	first, again, next := daemonSet(t, "foo", "d1"), daemonSet(t, "foo", "d1"), daemonSet(t, "foo", "d9")
	for _, test := range []struct {
		of   *cluster.DaemonSet
		want string
	}{{first, "-foo(d1)/ends@n1"}, {again, ""}, {next, "-foo(d9)/other@n1"}} {
		if got := seen(wake.PodSights(known, known.PutDaemonSet(test.of))); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	if got := seen(wake.PodSights(known, known.RemoveDaemonSet(next.Key))); got != "" {
		t.Errorf("of one that is gone: %q", got)
	}
}
