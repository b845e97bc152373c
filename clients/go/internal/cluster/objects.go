// Package cluster is the cache of workloads, pods, nodes and revisions, and of the resourceVersion that each watch has reached.
//
// Each method that applies an event returns the transition of the object, from which package wake derives the workloads to enqueue. Pods and
// revisions controlled by a kind that is not cached are not cached either: no plan reads them (D-3), and they are most pods of a cluster. Nothing here is safe for
// concurrent use.
package cluster

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/internal/rawjson"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/served"
)

// Resource is a kind of object that is watched, by its name in the API.
type Resource string

// The resources that are watched.
const (
	DaemonSets  Resource = "daemonsets"
	ReplicaSets Resource = "replicasets"
	Deployments Resource = "deployments"
	Pods        Resource = "pods"
	Nodes       Resource = "nodes"
	Revisions   Resource = "controllerrevisions"
	// RolloutPolicies are a custom resource, which need not be installed.
	RolloutPolicies Resource = "rolloutpolicies"
)

// Resources are all of them.
var Resources = [...]Resource{DaemonSets, Deployments, ReplicaSets, Pods, Nodes, Revisions, RolloutPolicies}

// PolicyKind is the kind of RolloutPolicies in the API.
const PolicyKind = "RolloutPolicy"

// policyVersion is the version of the API of RolloutPolicies.
var policyVersion = schema.GroupVersion{Group: "nodewise.dev", Version: "v1alpha1"}

// GroupVersion is the group and the version of the resource in the API.
func (r Resource) GroupVersion() schema.GroupVersion {
	switch r {
	case Pods, Nodes:
		return corev1.SchemeGroupVersion
	case RolloutPolicies:
		return policyVersion
	default:
		return appsv1.SchemeGroupVersion
	}
}

// InAPI is the resource with its group and version.
func (r Resource) InAPI() schema.GroupVersionResource {
	return r.GroupVersion().WithResource(string(r))
}

// IsNamed reports whether an action of a plan names this resource.
func (r Resource) IsNamed(named *nodewisev1.GroupVersionResource) bool {
	version := r.GroupVersion()
	return named.GetGroup() == version.Group && named.GetVersion() == version.Version && named.GetResource() == string(r)
}

// Workload is an apps/v1 DaemonSet, ReplicaSet or Deployment.
type Workload struct {
	Kind            *Kind
	Key             types.NamespacedName
	UID             types.UID
	ResourceVersion string
	// Labels are the labels of the workload itself.
	Labels kubelabels.Set
	// Controller is nil for a workload that no other one controls.
	Controller *nodewisev1.ControllerReference
	Deleting   bool
	// Created is metadata.creationTimestamp, as it is written.
	Created string
	// Selector decides for which orphans the workload is enqueued. It matches nothing if spec.selector is absent, empty or invalid (D-104).
	Selector kubelabels.Selector
	// Reads says which labels of nodes and pods a plan for the workload reads, and what the workload may claim.
	Reads           convert.Reads
	MinReadySeconds int32
	// Replicas is spec.replicas, or its default.
	Replicas int32
	// Recreates is true if all old pods stop before new ones start: a Deployment with the strategy Recreate.
	Recreates  bool
	Generation int64
	// Traceparent is the trace context that the object carries; empty for none.
	Traceparent string
	// JSON is the object as it was served.
	JSON []byte
	// changed is the number of the workload's last change in the caches.
	changed uint64
}

