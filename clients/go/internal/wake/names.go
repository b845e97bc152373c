package wake

import (
	"google.golang.org/protobuf/proto"

	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/internal/cluster"
)

// PodState is what is seen of a pod, as far as its name is concerned.
type PodState int

const (
	// PodActive is neither finished nor being deleted.
	PodActive PodState = iota
	// PodInactive is finished or being deleted.
	PodInactive
	// PodVanished is that the caches do not show the pod any more.
	PodVanished
)

// PodSight is what a watch or a list showed of a pod of a workload.
type PodSight struct {
	Key         types.NamespacedName
	WorkloadUID types.UID
	// NodeName is the node that the pod is on or meant for; empty for none.
	PodName, NodeName string
	State             PodState
}

// PodSights tells what one transition shows of pods that a workload controls, in this order. Store is the caches as they are after it.
//
// Lists of pods and of DaemonSets come in any order. So a DaemonSet that is new shows the pods that were listed before it.
func PodSights(store *cluster.Store, transition *cluster.Transition) []PodSight {
	switch {
	case transition.Pod != nil:
		return podSights(store, transition.Pod)
	case transition.DaemonSet != nil:
		return daemonSetSights(store, transition.DaemonSet)
	default:
		return nil
	}
}

func podSights(store *cluster.Store, change *cluster.Change[cluster.Pod]) []PodSight {
	old, next := change.Old, change.New
	if old != nil && next != nil && proto.Equal(old.Pod, next.Pod) {
		return nil
	}
	var sights []PodSight
	if old != nil && (next == nil || old.GetUid() != next.GetUid()) {
		sights = appendSight(sights, store, old, PodVanished)
	}
	if next == nil {
		return sights
	}
	state := PodActive
	if !next.IsActive() {
		state = PodInactive
	}
	return appendSight(sights, store, next, state)
}

func daemonSetSights(store *cluster.Store, change *cluster.Change[cluster.DaemonSet]) []PodSight {
	old, next := change.Old, change.New
	if next == nil || old != nil && old.UID == next.UID {
		return nil
	}
	var sights []PodSight
	for _, pod := range store.InactivePods(next.Key.Namespace, next.UID) {
		sights = appendSight(sights, store, pod, PodInactive)
	}
	return sights
}

// appendSight appends what is seen of a pod, if a workload that is known controls it.
func appendSight(sights []PodSight, store *cluster.Store, pod *cluster.Pod, state PodState) []PodSight {
	owner := store.Resolve(pod.Namespace, pod.Controller)
	if owner == nil {
		return sights
	}
	return append(sights, PodSight{
		Key: owner.Key, WorkloadUID: owner.UID, PodName: pod.GetName(), NodeName: convert.TargetNode(pod.Pod), State: state,
	})
}
