package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/rawjson"
	"nodewise.dev/clients/go/nodewisev1"
)

// Manifest is the manifest of a plan's pods. It is parsed once per plan and rendered once per pod. It is safe for concurrent use.
type Manifest struct {
	mu       sync.Mutex
	object   map[string]any
	metadata map[string]any
	// setters set the name of the node, one for each of the plan's node_name_pointers.
	setters []func(nodeName string)
	// hash is the revision label of the plan's pods; empty for none.
	hash string
}

// ParseManifest reads the manifest of a plan; the error says what is wrong with it.
func ParseManifest(plan *nodewisev1.Plan) (*Manifest, error) {
	parsed, err := rawjson.Parse(plan.GetPodManifest())
	if err != nil {
		return nil, fmt.Errorf("reading the plan's pod_manifest: %w", err)
	}
	manifest := &Manifest{object: rawjson.Object(parsed), metadata: rawjson.Object(parsed, "metadata")}
	if manifest.metadata == nil {
		return nil, errors.New("the plan's pod_manifest has no metadata")
	}
	for _, pointer := range plan.GetNodeNamePointers() {
		set, err := setterAt(manifest.object, pointer)
		if err != nil {
			return nil, fmt.Errorf("the plan's node_name_pointers entry %q: %w", pointer, err)
		}
		manifest.setters = append(manifest.setters, set)
	}
	manifest.hash, _ = rawjson.At(manifest.metadata, "labels", appsv1.ControllerRevisionHashLabelKey).(string)
	return manifest, nil
}

// Render makes the pod for one node. With an empty pod name the apiserver generates the name from the manifest's generateName. With an empty
// trace context no annotation is added.
func (m *Manifest) Render(create *nodewisev1.CreatePod, traceparent string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if traceparent != "" {
		defer m.annotate(convert.TraceparentAnnotation, traceparent)()
	}
	for _, set := range m.setters {
		set(create.GetNodeName())
	}
	if create.GetPodName() == "" {
		delete(m.metadata, "name")
	} else {
		m.metadata["name"] = create.GetPodName()
	}
	body, err := json.Marshal(m.object)
	if err != nil {
		return nil, fmt.Errorf("writing the pod for node %s: %w", create.GetNodeName(), err)
	}
	return body, nil
}

// annotate sets an annotation until undo is called.
func (m *Manifest) annotate(name, value string) (undo func()) {
	const member = "annotations"
	present, hasAny := m.metadata[member]
	annotations := map[string]any{name: value}
	if others, ok := present.(map[string]any); ok {
		annotations = maps.Clone(others)
		annotations[name] = value
	}
	m.metadata[member] = annotations
	return func() {
		if hasAny {
			m.metadata[member] = present
		} else {
			delete(m.metadata, member)
		}
	}
}

// isSamePod reports whether an existing pod is the one that a create of this plan would have made. Such a pod has the same controller. If pods are
// for nodes, it also has the same node and revision. The function reads only the fields of the projection: another client may have made the pod, with
// other fields that cannot be decoded.
//
// Anyone who may create pods can name the workload's uid in a reference with another kind or name. The caches do not count such a pod as the
// workload's.
func (m *Manifest) isSamePod(live []byte, workload *nodewisev1.WorkloadReference, nodeName string) (bool, error) {
	projection, err := convert.PodJSON(live)
	if err != nil {
		return false, fmt.Errorf("reading what was served: %w", err)
	}
	pod := cluster.Pod{Pod: projection}
	isForNode := convert.TargetNode(projection) == nodeName && pod.LabelSet()[appsv1.ControllerRevisionHashLabelKey] == m.hash
	controller := pod.Controller
	isControlled := controller.GetKind() == workload.GetKind() && controller.GetName() == workload.GetName() && controller.GetUid() == workload.GetUid()
	return isControlled && (nodeName == "" || isForNode), nil
}

// unescape decodes a token of a JSON pointer (RFC 6901).
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// setterAt returns a function that sets the string at a JSON pointer.
func setterAt(object map[string]any, pointer string) (func(string), error) {
	_, set, err := stringAt(object, pointer)
	return set, err
}

// stringAt returns the string at a JSON pointer, and a function that sets it.
func stringAt(object map[string]any, pointer string) (string, func(string), error) {
	tokens := strings.Split(pointer, "/")
	if len(tokens) < 2 || tokens[0] != "" {
		return "", nil, errors.New("it is no JSON pointer to a member")
	}
	var at any = object
	for i, token := range tokens[1:] {
		token = unescape.Replace(token)
		isLast := i == len(tokens)-2
		var next any
		var set func(string)
		switch parent := at.(type) {
		case map[string]any:
			next, set = parent[token], func(name string) { parent[token] = name }
		case []any:
			index, err := strconv.Atoi(token)
			if err != nil || index < 0 || index >= len(parent) {
				return "", nil, fmt.Errorf("the list has no element %q", token)
			}
			next, set = parent[index], func(name string) { parent[index] = name }
		default:
			return "", nil, fmt.Errorf("there is nothing with a member %q", token)
		}
		if isLast {
			text, isString := next.(string)
			if !isString {
				return "", nil, errors.New("there is no string")
			}
			return text, set, nil
		}
		at = next
	}
	return "", nil, errors.New("it names nothing")
}
