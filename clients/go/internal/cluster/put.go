package cluster

import (
	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/convert"
)

// PutWorkload stores a workload that a watch or a list has shown. This and the following methods return nil if nothing has changed.
func (s *Store) PutWorkload(workload *Workload) *Transition {
	old := s.Workload(workload.Kind, workload.Key)
	// After a restore of etcd an object of the same version may have another content (D-112).
	workload.changed = s.changes.next()
	if old != nil && old.UID == workload.UID && old.ResourceVersion == workload.ResourceVersion && !s.relisting {
		workload.changed = old.changed
	}
	kept := s.workloads[workload.Kind]
	kept.put(workload)
	s.replaceNames(old, workload)
	if old != nil && (old.UID != workload.UID || old.Reads.Selector.String() != workload.Reads.Selector.String()) {
		s.dropUnneeded(workload.Kind, workload.Key.Namespace)
	}
	// A sealed orphan that has changed is treated as a new one, so that it is tried again.
	if old != nil && workload.Controller == nil && kept.isSealed(old) && !kept.isSealed(workload) {
		old = nil
	}
	return &Transition{Workload: &Change[Workload]{Old: old, New: workload}}
}

// RemoveWorkload removes a workload that is gone.
func (s *Store) RemoveWorkload(kind *Kind, key types.NamespacedName) *Transition {
	old := s.workloads[kind].remove(key)
	if old == nil {
		return nil
	}
	delete(s.workloads[kind].sealed, key)
	s.changes.removed(kind.Resource)
	s.replaceNames(old, nil)
	s.dropUnneeded(kind, key.Namespace)
	if kept := s.namespaces[key.Namespace]; kept != nil {
		delete(kept.pods.selected, selectorOf(old))
	}
	return &Transition{Workload: &Change[Workload]{Old: old}}
}

// PutNode stores a node. It returns nil if nothing that is sent has changed, as after a heartbeat.
func (s *Store) PutNode(node *Node) *Transition {
	object := encodeNode(node, s.labels, s.bucketCount)
	old := s.nodes.put(object)
	s.labels.release(old)
	keys := s.nodeKeys.keys()
	if old != nil && old.isSentAlike(object, keys) {
		return nil
	}
	s.noteCut(Nodes, "", object, keys)
	change := &Change[Node]{New: object.sentNode(keys)}
	if old != nil {
		change.Old = old.sentNode(keys)
	}
	return &Transition{Node: change}
}

// RemoveNode removes a node that is gone.
func (s *Store) RemoveNode(name string) *Transition {
	old := s.nodes.remove(convert.BucketOf(name, s.bucketCount), name)
	if old == nil {
		return nil
	}
	s.labels.release(old)
	s.changes.removed(Nodes)
	return &Transition{Node: &Change[Node]{Old: old.node()}}
}

// PutPod stores a pod. A pod that another kind controls is not stored; if it was stored until now, it is removed.
//
// Most events of pods change only fields that are not sent, such as the state of a container, and PutPod returns nil. Events of a pod that is
// being deleted always return a transition, because upstream counts each of them.
func (s *Store) PutPod(pod *Pod) *Transition {
	if s.IsForeign(pod.Controller) {
		old := s.removePod(pod.Namespace, pod.GetName())
		if old == nil {
			return nil
		}
		return &Transition{Pod: &Change[Pod]{Old: old, New: pod}}
	}
	object := encodePod(pod, s.parts, s.bucketCount)
	kept := s.namespace(pod.Namespace)
	before := kept.pods.names[pod.GetName()]
	if before != nil && before.version == object.version {
		// The same object again, from a new list.
		s.parts.release(object)
		return nil
	}
	keys := s.keysOfPods(pod.Namespace)
	// An orphan that was left out and has changed is treated as a new one, so that it is tried again.
	isBack := object.owner() == "" && kept.pods.leftOut.Has(object.name)
	isNews := isBack || before == nil || !before.isSentAlike(object, keys)
	if isNews {
		s.noteCut(Pods, pod.Namespace, object, keys)
	}
	object.changed = s.changes.next()
	old := kept.pods.put(object, s.bucketCount)
	s.parts.release(old)
	if !isNews && pod.DeletionTime == nil {
		return nil
	}
	change := &Change[Pod]{New: pod}
	if old != nil && !isBack {
		change.Old = old.pod(pod.Namespace)
	}
	return &Transition{Pod: change}
}

// RemovePod removes a pod that is gone. The argument last is its last state; nil if that is not known.
func (s *Store) RemovePod(namespace, name string, last *Pod) *Transition {
	old := s.removePod(namespace, name)
	if last != nil {
		old = last
	}
	if old == nil {
		return nil
	}
	return &Transition{Pod: &Change[Pod]{Old: old}}
}
