package nodewise

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/nodewisev1"
)

// podOn is a pod of the DaemonSet agent.
func podOn(name, uid, node, version string, changes ...func(*corev1.Pod)) *corev1.Pod {
	yes := true
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: version,
			OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", UID: "d1", Controller: &yes}},
		},
		Spec: corev1.PodSpec{NodeName: node},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func deleting(pod *corev1.Pod) {
	now := metav1.Now()
	pod.DeletionTimestamp = &now
}
func orphaned(pod *corev1.Pod) { pod.OwnerReferences = nil }

// The names of pods that are gone are sent as used names.
func TestUsedPodNames(t *testing.T) {
	type watched func(*feed) error
	add := func(pod *corev1.Pod) watched { return func(f *feed) error { return f.Add(pod) } }
	gone := func(pod *corev1.Pod) watched { return func(f *feed) error { return f.Delete(pod) } }
	list := func(pods ...any) watched { return func(f *feed) error { return f.Replace(pods, "200") } }
	for _, test := range []struct {
		name string
		seen []watched
		want []string
	}{
		{"nothing", nil, nil},
		{"it is being deleted", []watched{add(podOn("a", "1", "n1", "1")), add(podOn("a", "1", "n1", "2", deleting))}, nil},
		{"it is deleted and gone", []watched{
			add(podOn("a", "1", "n1", "1")), add(podOn("a", "1", "n1", "2", deleting)), gone(podOn("a", "1", "n1", "3", deleting)),
		}, []string{"n1/a"}},
		{"it is gone at once", []watched{add(podOn("a", "1", "n1", "1")), gone(podOn("a", "1", "n1", "2"))}, []string{"n1/a"}},
		{"it is gone while another is there", []watched{
			add(podOn("a", "1", "n1", "1")), add(podOn("b", "2", "n1", "2")), gone(podOn("a", "1", "n1", "3")),
		}, []string{"n1/a"}},
		{"another comes", []watched{
			add(podOn("a", "1", "n1", "1")), gone(podOn("a", "1", "n1", "2")), add(podOn("b", "2", "n1", "3")),
		}, nil},
		{"another that was there changes", []watched{
			add(podOn("a", "1", "n1", "1")), add(podOn("b", "2", "n1", "2")), gone(podOn("a", "1", "n1", "3")),
			add(podOn("b", "2", "n1", "4", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodRunning })),
		}, []string{"n1/a"}},
		{"another comes elsewhere", []watched{
			add(podOn("a", "1", "n1", "1")), gone(podOn("a", "1", "n1", "2")), add(podOn("b", "2", "n2", "3")),
		}, []string{"n1/a"}},
		{"another comes under its name", []watched{add(podOn("a", "1", "n1", "1")), add(podOn("a", "2", "n1", "2"))}, nil},
		{"another comes under its name elsewhere", []watched{add(podOn("a", "1", "n1", "1")), add(podOn("a", "2", "n2", "2"))}, []string{"n1/a"}},
		{"an orphan comes under its name", []watched{add(podOn("a", "1", "n1", "1")), add(podOn("a", "2", "n1", "2", orphaned))}, []string{"n1/a"}},
		{"it is missing in a list", []watched{list(podOn("a", "1", "n1", "1")), list()}, []string{"n1/a"}},
		{"it is released and gone", []watched{
			add(podOn("a", "1", "n1", "1")), add(podOn("a", "1", "n1", "2", orphaned)), gone(podOn("a", "1", "n1", "3", orphaned)),
		}, nil},
		{"it is on no node", []watched{add(podOn("a", "1", "", "1")), gone(podOn("a", "1", "", "2"))}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			planner := &scripted{plan: noop}
			r := newRig(t, planner, WithBuckets(1))
			r.apply("agent:1")
			for _, seen := range test.seen {
				if err := seen(r.feed(pods)); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.Reconcile(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			if got := usedIn(planner.asked[0].GetSnapshot().GetState()); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func usedIn(state *nodewisev1.ReconcileState) []string {
	var names []string
	for _, used := range state.GetUsedPodNames() {
		names = append(names, fmt.Sprintf("%s/%s", used.GetNodeName(), used.GetPodName()))
	}
	return names
}

// A plan drops the names that it leaves out, also a plan without actions. The response to a report drops none. All names are dropped with the
// workload.
func TestUsedPodNamesAreDropped(t *testing.T) {
	planner := &scripted{}
	planner.plan = func(request *nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
		plan, err := noop(request)
		if len(planner.asked) == 1 {
			plan = creating(podNamed("new"))
		}
		plan.State.UsedPodNames = request.GetSnapshot().GetState().GetUsedPodNames()[1:]
		return plan, err
	}
	planner.report = func(*nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
		return &nodewisev1.ReportResponse{State: &nodewisev1.ReconcileState{}}, nil
	}
	r := newRig(t, planner)
	r.apply("agent:1")
	if err := r.feed(pods).Replace([]any{
		podOn("a", "1", "n-a", "1"), podOn("b", "2", "n-b", "2"), podOn("c", "3", "n-c", "3"),
	}, "200"); err != nil {
		t.Fatal(err)
	}
	if err := r.feed(pods).Replace(nil, "201"); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{{"n-b/b", "n-c/c"}, {"n-c/c"}} {
		if err := r.Reconcile(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if got := usedIn(r.state.holdings.Get(key, "d1")); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if err := r.feed(workloadCaches[cluster.DaemonSets]).Replace(nil, "900"); err != nil {
		t.Fatal(err)
	}
	if got := usedIn(r.state.holdings.Get(key, "d1")); got != nil {
		t.Errorf("%v is kept of a workload that is gone", got)
	}
}
