package planclient

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"nodewise.dev/clients/go/nodewisev1"
)

// UnsupportedKindError says that no replica plans for a kind of workload: all have an older version. The caller must write nothing to the cluster.
// Requests for other kinds are answered.
type UnsupportedKindError struct {
	// Kind is the kind of the workload, for example Deployment.
	Kind string
	// Reason is a sentence for people.
	Reason string
}

// Error names the kind, and a replica with the kinds that it plans for.
func (e *UnsupportedKindError) Error() string {
	return "the planning service does not plan for a " + e.Kind + ": " + e.Reason
}

// kindOf is the kind of a snapshot's workload; empty for a DaemonSet, for which every version plans.
func kindOf(snapshot *nodewisev1.Snapshot) string {
	switch snapshot.GetWorkload().GetKind().(type) {
	case *nodewisev1.Workload_ReplicaSet:
		return "ReplicaSet"
	case *nodewisev1.Workload_Deployment:
		return "Deployment"
	default:
		return ""
	}
}

// checkKind returns a failure if the replica does not plan for the kind of the snapshot's workload. An older replica would take the workload for
// none, and refuse the request as wrong. A replica that plans for the kind is asked once.
func (c *call[Q, A]) checkKind(ctx context.Context, replica *replica, snapshot *nodewisev1.Snapshot) *failure {
	kind := kindOf(snapshot)
	if kind == "" {
		return nil
	}
	kinds := replica.plansFor()
	if kinds == nil {
		capabilities, err := replica.client.GetCapabilities(ctx, &nodewisev1.GetCapabilitiesRequest{})
		if err != nil {
			failure := newFailure(replica, err)
			return &failure
		}
		kinds = capabilities.GetWorkloadKinds()
	}
	if slices.Contains(kinds, kind) {
		replica.learnKinds(kinds)
		return nil
	}
	reason := fmt.Sprintf("%s: its version plans for %s, and not for %s; upgrade it", replica.address, strings.Join(kinds, ", "), kind)
	return &failure{reason: reason, err: &UnsupportedKindError{Kind: kind, Reason: reason}, fault: faultTooOld}
}

// plansFor returns the kinds that the replica plans for; nil if it has not been asked.
func (r *replica) plansFor() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.kinds
}

// learnKinds records the kinds that the replica plans for. They do not change while it runs. After an eviction another version may run at the
// address.
func (r *replica) learnKinds(kinds []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kinds = slices.Clone(kinds)
}
