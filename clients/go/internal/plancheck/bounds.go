package plancheck

import (
	"iter"

	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/nodewisev1"
)

// DefaultBurst is the burst of a request that sets none.
const DefaultBurst = 250

// maxLivePods is how many live pods of the workload a node may have when a plan creates another one. With a surge there is an old pod beside the
// new one.
const maxLivePods = 1

const (
	// minClaims and maxClaims limit the adoptions, releases, relabels and updates of revisions of a plan. The limit is the burst, but at least
	// minClaims and at most maxClaims. The plan may also have as many deletes of revisions.
	minClaims, maxClaims = 1000, 10_000
	// maxOtherEvents is how many Events a plan may emit in addition to one for each deleted pod.
	maxOtherEvents = 10
)

// checkBounds limits how much a plan does. Otherwise a wrong service could fill the cluster with pods of the workload's template, or keep the
// executor busy with writes.
func checkBounds(plan *nodewisev1.Plan, actions []*nodewisev1.Action, asked *Asked) error {
	for _, phase := range plan.GetPhases() {
		if len(phase.GetBatches()) == 0 {
			return violationOf(nil, "it has a phase without batches")
		}
		for _, batch := range phase.GetBatches() {
			// Even an empty batch may cause a read, because it may ask to confirm the workload.
			if len(batch.GetActions()) == 0 {
				return violationOf(nil, "it has a batch without actions")
			}
		}
	}
	var creates, deletes, revisions, statuses, claims, events int
	for _, action := range actions {
		switch action.GetKind().(type) {
		case *nodewisev1.Action_CreatePod:
			creates++
		case *nodewisev1.Action_DeletePod:
			deletes++
		case *nodewisev1.Action_CreateRevision:
			revisions++
		case *nodewisev1.Action_UpdateStatus:
			statuses++
		case *nodewisev1.Action_EmitEvent:
			events++
		default:
			// This includes actions of an unknown kind.
			claims++
		}
	}
	maxEvents := asked.Burst + maxOtherEvents
	if !asked.DecidesAfterCut {
		maxEvents = events
	}
	for _, bound := range []struct {
		does        string
		count, most int
		what        string
	}{
		{"creates", creates, asked.Burst, "pods"},
		{"deletes", deletes, asked.Burst, "pods"},
		{"creates", revisions, 1, "revisions"},
		{"writes", statuses, 1, "statuses"},
		{"adopts, releases, relabels, updates and deletes", claims, 2 * min(max(asked.Burst, minClaims), maxClaims), "pods and revisions"},
		{"emits", events, maxEvents, "Events"},
	} {
		if bound.count > bound.most {
			are := "are"
			if bound.most == 1 {
				are = "is"
			}
			return violationOf(nil, "it %s %d %s, and %d %s the most", bound.does, bound.count, bound.what, bound.most, are)
		}
	}
	return checkOnePerNode(actions)
}

// checkOnePerNode checks that a plan creates no two pods for the same node.
func checkOnePerNode(actions []*nodewisev1.Action) error {
	nodes := sets.New[string]()
	for action, node := range created(actions) {
		if nodes.Has(node) {
			return violationOf(action, "it creates a second pod for node %q", node)
		}
		nodes.Insert(node)
	}
	return nil
}

// checkNodes checks the nodes that pods are created for. Nodes and pods may have changed since the snapshot.
func (c *Checked) checkNodes(actions []*nodewisev1.Action) error {
	var nodes []string
	for _, node := range created(actions) {
		nodes = append(nodes, node)
	}
	if len(nodes) == 0 {
		return nil
	}
	live := c.caches.LivePods(nodes)
	for action, node := range created(actions) {
		var err error
		switch pods, exists := live[node]; {
		case !exists:
			err = c.leaveOut(action, c.caches.Changed(cluster.Nodes, node), "node %q does not exist", node)
		case pods.Count > maxLivePods:
			err = c.leaveOut(action, pods.Changed, "node %q has %d pods of the workload already", node, pods.Count)
		default:
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// created iterates over the actions that create pods, and their nodes.
func created(actions []*nodewisev1.Action) iter.Seq2[*nodewisev1.Action, string] {
	return func(yield func(*nodewisev1.Action, string) bool) {
		for _, action := range actions {
			if create := action.GetCreatePod(); create != nil && !yield(action, create.GetNodeName()) {
				return
			}
		}
	}
}
