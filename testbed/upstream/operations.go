package main

import (
	"encoding/json"
	"net/http"
	"strings"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The resources that the controllers use.
const (
	daemonSetResource  = "daemonsets"
	deploymentResource = "deployments"
	podResource        = "pods"
	replicaSetResource = "replicasets"
	revisionResource   = "controllerrevisions"
)

// nouns are the names of the resources in operations.
var nouns = map[string]string{
	daemonSetResource:  "daemonset",
	deploymentResource: "deployment",
	podResource:        "pod",
	replicaSetResource: "replicaset",
	revisionResource:   "revision",
}

// operations are the kinds of calls in outcomes and faults.
var operations = []string{
	"create-pod", "delete-pod", "adopt-pod", "release-pod", "relabel-pod", "get-pod",
	"create-revision", "adopt-revision", "release-revision", "delete-revision", "get-revision", "update-revision",
	"create-replicaset", "adopt-replicaset", "release-replicaset", "delete-replicaset", "get-replicaset",
	"update-replicaset", "get-daemonset", "get-deployment", "update-deployment", "update-status",
}

// call is a parsed request to the API.
type call struct {
	method      string
	namespace   string
	resource    string
	name        string
	subresource string
	contentType string
	body        []byte
	// pod is the decoded body of a create.
	pod *core.Pod
}

// newCall parses a request. Its path is /api/v1/namespaces/NS/RESOURCE/NAME/SUBRESOURCE or the same under
// /apis/apps/v1.
func newCall(request *http.Request, body []byte) call {
	_, path, _ := strings.Cut(request.URL.Path, "/namespaces/")
	parts := append(strings.Split(path, "/"), "", "", "")
	return call{
		method:      request.Method,
		namespace:   parts[0],
		resource:    parts[1],
		name:        parts[2],
		subresource: parts[3],
		contentType: request.Header.Get("Content-Type"),
		body:        body,
	}
}

// patchBody has the members that distinguish the kinds of patches.
type patchBody struct {
	Metadata struct {
		UID             string `json:"uid"`
		OwnerReferences []struct {
			Patch string `json:"$patch"`
		} `json:"ownerReferences"`
	} `json:"metadata"`
}

// operation returns the kind of the call and a name: the node for the create of a pod, if it is meant for one, otherwise
// the object. For an unknown call the kind consists of the method and the path.
func (c *call) operation() (op, name string) {
	name = c.name
	noun, known := nouns[c.resource]
	switch {
	case !known:
	case c.method == http.MethodPut && c.subresource == "status":
		return "update-status", name
	case c.subresource != "":
	case c.method == http.MethodPost && c.resource == podResource:
		// A body that is not a pod is rejected by createPod.
		if pod, err := decode[core.Pod]("the body", c.body); err == nil {
			c.pod, name = pod, targetNode(pod)
		}
		return "create-pod", name
	case c.method == http.MethodPost:
		return "create-" + noun, nameOf(c.body)
	case c.method == http.MethodDelete:
		return "delete-" + noun, name
	case c.method == http.MethodGet:
		return "get-" + noun, name
	case c.method == http.MethodPatch:
		return c.patchOperation() + "-" + noun, name
	case c.method == http.MethodPut:
		return "update-" + noun, name
	}
	return strings.Join([]string{c.method, c.resource, c.subresource}, " "), name
}

func (c *call) patchOperation() string {
	var body patchBody
	// A patch that is not JSON is rejected by applyPatch.
	_ = json.Unmarshal(c.body, &body)
	owners := body.Metadata.OwnerReferences
	if len(owners) == 0 {
		return "relabel"
	}
	for _, owner := range owners {
		if owner.Patch == "delete" {
			return "release"
		}
	}
	return "adopt"
}

// nameOf returns the name of the object in a body.
func nameOf(body []byte) string {
	var object struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(body, &object)
	return object.Metadata.Name
}

// targetNode returns the node in the required affinity of a created pod.
func targetNode(pod *core.Pod) string {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return ""
	}
	required := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if required == nil {
		return ""
	}
	for _, term := range required.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == meta.ObjectNameField && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}
