package convert

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/nodewisev1"
)

// MaxLabels is how many labels of one object are sent at most.
const MaxLabels = 1024

// ofEveryPod are labels of pods that every plan reads. They come first where there are too many.
var ofEveryPod = []string{"controller-revision-hash", "pod-template-generation"}

// Reads is what the decisions about one DaemonSet read.
type Reads struct {
	// NodeLabels are keys of node labels: its nodeSelector and its required node affinity.
	NodeLabels sets.Set[string]
	// PodLabels are keys of pod labels: its selector.
	PodLabels sets.Set[string]
	// Selector selects what the service may claim (D-22): the empty selector selects everything, an absent or invalid one
	// nothing.
	Selector labels.Selector
}

// ReadsOf reads the JSON of a DaemonSet. Nothing is checked: what the service refuses names nothing or too much.
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
	// What is of another type is passed over, and the rest is read.
	_ = json.Unmarshal(parsed.Spec, &rest)
	template := rest.Template.Spec
	if selected, isObject := template.NodeSelector.(map[string]any); isObject {
		reads.NodeLabels.Insert(sets.KeySet(selected).UnsortedList()...)
	}
	required := member(member(template.Affinity, "nodeAffinity"), "requiredDuringSchedulingIgnoredDuringExecution")
	for _, term := range elements(member(required, "nodeSelectorTerms")) {
		insertKeys(reads.NodeLabels, member(term, "matchExpressions"))
	}
	return reads
}

func member(value any, name string) any {
	object, _ := value.(map[string]any)
	return object[name]
}

func elements(value any) []any {
	list, _ := value.([]any)
	return list
}

func insertKeys(keys sets.Set[string], entries any) {
	for _, entry := range elements(entries) {
		if key, isText := member(entry, "key").(string); isText {
			keys.Insert(key)
		}
	}
}

// Equal tells whether both read the same.
func (r Reads) Equal(other Reads) bool {
	return r.NodeLabels.Equal(other.NodeLabels) && r.PodLabels.Equal(other.PodLabels)
}

// Selects tells whether the DaemonSet selects an object with these labels.
func (r Reads) Selects(list []*nodewisev1.Label) bool {
	set := make(labels.Set, len(list))
	for _, label := range list {
		set[label.GetKey()] = label.GetValue()
	}
	return r.Selector.Matches(set)
}

// KeySet has the keys of which labels are sent: those that a decision can read. Whoever may write one object could make the rest
// of any size.
type KeySet struct {
	Labels sets.Set[string]
	// first are labels that are sent however many others there are.
	first []string
}

// NodeKeys are those of nodes, where these are all DaemonSets of the cluster.
func NodeKeys(daemonSets ...Reads) *KeySet {
	keys := &KeySet{Labels: sets.New[string]()}
	for _, reads := range daemonSets {
		keys.Labels.Insert(reads.NodeLabels.UnsortedList()...)
	}
	return keys
}

// PodKeys are those of the pods of a namespace, where these are all DaemonSets of it.
func PodKeys(daemonSets ...Reads) *KeySet {
	keys := &KeySet{Labels: sets.New(ofEveryPod...), first: ofEveryPod}
	for _, reads := range daemonSets {
		keys.Labels.Insert(reads.PodLabels.UnsortedList()...)
	}
	return keys
}

// ReduceNode leaves of a node what is sent of it; it answers with how many labels that decisions could read it left out, since there
// are too many.
func ReduceNode(node *nodewisev1.Node, keys *KeySet) (cut int) {
	node.Labels, cut = ReduceLabels(node.GetLabels(), keys)
	return cut
}

// ReducePod leaves of a pod what is sent of it, and answers likewise.
func ReducePod(pod *nodewisev1.Pod, keys *KeySet) (cut int) {
	pod.Labels, cut = ReduceLabels(pod.GetLabels(), keys)
	return cut
}

// ReduceLabels are those of these labels, ordered by key, that are sent, and how many are left out since there are too many: the
// last ones by key.
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
