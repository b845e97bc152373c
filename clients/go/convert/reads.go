package convert

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/internal/rawjson"
	"nodewise.dev/clients/go/nodewisev1"
)

// MaxLabels is how many labels of one object are sent at most.
const MaxLabels = 1024

// ofEveryPod are labels of pods that every plan reads. If an object has too many labels, these are sent first.
var ofEveryPod = []string{"controller-revision-hash", "pod-template-generation"}

// Reads are the labels that a plan for one workload reads.
type Reads struct {
	// NodeLabels are the keys of node labels in the nodeSelector and the required node affinity.
	NodeLabels sets.Set[string]
	// PodLabels are the keys of pod labels in the selector; for a ReplicaSet, also those of its template.
	PodLabels sets.Set[string]
	// Selector selects the orphans that the service may claim (D-22). An empty selector selects everything, and an absent or invalid one
	// selects nothing.
	Selector labels.Selector
}

// ReadsOf reads the JSON of a DaemonSet. It does not validate the DaemonSet, and skips fields of a wrong type: the service refuses these.
func ReadsOf(daemonSet []byte) Reads {
	var parsed struct {
		Spec json.RawMessage `json:"spec"`
	}
	_ = json.Unmarshal(daemonSet, &parsed)
	var spec struct {
		Selector *metav1.LabelSelector `json:"selector"`
	}
	reads := Reads{NodeLabels: sets.New[string](), PodLabels: sets.New[string]()}
	reads.Selector = labels.Nothing()
	if json.Unmarshal(parsed.Spec, &spec) == nil {
		if selector, err := metav1.LabelSelectorAsSelector(spec.Selector); err == nil {
			reads.Selector = selector
		}
	}
	requirements, _ := reads.Selector.Requirements()
	for i := range requirements {
		reads.PodLabels.Insert(requirements[i].Key())
	}
	var rest struct {
		Template struct {
			Spec struct {
				NodeSelector any `json:"nodeSelector"`
				Affinity     any `json:"affinity"`
			} `json:"spec"`
		} `json:"template"`
	}
	// Fields of a wrong type are skipped, and the others are read.
	_ = json.Unmarshal(parsed.Spec, &rest)
	template := rest.Template.Spec
	reads.NodeLabels.Insert(sets.KeySet(rawjson.Object(template.NodeSelector)).UnsortedList()...)
	const required = "requiredDuringSchedulingIgnoredDuringExecution"
	for _, term := range rawjson.List(template.Affinity, "nodeAffinity", required, "nodeSelectorTerms") {
		for _, expression := range rawjson.List(term, "matchExpressions") {
			if key, isText := rawjson.At(expression, "key").(string); isText {
				reads.NodeLabels.Insert(key)
			}
		}
	}
	return reads
}

// ReadsOfReplicaSet reads the JSON of a ReplicaSet, as [ReadsOf] does. A plan reads no labels of nodes. It counts the pods that have all labels of
// the template, so these are read, too.
func ReadsOfReplicaSet(replicaSet []byte) Reads {
	reads := ReadsOf(replicaSet)
	reads.NodeLabels = sets.New[string]()
	var parsed any
	if json.Unmarshal(replicaSet, &parsed) == nil {
		template := rawjson.Object(parsed, "spec", "template", "metadata", "labels")
		reads.PodLabels.Insert(sets.KeySet(template).UnsortedList()...)
	}
	return reads
}

// ReadsOfDeployment reads the JSON of a Deployment, as [ReadsOf] does. A plan reads no labels of nodes and pods.
func ReadsOfDeployment(deployment []byte) Reads {
	reads := ReadsOf(deployment)
	reads.NodeLabels, reads.PodLabels = sets.New[string](), sets.New[string]()
	return reads
}

// Equal reports whether both have the same label keys.
func (r Reads) Equal(other Reads) bool {
	return r.NodeLabels.Equal(other.NodeLabels) && r.PodLabels.Equal(other.PodLabels)
}

