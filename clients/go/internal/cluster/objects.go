// Package cluster keeps what the watches have shown: DaemonSets by key, pods by their controller, nodes, revisions, and the
// resourceVersion that each watch has reached.
//
// Taking in an event answers with the transition that it made, from which package wake derives who is woken. Pods and
// revisions that neither a DaemonSet controls nor nobody does are not kept: they are never read (D-3), and most pods of a
// cluster are of that kind. Nothing here is safe for concurrent use; whoever owns a Store locks.
package cluster

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/served"
)

// Kind is the owner kind whose pods and revisions are kept.
const Kind = "DaemonSet"

// Resource is a kind of object that is watched, by its name in the API.
type Resource string

// The resources that are watched.
const (
	DaemonSets Resource = "daemonsets"
	Pods       Resource = "pods"
	Nodes      Resource = "nodes"
	Revisions  Resource = "controllerrevisions"
)

// Resources are all of them.
var Resources = [...]Resource{DaemonSets, Pods, Nodes, Revisions}

// DaemonSet is an apps/v1 DaemonSet.
type DaemonSet struct {
	Key             types.NamespacedName
	UID             types.UID
	ResourceVersion string
	// Labels are its own.
	Labels kubelabels.Set
	// Selector wakes the DaemonSet for orphans. It matches nothing where spec.selector is absent, empty or invalid (D-104).
	Selector kubelabels.Selector
	// Reads is what the decisions about it read of nodes and pods, and what it may claim.
	Reads           convert.Reads
	MinReadySeconds int32
	Generation      int64
	// Traceparent is the trace context that the object carries; empty for none.
	Traceparent string
	// JSON is the object as it was served.
	JSON []byte
}

// NewDaemonSet reads a DaemonSet. One whose spec cannot be read is kept as it is, with the reason, and nothing wakes it but
// itself: the service refuses it and says why. Left out, it would look deleted.
func NewDaemonSet(object *served.Object) (*DaemonSet, error) {
	daemonSet := &DaemonSet{
		Key:             types.NamespacedName{Namespace: object.Namespace, Name: object.Name},
		UID:             object.UID,
		ResourceVersion: object.ResourceVersion,
		Labels:          object.Labels,
		Selector:        kubelabels.Nothing(),
		Reads:           convert.ReadsOf(object.JSON),
		Traceparent:     object.Annotations[convert.TraceparentAnnotation],
		JSON:            object.JSON,
	}
	var parsed struct {
		Metadata struct {
			Generation int64 `json:"generation"`
		} `json:"metadata"`
		Spec struct {
			Selector        *metav1.LabelSelector `json:"selector"`
			MinReadySeconds int32                 `json:"minReadySeconds"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(object.JSON, &parsed); err != nil {
		return daemonSet, fmt.Errorf("reading the spec of DaemonSet %s: %w", daemonSet.Key, err)
	}
	daemonSet.Generation = parsed.Metadata.Generation
	daemonSet.MinReadySeconds = max(parsed.Spec.MinReadySeconds, 0)
	selector, err := metav1.LabelSelectorAsSelector(parsed.Spec.Selector)
	if err != nil {
		return daemonSet, fmt.Errorf("reading spec.selector of DaemonSet %s: %w", daemonSet.Key, err)
	}
	if !selector.Empty() {
		daemonSet.Selector = selector
	}
	return daemonSet, nil
}

// Revision is an apps/v1 ControllerRevision.
type Revision struct {
	Namespace, Name string
	UID             types.UID
	ResourceVersion string
	Labels          kubelabels.Set
	// Controller is nil for an orphan.
	Controller *nodewisev1.ControllerReference
	Deleting   bool
	// Number is the higher the newer the revision is; 0 where it has none that can be read.
	Number int64
	// JSON is the object as it was served; nil where only its metadata is kept.
	JSON []byte
	// Size is how many bytes the object has.
	Size int
	// known are the keys of the labels that are kept; nil if all are.
	known *convert.KeySet
	// changed is the number of the last change in the caches.
	changed uint64
}

// NewRevision reads a ControllerRevision.
func NewRevision(object *served.Object) *Revision {
	return &Revision{
		Namespace:       object.Namespace,
		Name:            object.Name,
		UID:             object.UID,
		ResourceVersion: object.ResourceVersion,
		Labels:          object.Labels,
		Controller:      convert.Controller(object.OwnerReferences),
		Deleting:        object.DeletionTimestamp != nil,
		Number:          object.Revision,
		JSON:            object.JSON,
		Size:            len(object.JSON),
	}
}

// IsForeign tells whether a pod or revision with this controller is not kept: another kind controls it, or what cannot be a DaemonSet.
// An apiserver takes owner references of any length.
func IsForeign(controller *nodewisev1.ControllerReference) bool {
	return controller != nil && (controller.GetKind() != Kind || max(len(controller.GetName()), len(controller.GetUid())) > maxName)
}

// maxName is the longest name or uid of an object.
const maxName = validation.DNS1123SubdomainMaxLength

// Hash is its hash label; empty where it has none.
func (r *Revision) Hash() string { return r.Labels[appsv1.ControllerRevisionHashLabelKey] }

// Identity is what tells which pod or revision one is, and whose.
type Identity struct {
	UID string
	// Controller is nil for an orphan.
	Controller *nodewisev1.ControllerReference
	Labels     kubelabels.Set
}

// Pod is the projection of a v1 Pod, and what else is needed to keep it.
type Pod struct {
	Namespace, ResourceVersion string
	// Traceparent is the trace context that the pod carries. It is known of a pod as it comes from a watch, and not kept.
	Traceparent string
	*nodewisev1.Pod
}

// LabelSet are its labels.
func (p *Pod) LabelSet() kubelabels.Set {
	set := make(kubelabels.Set, len(p.Labels))
	for _, label := range p.Labels {
		set[label.GetKey()] = label.GetValue()
	}
	return set
}

// Identity is its identity.
func (p *Pod) Identity() *Identity {
	return &Identity{UID: p.GetUid(), Controller: p.Controller, Labels: p.LabelSet()}
}

// Node is the projection of a v1 Node, likewise.
type Node struct {
	ResourceVersion string
	*nodewisev1.Node
}

// Change is how one object changed. At least one side is set: the old one is absent when it was not known, the new one when it
// is gone.
type Change[T any] struct {
	Old, New *T
}

// Transition is what an event changed: one of these.
type Transition struct {
	DaemonSet *Change[DaemonSet]
	Pod       *Change[Pod]
	Node      *Change[Node]
	Revision  *Change[Revision]
}
