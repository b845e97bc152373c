package plancheck

import (
	"errors"
	"fmt"
	"slices"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/nodewisev1"
)

// rules are what plans for one kind of workload may contain.
type rules struct {
	// actions are the actions, besides those on objects of any resource, by the names of their messages.
	actions []string
	// writes are the actions on objects of any resource.
	writes []objectWrite
	// statusMetadata are the members of metadata in a patch of the workload's status.
	statusMetadata []string
	// hasPolicies is true if RolloutPolicies may target workloads of the kind.
	hasPolicies bool
	// hasNodes is true if each pod is for one node.
	hasNodes bool
	// podHash is the number of characters of the hash in the names of pods.
	podHash int
	// burst is the burst of a request that sets none.
	burst int
}

// objectWrite is what an action on an object of any resource does.
type objectWrite int

const (
	// noWrite: it is another action.
	noWrite objectWrite = iota
	// createObject creates an object that the workload controls.
	createObject
	// patchObject changes, adopts or releases an object that the workload controls.
	patchObject
	// deleteObject deletes an object that the workload controls.
	deleteObject
	// patchStatus patches the workload's own status.
	patchStatus
	// rollBack patches the workload itself: it restores an earlier template.
	rollBack
	// patchPolicyStatus patches the status of a RolloutPolicy.
	patchPolicyStatus
)

var rulesOf = map[*cluster.Kind]*rules{
	cluster.DaemonSet: {
		actions: []string{
			"CreateRevision", "UpdateRevision", "DeleteRevision", "AdoptRevision", "ReleaseRevision", "AdoptPod", "ReleasePod", "RelabelPod",
			"CreatePod", "DeletePod", "EvictPod", "UpdateStatus", "EmitEvent", "Measure",
		},
		writes:      []objectWrite{patchPolicyStatus},
		hasPolicies: true,
		hasNodes:    true,
		podHash:     hashLength,
		burst:       250,
	},
	cluster.ReplicaSet: {
		actions:        []string{"EmitEvent", "AdoptPod", "ReleasePod", "CreatePod", "DeletePod"},
		writes:         []objectWrite{patchStatus},
		statusMetadata: []string{"uid", "resourceVersion"},
		podHash:        5,
		burst:          500,
	},
	cluster.Deployment: {
		actions:        []string{"EmitEvent"},
		writes:         []objectWrite{createObject, patchObject, deleteObject, patchStatus, rollBack},
		statusMetadata: []string{"uid", "resourceVersion", "annotations"},
		burst:          250,
	},
}

// Burst is the burst of a request for a workload of this kind that sets none.
func Burst(kind *cluster.Kind) int { return rulesOf[kind].burst }

func (a *Asked) rules() *rules { return rulesOf[a.Workload.Kind] }

// controls is the kind of the workloads that the workload controls, and its own kind if it controls none.
func (a *Asked) controls() *cluster.Kind {
	if controlled := a.Workload.Kind.Controls; controlled != nil {
		return controlled
	}
	return a.Workload.Kind
}

// isWorkload reports whether an object is the workload.
func (a *Asked) isWorkload(object *nodewisev1.ObjectReference) bool {
	return object.GetUid() == string(a.Workload.UID) && object.GetName() == a.Workload.Key.Name
}

// checkKinds checks that a plan has only actions that its kind of workload needs. An action of an unknown kind is not executed, so it is no
// violation.
func checkKinds(actions []*nodewisev1.Action, asked *Asked) error {
	for _, action := range actions {
		if KindOf(action) == nil {
			continue
		}
		write, err := writeOf(action, asked)
		if err != nil {
			return violationOf(action, "%v", err)
		}
		isAllowed := slices.Contains(asked.rules().writes, write)
		if write == noWrite {
			isAllowed = slices.Contains(asked.rules().actions, kindName(action))
		}
		if !isAllowed {
			return violationOf(action, "a plan for a %s has no such action", asked.Workload.Kind.Name)
		}
	}
	return nil
}

// writeOf says what an action on an object of any resource does. The error says why no plan for the workload can have it.
func writeOf(action *nodewisev1.Action, asked *Asked) (objectWrite, error) {
	own, controls := asked.Workload.Kind.Resource, asked.controls().Resource
	known := []cluster.Resource{own, controls}
	if asked.rules().hasPolicies {
		known = append(known, cluster.RolloutPolicies)
	}
	switch kind := action.GetKind().(type) {
	case *nodewisev1.Action_CreateObject:
		return whole(kind.CreateObject.GetResource(), createObject, controls, known)
	case *nodewisev1.Action_DeleteObject:
		return whole(kind.DeleteObject.GetResource(), deleteObject, controls, known)
	case *nodewisev1.Action_PatchObject:
		patch := kind.PatchObject
		resource, err := resourceOf(patch.GetResource(), known)
		if err != nil {
			return noWrite, err
		}
		if resource == cluster.RolloutPolicies {
			return patchPolicyStatus, nil
		}
		isOwn := resource == own && asked.isWorkload(patch.GetObject())
		switch subresource := patch.GetSubresource(); {
		case subresource == "" && isOwn:
			return rollBack, nil
		case subresource == "status" && isOwn:
			return patchStatus, nil
		case subresource == "" && resource == controls:
			return patchObject, nil
		default:
			return noWrite, fmt.Errorf("it patches %q with the subresource %q", patch.GetObject().GetName(), subresource)
		}
	default:
		return noWrite, nil
	}
}

// whole says what an action does that creates or deletes an object.
func whole(named *nodewisev1.GroupVersionResource, does objectWrite, controls cluster.Resource, known []cluster.Resource) (objectWrite, error) {
	resource, err := resourceOf(named, known)
	switch {
	case err != nil:
		return noWrite, err
	case resource != controls:
		return noWrite, fmt.Errorf("it creates or deletes an object of %s", resource)
	default:
		return does, nil
	}
}

// resourceOf returns the resource that an action names, which must be one of these.
func resourceOf(named *nodewisev1.GroupVersionResource, known []cluster.Resource) (cluster.Resource, error) {
	if named == nil {
		return "", errors.New("it names no resource")
	}
	resource := cluster.Resource(named.GetResource())
	if !resource.IsNamed(named) || !slices.Contains(known, resource) {
		return "", fmt.Errorf("it writes %q of %s/%s, which its kind of workload does not", named.GetResource(), named.GetGroup(), named.GetVersion())
	}
	return resource, nil
}

// checkObjects checks the actions on objects of any resource, as far as that needs no caches.
func checkObjects(actions []*nodewisev1.Action, asked *Asked) error {
	var workload any
	for _, action := range actions {
		write, err := writeOf(action, asked)
		if err != nil || write == noWrite || write == deleteObject {
			// That there is no error is checked before.
			continue
		}
		if workload == nil {
			if workload, err = parse(asked.Workload.JSON, "the workload"); err != nil {
				return violationOf(action, "%v", err)
			}
		}
		switch write {
		case patchPolicyStatus:
			err = checkPolicyPatch(action.GetPatchObject(), asked)
		case createObject:
			err = checkReplicaSet(action.GetCreateObject(), workload, asked.Workload)
		default:
			err = checkObjectPatch(write, action.GetPatchObject(), workload, asked)
		}
		if err != nil {
			return violationOf(action, "%v", err)
		}
	}
	return nil
}
