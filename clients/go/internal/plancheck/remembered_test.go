package plancheck_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/plancheck"
	"nodewise.dev/clients/go/nodewisev1"
)

// remembering is a state with a back-off for each of these nodes, and a collision.
func remembering(nodes ...string) *nodewisev1.ReconcileState {
	state := &nodewisev1.ReconcileState{}
	for _, node := range nodes {
		state.FailedPodBackoffs = append(state.FailedPodBackoffs, &nodewisev1.FailedPodBackoff{NodeName: node})
		state.PodNameCollisions = append(state.PodNameCollisions, &nodewisev1.PodNameCollision{NodeName: node})
	}
	return state
}

// The state is sent with every later request, so it may name only existing nodes.
func TestWhatAPlanLeavesToRemember(t *testing.T) {
	workload, err := cluster.NewWorkload(cluster.DaemonSet, parsed(t, []byte(`{"metadata":{"namespace":"ns","name":"agent","uid":"u"}}`)))
	if err != nil {
		t.Fatal(err)
	}
	hash := func(hash string) *nodewisev1.ReconcileState {
		return &nodewisev1.ReconcileState{SlowStart: &nodewisev1.SlowStart{RevisionHash: hash}}
	}
	collision := remembering("n9")
	collision.FailedPodBackoffs = nil
	for _, test := range []struct {
		state, sent *nodewisev1.ReconcileState
		goes        bool
		refused     string
	}{
		{nil, nil, false, ""},
		{remembering("n1", "n2"), nil, false, ""},
		{remembering("n1", "n9"), nil, false, `its state names node "n9", and that does not exist`},
		{collision, nil, false, `its state names node "n9", and that does not exist`},
		{remembering("n1", "n9"), remembering("n9"), false, ""},
		{remembering("n1", "n9"), nil, true, ""},
		{remembering("N 1"), remembering("N 1"), true, `its state names node "N 1", and no object can be called so`},
		{hash("h1"), nil, false, ""},
		{hash(""), nil, false, ""},
		{hash(strings.Repeat("h", 64)), nil, false, `its state names the hash "` + strings.Repeat("h", 64) + `", and no label has such a value`},
	} {
		caches := shown{cluster.NewStore(1, cluster.DaemonSet), workload}
		for _, name := range []string{"n1", "n2", "n3"} {
			caches.PutNode(&cluster.Node{ResourceVersion: "1", Node: &nodewisev1.Node{Name: name}})
		}
		asked := &plancheck.Asked{Workload: workload, Burst: plancheck.Burst(cluster.DaemonSet), AsOf: caches.LastChange(), Sent: test.sent}
		if test.goes {
			caches.Remove(cluster.Nodes, types.NamespacedName{Name: "n3"})
		}
		plan := &nodewisev1.Plan{State: test.state, Workload: &nodewisev1.WorkloadReference{
			Kind: "DaemonSet", Namespace: "ns", Name: "agent", Uid: "u",
		}}
		_, err := plancheck.Check(plan, asked, caches)
		if (err == nil) != (test.refused == "") || err != nil && !strings.HasSuffix(err.Error(), ": "+test.refused) {
			t.Errorf("%v: got %v", test.state, err)
		}
	}
}

func TestWhatCannotBeRememberedIsTakenOut(t *testing.T) {
	// A wrong service could make an entry for each of many generations.
	of := func(entries ...*nodewisev1.FailedPodBackoff) *nodewisev1.ReconcileState {
		return &nodewisev1.ReconcileState{FailedPodBackoffs: entries}
	}
	at := func(node string, generation int64) *nodewisev1.FailedPodBackoff {
		return &nodewisev1.FailedPodBackoff{NodeName: node, ObservedGeneration: generation}
	}
	state := of(at("n1", 1), at("n1", 2), at("n1", 3), at("n1", 4), at("n1", 5), at("n1", 3), at("n9", 1), at("sent", 1), at("N 1", 1))
	state.PodNameCollisions = remembering("n1", "n1", "n9", "sent", "N 1").PodNameCollisions
	state.SlowStart = &nodewisev1.SlowStart{RevisionHash: "-"}
	plancheck.RetainRememberable(cluster.DaemonSet, state, remembering("sent", "N 1"), func(node string) bool { return node == "n1" || node == "N 1" })
	want := of(at("n1", 2), at("n1", 3), at("n1", 4), at("n1", 5), at("sent", 1))
	want.PodNameCollisions = remembering("n1", "sent").PodNameCollisions
	if !proto.Equal(state, want) {
		t.Errorf("got %v, want %v", state, want)
	}
}
