// Package wake decides which workloads a watch event enqueues, and which expectations it meets (docs/behaviour.md). It is a pure function of the
// transition and of the cached workloads.
package wake

import (
	"cmp"
	"slices"
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
	// ClearReplacedOwnWrites: when a workload is replaced, the own-write record of the old uid is dropped. Upstream drops that of the new
	// uid.
	ClearReplacedOwnWrites bool
	// WakeOnNodeDelete: a deleted node enqueues the workloads.
	WakeOnNodeDelete bool
	// CountRepeatedDeletions: each event of a pod that is being deleted counts as a deletion, as with upstream.
	CountRepeatedDeletions bool
}

// behaviour is what events mean for the workloads of one kind.
type behaviour struct {
	// pods is nil for a kind whose workloads control no pods.
	pods *podRules
	// byNodes is true if events of nodes enqueue every workload.
	byNodes bool
	// byPolicies is true if workloads may have RolloutPolicies.
	byPolicies bool
	// lastPod is true if the deletion of the last pod of a workload that recreates enqueues the workload (P-8).
	lastPod bool
}

// podRules are how kinds that control pods differ.
type podRules struct {
	// perNode is true if each pod is for one node.
	perNode bool
	// afterReady is how much later than after minReadySeconds a workload is enqueued whose pod became ready.
	afterReady time.Duration
	// deletesRelabelled: if a pod gets other labels and a deletion time at once, its state before counts as deleted, too.
	deletesRelabelled bool
}

