// Package wake tells who is woken by what a watch showed, and what that says about expectations: chapter 15 of the behaviour,
// row by row. It is a pure function of the transition and of the DaemonSets that are known.
package wake

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"google.golang.org/protobuf/proto"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/nodewisev1"
)

// Rules are the deviations that concern wake-ups.
type Rules struct {
	// ClearReplacedOwnWrites: a replaced DaemonSet clears the own-write record of its old uid; upstream clears that of
	// the new one.
	ClearReplacedOwnWrites bool
	// WakeOnNodeDelete: a deleted node wakes the DaemonSets.
	WakeOnNodeDelete bool
	// CountRepeatedDeletions: each event of a pod that is being deleted counts as a deletion, as with upstream.
	CountRepeatedDeletions bool
}

// Reactions are what is to be done about a transition: what is observed first, then who is woken.
type Reactions struct {
	Creates   []Sight
	Deletions []Sight
	// Gone are the pods among the deletions that the caches do not show any more.
	Gone []Sight
	// Forget drops what is held for a workload.
	Forget *Forgotten
	// Enqueue are workloads to look at.
	Enqueue []types.NamespacedName
	// First is to be looked at before others: it is new.
	First *types.NamespacedName
	// Everyone is to be looked at: one reaction for all of them, since a first list of many nodes would make millions. A node
	// that came must not wait for its network behind a rollout, which makes it urgent.
	Everyone, Urgent bool
	// After is to be looked at again later.
	After *Delayed
}

// Sight is a pod that was seen to come or to go.
type Sight struct {
	Key                       types.NamespacedName
	WorkloadUID               types.UID
	PodName, PodUID, NodeName string
}

// Forgotten is a workload of which nothing is to be kept, and the uid whose own-write record is cleared.
type Forgotten struct {
	Key         types.NamespacedName
	OwnWritesOf types.UID
}

// Delayed is a workload and when to look at it.
type Delayed struct {
	Key   types.NamespacedName
	After time.Duration
}

// React tells the reactions to one transition, to the caches as they are after it.
func React(store *cluster.Store, transition *cluster.Transition, rules Rules) *Reactions {
	reactions := &Reactions{}
	switch {
	case transition.DaemonSet != nil:
		reactions.daemonSet(transition.DaemonSet, rules)
	case transition.Pod != nil:
		reactions.pod(store, transition.Pod, rules)
	case transition.Node != nil:
		reactions.node(transition.Node, rules)
	case transition.Revision != nil:
		reactions.revision(store, transition.Revision)
	}
	return reactions
}

func (r *Reactions) daemonSet(change *cluster.Change[cluster.DaemonSet], rules Rules) {
	old, next := change.Old, change.New
	switch {
	case next == nil:
		r.Forget = &Forgotten{Key: old.Key, OwnWritesOf: old.UID}
		r.Enqueue = append(r.Enqueue, old.Key)
	case old == nil:
		r.First = &next.Key
	case old.UID != next.UID:
		cleared := next.UID
		if rules.ClearReplacedOwnWrites {
			cleared = old.UID
		}
		r.Forget = &Forgotten{Key: next.Key, OwnWritesOf: cleared}
		r.First = &next.Key
	default:
		r.Enqueue = append(r.Enqueue, next.Key)
	}
}

func (r *Reactions) pod(store *cluster.Store, change *cluster.Change[cluster.Pod], rules Rules) {
	old, next := change.Old, change.New
	switch {
	case next == nil:
		r.podGone(store, old)
	case old != nil && old.GetUid() != next.GetUid():
		// Another pod of that name: its predecessor went while nobody watched, and whoever waits for that must hear of it.
		r.podGone(store, old)
		r.pod(store, &cluster.Change[cluster.Pod]{New: next}, rules)
	case old != nil && !rules.CountRepeatedDeletions && proto.Equal(old.Pod, next.Pod):
	case next.DeletionTime != nil:
		r.podGoing(store, next)
	case old == nil:
		r.podAdded(store, next)
	default:
		r.podUpdated(store, old, next)
	}
}

func (r *Reactions) podAdded(store *cluster.Store, pod *cluster.Pod) {
	if pod.Controller == nil {
		r.wakeMatching(store, pod.Namespace, pod.LabelSet())
		return
	}
	owner := store.Resolve(pod.Namespace, pod.Controller)
	if owner == nil {
		return
	}
	r.Creates = append(r.Creates, sightOf(owner, pod))
	r.Enqueue = append(r.Enqueue, owner.Key)
}