// Selects reports whether the workload selects an object with these labels.
func (r Reads) Selects(list []*nodewisev1.Label) bool {
	set := make(labels.Set, len(list))
	for _, label := range list {
		set[label.GetKey()] = label.GetValue()
	}
	return r.Selector.Matches(set)
}

// KeySet has the keys of the labels that are sent: those that a plan can read. Other labels are not sent, because a client could make them of any
// size.
type KeySet struct {
	Labels sets.Set[string]
	// first are the keys of labels that are sent even if an object has too many labels.
	first []string
}

// NodeKeys returns the keys for nodes. The arguments are all workloads of the cluster.
func NodeKeys(workloads ...Reads) *KeySet {
	keys := &KeySet{Labels: sets.New[string]()}
	for _, reads := range workloads {
		keys.Labels.Insert(reads.NodeLabels.UnsortedList()...)
	}
	return keys
}

// PodKeys returns the keys for the pods of a namespace. The arguments are all workloads of the namespace.
func PodKeys(workloads ...Reads) *KeySet {
	keys := &KeySet{Labels: sets.New(ofEveryPod...), first: ofEveryPod}
	for _, reads := range workloads {
		keys.Labels.Insert(reads.PodLabels.UnsortedList()...)
	}
	return keys
}

// ReduceNode removes the labels of a node that are not sent. It returns how many labels that a plan could read were removed because there are too
// many.
func ReduceNode(node *nodewisev1.Node, keys *KeySet) (cut int) {
	node.Labels, cut = ReduceLabels(node.GetLabels(), keys)
	return cut
}

// ReducePod removes the labels of a pod that are not sent, and returns the same as [ReduceNode].
func ReducePod(pod *nodewisev1.Pod, keys *KeySet) (cut int) {
	pod.Labels, cut = ReduceLabels(pod.GetLabels(), keys)
	return cut
}

// ReduceLabels returns the labels that are sent, of a list ordered by key. If there are more than [MaxLabels], the last ones by key are left out, and
// cut is how many.
func ReduceLabels(list []*nodewisev1.Label, keys *KeySet) (sent []*nodewisev1.Label, cut int) {
	room := MaxLabels
	for _, label := range list {
		if keys.Labels.Has(label.GetKey()) {
			sent = append(sent, label)
			if slices.Contains(keys.first, label.GetKey()) {
				room--
			}
		}
	}
	if cut = len(sent) - MaxLabels; cut <= 0 {
		return sent, 0
	}
	sent = slices.DeleteFunc(sent, func(label *nodewisev1.Label) bool {
		if slices.Contains(keys.first, label.GetKey()) {
			return false
		}
		room--
		return room < 0
	})
	return sent, cut
}

// ReadsOfRolloutPolicy reads the labels of nodes that the stages of a RolloutPolicy name, from its JSON. It skips what it cannot read. A
// RolloutPolicy selects no orphans.
func ReadsOfRolloutPolicy(policy []byte) Reads {
	reads := Reads{NodeLabels: sets.New[string](), PodLabels: sets.New[string](), Selector: labels.Nothing()}
	parsed, err := rawjson.Parse(policy)
	if err != nil {
		return reads
	}
	for _, stage := range rawjson.List(parsed, "spec", "stages") {
		reads.NodeLabels.Insert(sets.KeySet(rawjson.Object(stage, "nodeSelector", "matchLabels")).UnsortedList()...)
		named := []any{rawjson.At(stage, "spreadBy"), rawjson.At(stage, "groupBy")}
		for _, expression := range rawjson.List(stage, "nodeSelector", "matchExpressions") {
			named = append(named, rawjson.At(expression, "key"))
		}
		for _, name := range named {
			if key, isText := name.(string); isText {
				reads.NodeLabels.Insert(key)
			}
		}
	}
	return reads
}
