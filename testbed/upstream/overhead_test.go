package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/klog/v2"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/controller/daemon"
)

const (
	overheadSets  = 400
	overheadNodes = 40
)

// overheadAnswer is what `nodewise overhead -o json` prints.
type overheadAnswer struct {
	Nodes []struct {
		Requests  map[string]string `json:"requests"`
		Decisions []struct {
			Name string `json:"name"`
			Runs bool   `json:"runs"`
		} `json:"decisions"`
	} `json:"nodes"`
	DaemonSets []struct {
		Name     string            `json:"name"`
		Error    string            `json:"error"`
		Requests map[string]string `json:"requests"`
	} `json:"daemonSets"`
}

// Nodewise decides as NodeShouldRunDaemonPod does, and computes the requests as the apiserver's defaults and PodRequests do.
func TestOverheadIsUpstreams(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := overheadRandom{rand.New(rand.NewPCG(seed, 0))}
	sets, nodes := make([]*appsv1.DaemonSet, 0, overheadSets), make([]*corev1.Node, 0, overheadNodes)
	for i := range overheadSets {
		sets = append(sets, random.daemonSet(i))
	}
	for i := range overheadNodes {
		nodes = append(nodes, random.node(i))
	}
	answer := askNodewise(t, sets, nodes)
	ran := 0
	for i, set := range sets {
		got := answer.DaemonSets[i]
		if got.Name != set.Name || got.Error != "" {
			t.Fatalf("got %+v for %s", got, set.Name)
		}
		if differ := differing(upstreamRequests(set), got.Requests); differ != "" {
			t.Errorf("%s: %s\n%s", set.Name, differ, asJSON(t, set.Spec.Template.Spec))
		}
	}
	for n, node := range nodes {
		sum, pods := corev1.ResourceList{}, 0
		for i, set := range sets {
			runs, _ := daemon.NodeShouldRunDaemonPod(klog.Background(), node, set)
			if got := answer.Nodes[n].Decisions[i]; got.Name != set.Name || got.Runs != runs {
				t.Errorf("%s on %s: upstream says %v, Nodewise %+v\n%s\n%s", set.Name, node.Name, runs, got, asJSON(t, set.Spec.Template.Spec), asJSON(t, node))
			}
			if runs {
				pods++
				for name, quantity := range upstreamRequests(set) {
					total := sum[name]
					total.Add(quantity)
					sum[name] = total
				}
			}
		}
		ran += pods
		sum["pods"] = resource.MustParse(strconv.Itoa(pods))
		if differ := differing(sum, answer.Nodes[n].Requests); differ != "" {
			t.Errorf("the sum for %s: %s", node.Name, differ)
		}
	}
	if all := overheadSets * overheadNodes; ran < all/20 || ran > all*19/20 {
		t.Errorf("%d of %d pods would run: the random objects are not varied", ran, all)
	}
}

// upstreamRequests are the requests of a pod of the DaemonSet, after the apiserver's defaults.
func upstreamRequests(set *appsv1.DaemonSet) corev1.ResourceList {
	pod := daemon.NewPod(set.DeepCopy(), "")
	corev1defaults.SetObjectDefaults_Pod(pod)
	return resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
}

// differing says how the quantities differ, in value or in canonical form; empty if they do not.
func differing(want corev1.ResourceList, got map[string]string) string {
	var differ []string
	for name, quantity := range want {
		// Adding nothing makes the canonical form; a quantity that was only read may keep the form in which it was written.
		quantity.Add(resource.Quantity{})
		if got[string(name)] != quantity.String() {
			differ = append(differ, fmt.Sprintf("%s: upstream has %s, Nodewise %q", name, quantity.String(), got[string(name)]))
		}
	}
	for name := range got {
		if _, known := want[corev1.ResourceName(name)]; !known {
			differ = append(differ, name+" is not requested")
		}
	}
	slices.Sort(differ)
	return strings.Join(differ, "; ")
}

func askNodewise(t *testing.T, sets []*appsv1.DaemonSet, nodes []*corev1.Node) overheadAnswer {
	t.Helper()
	items := make([]any, 0, len(sets))
	for _, set := range sets {
		items = append(items, set)
	}
	type taint struct {
		Key    string `json:"key"`
		Value  string `json:"value"`
		Effect string `json:"effect"`
	}
	shapes := make([]map[string]any, 0, len(nodes))
	for _, node := range nodes {
		taints := []taint{}
		for _, one := range node.Spec.Taints {
			taints = append(taints, taint{one.Key, one.Value, string(one.Effect)})
		}
		shapes = append(shapes, map[string]any{"name": node.Name, "labels": node.Labels, "taints": taints})
	}
	file := filepath.Join(t.TempDir(), "shapes.json")
	if err := os.WriteFile(file, []byte(asJSON(t, shapes)), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), nodewiseProgram(t), "overhead", "-f", "-", "--shapes", file, "-o", "json")
	command.Stdin = strings.NewReader(asJSON(t, map[string]any{"apiVersion": "v1", "kind": "List", "items": items}))
	var stderr bytes.Buffer
	command.Stderr = &stderr
	printed, err := command.Output()
	if err != nil {
		t.Fatalf("nodewise overhead: %v\n%s", err, stderr.String())
	}
	var answer overheadAnswer
	if err := json.Unmarshal(printed, &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Nodes) != len(nodes) || len(answer.DaemonSets) != len(sets) {
		t.Fatalf("got %d nodes and %d DaemonSets", len(answer.Nodes), len(answer.DaemonSets))
	}
	return answer
}

