package cluster

import (
	"bytes"

	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/nodewisev1"
)

// IsActive tells whether a pod is neither finished nor being deleted.
func (p *Pod) IsActive() bool {
	isFinished := p.GetPhase() == nodewisev1.PodPhase_POD_PHASE_SUCCEEDED || p.GetPhase() == nodewisev1.PodPhase_POD_PHASE_FAILED
	return p.DeletionTime == nil && !isFinished
}

// HasActivePod tells whether the caches show an active pod of the workload that is on a node or meant for it.
func (s *Store) HasActivePod(namespace string, uid types.UID, nodeName string) bool {
	kept := s.namespaces[namespace]
	if kept == nil || kept.pods.owned[string(uid)] == nil {
		return false
	}
	bucket := kept.pods.owned[string(uid)].list[convert.BucketOf(nodeName, s.bucketCount)]
	for _, member := range bucket.members {
		// Few pods of a bucket are for this node. The others need not be decoded.
		if !bytes.Contains(member.own, []byte(nodeName)) {
			continue
		}
		if pod := member.pod(namespace); pod.IsActive() && convert.TargetNode(pod.Pod) == nodeName {
			return true
		}
	}
	return false
}

// InactivePods are the pods of the workload that the caches show finished or being deleted.
func (s *Store) InactivePods(namespace string, uid types.UID) []*Pod {
	kept := s.namespaces[namespace]
	if kept == nil {
		return nil
	}
	var inactive []*Pod
	kept.pods.owned[string(uid)].all(func(member *stored) bool {
		if pod := member.pod(namespace); !pod.IsActive() {
			inactive = append(inactive, pod)
		}
		return true
	})
	return inactive
}
