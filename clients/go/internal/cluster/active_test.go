package cluster

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	"nodewise.dev/clients/go/nodewisev1"
)

// A pod is active while it is neither finished nor being deleted: on its node, or meant for it.
func TestActivePods(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Pod)
		active bool
		onNode bool
	}{
		{"it runs", func(p *Pod) { p.Phase = nodewisev1.PodPhase_POD_PHASE_RUNNING }, true, true},
		{"its phase is unknown", func(p *Pod) { p.Phase = nodewisev1.PodPhase_POD_PHASE_UNKNOWN }, true, true},
		{"it is meant for the node", func(p *Pod) { p.NodeName, p.TargetNodeName = "", "n1" }, true, true},
		{"it succeeded", func(p *Pod) { p.Phase = nodewisev1.PodPhase_POD_PHASE_SUCCEEDED }, false, false},
		{"it failed", func(p *Pod) { p.Phase = nodewisev1.PodPhase_POD_PHASE_FAILED }, false, false},
		{"it is being deleted", func(p *Pod) { p.DeletionTime = timestamppb.Now() }, false, false},
		{"it is on a node whose name contains the other", func(p *Pod) { p.NodeName = "n12" }, true, false},
		{"it has the node's name", func(p *Pod) { p.Name, p.NodeName = "n1", "n2" }, true, false},
		{"it is another workload's", func(p *Pod) { p.Controller.Uid = "d2" }, true, false},
		{"it is an orphan", func(p *Pod) { p.Controller = nil }, true, false},
	} {
		for _, count := range []uint32{1, 64} {
			t.Run(fmt.Sprint(test.name, count), func(t *testing.T) {
				store := NewStore(count)
				made := pod("p", "1", "n1", "d1", "x")
				test.change(made)
				store.PutPod(made)
				if made.IsActive() != test.active || store.HasActivePod("ns", "d1", "n1") != test.onNode {
					t.Errorf("active: %t, on the node: %t", made.IsActive(), store.HasActivePod("ns", "d1", "n1"))
				}
				inactive := store.InactivePods("ns", "d1")
				if (len(inactive) == 1) == test.active {
					t.Errorf("inactive are %v", inactive)
				}
			})
		}
	}
	if store := NewStore(1); store.HasActivePod("ns", "d1", "n1") || store.InactivePods("ns", "d1") != nil {
		t.Error("an empty cache shows pods")
	}
}