var behaviours = map[*cluster.Kind]behaviour{
	cluster.DaemonSet: {
		// One second more than needed: the time of readiness is from another clock, in whole seconds.
		pods:    &podRules{perNode: true, afterReady: time.Second},
		byNodes: true, byPolicies: true,
	},
	cluster.ReplicaSet: {pods: &podRules{deletesRelabelled: true}},
	cluster.Deployment: {lastPod: true},
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

// React returns the reactions of one kind of workload to a transition. The store is in the state after the transition.
func React(kind *cluster.Kind, store *cluster.Store, transition *cluster.Transition, rules Rules) *Reactions {
	r := &reacting{Reactions: &Reactions{}, kind: kind, behaviour: behaviours[kind], store: store, rules: rules}
	switch {
	case transition.Workload != nil:
		r.workload(transition.Workload)
	case transition.Pod != nil && r.pods != nil:
		r.pod(transition.Pod)
	case transition.Pod != nil && r.lastPod:
		r.lastPodGone(transition.Pod)
	case transition.Node != nil && r.byNodes:
		r.node(transition.Node)
	case transition.Revision != nil && slices.Contains(kind.Inputs, cluster.Revisions):
		old, next := transition.Revision.Old, transition.Revision.New
		r.controlled(ofRevision(old), ofRevision(next), true)
	case transition.Policy != nil && r.byPolicies:
		r.policy(transition.Policy)
	}
	return r.Reactions
}

// reacting collects the reactions of one kind.
type reacting struct {
	*Reactions
	behaviour

	kind  *cluster.Kind
	store *cluster.Store
	rules Rules
}

func (r *reacting) workload(change *cluster.Change[cluster.Workload]) {
	old, next := change.Old, change.New
	of := cmp.Or(next, old).Kind
	switch {
	case of == r.kind.Controls:
		if old == nil || next == nil || old.UID != next.UID || old.ResourceVersion != next.ResourceVersion {
			// P-6 and P-7.
			r.controlled(ofWorkload(old), ofWorkload(next), false)
		}
	case of != r.kind:
	case next == nil:
		r.Forget = &Forgotten{Key: old.Key, OwnWritesOf: old.UID}
		r.Enqueue = append(r.Enqueue, old.Key)
	case old == nil:
		r.First = &next.Key
	case old.UID != next.UID:
		cleared := next.UID
		if r.rules.ClearReplacedOwnWrites {
			cleared = old.UID
		}
		r.Forget = &Forgotten{Key: next.Key, OwnWritesOf: cleared}
		r.First = &next.Key
	default:
		r.Enqueue = append(r.Enqueue, next.Key)
	}
}

func (r *reacting) pod(change *cluster.Change[cluster.Pod]) {
	old, next := change.Old, change.New
	switch {
	case next == nil:
		r.podGone(old)
	case old != nil && old.GetUid() != next.GetUid():
		// Another pod of the same name: the deletion of its predecessor was missed, and must be counted.
		r.podGone(old)
		r.pod(&cluster.Change[cluster.Pod]{New: next})
	case old != nil && !r.rules.CountRepeatedDeletions && proto.Equal(old.Pod, next.Pod):
	case next.DeletionTime != nil:
		r.podDeleting(next)
		if r.pods.deletesRelabelled && old != nil && !sameLabels(old.Labels, next.Labels) {
			r.podDeleting(old)
		}
	case old == nil:
		r.podAdded(next)
	default:
		r.podUpdated(old, next)
	}
}

func (r *reacting) podAdded(pod *cluster.Pod) {
	if pod.Controller == nil {
		r.enqueueMatching(pod.Namespace, pod.LabelSet())
		return
	}
	owner := r.store.Resolve(r.kind, pod.Namespace, pod.Controller)
	if owner == nil {
		return
	}
	r.Creates = append(r.Creates, r.podEvent(owner, pod))
	r.Enqueue = append(r.Enqueue, owner.Key)
}

func (r *reacting) podUpdated(old, next *cluster.Pod) {
	ownerChanged := !proto.Equal(old.Controller, next.Controller)
	if ownerChanged {
		r.enqueueOwner(old.Namespace, old.Controller)
	}
	if owner := r.store.Resolve(r.kind, next.Namespace, next.Controller); owner != nil {
		if r.byPolicies && isRestart(old, next) && !r.store.HasPolicy(owner) {
			return
		}
		r.Enqueue = append(r.Enqueue, owner.Key)
		if !isReady(old) && isReady(next) && owner.MinReadySeconds > 0 {
			after := time.Duration(owner.MinReadySeconds)*time.Second + r.pods.afterReady
			r.After = &Delayed{Key: owner.Key, After: after}
		}
		return
	}
	if next.Controller == nil && (ownerChanged || !sameLabels(old.Labels, next.Labels)) {
		r.enqueueMatching(next.Namespace, next.LabelSet())
	}
}

func (r *reacting) podDeleting(pod *cluster.Pod) {
	owner := r.store.Resolve(r.kind, pod.Namespace, pod.Controller)
	if owner == nil {
		return
	}
	r.Deletions = append(r.Deletions, r.podEvent(owner, pod))
	r.Enqueue = append(r.Enqueue, owner.Key)
}

// podGone reacts to a pod that the caches do not show any more. While they show a pod, the snapshot has its name, and the planner gives the name
// to no other pod. From now on the executor must send the name as a used one. If each pod is for a node, a pod without a node is not replaced by
// another one.
func (r *reacting) podGone(pod *cluster.Pod) {
	r.podDeleting(pod)
	owner := r.store.Resolve(r.kind, pod.Namespace, pod.Controller)
	if owner == nil {
		return
	}
	if gone := r.podEvent(owner, pod); gone.NodeName != "" || !r.pods.perNode {
		r.Gone = append(r.Gone, gone)
	}
}

// podEvent is an event of a pod. The node is empty if pods are not for nodes.
func (r *reacting) podEvent(owner *cluster.Workload, pod *cluster.Pod) PodEvent {
	event := PodEvent{Key: owner.Key, WorkloadUID: owner.UID, PodName: pod.GetName(), PodUID: pod.GetUid()}
	if r.pods.perNode {
		event.NodeName = convert.TargetNode(pod.Pod)
	}
	return event
}

// lastPodGone enqueues a workload that recreates when its last pod is gone. Upstream reads its ReplicaSets from the apiserver at this point. Here
// the cached ones count: if the caches lack one or its pods, their events will follow.
func (r *reacting) lastPodGone(change *cluster.Change[cluster.Pod]) {
	pod := change.Old
	if pod == nil || change.New != nil && change.New.GetUid() == pod.GetUid() {
		return
	}
	set := r.store.Resolve(r.kind.Controls, pod.Namespace, pod.Controller)
	if set == nil {
		return
	}
	owner := r.store.Resolve(r.kind, pod.Namespace, set.Controller)
	if owner == nil || !owner.Recreates {
		return
	}
	for _, set := range r.store.Controlled(r.kind.Controls, owner) {
		if owner.Reads.Selector.Matches(set.Labels) && r.store.HasPods(set) {
			return
		}
	}
	r.Enqueue = append(r.Enqueue, owner.Key)
}

// object is an object, other than a pod, that workloads control or may adopt.
type object struct {
	namespace  string
	controller *nodewisev1.ControllerReference
	labels     labels.Set
	deleting   bool
}

func ofRevision(of *cluster.Revision) *object {
	if of == nil {
		return nil
	}
	return &object{of.Namespace, of.Controller, of.Labels, of.Deleting}
}

func ofWorkload(of *cluster.Workload) *object {
	if of == nil {
		return nil
	}
	return &object{of.Key.Namespace, of.Controller, of.Labels, of.Deleting}
}

// controlled reacts to an object that workloads control or may adopt. With ignoresNew, an object that came together with its controller is no
// news.
func (r *reacting) controlled(old, next *object, ignoresNew bool) {
	switch {
	case next == nil:
		r.enqueueOwner(old.namespace, old.controller)
	case old == nil && next.deleting:
		r.enqueueOwner(next.namespace, next.controller)
	case old == nil && next.controller == nil:
		r.enqueueMatching(next.namespace, next.labels)
	case old == nil:
		if !ignoresNew {
			r.enqueueOwner(next.namespace, next.controller)
		}
	default:
		r.controlledUpdated(old, next)
	}
}

func (r *reacting) controlledUpdated(old, next *object) {
	ownerChanged := !proto.Equal(old.controller, next.controller)
	if ownerChanged {
		r.enqueueOwner(old.namespace, old.controller)
	}
	if owner := r.store.Resolve(r.kind, next.namespace, next.controller); owner != nil {
		r.Enqueue = append(r.Enqueue, owner.Key)
		return
	}
	if next.controller == nil && (ownerChanged || !labels.Equals(old.labels, next.labels)) {
		r.enqueueMatching(next.namespace, next.labels)
	}
}

// node enqueues every workload, and the service decides whether the node matters to it. Upstream enqueues fewer (D-105): the difference costs a
// plan without actions.
func (r *reacting) node(change *cluster.Change[cluster.Node]) {
	old, next := change.Old, change.New
	switch {
	case next == nil:
		r.Everyone = r.rules.WakeOnNodeDelete
	case old == nil || !sameLabels(old.Labels, next.Labels) || !sameTaints(old.Taints, next.Taints):
		r.Everyone, r.Urgent = true, true
	}
	if !r.Everyone && r.byPolicies && isNewsForPolicies(old, next) {
		for _, workload := range r.store.WithPolicies(r.kind) {
			r.Enqueue = append(r.Enqueue, workload.Key)
		}
	}
}

func (r *reacting) enqueueOwner(namespace string, controller *nodewisev1.ControllerReference) {
	if owner := r.store.Resolve(r.kind, namespace, controller); owner != nil {
		r.Enqueue = append(r.Enqueue, owner.Key)
	}
}

// enqueueMatching enqueues every workload that selects an orphan. If there are several, their selectors overlap by mistake (D-104).
func (r *reacting) enqueueMatching(namespace string, set labels.Set) {
	for _, workload := range r.store.Matching(r.kind, namespace, set) {
		r.Enqueue = append(r.Enqueue, workload.Key)
	}
}

func isReady(pod *cluster.Pod) bool {
	return pod.GetReady() == nodewisev1.ConditionStatus_CONDITION_STATUS_TRUE
}
