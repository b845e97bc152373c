package wake

import (
	"google.golang.org/protobuf/proto"

	"nodewise.dev/clients/go/internal/cluster"
)

// policy enqueues the workloads that a RolloutPolicy targets, and those that it targeted before. Also after a status that this executor wrote: the
// plan that follows has nothing to write.
func (r *reacting) policy(change *cluster.Change[cluster.Policy]) {
	for _, policy := range []*cluster.Policy{change.Old, change.New} {
		if policy == nil {
			continue
		}
		for _, workload := range r.store.Targets(r.kind, policy) {
			r.Enqueue = append(r.Enqueue, workload.Key)
		}
	}
}

// isNewsForPolicies reports whether a node has changed in what only rollouts with a policy read (L-20 to L-23).
func isNewsForPolicies(old, next *cluster.Node) bool {
	if old == nil || next == nil {
		return false
	}
	return old.GetReady() != next.GetReady() || !proto.Equal(old.GetReadyTransitionTime(), next.GetReadyTransitionTime()) ||
		old.GetUnschedulable() != next.GetUnschedulable() || old.GetMaintenanceInProgress() != next.GetMaintenanceInProgress()
}

// isRestart reports whether nothing has changed but how often the containers of a pod have restarted.
func isRestart(old, next *cluster.Pod) bool {
	if old.GetRestarts() == next.GetRestarts() {
		return false
	}
	before := proto.CloneOf(old.Pod)
	before.Restarts = next.GetRestarts()
	return proto.Equal(before, next.Pod)
}
