package cluster

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/nodewisev1"
)

// pods returns the pods that a workload controls, and the orphans that it selects. Each may be nil.
func (s *Store) podsOf(workload *Workload) (owned, orphans *buckets) {
	kept := s.namespaces[workload.Key.Namespace]
	if kept == nil || workload.Kind.Pods == NoPods {
		return nil, nil
	}
	return kept.pods.owned[ownerOf(workload)], kept.pods.orphansOf(workload, s.bucketCount)
}

// maxSelectors is the number of workloads with one controller up to which their selectors are compared with each pod: the caches are locked
// meanwhile.
const maxSelectors = 100

// RelatedPods returns the number of related pods on each node, ordered by the node's name: the live pods of the namespace that the
// selector of any workload matches which is of this kind and has the same controller. It is empty if the workload has no controller, or no more
// live pods than it should have: only a plan that deletes pods reads it.
//
// Upstream also counts pods of kinds that are not cached here. Such a pod would have to match the selector of a workload that does not control
// it. Of more than maxSelectors workloads only the pods that they control are counted.
func (s *Store) RelatedPods(workload *Workload) []*nodewisev1.NodePodCount {
	if workload.Controller == nil || !s.hasTooManyPods(workload) {
		return nil
	}
	siblings, counts, owners := s.Siblings(workload), map[string]uint32{}, sets.New[owner]()
	for _, sibling := range siblings {
		owners.Insert(ownerOf(sibling))
	}
	// Most pods share their labels with others.
	related := map[*part]bool{}
	for _, member := range s.namespaces[workload.Key.Namespace].pods.names {
		isRelated, isKnown := related[member.part]
		switch {
		case isKnown:
		case len(siblings) > maxSelectors:
			isRelated = owners.Has(member.part.owner)
		default:
			set := labelSet(member.part.metadata().GetLabels())
			isRelated = slices.ContainsFunc(siblings, func(sibling *Workload) bool { return sibling.Reads.Selector.Matches(set) })
			related[member.part] = isRelated
		}
		if !isRelated {
			continue
		}
		if pod := member.pod(workload.Key.Namespace); isLive(pod) {
			counts[pod.GetNodeName()]++
		}
	}
	list := make([]*nodewisev1.NodePodCount, 0, len(counts))
	for _, node := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, &nodewisev1.NodePodCount{NodeName: node, Pods: counts[node]})
	}
	return list
}

// hasTooManyPods reports whether there are more live pods than the workload should have, including the orphans that it may adopt.
func (s *Store) hasTooManyPods(workload *Workload) bool {
	owned, orphans := s.podsOf(workload)
	wanted := max(int(workload.Replicas), 0)
	// Usually there are none too many, and no pod has to be decoded.
	if owned.size()+orphans.size() <= wanted {
		return false
	}
	live := 0
	for _, set := range []*buckets{owned, orphans} {
		set.all(func(member *stored) bool {
			if isLive(member.pod(workload.Key.Namespace)) {
				live++
			}
			return true
		})
	}
	return live > wanted
}

// UnfinishedPods returns how many pods that a workload controls, by kind, name and uid, have not finished.
func (s *Store) UnfinishedPods(workload *Workload) int {
	return s.countPods(workload, func(pod *Pod) bool { return !isFinished(pod) })
}

// HasPods reports whether a workload controls any pod, by kind, name and uid.
func (s *Store) HasPods(workload *Workload) bool {
	return s.countPods(workload, func(*Pod) bool { return true }) > 0
}

func (s *Store) countPods(workload *Workload, counts func(*Pod) bool) int {
	kept := s.namespaces[workload.Key.Namespace]
	if kept == nil {
		return 0
	}
	count := 0
	kept.pods.owned[ownerOf(workload)].all(func(member *stored) bool {
		if pod := member.pod(workload.Key.Namespace); workload.controls(pod) && counts(pod) {
			count++
		}
		return true
	})
	return count
}
