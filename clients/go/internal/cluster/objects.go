// Package cluster is the cache of DaemonSets, pods, nodes and revisions, and of the resourceVersion that each watch has reached.
//
// Each method that applies an event returns the transition of the object, from which package wake derives the workloads to enqueue. Pods and
// revisions controlled by another kind are not cached: no plan reads them (D-3), and they are most pods of a cluster. Nothing here is safe for
// concurrent use.
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

// Kind is the controller kind whose pods and revisions are cached.
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
	// Labels are the labels of the DaemonSet itself.
	Labels kubelabels.Set
	// Selector decides for which orphans the DaemonSet is enqueued. It matches nothing if spec.selector is absent, empty or invalid (D-104).
	Selector kubelabels.Selector
	// Reads says which fields of nodes and pods a plan for the DaemonSet reads, and what the DaemonSet may claim.
	Reads           convert.Reads
	MinReadySeconds int32
	Generation      int64
	// Traceparent is the trace context that the object carries; empty for none.
	Traceparent string
	// JSON is the object as it was served.
	JSON []byte
}

// NewDaemonSet reads a DaemonSet. If the spec cannot be read, it returns the DaemonSet together with an error. Such a DaemonSet must be cached,
// too, or it would look deleted. Only its own events enqueue it, and the service refuses it and says why.
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
	// Number is the revision number, which is higher for a newer revision; 0 if there is none that can be read.
	Number int64
	// JSON is the object as it was served; nil if only its metadata is kept.
	JSON []byte
	// Size is the size of the object in bytes.
	Size int
	// known are the keys of the labels that are kept; nil if all labels are kept.
	known *convert.KeySet
	// changed is the number of the revision's last change in the caches.
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

// IsForeign reports whether a pod or revision with this controller is not cached: the controller is of another kind, or its name or uid is too
// long for an object. An apiserver accepts owner references of any length.
func IsForeign(controller *nodewisev1.ControllerReference) bool {
	return controller != nil && (controller.GetKind() != Kind || max(len(controller.GetName()), len(controller.GetUid())) > maxName)
}

// maxName is the longest name or uid of an object.
const maxName = validation.DNS1123SubdomainMaxLength

// Hash is the hash label of the revision; empty if it has none.
func (r *Revision) Hash() string { return r.Labels[appsv1.ControllerRevisionHashLabelKey] }

// Identity is the identity of a pod or revision, with its controller and labels.
type Identity struct {
	UID string
	// Controller is nil for an orphan.
	Controller *nodewisev1.ControllerReference
	Labels     kubelabels.Set
}

// Pod is the projection of a v1 Pod, with other fields that the cache needs.
type Pod struct {
	Namespace, ResourceVersion string
	// Traceparent is the trace context in the pod's annotation. It is set for a pod from a watch, and is not cached.
	Traceparent string
	*nodewisev1.Pod
}

// LabelSet is the labels of the pod.
func (p *Pod) LabelSet() kubelabels.Set {
	set := make(kubelabels.Set, len(p.Labels))
	for _, label := range p.Labels {
		set[label.GetKey()] = label.GetValue()
	}
	return set
}

// Identity is the identity of the pod.
func (p *Pod) Identity() *Identity {
	return &Identity{UID: p.GetUid(), Controller: p.Controller, Labels: p.LabelSet()}
}

// Node is the projection of a v1 Node, with its version.
type Node struct {
	ResourceVersion string
	*nodewisev1.Node
}

// Change is the change of one object. Old is nil if the object is new, and New is nil if it is gone.
type Change[T any] struct {
	Old, New *T
}

// Transition is the change that an event made. One of the fields is set.
type Transition struct {
	DaemonSet *Change[DaemonSet]
	Pod       *Change[Pod]
	Node      *Change[Node]
	Revision  *Change[Revision]
}
