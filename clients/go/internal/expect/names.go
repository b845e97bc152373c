package expect

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/nodewisev1"
)

// PodName is the name of a pod, and the node that the pod is on or meant for.
type PodName struct {
	NodeName, PodName string
}

// usedNames are the names that no new pod of one workload gets for now.
//
// They are kept beside what plans say, since watches show pods before the first plan of a workload, and since a reconcile of the
// workload that was replaced must not touch those of its successor.
type usedNames struct {
	uid    types.UID
	byNode podNames
}

// podNames are names of pods by node. No node has an empty set.
type podNames map[string]sets.Set[string]

func parseNames(wire []*nodewisev1.UsedPodName) podNames {
	names := podNames{}
	for _, used := range wire {
		names.insert(PodName{NodeName: used.GetNodeName(), PodName: used.GetPodName()})
	}
	return names
}

// wire is what is sent: sorted by node and name, so that equal sets are equal bytes.
func (n podNames) wire() []*nodewisev1.UsedPodName {
	var wire []*nodewisev1.UsedPodName
	for _, node := range slices.Sorted(maps.Keys(n)) {
		for _, pod := range sets.List(n[node]) {
			wire = append(wire, &nodewisev1.UsedPodName{NodeName: node, PodName: pod})
		}
	}
	return wire
}

func (n podNames) has(pod PodName) bool { return n[pod.NodeName].Has(pod.PodName) }

func (n podNames) insert(pod PodName) {
	if n[pod.NodeName] == nil {
		n[pod.NodeName] = sets.Set[string]{}
	}
	n[pod.NodeName].Insert(pod.PodName)
}

// drop removes what was sent with a request and is not in its answer: the planner does not need it any more. What watches added
// meanwhile was not sent, and stays.
func (n podNames) drop(sent, answered podNames) {
	for node, names := range sent {
		kept := n[node].Difference(names.Difference(answered[node]))
		if len(kept) == 0 {
			delete(n, node)
		} else {
			n[node] = kept
		}
	}
}

// ObservePod is told that a watch or a list showed a pod of the workload, and whether the pod is active: neither finished nor being
// deleted. The name of one that is not is used. An active pod ends what is used on its node: what replaces a pod was seen there.
func (h *Holdings) ObservePod(key types.NamespacedName, uid types.UID, pod PodName, isActive bool) {
	if !isActive {
		h.use(key, uid, pod)
		return
	}
	if used := h.usedOf(key, uid); used != nil {
		delete(used.byNode, pod.NodeName)
		h.dropIfUnused(key)
	}
}

// ObserveVanished is told that a pod of the workload is not in the caches any more. Its name is used, unless the caches show an active
// pod of the workload on its node: that is asked only where it matters.
func (h *Holdings) ObserveVanished(key types.NamespacedName, uid types.UID, pod PodName, hasActivePod func() bool) {
	if used := h.usedOf(key, uid); used != nil && used.byNode.has(pod) {
		return
	}
	if !hasActivePod() {
		h.use(key, uid, pod)
	}
}

// use adds a name. What is held for another uid of the workload's name is dropped. A pod without a node takes the place of no other.
func (h *Holdings) use(key types.NamespacedName, uid types.UID, pod PodName) {
	if pod.NodeName == "" || pod.PodName == "" {
		return
	}
	used := h.usedOf(key, uid)
	if used == nil {
		used = &usedNames{uid: uid, byNode: podNames{}}
		h.used[key] = used
	}
	used.byNode.insert(pod)
}

func (h *Holdings) dropUsed(key types.NamespacedName, uid types.UID, sent, answered []*nodewisev1.UsedPodName) {
	if used := h.usedOf(key, uid); used != nil {
		used.byNode.drop(parseNames(sent), parseNames(answered))
		h.dropIfUnused(key)
	}
}

// usedOf are the names of a workload that are used; nil for none.
func (h *Holdings) usedOf(key types.NamespacedName, uid types.UID) *usedNames {
	if used := h.used[key]; used != nil && used.uid == uid {
		return used
	}
	return nil
}

func (h *Holdings) dropIfUnused(key types.NamespacedName) {
	if len(h.used[key].byNode) == 0 {
		delete(h.used, key)
	}
}
