package overhead_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/overhead"
	"nodewise.dev/clients/go/planclient"
)

func daemonSet(name string, spec corev1.PodSpec) *appsv1.DaemonSet {
	labels := map[string]string{"app": name}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "kube-system"},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
}

func containers(requests corev1.ResourceList) []corev1.Container {
	return []corev1.Container{{Name: "c", Image: "c:1", Resources: corev1.ResourceRequirements{Requests: requests}}}
}

func list(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func shown(list corev1.ResourceList) map[string]string {
	shown := map[string]string{}
	for name, quantity := range list {
		shown[string(name)] = quantity.String()
	}
	return shown
}

func realClient(t *testing.T) *planclient.Client {
	t.Helper()
	client, err := planclient.New(t.Context(), []string{"http://" + testkit.StartServer(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestTheRealServiceEvaluatesShapes(t *testing.T) {
	proxy := daemonSet("proxy", corev1.PodSpec{Containers: containers(list("cpu", "100m", "memory", "128Mi"))})
	gpu := daemonSet("gpu", corev1.PodSpec{
		Containers:   containers(list("cpu", "1")),
		NodeSelector: map[string]string{"pool": "gpu"},
		Tolerations:  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
	})
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"pool": "gpu"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: "gpu", Value: "true", Effect: corev1.TaintEffectNoSchedule}}},
	}
	shapes := []overhead.Shape{{Labels: map[string]string{"zone": "a"}}, overhead.ShapeOf(node), {Labels: map[string]string{"zone": "b"}}}
	answer, err := overhead.Evaluate(t.Context(), realClient(t), shapes, []*appsv1.DaemonSet{proxy, gpu})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []map[string]string{
		{"cpu": "100m", "memory": "128Mi", "pods": "1"}, {"cpu": "1", "pods": "1"}, {"cpu": "100m", "memory": "128Mi", "pods": "1"},
	} {
		if diff := cmp.Diff(want, shown(answer.Nodes[i].Requests)); diff != "" || answer.Nodes[i].Incomplete {
			t.Errorf("node %d: %s", i, diff)
		}
	}
	if answer.Nodes[0] != answer.Nodes[2] {
		t.Error("nodes that are alike share an answer")
	}
	missing := answer.Nodes[0].Decisions[1]
	if missing.Runs || missing.Rule != nodewisev1.Rule_RULE_NODE_SELECTOR || !cmp.Equal(missing.MissingLabels, []string{"pool"}) {
		t.Errorf("got %+v", missing)
	}
	tainted := answer.Nodes[1].Decisions[0]
	if tainted.Runs || tainted.Rule != nodewisev1.Rule_RULE_TAINT_NO_SCHEDULE || tainted.Message != "taint gpu=true:NoSchedule is not tolerated" {
		t.Errorf("got %+v", tainted)
	}
	if diff := cmp.Diff(map[string]string{"cpu": "1"}, shown(answer.DaemonSets[1].Requests)); diff != "" {
		t.Error(diff)
	}
}

// One DaemonSet whose quantity cannot be read has an error; the others are answered for.
func TestADaemonSetThatCannotBeReadHasAnErrorOfItsOwn(t *testing.T) {
	good := daemonSet("good", corev1.PodSpec{Containers: containers(list("cpu", "1"))})
	odd := daemonSet("odd", corev1.PodSpec{Containers: containers(list("cpu", "-1"))})
	answer, err := overhead.Evaluate(t.Context(), realClient(t), []overhead.Shape{{}}, []*appsv1.DaemonSet{good, odd})
	if err != nil {
		t.Fatal(err)
	}
	if answer.DaemonSets[0].Err != nil || answer.DaemonSets[1].Err == nil ||
		!strings.Contains(answer.DaemonSets[1].Err.Error(), "kube-system/odd: spec.template.spec.containers[0].resources.requests.cpu: -1 is negative") {
		t.Errorf("got %v", answer.DaemonSets)
	}
	if !answer.Nodes[0].Incomplete {
		t.Error("the sum lacks one DaemonSet")
	}
}

// The service names the field of a wrong shape.
func TestAWrongShapeIsRefused(t *testing.T) {
	shapes := []overhead.Shape{{Taints: []corev1.Taint{{Key: "a", Effect: "Never"}}}}
	_, err := overhead.Evaluate(t.Context(), realClient(t), shapes, nil)
	var refused *planclient.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "nodes[0].taints[0].effect: is `Never`") {
		t.Errorf("got %v", err)
	}
}

// scripted is a client with one answer.
type scripted struct {
	response *nodewisev1.EvaluateNodesResponse
	err      error
}

func (s scripted) EvaluateNodes(context.Context, *nodewisev1.EvaluateNodesRequest) (*nodewisev1.EvaluateNodesResponse, error) {
	return s.response, s.err
}

// Responses that refer to entries which they do not have are errors, not panics.
func TestForeignAnswersAreErrors(t *testing.T) {
	set := &nodewisev1.DaemonSetOverhead{}
	quantity := &nodewisev1.ResourceQuantity{Name: "cpu", Quantity: "1x"}
	evaluation := func(decisions ...uint32) []*nodewisev1.NodeEvaluation {
		return []*nodewisev1.NodeEvaluation{{Decisions: decisions}}
	}
	for i, response := range []*nodewisev1.EvaluateNodesResponse{
		{},
		{NodeEvaluations: []uint32{0}},
		{NodeEvaluations: []uint32{0}, DaemonSets: []*nodewisev1.DaemonSetOverhead{set}},
		{NodeEvaluations: []uint32{0}, DaemonSets: []*nodewisev1.DaemonSetOverhead{set}, Evaluations: evaluation()},
		{NodeEvaluations: []uint32{0}, DaemonSets: []*nodewisev1.DaemonSetOverhead{set}, Evaluations: evaluation(1)},
		{NodeEvaluations: []uint32{0}, DaemonSets: []*nodewisev1.DaemonSetOverhead{{Requests: []*nodewisev1.ResourceQuantity{quantity}}}},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			sets := []*appsv1.DaemonSet{daemonSet("a", corev1.PodSpec{})}
			if answer, err := overhead.Evaluate(t.Context(), scripted{response: response}, []overhead.Shape{{}}, sets); err == nil {
				t.Errorf("got %v", answer)
			}
		})
	}
	old := &planclient.UnsupportedMethodError{Method: "EvaluateNodes"}
	if _, err := overhead.Evaluate(t.Context(), scripted{err: old}, nil, nil); !errors.Is(err, old) {
		t.Errorf("got %v", err)
	}
}
