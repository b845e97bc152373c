package cluster

import (
	"k8s.io/apimachinery/pkg/types"
)

// Missing are the keys of what is kept of a resource and is not among the listed ones. Most lists are the first, and then there
// is nothing to compare.
func (s *Store) Missing(resource Resource, isListed func(types.NamespacedName) bool) []types.NamespacedName {
	var missing []types.NamespacedName
	look := func(namespace, name string) {
		if key := (types.NamespacedName{Namespace: namespace, Name: name}); !isListed(key) {
			missing = append(missing, key)
		}
	}
	switch resource {
	case DaemonSets:
		for key := range s.daemonSets {
			look(key.Namespace, key.Name)
		}
	case Nodes:
		s.nodes.all(func(node *stored) bool {
			look("", node.name)
			return true
		})
	case Pods:
		for namespace, kept := range s.namespaces {
			for name := range kept.pods.names {
				look(namespace, name)
			}
		}
	case Revisions:
		for namespace, kept := range s.namespaces {
			for name := range kept.revisions.names {
				look(namespace, name)
			}
		}
	}
	return missing
}

// Remove takes out an object that vanished without a last state.
func (s *Store) Remove(resource Resource, key types.NamespacedName) *Transition {
	switch resource {
	case DaemonSets:
		return s.RemoveDaemonSet(key)
	case Nodes:
		return s.RemoveNode(key.Name)
	case Pods:
		return s.RemovePod(key.Namespace, key.Name, nil)
	case Revisions:
		return s.RemoveRevision(key.Namespace, key.Name, nil)
	default:
		return nil
	}
}
