package cluster

import (
	"slices"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/nodewisev1"
)

// Placement says into which buckets of a snapshot pods are divided.
type Placement int

const (
	// NoPods means that snapshots have no pods.
	NoPods Placement = iota
	// ByNode means that a pod is in the bucket of its target node.
	ByNode
	// ByName means that a pod is in the bucket of its own name.
	ByName
)

// Kind is a kind of workload: what the caches need to know of it.
type Kind struct {
	// Name is the kind in the API, for example DaemonSet.
	Name string
	// Resource is the resource of its workloads.
	Resource Resource
	// Controls is the kind of the workloads that its workloads control, and from which their plans are made; nil if there is none.
	Controls *Kind
	// Inputs are the resources, besides workloads, from which its plans are made, or whose events enqueue its workloads.
	Inputs []Resource
	// Pods says into which buckets the pods are divided that its workloads control.
	Pods Placement
	// reads returns the labels that a plan for a workload reads.
	reads func(object []byte) convert.Reads
}

// The kinds of workload.
var (
	DaemonSet = &Kind{
		Name: "DaemonSet", Resource: DaemonSets, Inputs: []Resource{Pods, Nodes, Revisions, RolloutPolicies}, Pods: ByNode,
		reads: convert.ReadsOf,
	}
	ReplicaSet = &Kind{
		Name: "ReplicaSet", Resource: ReplicaSets, Inputs: []Resource{Pods}, Pods: ByName,
		reads: convert.ReadsOfReplicaSet,
	}
	Deployment = &Kind{
		Name: "Deployment", Resource: Deployments, Controls: ReplicaSet, Inputs: []Resource{Pods},
		reads: convert.ReadsOfDeployment,
	}
)

// Kinds are all kinds of workload.
var Kinds = [...]*Kind{DaemonSet, ReplicaSet, Deployment}

// kindOf returns the kind of workload that has this resource; nil for other resources.
func kindOf(resource Resource) *Kind {
	for _, kind := range Kinds {
		if kind.Resource == resource {
			return kind
		}
	}
	return nil
}

// withControlled adds the kinds that these kinds control.
func withControlled(kinds []*Kind) []*Kind {
	all := slices.Clone(kinds)
	for _, kind := range kinds {
		if kind.Controls != nil && !slices.Contains(all, kind.Controls) {
			all = append(all, kind.Controls)
		}
	}
	return all
}

// resourcesOf are the resources that are watched for these kinds, in the order of [Resources]. Of a kind that is cached only because another one
// controls its workloads, no plans are made, so its inputs are not needed.
func resourcesOf(kinds []*Kind) []Resource {
	needed := map[Resource]bool{}
	for _, kind := range withControlled(kinds) {
		needed[kind.Resource] = true
	}
	for _, kind := range kinds {
		for _, input := range kind.Inputs {
			needed[input] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(Resources[:]), func(resource Resource) bool { return !needed[resource] })
}

// Caches reports whether the Store caches workloads of a kind.
func (s *Store) Caches(kind *Kind) bool { return slices.Contains(s.kinds, kind) }

// Watched are the resources that the Store caches.
func (s *Store) Watched() []Resource { return s.watched }

// IsForeign reports whether a pod with this controller is not cached: no workload of a cached kind controls it, or its name or uid is too long for
// an object. An apiserver accepts owner references of any length. It may be called without a lock.
func (s *Store) IsForeign(controller *nodewisev1.ControllerReference) bool {
	return isForeign(controller, s.kinds)
}

// isForeignRevision is the same for a revision: only DaemonSets control revisions that a plan reads.
func isForeignRevision(controller *nodewisev1.ControllerReference) bool {
	return isForeign(controller, []*Kind{DaemonSet})
}

func isForeign(controller *nodewisev1.ControllerReference, kinds []*Kind) bool {
	if controller == nil {
		return false
	}
	isKnown := slices.ContainsFunc(kinds, func(kind *Kind) bool { return kind.Pods != NoPods && kind.Name == controller.GetKind() })
	return !isKnown || max(len(controller.GetName()), len(controller.GetUid())) > maxName
}

// placementOf says into which buckets the pods with this controller are divided. Orphans are divided by node.
func placementOf(controller *nodewisev1.ControllerReference) Placement {
	for _, kind := range Kinds {
		if kind.Pods != NoPods && kind.Name == controller.GetKind() {
			return kind.Pods
		}
	}
	return ByNode
}
