package plancheck

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"nodewise.dev/clients/go/internal/cluster"
)

// generationLabel is the label that tells a pod's template generation.
const generationLabel = "pod-template-generation"

// isOwner tells whether an owner reference makes the workload the controller.
func isOwner(owner any, workload *cluster.DaemonSet) bool {
	members, isObject := owner.(object)
	if !isObject {
		return false
	}
	members = maps.Clone(members)
	delete(members, "blockOwnerDeletion")
	return reflect.DeepEqual(members, object{
		"apiVersion": appsv1.SchemeGroupVersion.String(), "kind": cluster.Kind,
		"name": workload.Key.Name, "uid": string(workload.UID), "controller": true,
	})
}

// normal is a pod template in the form that is compared: without nulls, with metadata, and with the resources of each container. Upstream
// writes a template in that form into its revisions.
func normal(template any) object {
	whole, isObject := withoutNulls(template).(object)
	if !isObject {
		whole = object{}
	}
	for _, member := range []string{"metadata", "spec"} {
		if _, isObject := whole[member].(object); !isObject {
			whole[member] = object{}
		}
	}
	for _, list := range []string{"containers", "initContainers"} {
		containers, _ := at(whole, "spec", list).([]any)
		for _, container := range containers {
			if members, isObject := container.(object); isObject && members["resources"] == nil {
				members["resources"] = object{}
			}
		}
	}
	return whole
}

// withoutNulls copies a value without the members that are null.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case object:
		copied := make(object, len(value))
		for key, member := range value {
			if member != nil {
				copied[key] = withoutNulls(member)
			}
		}
		return copied
	case []any:
		copied := make([]any, len(value))
		for i, item := range value {
			copied[i] = withoutNulls(item)
		}
		return copied
	default:
		return value
	}
}

// nodeTerms lead to what a pod's spec requires of its node.
var nodeTerms = []string{"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"}

// forAnyNode is a normal pod spec without what the service sets, which it takes out: tolerations, and the terms that are required of nodes.
func forAnyNode(spec object) object {
	delete(spec, "tolerations")
	remove(spec, nodeTerms...)
	return spec
}

// remove takes out the member that a path leads to, and then each object around it that is empty.
func remove(members object, path ...string) {
	if len(path) == 1 {
		delete(members, path[0])
		return
	}
	inner, isObject := members[path[0]].(object)
	if !isObject {
		return
	}
	remove(inner, path[1:]...)
	if len(inner) == 0 {
		delete(members, path[0])
	}
}

// toleratesAs tells whether these tolerations are those of the template and automatic ones. A toleration of the template may lose its
// seconds.
func toleratesAs(tolerations, template any) bool {
	have, own := withoutSeconds(tolerations), withoutSeconds(template)
	isIn := func(list []any, toleration any) bool {
		return slices.ContainsFunc(list, func(other any) bool { return reflect.DeepEqual(other, toleration) })
	}
	for _, toleration := range own {
		if !isIn(have, toleration) {
			return false
		}
	}
	for _, toleration := range have {
		key, _ := at(toleration, "key").(string)
		if !isIn(own, toleration) && !strings.HasPrefix(key, "node.kubernetes.io/") {
			return false
		}
	}
	return true
}

func withoutSeconds(tolerations any) []any {
	list, _ := tolerations.([]any)
	list = slices.Clone(list)
	for i, toleration := range list {
		if members, isObject := toleration.(object); isObject {
			members = maps.Clone(members)
			delete(members, "tolerationSeconds")
			// An absent string is an empty one.
			maps.DeleteFunc(members, func(_ string, value any) bool { return value == "" })
			list[i] = members
		}
	}
	return list
}

// labelsOf are labels without those that the service sets.
func labelsOf(metadata any) object {
	labels := maps.Clone(objectAt(metadata, "labels"))
	delete(labels, appsv1.ControllerRevisionHashLabelKey)
	delete(labels, generationLabel)
	return labels
}

// equal compares two objects or lists, of which an absent one is empty.
func equal(a, b any) bool { return isEmpty(a) && isEmpty(b) || reflect.DeepEqual(a, b) }

func isEmpty(value any) bool {
	switch value := value.(type) {
	case object:
		return len(value) == 0
	case []any:
		return len(value) == 0
	default:
		return value == nil
	}
}
