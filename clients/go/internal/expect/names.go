package expect

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/nodewisev1"
)

// usedNames are the names of one workload's pods that are gone, by node. They are kept until a watch shows another pod of the workload on the
// node. The names of pods that are for no node are under the empty node, and are kept until a plan leaves them out.
type usedNames struct {
	uid    types.UID
	byNode map[string]sets.Set[string]
}

// wire returns the names sorted by node and name, so that equal sets have equal bytes.
func (n *usedNames) wire() []*nodewisev1.UsedPodName {
	var wire []*nodewisev1.UsedPodName
	for _, node := range slices.Sorted(maps.Keys(n.byNode)) {
		for _, pod := range sets.List(n.byNode[node]) {
			wire = append(wire, &nodewisev1.UsedPodName{NodeName: node, PodName: pod})
		}
	}
	return wire
}

// drop removes the names that were sent with a request and that the plan does not keep. Names that were added since stay.
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

// maxNamesOfNode is the most names of one node, and without a node: as many as the pods of the largest ReplicaSets. Plans drop names,
// but there are none while the service refuses the requests for a workload. A tenant can still create and delete its pods.
const maxNamesOfNode = 50_000

// RetireName records the name of a pod that is gone from the caches. No new pod gets the name until a watch shows another pod of the workload on
// the node. Names of another uid of the workload are dropped.
func (h *Holdings) RetireName(key types.NamespacedName, uid types.UID, nodeName, podName string) {
	used := h.usedOf(key, uid)
	if used == nil {
		used = &usedNames{uid: uid, byNode: map[string]sets.Set[string]{}}
		h.used[key] = used
	}
	if used.byNode[nodeName] == nil {
		used.byNode[nodeName] = sets.Set[string]{}
	}
	if used.byNode[nodeName].Len() < maxNamesOfNode {
		used.byNode[nodeName].Insert(podName)
	}
}

// usedOf returns the names of a workload's pods that are gone; nil if there are none.
func (h *Holdings) usedOf(key types.NamespacedName, uid types.UID) *usedNames {
	if used := h.used[key]; used != nil && used.uid == uid {
		return used
	}
	return nil
}