func (r *Reactions) podUpdated(store *cluster.Store, old, next *cluster.Pod) {
	changedHands := !proto.Equal(old.Controller, next.Controller)
	if changedHands {
		r.wakeOwner(store, old.Namespace, old.Controller)
	}
	if owner := store.Resolve(next.Namespace, next.Controller); owner != nil {
		r.Enqueue = append(r.Enqueue, owner.Key)
		if !isReady(old) && isReady(next) && owner.MinReadySeconds > 0 {
			// A second more than needed: readiness is stamped by another clock, in whole seconds.
			after := time.Duration(owner.MinReadySeconds)*time.Second + time.Second
			r.After = &Delayed{Key: owner.Key, After: after}
		}
		return
	}
	if next.Controller == nil && (changedHands || !sameLabels(old.Labels, next.Labels)) {
		r.wakeMatching(store, next.Namespace, next.LabelSet())
	}
}

func (r *Reactions) podGoing(store *cluster.Store, pod *cluster.Pod) {
	owner := store.Resolve(pod.Namespace, pod.Controller)
	if owner == nil {
		return
	}
	r.Deletions = append(r.Deletions, sightOf(owner, pod))
	r.Enqueue = append(r.Enqueue, owner.Key)
}

// podGone is for a pod that the caches do not show any more. While they show a pod, the snapshot has its name, and the planner gives
// that name to no other pod. From here on the executor has to tell the name.
func (r *Reactions) podGone(store *cluster.Store, pod *cluster.Pod) {
	r.podGoing(store, pod)
	if owner := store.Resolve(pod.Namespace, pod.Controller); owner != nil {
		r.Gone = append(r.Gone, sightOf(owner, pod))
	}
}

func sightOf(owner *cluster.DaemonSet, pod *cluster.Pod) Sight {
	return Sight{
		Key: owner.Key, WorkloadUID: owner.UID,
		PodName: pod.GetName(), PodUID: pod.GetUid(), NodeName: convert.TargetNode(pod.Pod),
	}
}

func (r *Reactions) revision(store *cluster.Store, change *cluster.Change[cluster.Revision]) {
	old, next := change.Old, change.New
	switch {
	case next == nil:
		r.wakeOwner(store, old.Namespace, old.Controller)
	case old == nil && next.Deleting:
		r.wakeOwner(store, next.Namespace, next.Controller)
	case old == nil && next.Controller == nil:
		r.wakeMatching(store, next.Namespace, next.Labels)
	case old == nil:
	default:
		r.revisionUpdated(store, old, next)
	}
}

func (r *Reactions) revisionUpdated(store *cluster.Store, old, next *cluster.Revision) {
	changedHands := !proto.Equal(old.Controller, next.Controller)
	if changedHands {
		r.wakeOwner(store, old.Namespace, old.Controller)
	}
	if owner := store.Resolve(next.Namespace, next.Controller); owner != nil {
		r.Enqueue = append(r.Enqueue, owner.Key)
		return
	}
	if next.Controller == nil && (changedHands || !labels.Equals(old.Labels, next.Labels)) {
		r.wakeMatching(store, next.Namespace, next.Labels)
	}
}

// node wakes every DaemonSet: the service decides which of them care. That is more than upstream wakes (D-105), and costs a plan
// that says so.
func (r *Reactions) node(change *cluster.Change[cluster.Node], rules Rules) {
	old, next := change.Old, change.New
	switch {
	case next == nil:
		r.Everyone = rules.WakeOnNodeDelete
	case old == nil || !sameLabels(old.Labels, next.Labels) || !sameTaints(old.Taints, next.Taints):
		r.Everyone, r.Urgent = true, true
	}
}

func (r *Reactions) wakeOwner(store *cluster.Store, namespace string, controller *nodewisev1.ControllerReference) {
	if owner := store.Resolve(namespace, controller); owner != nil {
		r.Enqueue = append(r.Enqueue, owner.Key)
	}
}

// wakeMatching wakes every DaemonSet that selects an orphan; several are a mistake of whoever wrote them (D-104).
func (r *Reactions) wakeMatching(store *cluster.Store, namespace string, set labels.Set) {
	for _, daemonSet := range store.Matching(namespace, set) {
		r.Enqueue = append(r.Enqueue, daemonSet.Key)
	}
}

func isReady(pod *cluster.Pod) bool {
	return pod.GetReady() == nodewisev1.ConditionStatus_CONDITION_STATUS_TRUE
}
