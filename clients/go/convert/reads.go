package convert

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/nodewisev1"
)

// MaxEntries is how many labels or taints of one object are sent at most: the service reads no more.
const MaxEntries = 1024

// ofEveryPod are labels of pods that every plan reads. They come first where there are too many.
var ofEveryPod = []string{"controller-revision-hash", "pod-template-generation"}

// Reads is what the decisions about one DaemonSet read.
type Reads struct {
	// NodeLabels are keys of node labels: its nodeSelector and its required node affinity.
	NodeLabels sets.Set[string]
	// Taints are keys of taints: its tolerations.
	Taints sets.Set[string]
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
	reads := Reads{NodeLabels: sets.New[string](), Taints: sets.New[string](), PodLabels: sets.New[string]()}
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
				Tolerations  any `json:"tolerations"`
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
	insertKeys(reads.Taints, template.Tolerations)
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
	return r.NodeLabels.Equal(other.NodeLabels) && r.Taints.Equal(other.Taints) && r.PodLabels.Equal(other.PodLabels)
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
	// Taints come first where there are too many.
	Taints sets.Set[string]
	// first are labels that are sent however many others there are.
	first []string
}

// NodeKeys are those of nodes, where these are all DaemonSets of the cluster.
func NodeKeys(daemonSets ...Reads) *KeySet {
	keys := &KeySet{Labels: sets.New[string](), Taints: sets.New[string]()}
	for _, reads := range daemonSets {
		keys.Labels.Insert(reads.NodeLabels.UnsortedList()...)
		keys.Taints.Insert(reads.Taints.UnsortedList()...)
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

// Cut is how many labels and taints that decisions could read were left out of an object, since there are too many.
type Cut struct {
	Labels, Taints int
}

// ReduceNode leaves of a node what is sent of it.
func ReduceNode(node *nodewisev1.Node, keys *KeySet) Cut {
	var cut Cut
	node.Labels, cut.Labels = ReduceLabels(node.GetLabels(), keys)
	node.Taints, cut.Taints = reduceTaints(node.GetTaints(), keys)
	return cut
}

// ReducePod leaves of a pod what is sent of it.
func ReducePod(pod *nodewisev1.Pod, keys *KeySet) Cut {
	var cut Cut
	pod.Labels, cut.Labels = ReduceLabels(pod.GetLabels(), keys)
	return cut
}

// ReduceLabels are those of these labels, ordered by key, that are sent, and how many are left out since there are too many: the
// last ones by key.
func ReduceLabels(list []*nodewisev1.Label, keys *KeySet) (sent []*nodewisev1.Label, cut int) {
	room := MaxEntries
	for _, label := range list {
		if keys.Labels.Has(label.GetKey()) {
			sent = append(sent, label)
			if slices.Contains(keys.first, label.GetKey()) {
				room--
			}
		}
	}
	if cut = len(sent) - MaxEntries; cut <= 0 {
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

// reduceTaints leaves out taints only where there are too many. Those that keep pods away come first, and of them those that a
// DaemonSet tolerates by their key: any other taint of an effect says the same to every DaemonSet.
func reduceTaints(list []*nodewisev1.Taint, keys *KeySet) (sent []*nodewisev1.Taint, cut int) {
	if cut = len(list) - MaxEntries; cut <= 0 {
		return list, 0
	}
	rank := func(taint *nodewisev1.Taint) int {
		switch {
		case taint.GetEffect() != "NoSchedule" && taint.GetEffect() != "NoExecute":
			return 2
		case keys.Taints.Has(taint.GetKey()):
			return 0
		default:
			return 1
		}
	}
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return rank(list[a]) - rank(list[b]) })
	order = order[:MaxEntries]
	slices.Sort(order)
	for _, i := range order {
		sent = append(sent, list[i])
	}
	return sent, cut
}
