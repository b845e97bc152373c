package cluster

import (
	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/convert"
)

// PutDaemonSet takes in a DaemonSet as a watch or a list showed it. All of these answer with nil when it is not news.
func (s *Store) PutDaemonSet(daemonSet *DaemonSet) *Transition {
	old := s.daemonSets[daemonSet.Key]
	s.daemonSets[daemonSet.Key] = daemonSet
	s.replaceNames(old, daemonSet)
	if old != nil && (old.UID != daemonSet.UID || old.Reads.Selector.String() != daemonSet.Reads.Selector.String()) {
		s.dropUnneeded(daemonSet.Key.Namespace)
	}
	return &Transition{DaemonSet: &Change[DaemonSet]{Old: old, New: daemonSet}}
}

// RemoveDaemonSet takes out a DaemonSet that is gone.
func (s *Store) RemoveDaemonSet(key types.NamespacedName) *Transition {
	old := s.daemonSets[key]
	if old == nil {
		return nil
	}
	delete(s.daemonSets, key)
	s.replaceNames(old, nil)
	s.dropUnneeded(key.Namespace)
	if kept := s.namespaces[key.Namespace]; kept != nil {
		delete(kept.pods.selected, key.Name)
	}
	return &Transition{DaemonSet: &Change[DaemonSet]{Old: old}}
}

// PutNode takes in a node. Heartbeats change nodes all the time without changing what is sent.
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

// RemoveNode takes out a node that is gone.
func (s *Store) RemoveNode(name string) *Transition {
	old := s.nodes.remove(convert.BucketOf(name, s.bucketCount), name)
	if old == nil {
		return nil
	}
	s.labels.release(old)
	s.changes.removed(Nodes)
	return &Transition{Node: &Change[Node]{Old: old.node()}}
}

// PutPod takes in a pod. One that another kind controls is not kept; if it was until now, that is told.
//
// Most events of a pod tell of what nobody here reads: of a container's state, or of an annotation. They are no news, but for
// those of a pod that is being deleted, each of which upstream counts.
func (s *Store) PutPod(pod *Pod) *Transition {
	if IsForeign(pod.Controller) {
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
		// The same object again, by a list after a gap.
		s.parts.release(object)
		return nil
	}
	keys := s.keysOfPods(pod.Namespace)
	// An orphan that was left out is tried again. It is as if it came just now.
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

// RemovePod takes out a pod that is gone. Last is its last state, if that is known.
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
