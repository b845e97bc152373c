package cluster

// changes number what happens to the caches, so that it can be told what has changed since a snapshot was taken. A plan that is wrong about
// something that has changed since its snapshot was right when it was made; one that is wrong about anything else was not made from it.
type changes struct {
	// last is the number of the last change.
	last uint64
	// removals are the last changes that took an object of a resource out.
	removals map[Resource]uint64
}

// next is the number of another change.
func (c *changes) next() uint64 {
	c.last++
	return c.last
}

// removed is told that an object of a resource is gone.
func (c *changes) removed(resource Resource) { c.removals[resource] = c.next() }

// LastChange is the number of the last change.
func (s *Store) LastChange() uint64 { return s.changes.last }

// Changed is the number of the last change of a pod or revision. Of what the caches do not show, and of nodes, it is that of the last change
// that took any object of the resource out.
func (s *Store) Changed(resource Resource, namespace, name string) uint64 {
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

// RevisionsChanged is the number of the last change of any revision of a namespace, or that took any revision out.
func (s *Store) RevisionsChanged(namespace string) uint64 {
	last := s.changes.removals[Revisions]
	if kept := s.namespaces[namespace]; kept != nil {
		for _, revision := range kept.revisions.names {
			last = max(last, revision.changed)
		}
	}
	return last
}
