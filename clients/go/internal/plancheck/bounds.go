package plancheck

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/nodewisev1"
)

// DefaultBurst is the burst of a request that asks for none.
const DefaultBurst = 250

// maxLivePods is the most pods of the workload that live on a node where the plan creates another one. A surge has an old pod beside the new
// one.
const maxLivePods = 1

// checkBounds checks how many pods and revisions a plan creates and deletes: a wrong service could fill the cluster with pods of the
// workload's own template otherwise.
func checkBounds(actions []*nodewisev1.Action, burst int) error {
	var creates, deletes, revisions int
	nodes := sets.New[string]()
	// second is the first action that creates a pod for a node for which there is one already.
	var second *nodewisev1.Action
	for _, action := range actions {
		switch kind := action.GetKind().(type) {
		case *nodewisev1.Action_CreatePod:
			creates++
			if node := kind.CreatePod.GetNodeName(); !nodes.Has(node) {
				nodes.Insert(node)
			} else if second == nil {
				second = action
			}
		case *nodewisev1.Action_DeletePod:
			deletes++
		case *nodewisev1.Action_CreateRevision:
			revisions++
		default:
		}
	}
	switch {
	case creates > burst:
		return &Violation{What: fmt.Sprintf("it creates %d pods, and %d are the most that were asked for", creates, burst)}
	case deletes > burst:
		return &Violation{What: fmt.Sprintf("it deletes %d pods, and %d are the most that were asked for", deletes, burst)}
	case revisions > 1:
		return &Violation{What: fmt.Sprintf("it creates %d revisions, and 1 is the most", revisions)}
	case second != nil:
		return &Violation{Action: second, What: fmt.Sprintf("it creates a second pod for node %q", second.GetCreatePod().GetNodeName())}
	default:
		return nil
	}
}

// checkNode checks the node that a pod is created for. Nodes and pods may have changed since the snapshot.
func checkNode(action *nodewisev1.Action, caches Caches) error {
	node := action.GetCreatePod().GetNodeName()
	pods, exists := caches.LivePods(node)
	violation := &Violation{Action: action, Contradicts: "node/" + node}
	switch {
	case !exists:
		violation.What = fmt.Sprintf("node %q does not exist", node)
	case pods > maxLivePods:
		violation.What = fmt.Sprintf("node %q has %d pods of the workload already", node, pods)
	default:
		return nil
	}
	return violation
}
