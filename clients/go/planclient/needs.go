package planclient

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"nodewise.dev/clients/go/internal/brief"
	"nodewise.dev/clients/go/nodewisev1"
)

// During an upgrade the replicas of a service differ. One that does not know a kind of workload refuses it, and one that does not know a field of
// the snapshot ignores it, and its plan would be wrong. So a replica is asked only what it knows.

// rolloutPolicies is the name of the feature in GetCapabilitiesResponse.features.
const rolloutPolicies = "RolloutPolicies"

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

// UnsupportedFeatureError says that no replica knows a feature that the snapshot needs: all have an older version. No replica was sent the snapshot.
// The caller must write nothing to the cluster. Requests for other workloads are answered.
type UnsupportedFeatureError struct {
	// Feature is the name of the feature, for example RolloutPolicies.
	Feature string
	// Reason is a sentence for people.
	Reason string
}

// Error names a replica with its version, the feature, and what in the snapshot needs it.
func (e *UnsupportedFeatureError) Error() string {
	return "the planning service is too old: " + e.Reason
}

// capabilities are what a replica has said that it knows.
type capabilities struct {
	version         string
	kinds, features []string
}

// needs are what a replica must know for a request. The zero value is what every version knows.
type needs struct {
	// kind is the kind of the workload; empty for a DaemonSet, for which every version plans.
	kind string
	// policies is whether the workload has a RolloutPolicy (L-44).
	policies bool
}

func needsOf(snapshot *nodewisev1.Snapshot) needs {
	switch snapshot.GetWorkload().GetKind().(type) {
	case *nodewisev1.Workload_ReplicaSet:
		return needs{kind: "ReplicaSet"}
	case *nodewisev1.Workload_Deployment:
		return needs{kind: "Deployment"}
	default:
		return needs{policies: len(snapshot.GetWorkload().GetDaemonSet().GetRolloutPolicies()) > 0}
	}
}

// checkNeeds returns a failure if the replica does not know what the snapshot needs. A replica that knows it is asked once, until its next failure.
func (c *call[Q, A]) checkNeeds(ctx context.Context, replica *replica, snapshot *nodewisev1.Snapshot) *failure {
	needs := needsOf(snapshot)
	if needs.kind == "" && !needs.policies {
		return nil
	}
	known, _ := replica.capable()
	if known == nil || needs.lacking(known, replica, snapshot) != nil {
		var failed *failure
		if known, failed = c.askCapabilities(ctx, replica); failed != nil {
			return failed
		}
	}
	return needs.lacking(known, replica, snapshot)
}

// askCapabilities asks a replica what it knows.
func (c *call[Q, A]) askCapabilities(ctx context.Context, replica *replica) (*capabilities, *failure) {
	_, learn := replica.capable()
	response, err := replica.client.GetCapabilities(ctx, &nodewisev1.GetCapabilitiesRequest{})
	if err != nil {
		failure := newFailure(replica, err)
		return nil, &failure
	}
	known := &capabilities{
		version: response.GetEngineVersion(), kinds: slices.Clone(response.GetWorkloadKinds()), features: slices.Clone(response.GetFeatures()),
	}
	learn(known)
	return known, nil
}

// lacking returns a failure if the replica does not know what is needed.
func (n needs) lacking(known *capabilities, replica *replica, snapshot *nodewisev1.Snapshot) *failure {
	switch {
	case n.kind != "" && !slices.Contains(known.kinds, n.kind):
		reason := brief.Text(fmt.Sprintf(
			"%s: its version plans for %s, and not for %s; upgrade it", replica.address, strings.Join(known.kinds, ", "), n.kind))
		return &failure{reason: reason, err: &UnsupportedKindError{Kind: n.kind, Reason: reason}, fault: faultTooOld}
	case n.policies && !slices.Contains(known.features, rolloutPolicies):
		daemonSet := snapshot.GetWorkload().GetDaemonSet()
		reason := brief.Text(fmt.Sprintf(
			"%s: its version %q does not know %s, and DaemonSet %s has RolloutPolicy %s; upgrade it", replica.address, known.version,
			rolloutPolicies, nameOf(daemonSet.GetObject()), nameOf(daemonSet.GetRolloutPolicies()[0].GetObject())))
		return &failure{reason: reason, err: &UnsupportedFeatureError{Feature: rolloutPolicies, Reason: reason}, fault: faultTooOld}
	default:
		return nil
	}
}

// nameOf is the namespace and the name of an object, for people.
func nameOf(object []byte) string {
	var named struct {
		Metadata struct{ Namespace, Name string }
	}
	if err := json.Unmarshal(object, &named); err != nil {
		return "(unreadable)"
	}
	return named.Metadata.Namespace + "/" + named.Metadata.Name
}

// capable returns what the replica knows; nil if it has not been asked since its last failure. The function learn records the answer to a question
// that is asked now. It ignores an answer if the replica has failed meanwhile: another version may run at the address by now.
func (r *replica) capable() (known *capabilities, learn func(*capabilities)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.incarnation
	return r.capabilities, func(known *capabilities) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.incarnation == asked {
			r.capabilities = known
			r.readsSharedLabels = slices.Contains(known.features, sharedLabelsFeature)
		}
	}
}
