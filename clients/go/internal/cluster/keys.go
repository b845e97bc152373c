package cluster

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/convert"
)

// named counts which keys DaemonSets that come and go name.
//
// What is sent grows as soon as one names a new key. It shrinks only then, too: without the keys that none names any more every
// bucket would be another one for nothing.
type named struct {
	ofPods bool
	// daemonSets is how many there are.
	daemonSets int
	labels     map[string]int
	// sent is the same until it changes.
	sent     *convert.KeySet
	hasGrown bool
}

func newNamed(ofPods bool) *named {
	sent := convert.NodeKeys()
	if ofPods {
		sent = convert.PodKeys()
	}
	return &named{ofPods: ofPods, labels: map[string]int{}, sent: sent}
}

func (n *named) of(reads convert.Reads) sets.Set[string] {
	if n.ofPods {
		return reads.PodLabels
	}
	return reads.NodeLabels
}

// add is told that a DaemonSet that reads this is there.
func (n *named) add(reads convert.Reads) {
	labels := n.of(reads)
	n.hasGrown = n.hasGrown || !n.sent.Labels.IsSuperset(labels)
	for key := range labels {
		n.labels[key]++
	}
	n.daemonSets++
}

// remove is told that it is not any more.
func (n *named) remove(reads convert.Reads) {
	for key := range n.of(reads) {
		n.labels[key]--
		if n.labels[key] == 0 {
			delete(n.labels, key)
		}
	}
	n.daemonSets--
}

// nameBesides sends what this reads, too, until what is sent grows for another reason.
func (n *named) nameBesides(reads convert.Reads) {
	n.add(reads)
	n.keys()
	n.remove(reads)
}

// keys are what is sent now.
func (n *named) keys() *convert.KeySet {
	if n.hasGrown {
		all := convert.Reads{NodeLabels: sets.KeySet(n.labels), PodLabels: sets.KeySet(n.labels)}
		if n.sent = convert.NodeKeys(all); n.ofPods {
			n.sent = convert.PodKeys(all)
		}
		n.hasGrown = false
	}
	return n.sent
}

// keysOfPods are those of the pods of a namespace.
func (s *Store) keysOfPods(namespace string) *convert.KeySet {
	if named := s.podKeys[namespace]; named != nil {
		return named.keys()
	}
	return s.unnamed
}

// replaceNames is told that a DaemonSet came, changed or went.
func (s *Store) replaceNames(old, next *DaemonSet) {
	// First what is new, so that what it still names is never without a name.
	if next != nil {
		s.nodeKeys.add(next.Reads)
		s.namedIn(next.Key.Namespace).add(next.Reads)
	}
	if old != nil {
		s.nodeKeys.remove(old.Reads)
		named := s.namedIn(old.Key.Namespace)
		named.remove(old.Reads)
		if named.daemonSets == 0 {
			delete(s.podKeys, old.Key.Namespace)
		}
	}
	if next != nil {
		s.noteCuts(next.Key.Namespace)
	}
}

func (s *Store) namedIn(namespace string) *named {
	if s.podKeys[namespace] == nil {
		s.podKeys[namespace] = newNamed(true)
	}
	return s.podKeys[namespace]
}

// know is told that a workload is asked about. Nothing that is sent about it may lack a label that it names, even when the caches
// do not show it as it is.
func (s *Store) know(workload *DaemonSet) {
	if kept := s.daemonSets[workload.Key]; kept == nil || !kept.Reads.Equal(workload.Reads) {
		s.nodeKeys.nameBesides(workload.Reads)
		s.namedIn(workload.Key.Namespace).nameBesides(workload.Reads)
	}
}

// CutObject is a node or pod that came or changed of which not all labels are sent that a decision could read.
type CutObject struct {
	Resource        Resource
	Namespace, Name string
	// Labels are how many are not sent.
	Labels int
}

// TakeCuts are those since this was asked last.
func (s *Store) TakeCuts() []CutObject {
	cuts := s.cuts
	s.cuts = nil
	return cuts
}

// noteCuts looks for what cannot be sent, of what a DaemonSet may have named just now, in objects that were there before.
func (s *Store) noteCuts(namespace string) {
	if s.nodeKeys.hasGrown {
		keys := s.nodeKeys.keys()
		s.nodes.all(func(node *stored) bool {
			s.noteCut(Nodes, "", node, keys)
			return true
		})
	}
	if named := s.podKeys[namespace]; named.hasGrown && s.namespaces[namespace] != nil {
		for _, pod := range s.namespaces[namespace].pods.names {
			s.noteCut(Pods, namespace, pod, named.keys())
		}
	}
}

func (s *Store) noteCut(resource Resource, namespace string, object *stored, keys *convert.KeySet) {
	if cut := object.cut(keys); cut > 0 {
		s.cuts = append(s.cuts, CutObject{Resource: resource, Namespace: namespace, Name: object.name, Labels: cut})
	}
}
