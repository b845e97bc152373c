package cluster

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubelabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/internal/rawjson"
	"nodewise.dev/clients/go/served"
)

const (
	// maxPolicies is how many policies a snapshot has at most. Only the first of them counts for a workload; the others are told so.
	maxPolicies = 100
	// maxPolicyBytes is how many bytes the policies of a snapshot after the first may have. Whoever may create policies in a namespace may create
	// many.
	maxPolicyBytes = 8 << 20
	// maxFormerTargets is how many entries of a policy's status are sent as those of former targets at most.
	maxFormerTargets = 1000
)

// Policy is a RolloutPolicy of nodewise.dev/v1alpha1. The executor reads only which workloads the policy may target, and which labels of nodes its
// stages name. What it means is the service's to say.
type Policy struct {
	Key             types.NamespacedName
	UID             types.UID
	ResourceVersion string
	// Created is metadata.creationTimestamp; zero if there is none that can be read.
	Created time.Time
	// names are the names of its targets, and selector selects them. If both are nil, it cannot be told which workloads of its namespace it
	// targets: any of them may be meant, because no rollout may go on without the policy that was written for it (L-2).
	names    []string
	selector kubelabels.Selector
	// reads are the labels of nodes that the stages name.
	reads convert.Reads
	// recorded are the entries of status.targets.
	recorded []recordedTarget
	// JSON is the object as it was served.
	JSON []byte
}

// recordedTarget is the identity of a workload in the status of a policy.
type recordedTarget struct {
	name string
	uid  types.UID
}

// NewPolicy reads a RolloutPolicy. One whose spec cannot be read may target every workload of its namespace.
func NewPolicy(object *served.Object) *Policy {
	policy := &Policy{
		Key:             types.NamespacedName{Namespace: object.Namespace, Name: object.Name},
		UID:             object.UID,
		ResourceVersion: object.ResourceVersion,
		reads:           convert.ReadsOfRolloutPolicy(object.JSON),
		JSON:            object.JSON,
	}
	parsed, err := rawjson.Parse(object.JSON)
	if err != nil {
		return policy
	}
	created, _ := rawjson.At(parsed, "metadata", "creationTimestamp").(string)
	if at, err := time.Parse(time.RFC3339, created); err == nil {
		policy.Created = at
	}
	targets, _ := rawjson.At(parsed, "status", "targets").([]any)
	for _, target := range targets {
		name, hasName := rawjson.At(target, "name").(string)
		uid, hasUID := rawjson.At(target, "uid").(string)
		if hasName && hasUID {
			policy.recorded = append(policy.recorded, recordedTarget{name: name, uid: types.UID(uid)})
		}
	}
	policy.names, policy.selector = targetsOf(rawjson.At(parsed, "spec", "targets"))
	return policy
}

// targetsOf reads spec.targets. Both results are nil if it cannot be told what it targets.
func targetsOf(targets any) (names []string, selector kubelabels.Selector) {
	for member := range rawjson.Object(targets) {
		// A member of a newer version may mean other workloads.
		if member != "names" && member != "selector" {
			return nil, nil
		}
	}
	list, selects := rawjson.At(targets, "names"), rawjson.At(targets, "selector")
	entries, isList := list.([]any)
	switch {
	case list != nil && !isList, len(entries) > 0 && selects != nil:
		return nil, nil
	case len(entries) > 0:
		for _, entry := range entries {
			name, isText := entry.(string)
			if !isText {
				return nil, nil
			}
			names = append(names, name)
		}
		return names, nil
	case selects == nil:
		return nil, nil
	}
	written, err := json.Marshal(selects)
	read := new(metav1.LabelSelector)
	if err == nil {
		err = json.Unmarshal(written, read)
	}
	if err != nil {
		return nil, nil
	}
	if selector, err = metav1.LabelSelectorAsSelector(read); err != nil {
		return nil, nil
	}
	return nil, selector
}

// isUnclear reports whether it cannot be told which workloads the policy targets.
func (p *Policy) isUnclear() bool { return p.names == nil && p.selector == nil }

// mayTarget reports whether the policy targets a workload, or may target it.
func (p *Policy) mayTarget(workload *Workload) bool {
	switch {
	case workload.Key.Namespace != p.Key.Namespace || !slices.Contains(workload.Kind.Inputs, RolloutPolicies):
		return false
	case p.isUnclear():
		return true
	case p.selector != nil:
		return p.selector.Matches(workload.Labels)
	default:
		return slices.Contains(p.names, workload.Key.Name)
	}
}

