package cluster

import "k8s.io/apimachinery/pkg/types"

// changes numbers the changes of the caches, to find out what has changed since a snapshot was taken. A plan that is wrong about an object that
// has changed since its snapshot was right when it was made. A plan that is wrong about any other object was not made from the snapshot.
type changes struct {
	// last is the number of the last change.
	last uint64
	// removals are the last changes that removed an object of a resource.
	removals map[Resource]uint64
}

// next returns the number of a new change.
func (c *changes) next() uint64 {
	c.last++
	return c.last
}

// removed records that an object of a resource was removed.
func (c *changes) removed(resource Resource) { c.removals[resource] = c.next() }

// LastChange returns the number of the last change.
func (s *Store) LastChange() uint64 { return s.changes.last }

// Changed returns the number of the last change of a pod, revision or workload. For a node, and for an object that the caches do not show, it returns the
// number of the last change that removed any object of the resource.
func (s *Store) Changed(resource Resource, namespace, name string) uint64 {
	if kind := kindOf(resource); kind != nil {
		if workload := s.Workload(kind, types.NamespacedName{Namespace: namespace, Name: name}); workload != nil {
			return workload.changed
		}
	}
	if kept := s.namespaces[namespace]; kept != nil {
		switch resource {
		case Pods:
			if pod := kept.pods.names[name]; pod != nil {
				return pod.changed
			}
		case Revisions:
			if revision := kept.revisions.names[name]; revision != nil {
				return revision.changed
			}
		default:
		}
	}
	return s.changes.removals[resource]
}

// RevisionsChanged returns the number of the last change of any revision of a namespace, or of the last change that removed any revision.
func (s *Store) RevisionsChanged(namespace string) uint64 {
	last := s.changes.removals[Revisions]
	if kept := s.namespaces[namespace]; kept != nil {
		for _, revision := range kept.revisions.names {
			last = max(last, revision.changed)
		}
	}
	return last
}