// NewWorkload reads a workload of a kind. If the spec cannot be read, it returns the workload together with an error. Such a workload must be
// cached, too, or it would look deleted. Only its own events enqueue it, and the service refuses it and says why.
func NewWorkload(kind *Kind, object *served.Object) (*Workload, error) {
	workload := &Workload{
		Kind:            kind,
		Key:             types.NamespacedName{Namespace: object.Namespace, Name: object.Name},
		UID:             object.UID,
		ResourceVersion: object.ResourceVersion,
		Labels:          object.Labels,
		Controller:      convert.Controller(object.OwnerReferences),
		Deleting:        object.DeletionTimestamp != nil,
		Selector:        kubelabels.Nothing(),
		Reads:           kind.reads(object.JSON),
		Replicas:        1,
		Traceparent:     object.Annotations[convert.TraceparentAnnotation],
		JSON:            object.JSON,
	}
	var parsed struct {
		Metadata struct {
			Generation        int64  `json:"generation"`
			CreationTimestamp string `json:"creationTimestamp"`
		} `json:"metadata"`
		Spec struct {
			Selector        *metav1.LabelSelector `json:"selector"`
			MinReadySeconds int32                 `json:"minReadySeconds"`
			Replicas        *int32                `json:"replicas"`
			Strategy        any                   `json:"strategy"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(object.JSON, &parsed); err != nil {
		return workload, fmt.Errorf("reading the spec of %s %s: %w", kind.Name, workload.Key, err)
	}
	workload.Generation, workload.Created = parsed.Metadata.Generation, parsed.Metadata.CreationTimestamp
	workload.MinReadySeconds = max(parsed.Spec.MinReadySeconds, 0)
	if parsed.Spec.Replicas != nil {
		workload.Replicas = *parsed.Spec.Replicas
	}
	workload.Recreates = rawjson.At(parsed.Spec.Strategy, "type") == string(appsv1.RecreateDeploymentStrategyType)
	selector, err := metav1.LabelSelectorAsSelector(parsed.Spec.Selector)
	if err != nil {
		return workload, fmt.Errorf("reading spec.selector of %s %s: %w", kind.Name, workload.Key, err)
	}
	if !selector.Empty() {
		workload.Selector = selector
	}
	return workload, nil
}

// Reference names the workload, as a plan and an Event do.
func (w *Workload) Reference() *nodewisev1.WorkloadReference {
	return &nodewisev1.WorkloadReference{
		Kind: w.Kind.Name, Namespace: w.Key.Namespace, Name: w.Key.Name, Uid: string(w.UID), ResourceVersion: w.ResourceVersion,
	}
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

// maxName is the longest name or uid of an object.
const maxName = validation.DNS1123SubdomainMaxLength

// Hash is the hash label of the revision; empty if it has none.
func (r *Revision) Hash() string { return r.Labels[appsv1.ControllerRevisionHashLabelKey] }

// Identity is the identity of a pod, a revision or a workload, with its controller and labels.
type Identity struct {
	UID string
	// Controller is nil for an orphan.
	Controller *nodewisev1.ControllerReference
	Labels     kubelabels.Set
	// Replicas is spec.replicas of a workload, or its default; 0 for others.
	Replicas int64
}

// Pod is the projection of a v1 Pod, with other fields that the cache needs.
type Pod struct {
	Namespace, ResourceVersion string
	// Traceparent is the trace context in the pod's annotation. It is set for a pod from a watch, and is not cached.
	Traceparent string
	*nodewisev1.Pod
}

// LabelSet is the labels of the pod.
func (p *Pod) LabelSet() kubelabels.Set { return labelSet(p.Labels) }

func labelSet(labels []*nodewisev1.Label) kubelabels.Set {
	set := make(kubelabels.Set, len(labels))
	for _, label := range labels {
		set[label.GetKey()] = label.GetValue()
	}
	return set
}

// Identity is the identity of the pod.
func (p *Pod) Identity() *Identity {
	return &Identity{UID: p.GetUid(), Controller: p.Controller, Labels: p.LabelSet()}
}

// Identity is the identity of the workload.
func (w *Workload) Identity() *Identity {
	return &Identity{UID: string(w.UID), Controller: w.Controller, Labels: w.Labels, Replicas: int64(w.Replicas)}
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
	Workload *Change[Workload]
	Pod      *Change[Pod]
	Node     *Change[Node]
	Revision *Change[Revision]
	Policy   *Change[Policy]
}