// PutPolicy stores a policy. It returns nil if nothing has changed.
func (s *Store) PutPolicy(policy *Policy) *Transition {
	kept := s.policies[policy.Key.Namespace]
	if kept == nil {
		kept = map[string]*Policy{}
		s.policies[policy.Key.Namespace] = kept
	}
	old := kept[policy.Key.Name]
	kept[policy.Key.Name] = policy
	// The new keys are added first, so that keys which the policy still names are not removed in between.
	s.nodeKeys.add(policy.reads)
	if old != nil {
		s.nodeKeys.remove(old.reads)
	}
	s.noteCutNodes()
	// After a restore of etcd an object of the same version may have another content (D-112).
	if old != nil && old.UID == policy.UID && old.ResourceVersion == policy.ResourceVersion && !s.relisting {
		return nil
	}
	return &Transition{Policy: &Change[Policy]{Old: old, New: policy}}
}

// RemovePolicy removes a policy that is gone. The argument last is its last state; nil if that is not known.
func (s *Store) RemovePolicy(key types.NamespacedName, last *Policy) *Transition {
	kept := s.policies[key.Namespace]
	old := kept[key.Name]
	if old != nil {
		s.nodeKeys.remove(old.reads)
		if delete(kept, key.Name); len(kept) == 0 {
			delete(s.policies, key.Namespace)
		}
	}
	if last == nil {
		last = old
	}
	if last == nil {
		return nil
	}
	return &Transition{Policy: &Change[Policy]{Old: last}}
}

// Policies returns the policies of a workload's snapshot: those that target it, and those of which it cannot be told. The oldest come first, then
// the first by name; those of which it cannot be told come last, as for the service.
func (s *Store) Policies(workload *Workload) []*Policy {
	var found []*Policy
	for _, policy := range s.policies[workload.Key.Namespace] {
		if policy.mayTarget(workload) {
			found = append(found, policy)
		}
	}
	slices.SortFunc(found, func(a, b *Policy) int {
		return cmp.Or(compareFlags(a.isUnclear(), b.isUnclear()), a.Created.Compare(b.Created), strings.Compare(a.Key.Name, b.Key.Name))
	})
	bytes := 0
	for i, policy := range found {
		bytes += len(policy.JSON)
		if i == maxPolicies || i > 0 && bytes > maxPolicyBytes {
			return found[:i]
		}
	}
	return found
}

func compareFlags(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// HasPolicy reports whether a workload has a policy, or may have one.
func (s *Store) HasPolicy(workload *Workload) bool {
	for _, policy := range s.policies[workload.Key.Namespace] {
		if policy.mayTarget(workload) {
			return true
		}
	}
	return false
}

// FormerTargets returns the uids of workloads of a kind in the status of a policy that do not exist any more, or that the policy does not target any
// more. One whose targets cannot be told may still target all.
func (s *Store) FormerTargets(kind *Kind, policy *Policy) []string {
	var former []string
	for _, recorded := range policy.recorded {
		key := types.NamespacedName{Namespace: policy.Key.Namespace, Name: recorded.name}
		workload := s.Workload(kind, key)
		isTarget := workload != nil && workload.UID == recorded.uid && policy.mayTarget(workload)
		if !isTarget && len(former) < maxFormerTargets {
			former = append(former, string(recorded.uid))
		}
	}
	return former
}

// Targets returns the workloads of a kind that a policy targets, or may target, ordered by name.
func (s *Store) Targets(kind *Kind, policy *Policy) []*Workload {
	var targets []*Workload
	for _, workload := range s.in(kind, policy.Key.Namespace) {
		if policy.mayTarget(workload) {
			targets = append(targets, workload)
		}
	}
	return sorted(targets)
}

// WithPolicies returns the workloads of a kind that have a policy, or may have one, in order.
func (s *Store) WithPolicies(kind *Kind) []*Workload {
	var found []*Workload
	for namespace := range s.policies {
		for _, workload := range s.in(kind, namespace) {
			if s.HasPolicy(workload) {
				found = append(found, workload)
			}
		}
	}
	return sorted(found)
}
