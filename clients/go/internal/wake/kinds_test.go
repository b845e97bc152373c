package wake_test

import (
	"fmt"
	"strconv"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/wake"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/served"
)

// object is a ReplicaSet or Deployment of the label app=x, with a controller, which is empty or "kind name uid".
func object(t *testing.T, kind *cluster.Kind, name, uid, version, app, owner, spec string) *cluster.Workload {
	t.Helper()
	owners := ""
	if owner != "" {
		var ownerKind, ownerName, ownerUID string
		if _, err := fmt.Sscanf(owner, "%s %s %s", &ownerKind, &ownerName, &ownerUID); err != nil {
			t.Fatal(err)
		}
		owners = fmt.Sprintf(`{"kind":%q,"name":%q,"uid":%q,"controller":true}`, ownerKind, ownerName, ownerUID)
	}
	parsed, err := served.Parse(fmt.Appendf(nil, `{"metadata":{"namespace":"ns","name":%q,"uid":%q,"resourceVersion":%q,
		"labels":{"app":%q},"ownerReferences":[%s]},"spec":{"selector":{"matchLabels":{"app":%q}}%s}}`,
		name, uid, version, app, owners, app, spec))
	if err != nil {
		t.Fatal(err)
	}
	read, err := cluster.NewWorkload(kind, parsed)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func ofReplicaSet(name, uid string) set {
	return func(p *cluster.Pod) {
		p.Controller = &nodewisev1.ControllerReference{Kind: "ReplicaSet", Name: name, Uid: uid}
	}
}

// one row for each event. Both ReplicaSets select app=x, and rs1 waits 10 seconds for a ready pod.
func TestPodsOfReplicaSets(t *testing.T) {
	store := cluster.NewStore(1, cluster.ReplicaSet)
	store.PutWorkload(object(t, cluster.ReplicaSet, "rs1", "u1", "1", "x", "", `,"minReadySeconds":10`))
	store.PutWorkload(object(t, cluster.ReplicaSet, "rs2", "u2", "1", "x", "", ""))
	own := ofReplicaSet("rs1", "u1")
	for _, test := range []struct {
		name      string
		old, next *cluster.Pod
		want      string
	}{
		{"R-8: a new one", nil, pod(own), "+rs1/p@, rs1"},
		{"R-7: a new one that is being deleted", nil, pod(own, going), "-rs1/u, rs1"},
		{"R-8: a new orphan", nil, pod(of("", ""), labelled("x")), "rs1, rs2"},
		{"R-12: of another uid", nil, pod(ofReplicaSet("rs1", "u9")), ""},
		{"R-12: of another kind", nil, pod(of("rs1", "u1")), ""},
		{"R-10: a change", pod(own), pod(own, labelled("y")), "rs1"},
		{"R-10: it changes hands", pod(ofReplicaSet("rs2", "u2")), pod(own), "rs2, rs1"},
		{"it is ready", pod(own), pod(own, ready), "rs1, rs1 in 10s"},
		{"R-9: its deletion begins", pod(own), pod(own, going), "-rs1/u, rs1"},
		{
			"R-9: it begins with other labels and another owner", pod(ofReplicaSet("rs2", "u2")), pod(own, labelled("y"), going),
			"-rs1/u, -rs2/u, rs1, rs2",
		},
		{"R-11: it is gone", pod(own), nil, "-rs1/u, !rs1(u1)/p@, rs1"},
		{"R-11: it is gone and was on no node", pod(own, nowhere), nil, "-rs1/u, !rs1(u1)/p@, rs1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			change := &cluster.Transition{Pod: &cluster.Change[cluster.Pod]{Old: test.old, New: test.next}}
			if got := told(wake.React(cluster.ReplicaSet, store, change, mended)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	node := &cluster.Transition{Node: &cluster.Change[cluster.Node]{New: &cluster.Node{Node: &nodewisev1.Node{Name: "n1"}}}}
	if got := told(wake.React(cluster.ReplicaSet, store, node, mended)); got != "" {
		t.Errorf("a node: got %q", got)
	}
}

// P-5 to P-7, one row for each event. Both Deployments select app=x.
func TestReplicaSetsOfDeployments(t *testing.T) {
	store := cluster.NewStore(1, cluster.Deployment)
	store.PutWorkload(object(t, cluster.Deployment, "d1", "u1", "1", "x", "", ""))
	store.PutWorkload(object(t, cluster.Deployment, "d2", "u2", "1", "x", "", ""))
	const d1, d2 = "Deployment d1 u1", "Deployment d2 u2"
	replicaSet := func(version, app, owner string) *cluster.Workload {
		return object(t, cluster.ReplicaSet, "s", "us", version, app, owner, "")
	}
	going := replicaSet("1", "x", d1)
	going.Deleting = true
	for _, test := range []struct {
		name      string
		old, next *cluster.Workload
		want      string
	}{
		{"P-5: a Deployment", nil, store.Workload(cluster.Deployment, types.NamespacedName{Namespace: "ns", Name: "d1"}), "first d1"},
		{"P-6: a new one", nil, replicaSet("1", "x", d1), "d1"},
		{"P-6: a new orphan", nil, replicaSet("1", "x", ""), "d1, d2"},
		{"P-6: a new orphan that nobody selects", nil, replicaSet("1", "z", ""), ""},
		{"P-6: a new one that is being deleted", nil, going, "d1"},
		{"P-9: of another kind", nil, replicaSet("1", "x", "StatefulSet d1 u1"), ""},
		{"P-9: of another uid", nil, replicaSet("1", "x", "Deployment d1 u9"), ""},
		{"P-7: the same version", replicaSet("1", "x", d1), replicaSet("1", "y", d2), ""},
		{"P-7: a change", replicaSet("1", "x", d1), replicaSet("2", "x", d1), "d1"},
		{"P-7: it changes hands", replicaSet("1", "x", d2), replicaSet("2", "x", d1), "d2, d1"},
		{"P-7: it is released", replicaSet("1", "x", d1), replicaSet("2", "x", ""), "d1, d1, d2"},
		{"P-7: an orphan is labelled", replicaSet("1", "y", ""), replicaSet("2", "x", ""), "d1, d2"},
		{"P-7: an orphan changes otherwise", replicaSet("1", "x", ""), replicaSet("2", "x", ""), ""},
		{"it is gone", replicaSet("1", "x", d1), nil, "d1"},
		{"an orphan is gone", replicaSet("1", "x", ""), nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			change := &cluster.Transition{Workload: &cluster.Change[cluster.Workload]{Old: test.old, New: test.next}}
			if got := told(wake.React(cluster.Deployment, store, change, mended)); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// P-8: of pods only the deletion of the last one matters, and only to a Deployment that recreates. Finished pods count, and pods of a ReplicaSet
// that the Deployment does not select do not.
func TestTheLastPodOfADeploymentThatRecreates(t *testing.T) {
	store := cluster.NewStore(1, cluster.Deployment)
	store.PutWorkload(object(t, cluster.Deployment, "d1", "u1", "1", "x", "", ""))
	store.PutWorkload(object(t, cluster.Deployment, "d3", "u3", "1", "y", "", `,"strategy":{"type":"Recreate"}`))
	for name, of := range map[string][2]string{
		"s1": {"x", "Deployment d1 u1"}, "s3": {"y", "Deployment d3 u3"}, "s4": {"y", "Deployment d3 u3"}, "s5": {"z", "Deployment d3 u3"},
	} {
		store.PutWorkload(object(t, cluster.ReplicaSet, name, "u-"+name, "1", of[0], of[1], ""))
	}
	version := 0
	show := func(name, owner string, changes ...set) {
		version++
		made := pod(ofReplicaSet(owner, "u-"+owner))
		made.Name, made.Uid, made.ResourceVersion = name, "uid-"+name, strconv.Itoa(version)
		for _, change := range changes {
			change(made)
		}
		if got := told(wake.React(cluster.Deployment, store, store.PutPod(made), mended)); got != "" {
			t.Errorf("%s is there: got %q", name, got)
		}
	}
	gone := func(name, want string) {
		if got := told(wake.React(cluster.Deployment, store, store.RemovePod("ns", name, nil), mended)); got != want {
			t.Errorf("%s is gone: got %q, want %q", name, got, want)
		}
	}
	show("a", "s3")
	show("b", "s3", func(p *cluster.Pod) { p.Phase = nodewisev1.PodPhase_POD_PHASE_SUCCEEDED })
	show("c", "s4")
	show("d", "s1")
	show("e", "s5")
	show("a", "s3", func(p *cluster.Pod) { p.DeletionTime = timestamppb.Now() })
	gone("a", "")
	gone("c", "")
	gone("b", "d3")
	gone("d", "")
}
