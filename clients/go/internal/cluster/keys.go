package cluster

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/convert"
)

// named counts which label keys workloads name.
//
// A new key is sent as soon as a workload names it. A key that no workload names any more is dropped only when another key is added: dropping
// it at once would change every bucket for nothing.
type named struct {
	ofPods    bool
	workloads int
	// labels are how many workloads name a key.
	labels map[string]int
	// sent are the keys that are sent. The pointer stays the same until they change.
	sent *convert.KeySet
	// hasGrown is true if a workload names a key that is not in sent.
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

// add adds the keys of a new workload.
func (n *named) add(reads convert.Reads) {
	labels := n.of(reads)
	n.hasGrown = n.hasGrown || !n.sent.Labels.IsSuperset(labels)
	for key := range labels {
		n.labels[key]++
	}
	n.workloads++
}

// remove removes the keys of a workload that is gone.
func (n *named) remove(reads convert.Reads) {
	for key := range n.of(reads) {
		n.labels[key]--
		if n.labels[key] == 0 {
			delete(n.labels, key)
		}
	}
	n.workloads--
}

// nameBesides adds keys to those that are sent, until another key is added.
func (n *named) nameBesides(reads convert.Reads) {
	n.add(reads)
	n.keys()
	n.remove(reads)
}

// keys returns the keys that are sent.
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

// keysOfPods returns the keys that are sent of the pods of a namespace.
func (s *Store) keysOfPods(namespace string) *convert.KeySet {
	if named := s.podKeys[namespace]; named != nil {
		return named.keys()
	}
	return s.unnamed
}

// replaceNames updates the keys after a workload was added, changed or removed.
func (s *Store) replaceNames(old, next *Workload) {
	// The new keys are added first, so that keys which the workload still names are not removed in between.
	if next != nil {
		s.nodeKeys.add(next.Reads)
		s.namedIn(next.Key.Namespace).add(next.Reads)
	}
	if old != nil {
		s.nodeKeys.remove(old.Reads)
		named := s.namedIn(old.Key.Namespace)
		named.remove(old.Reads)
		if named.workloads == 0 {
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

// know is called before a snapshot of a workload is taken. The snapshot must have all labels that the workload names, also if the caches show
// another version of the workload.
func (s *Store) know(workload *Workload) {
	if kept := s.Workload(workload.Kind, workload.Key); kept == nil || !kept.Reads.Equal(workload.Reads) {
		s.nodeKeys.nameBesides(workload.Reads)
		s.namedIn(workload.Key.Namespace).nameBesides(workload.Reads)
	}
}

// CutObject is a new or changed node or pod with too many labels, so that some that a decision could read are not sent.
type CutObject struct {
	Resource        Resource
	Namespace, Name string
	// Labels is how many labels are not sent.
	Labels int
}

// TakeCuts returns the cut objects since the last call.
func (s *Store) TakeCuts() []CutObject {
	cuts := s.cuts
	s.cuts = nil
	return cuts
}

// noteCuts finds cut objects among those that were cached before a workload named new keys.
func (s *Store) noteCuts(namespace string) {
	s.noteCutNodes()
	if named := s.podKeys[namespace]; named.hasGrown && s.namespaces[namespace] != nil {
		for _, pod := range s.namespaces[namespace].pods.names {
			s.noteCut(Pods, namespace, pod, named.keys())
		}
	}
}

// noteCutNodes finds cut nodes among those that were cached before a workload or a RolloutPolicy named new keys.
func (s *Store) noteCutNodes() {
	if !s.nodeKeys.hasGrown {
		return
	}
	keys := s.nodeKeys.keys()
	s.nodes.all(func(node *stored) bool {
		s.noteCut(Nodes, "", node, keys)
		return true
	})
}

func (s *Store) noteCut(resource Resource, namespace string, object *stored, keys *convert.KeySet) {
	if cut := object.cut(keys); cut > 0 {
		s.cuts = append(s.cuts, CutObject{Resource: resource, Namespace: namespace, Name: object.name, Labels: cut})
	}
}
