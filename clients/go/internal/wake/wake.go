// Package wake decides which workloads a watch event enqueues, and which expectations it meets (docs/behaviour.md). It is a pure function of the
// transition and of the cached DaemonSets.
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

// Rules are the deviations that concern the reactions to events.
type Rules struct {
	// ClearReplacedOwnWrites: when a DaemonSet is replaced, the own-write record of the old uid is dropped. Upstream drops that of the new
	// uid.
	ClearReplacedOwnWrites bool
	// WakeOnNodeDelete: a deleted node enqueues the DaemonSets.
	WakeOnNodeDelete bool
	// CountRepeatedDeletions: each event of a pod that is being deleted counts as a deletion, as with upstream.
	CountRepeatedDeletions bool
}

// Reactions are the reactions to a transition. Creates, Deletions and Gone must be applied before workloads are enqueued.
type Reactions struct {
	Creates   []PodEvent
	Deletions []PodEvent
	// Gone are the pods among the deletions that the caches do not show any more.
	Gone []PodEvent
	// Forget is a workload whose state is dropped.
	Forget *Forgotten
	// Enqueue are the workloads to enqueue.
	Enqueue []types.NamespacedName
	// First is a new workload, which is enqueued before others.
	First *types.NamespacedName
	// Everyone enqueues every workload. It is one reaction for all of them, because the first list of many nodes would cause millions.
	Everyone bool
	// Urgent enqueues every workload before others. It is set for a new node, whose network pods must not wait for a rollout.
	Urgent bool
	// After is a workload to enqueue after a delay.
	After *Delayed
}

// PodEvent is a pod that a watch has shown to be new, being deleted, or gone.
type PodEvent struct {
	Key                       types.NamespacedName
	WorkloadUID               types.UID
	PodName, PodUID, NodeName string
}

// Forgotten is a workload whose state is dropped, and the uid whose own-write record is dropped.
type Forgotten struct {
	Key         types.NamespacedName
	OwnWritesOf types.UID
}

// Delayed is a workload and the delay after which it is enqueued.
type Delayed struct {
	Key   types.NamespacedName
	After time.Duration
}

// React returns the reactions to a transition. The store is in the state after the transition.
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
		// Another pod of the same name: the deletion of its predecessor was missed, and must be counted.
		r.podGone(store, old)
		r.pod(store, &cluster.Change[cluster.Pod]{New: next}, rules)
	case old != nil && !rules.CountRepeatedDeletions && proto.Equal(old.Pod, next.Pod):
	case next.DeletionTime != nil:
		r.podDeleting(store, next)
	case old == nil:
		r.podAdded(store, next)
	default:
		r.podUpdated(store, old, next)
	}
}

func (r *Reactions) podAdded(store *cluster.Store, pod *cluster.Pod) {
	if pod.Controller == nil {
		r.enqueueMatching(store, pod.Namespace, pod.LabelSet())
		return
	}
	owner := store.Resolve(pod.Namespace, pod.Controller)
	if owner == nil {
		return
	}
	r.Creates = append(r.Creates, podEventOf(owner, pod))
	r.Enqueue = append(r.Enqueue, owner.Key)
}

func (r *Reactions) podUpdated(store *cluster.Store, old, next *cluster.Pod) {
	ownerChanged := !proto.Equal(old.Controller, next.Controller)
	if ownerChanged {
		r.enqueueOwner(store, old.Namespace, old.Controller)
	}
	if owner := store.Resolve(next.Namespace, next.Controller); owner != nil {
		r.Enqueue = append(r.Enqueue, owner.Key)
		if !isReady(old) && isReady(next) && owner.MinReadySeconds > 0 {
			// One second more than needed: the time of readiness is from another clock, in whole seconds.
			after := time.Duration(owner.MinReadySeconds)*time.Second + time.Second
			r.After = &Delayed{Key: owner.Key, After: after}
		}
		return
	}
	if next.Controller == nil && (ownerChanged || !sameLabels(old.Labels, next.Labels)) {
		r.enqueueMatching(store, next.Namespace, next.LabelSet())
	}
}

func (r *Reactions) podDeleting(store *cluster.Store, pod *cluster.Pod) {
	owner := store.Resolve(pod.Namespace, pod.Controller)
	if owner == nil {
		return
	}
	r.Deletions = append(r.Deletions, podEventOf(owner, pod))
	r.Enqueue = append(r.Enqueue, owner.Key)
}

// podGone reacts to a pod that the caches do not show any more. While they show a pod, the snapshot has its name, and the planner gives the name
// to no other pod. From now on the executor must send the name as a used one.
func (r *Reactions) podGone(store *cluster.Store, pod *cluster.Pod) {
	r.podDeleting(store, pod)
	if owner := store.Resolve(pod.Namespace, pod.Controller); owner != nil {
		r.Gone = append(r.Gone, podEventOf(owner, pod))
	}
}

func podEventOf(owner *cluster.DaemonSet, pod *cluster.Pod) PodEvent {
	return PodEvent{
		Key: owner.Key, WorkloadUID: owner.UID,
		PodName: pod.GetName(), PodUID: pod.GetUid(), NodeName: convert.TargetNode(pod.Pod),
	}
}

func (r *Reactions) revision(store *cluster.Store, change *cluster.Change[cluster.Revision]) {
	old, next := change.Old, change.New
	switch {
	case next == nil:
		r.enqueueOwner(store, old.Namespace, old.Controller)
	case old == nil && next.Deleting:
		r.enqueueOwner(store, next.Namespace, next.Controller)
	case old == nil && next.Controller == nil:
		r.enqueueMatching(store, next.Namespace, next.Labels)
	case old == nil:
	default:
		r.revisionUpdated(store, old, next)
	}
}

func (r *Reactions) revisionUpdated(store *cluster.Store, old, next *cluster.Revision) {
	ownerChanged := !proto.Equal(old.Controller, next.Controller)
	if ownerChanged {
		r.enqueueOwner(store, old.Namespace, old.Controller)
	}
	if owner := store.Resolve(next.Namespace, next.Controller); owner != nil {
		r.Enqueue = append(r.Enqueue, owner.Key)
		return
	}
	if next.Controller == nil && (ownerChanged || !labels.Equals(old.Labels, next.Labels)) {
		r.enqueueMatching(store, next.Namespace, next.Labels)
	}
}

// node enqueues every DaemonSet, and the service decides whether the node matters to it. Upstream enqueues fewer (D-105): the difference costs a
// plan without actions.
func (r *Reactions) node(change *cluster.Change[cluster.Node], rules Rules) {
	old, next := change.Old, change.New
	switch {
	case next == nil:
		r.Everyone = rules.WakeOnNodeDelete
	case old == nil || !sameLabels(old.Labels, next.Labels) || !sameTaints(old.Taints, next.Taints):
		r.Everyone, r.Urgent = true, true
	}
}

func (r *Reactions) enqueueOwner(store *cluster.Store, namespace string, controller *nodewisev1.ControllerReference) {
	if owner := store.Resolve(namespace, controller); owner != nil {
		r.Enqueue = append(r.Enqueue, owner.Key)
	}
}

// enqueueMatching enqueues every DaemonSet that selects an orphan. If there are several, their selectors overlap by mistake (D-104).
func (r *Reactions) enqueueMatching(store *cluster.Store, namespace string, set labels.Set) {
	for _, daemonSet := range store.Matching(namespace, set) {
		r.Enqueue = append(r.Enqueue, daemonSet.Key)
	}
}

func isReady(pod *cluster.Pod) bool {
	return pod.GetReady() == nodewisev1.ConditionStatus_CONDITION_STATUS_TRUE
}
