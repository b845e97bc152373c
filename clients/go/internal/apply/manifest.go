package apply

import (
	"bytes"
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
	"nodewise.dev/clients/go/nodewisev1"
)

// Manifest is the manifest of a plan's pods: parsed once per plan, rendered once per pod. It is safe for concurrent use.
type Manifest struct {
	mu       sync.Mutex
	object   map[string]any
	metadata map[string]any
	// places set the node's name.
	places []func(nodeName string)
	// hash is the value of the revision label that the plan's pods carry; empty for none.
	hash string
}

// ParseManifest reads the manifest of a plan; the error says what is wrong with it.
func ParseManifest(plan *nodewisev1.Plan) (*Manifest, error) {
	decoder := json.NewDecoder(bytes.NewReader(plan.GetPodManifest()))
	// Numbers stay as they are written.
	decoder.UseNumber()
	manifest := &Manifest{}
	if err := decoder.Decode(&manifest.object); err != nil {
		return nil, fmt.Errorf("reading the plan's pod_manifest: %w", err)
	}
	var hasMetadata bool
	if manifest.metadata, hasMetadata = manifest.object["metadata"].(map[string]any); !hasMetadata {
		return nil, errors.New("the plan's pod_manifest has no metadata")
	}
	for _, pointer := range plan.GetNodeNamePointers() {
		place, err := placeAt(manifest.object, pointer)
		if err != nil {
			return nil, fmt.Errorf("the plan's node_name_pointers entry %q: %w", pointer, err)
		}
		manifest.places = append(manifest.places, place)
	}
	if labels, ok := manifest.metadata["labels"].(map[string]any); ok {
		manifest.hash, _ = labels[appsv1.ControllerRevisionHashLabelKey].(string)
	}
	return manifest, nil
}

// Render makes the pod for one node. An empty pod name leaves the name to the manifest's generateName, an empty trace context the
// annotations as they are.
func (m *Manifest) Render(create *nodewisev1.CreatePod, traceparent string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if traceparent != "" {
		defer m.annotate(convert.TraceparentAnnotation, traceparent)()
	}
	for _, place := range m.places {
		place(create.GetNodeName())
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

// annotate sets an annotation until it is undone.
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

// isSamePod tells whether a live pod is the one that a create of this plan would have made: same controller, node and revision. Nothing else of
// it is read: it may be anybody's, who could write into it what no reader takes.
func (m *Manifest) isSamePod(live []byte, workloadUID, nodeName string) (bool, error) {
	projection, err := convert.PodJSON(live)
	if err != nil {
		return false, fmt.Errorf("reading what was served: %w", err)
	}
	pod := cluster.Pod{Pod: projection}
	return pod.Controller.GetUid() == workloadUID && convert.TargetNode(projection) == nodeName &&
		pod.LabelSet()[appsv1.ControllerRevisionHashLabelKey] == m.hash, nil
}

// unescape reads a token of a JSON pointer (RFC 6901).
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// placeAt finds the string that a JSON pointer names.
func placeAt(object map[string]any, pointer string) (func(string), error) {
	tokens := strings.Split(pointer, "/")
	if len(tokens) < 2 || tokens[0] != "" {
		return nil, errors.New("it is no JSON pointer to a member")
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
				return nil, fmt.Errorf("the list has no element %q", token)
			}
			next, set = parent[index], func(name string) { parent[index] = name }
		default:
			return nil, fmt.Errorf("there is nothing with a member %q", token)
		}
		if isLast {
			if _, isString := next.(string); !isString {
				return nil, errors.New("there is no string")
			}
			return set, nil
		}
		at = next
	}
	return nil, errors.New("it names nothing")
}
