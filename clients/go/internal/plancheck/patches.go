package plancheck

import (
	"errors"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/rawjson"
	"nodewise.dev/clients/go/nodewisev1"
)

// checkPatch checks the patch of an action, if it has one. A patch must have the uid of its object, so that the apiserver refuses it for another
// object of the same name.
func checkPatch(action *nodewisev1.Action, named *nodewisev1.ObjectReference, workload *cluster.Workload) error {
	var patch []byte
	check := checkLabel
	members := []string{"metadata"}
	adopts := func(metadata object) error { return checkAdoption(metadata, workload) }
	releases := func(metadata object) error { return checkRelease(metadata, workload) }
	switch kind := action.GetKind().(type) {
	case *nodewisev1.Action_AdoptPod:
		patch, check = kind.AdoptPod.GetPatch(), adopts
	case *nodewisev1.Action_AdoptRevision:
		patch, check = kind.AdoptRevision.GetPatch(), adopts
	case *nodewisev1.Action_ReleasePod:
		patch, check = kind.ReleasePod.GetPatch(), releases
	case *nodewisev1.Action_ReleaseRevision:
		patch, check = kind.ReleaseRevision.GetPatch(), releases
	case *nodewisev1.Action_RelabelPod:
		patch = kind.RelabelPod.GetPatch()
	case *nodewisev1.Action_UpdateRevision:
		patch, members = kind.UpdateRevision.GetPatch(), append(members, "revision")
	default:
		return nil
	}
	changes, err := parsePatch(patch, named)
	if err != nil {
		return err
	}
	metadata := rawjson.Object(changes, "metadata")
	if other := otherThan(changes, members...); other != "" {
		return fmt.Errorf("its patch changes %s", other)
	}
	if number, sets := changes["revision"]; sets && !isInteger(number) {
		return errors.New("its patch sets revision to what is no number")
	}
	return check(metadata)
}

// parsePatch reads the patch of an object, which must have the uid of the object.
func parsePatch(patch []byte, of *nodewisev1.ObjectReference) (object, error) {
	value, err := parseWritten(patch, "its patch")
	if err != nil {
		return nil, err
	}
	changes, isObject := value.(object)
	if !isObject {
		return nil, errors.New("its patch is no object")
	}
	if rawjson.At(changes, "metadata", "uid") != of.GetUid() {
		return nil, fmt.Errorf("its patch does not carry the uid %q", of.GetUid())
	}
	return changes, nil
}

// checkAdoption checks that a patch makes the workload the controller.
func checkAdoption(metadata object, workload *cluster.Workload) error {
	return checkOwners(metadata, func(owner any) bool { return isOwner(owner, workload) })
}

// checkRelease checks that a patch removes the workload from the owners.
func checkRelease(metadata object, workload *cluster.Workload) error {
	release := object{"$patch": "delete", "uid": string(workload.UID)}
	return checkOwners(metadata, func(owner any) bool { return reflect.DeepEqual(owner, release) })
}

// checkOwners checks that a patch changes one owner reference, and only in the allowed way.
func checkOwners(metadata object, isRight func(owner any) bool) error {
	if other := otherThan(metadata, "uid", "ownerReferences"); other != "" {
		return fmt.Errorf("its patch changes metadata.%s", other)
	}
	owners := rawjson.List(metadata, "ownerReferences")
	if len(owners) != 1 || !isRight(owners[0]) {
		return errors.New("its patch changes other owner references than the workload's")
	}
	return nil
}

// checkLabel checks that a patch sets no other label than the hash label.
func checkLabel(metadata object) error {
	const label = appsv1.ControllerRevisionHashLabelKey
	if other := otherThan(metadata, "uid", "labels"); other != "" {
		return fmt.Errorf("its patch changes metadata.%s", other)
	}
	value, sets := metadata["labels"]
	if !sets {
		return nil
	}
	labels, isObject := value.(object)
	if !isObject {
		return errors.New("its patch sets metadata.labels to what is no object")
	}
	if other := otherThan(labels, label); other != "" {
		return fmt.Errorf("its patch changes metadata.labels.%s", other)
	}
	for _, value := range labels {
		if _, isString := value.(string); !isString {
			return fmt.Errorf("its patch sets label %s to what is no string", label)
		}
	}
	return nil
}
