package cluster

import (
	"k8s.io/apimachinery/pkg/types"
)

// Missing returns the keys of cached objects of a resource that are not listed.
func (s *Store) Missing(resource Resource, isListed func(types.NamespacedName) bool) []types.NamespacedName {
	var missing []types.NamespacedName
	check := func(namespace, name string) {
		if key := (types.NamespacedName{Namespace: namespace, Name: name}); !isListed(key) {
			missing = append(missing, key)
		}
	}
	if kind := kindOf(resource); kind != nil {
		for workload := range s.all(kind) {
			check(workload.Key.Namespace, workload.Key.Name)
		}
		return missing
	}
	switch resource { //nolint:exhaustive // workloads are handled above
	case Nodes:
		s.nodes.all(func(node *stored) bool {
			check("", node.name)
			return true
		})
	case Pods:
		for namespace, kept := range s.namespaces {
			for name := range kept.pods.names {
				check(namespace, name)
			}
		}
	case Revisions:
		for namespace, kept := range s.namespaces {
			for name := range kept.revisions.names {
				check(namespace, name)
			}
		}
	case RolloutPolicies:
		for namespace, kept := range s.policies {
			for name := range kept {
				check(namespace, name)
			}
		}
	}
	return missing
}

// Remove removes an object whose last state is not known.
func (s *Store) Remove(resource Resource, key types.NamespacedName) *Transition {
	if kind := kindOf(resource); kind != nil {
		return s.RemoveWorkload(kind, key)
	}
	switch resource {
	case Nodes:
		return s.RemoveNode(key.Name)
	case Pods:
		return s.RemovePod(key.Namespace, key.Name, nil)
	case Revisions:
		return s.RemoveRevision(key.Namespace, key.Name, nil)
	case RolloutPolicies:
		return s.RemovePolicy(key, nil)
	default:
		return nil
	}
}