// nodewiseProgram is the path of the command line program: in $NODEWISE_PROGRAMS, or as cargo builds it.
func nodewiseProgram(t *testing.T) string {
	t.Helper()
	if folder := os.Getenv("NODEWISE_PROGRAMS"); folder != "" {
		return filepath.Join(folder, "nodewise")
	}
	printed, err := exec.CommandContext(t.Context(), "cargo", "build", "--locked", "--quiet", "-p", "nodewise", "--bin", "nodewise", "--message-format=json").Output()
	if err != nil {
		t.Fatalf("building nodewise: %v", err)
	}
	for line := range bytes.Lines(printed) {
		var message struct {
			Executable string `json:"executable"`
		}
		if json.Unmarshal(line, &message) == nil && message.Executable != "" {
			return message.Executable
		}
	}
	t.Fatal("cargo told of no program")
	return ""
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// overheadRandom makes random DaemonSets and nodes whose labels and taints often match.
type overheadRandom struct{ *rand.Rand }

func (r overheadRandom) chance(percent int) bool { return r.IntN(100) < percent }

func pick[T any](r overheadRandom, of ...T) T { return of[r.IntN(len(of))] }

func (r overheadRandom) label() (key, value string) {
	return pick(r, "zone", "pool", "example.com/size"), pick(r, "a", "b", "3", "17")
}

func (r overheadRandom) node(number int) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-" + strconv.Itoa(number), Labels: map[string]string{}}}
	for range r.IntN(4) {
		key, value := r.label()
		node.Labels[key] = value
	}
	for range max(0, r.IntN(5)-2) {
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{
			Key:    pick(r, "gpu", "team", "node.kubernetes.io/not-ready", "node.kubernetes.io/unschedulable", "node.kubernetes.io/network-unavailable"),
			Value:  pick(r, "", "a"),
			Effect: pick(r, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule),
		})
	}
	return node
}

func (r overheadRandom) daemonSet(number int) *appsv1.DaemonSet {
	labels := map[string]string{"app": "a"}
	set := &appsv1.DaemonSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "DaemonSet"},
		// Sorted by name in the answer.
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("set-%04d", number), Namespace: "default", UID: "u"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}},
		},
	}
	spec := &set.Spec.Template.Spec
	r.place(spec)
	for i := range 1 + r.IntN(3) {
		spec.Containers = append(spec.Containers, r.container("c"+strconv.Itoa(i)))
	}
	for i := range r.IntN(4) {
		container := r.container("i" + strconv.Itoa(i))
		if r.chance(50) {
			container.RestartPolicy = new(pick(r, corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyOnFailure))
		}
		spec.InitContainers = append(spec.InitContainers, container)
	}
	if r.chance(25) {
		spec.Resources = &corev1.ResourceRequirements{Requests: r.list(), Limits: r.list()}
	}
	if r.chance(15) {
		spec.Overhead = r.list()
	}
	return set
}

func (r overheadRandom) place(spec *corev1.PodSpec) {
	if r.chance(20) {
		key, value := r.label()
		spec.NodeSelector = map[string]string{key: value}
	}
	if r.chance(3) {
		spec.NodeName = "node-1"
	}
	spec.HostNetwork = r.chance(20)
	for range r.IntN(3) {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key:      pick(r, "", "gpu", "team"),
			Operator: pick(r, "", corev1.TolerationOpExists, corev1.TolerationOpEqual),
			Value:    pick(r, "", "a"),
			Effect:   pick(r, "", corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute),
		})
	}
	if !r.chance(35) {
		return
	}
	required := &corev1.NodeSelector{}
	for range r.IntN(4) {
		term := corev1.NodeSelectorTerm{}
		for range r.IntN(3) {
			key, value := r.label()
			one := corev1.NodeSelectorRequirement{
				Key: key,
				Operator: pick(
					r, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist,
					corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt,
				),
			}
			if one.Operator != corev1.NodeSelectorOpExists && one.Operator != corev1.NodeSelectorOpDoesNotExist || r.chance(5) {
				one.Values = []string{value}
			}
			term.MatchExpressions = append(term.MatchExpressions, one)
		}
		if r.chance(15) {
			term.MatchFields = []corev1.NodeSelectorRequirement{{
				Key: "metadata.name", Operator: pick(r, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), Values: []string{"node-2"},
			}}
		}
		required.NodeSelectorTerms = append(required.NodeSelectorTerms, term)
	}
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}
}

func (r overheadRandom) container(name string) corev1.Container {
	container := corev1.Container{Name: name, Image: "c:1"}
	if r.chance(70) {
		container.Resources.Requests = r.list()
	}
	if r.chance(40) {
		container.Resources.Limits = r.list()
	}
	return container
}

func (r overheadRandom) list() corev1.ResourceList {
	list := corev1.ResourceList{}
	for range r.IntN(4) {
		name := pick(r, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, "hugepages-2Mi", "nvidia.com/gpu")
		list[name] = resource.MustParse(pick(
			r, "0", "1", "100m", "250m", "1.5", "1500m", "64Mi", "1Gi", "1536Mi", "1G", "128974848", "1e3", "12e6", "0.1Gi", "3Ki", "1000", "2k", "7n",
		))
	}
	return list
}
