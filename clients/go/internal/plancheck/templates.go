package plancheck

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/rawjson"
)

// generationLabel is the label with a pod's template generation.
const generationLabel = "pod-template-generation"

// isOwner reports whether an owner reference makes the workload the controller.
func isOwner(owner any, workload *cluster.Workload) bool {
	members, isObject := owner.(object)
	if !isObject {
		return false
	}
	members = maps.Clone(members)
	delete(members, "blockOwnerDeletion")
	return reflect.DeepEqual(members, object{
		"apiVersion": appsv1.SchemeGroupVersion.String(), "kind": workload.Kind.Name,
		"name": workload.Key.Name, "uid": string(workload.UID), "controller": true,
	})
}

// normal returns a pod template in the form in which templates are compared, and in which upstream writes them into revisions: without nulls,
// with metadata and spec, and with the resources of each container.
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
		for _, container := range rawjson.List(whole, "spec", list) {
			if members, isObject := container.(object); isObject && members["resources"] == nil {
				members["resources"] = object{}
			}
		}
	}
	return whole
}

// withoutHash is the normal form of a pod template without the label of its hash.
func withoutHash(template any) object {
	whole := normal(template)
	remove(whole, []string{"metadata", "labels", appsv1.DefaultDeploymentUniqueLabelKey})
	if whole["metadata"] == nil {
		whole["metadata"] = object{}
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

// nodeTerms is the path in a pod's spec to the required node selector terms.
var nodeTerms = []string{"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"}

// forAnyNode removes from a normal pod spec the fields that the service sets: the tolerations and the required node selector terms.
func forAnyNode(spec object) object {
	delete(spec, "tolerations")
	remove(spec, nodeTerms)
	return spec
}

// remove removes the member at a path, and then each enclosing object that has become empty.
func remove(members object, path []string) {
	if len(path) == 0 {
		return
	}
	member, within := path[0], path[1:]
	if len(within) == 0 {
		delete(members, member)
		return
	}
	inner, isObject := members[member].(object)
	if !isObject {
		return
	}
	remove(inner, within)
	if len(inner) == 0 {
		delete(members, member)
	}
}

// toleratesAs reports whether tolerations are those of the template, plus automatic ones. The service may drop the tolerationSeconds of a
// template's toleration.
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
		key, _ := rawjson.At(toleration, "key").(string)
		if !isIn(own, toleration) && !strings.HasPrefix(key, "node.kubernetes.io/") {
			return false
		}
	}
	return true
}

func withoutSeconds(tolerations any) []any {
	list := slices.Clone(rawjson.List(tolerations))
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

// labelsOf returns the labels without those that the service sets.
func labelsOf(metadata any) object {
	labels := maps.Clone(rawjson.Object(metadata, "labels"))
	delete(labels, appsv1.ControllerRevisionHashLabelKey)
	delete(labels, generationLabel)
	return labels
}

// equal compares two objects or lists. An absent one equals an empty one.
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
