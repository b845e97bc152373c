package expect

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/nodewisev1"
)

// usedNames are the names of one workload's pods that are gone, by node, until another pod of the workload is seen there.
type usedNames struct {
	uid    types.UID
	byNode map[string]sets.Set[string]
}

// wire is what is sent: sorted by node and name, so that equal sets are equal bytes.
func (n *usedNames) wire() []*nodewisev1.UsedPodName {
	var wire []*nodewisev1.UsedPodName
	for _, node := range slices.Sorted(maps.Keys(n.byNode)) {
		for _, pod := range sets.List(n.byNode[node]) {
			wire = append(wire, &nodewisev1.UsedPodName{NodeName: node, PodName: pod})
		}
	}
	return wire
}

// drop removes what was sent with a request and what the plan does not keep. What came since was not sent, and stays.
func (n *usedNames) drop(sent, kept []*nodewisev1.UsedPodName) {
	type name struct{ node, pod string }
	needed := sets.Set[name]{}
	for _, used := range kept {
		needed.Insert(name{used.GetNodeName(), used.GetPodName()})
	}
	for _, used := range sent {
		node, pod := used.GetNodeName(), used.GetPodName()
		if needed.Has(name{node, pod}) {
			continue
		}
		if n.byNode[node].Delete(pod); len(n.byNode[node]) == 0 {
			delete(n.byNode, node)
		}
	}
}

// RetireName is told that a pod of the workload is gone from the caches: no new pod gets its name before another pod of the workload is
// seen on its node. What is held for another uid of the workload's name is dropped.
func (h *Holdings) RetireName(key types.NamespacedName, uid types.UID, nodeName, podName string) {
	if nodeName == "" {
		// No pod replaces one that was on no node and meant for none, and the service refuses a name without a node.
		return
	}
	used := h.usedOf(key, uid)
	if used == nil {
		used = &usedNames{uid: uid, byNode: map[string]sets.Set[string]{}}
		h.used[key] = used
	}
	if used.byNode[nodeName] == nil {
		used.byNode[nodeName] = sets.Set[string]{}
	}
	used.byNode[nodeName].Insert(podName)
}

// usedOf are the names of a workload's pods that are gone; nil for none.
func (h *Holdings) usedOf(key types.NamespacedName, uid types.UID) *usedNames {
	if used := h.used[key]; used != nil && used.uid == uid {
		return used
	}
	return nil
}
