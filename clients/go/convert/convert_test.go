package convert_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"google.golang.org/protobuf/testing/protocmp"

	"nodewise.dev/clients/go/convert"
	"nodewise.dev/clients/go/nodewisev1"
)

func samplePod() *corev1.Pod {
	yes := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "p", UID: "u", Labels: map[string]string{"b": "2", "a": "1"},
			OwnerReferences:   []metav1.OwnerReference{{Kind: "X"}, {Kind: "DaemonSet", Name: "d", UID: "du", Controller: &yes}},
			Finalizers:        []string{"f"},
			CreationTimestamp: metav1.NewTime(time.Unix(1, 0)),
			ManagedFields:     []metav1.ManagedFieldsEntry{{Manager: "m"}},
			Annotations:       map[string]string{convert.TraceparentAnnotation: "00-1-2-01", "other": "x"},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Image: "i"}},
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: "In", Values: []string{"n1"}}},
				}}},
			}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: "Other", Status: "True"},
			{Type: corev1.PodReady, Status: "True", LastTransitionTime: metav1.NewTime(time.Unix(2, 0))},
		}},
	}
}

// The projection of a transformed object equals that of the whole object, and the transform keeps nothing else.
func TestSlimPodsAreProjectedAsWholeOnes(t *testing.T) {
	whole := samplePod()
	want, err := convert.Pod(whole)
	if err != nil {
		t.Fatal(err)
	}
	if want.GetTargetNodeName() != "n1" || want.GetController().GetUid() != "du" {
		t.Fatalf("projected as %v", want)
	}
	slim, err := convert.SlimPod(whole)
	if err != nil {
		t.Fatal(err)
	}
	got, err := convert.Pod(slim.(*corev1.Pod))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	pod := slim.(*corev1.Pod)
	if len(pod.Spec.Containers) > 0 || len(pod.ManagedFields) > 0 {
		t.Errorf("it kept %v", pod)
	}
	if diff := cmp.Diff(map[string]string{convert.TraceparentAnnotation: "00-1-2-01"}, pod.Annotations); diff != "" {
		t.Error(diff)
	}
}

func TestSlimNodesAreProjectedAsWholeOnes(t *testing.T) {
	whole := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "u", Labels: map[string]string{"a": "1"}},
		Spec:       corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{{Key: "k", Effect: "NoSchedule"}}},
		Status: corev1.NodeStatus{
			Images:     []corev1.ContainerImage{{Names: []string{"i"}}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: "False"}},
		},
	}
	want, err := convert.Node(whole)
	if err != nil {
		t.Fatal(err)
	}
	slim, err := convert.SlimNode(whole)
	if err != nil {
		t.Fatal(err)
	}
	got, err := convert.Node(slim.(*corev1.Node))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if len(slim.(*corev1.Node).Status.Images) > 0 {
		t.Error("it kept the images")
	}
}

func TestASnapshotHasABucket(t *testing.T) {
	_, ofNodes := convert.NodeBuckets(nil, 0)
	_, ofPods := convert.PodBuckets(nil, 0)
	for _, err := range []error{ofNodes, ofPods} {
		if err == nil || !strings.Contains(err.Error(), "at least 1 bucket") {
			t.Errorf("got %v", err)
		}
	}
}

// D-24: the first entry decides, also if it does not name exactly one node.
func TestTargetNodeOfAnUnboundPod(t *testing.T) {
	field := func(key string, operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	term := func(fields ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchFields: fields}
	}
	in := func(values ...string) corev1.NodeSelectorRequirement { return field("metadata.name", "In", values...) }
	for _, test := range []struct {
		name  string
		terms []corev1.NodeSelectorTerm
		want  string
	}{
		{"one", []corev1.NodeSelectorTerm{term(in("a"))}, "a"},
		{"after another field", []corev1.NodeSelectorTerm{term(field("metadata.uid", "In", "x"), in("a"))}, "a"},
		{"in a later term", []corev1.NodeSelectorTerm{term(), term(in("b"))}, "b"},
		{"after another operator", []corev1.NodeSelectorTerm{term(field("metadata.name", "NotIn", "a")), term(in("b"))}, "b"},
		{"two values", []corev1.NodeSelectorTerm{term(in("a", "b")), term(in("c"))}, ""},
		{"none", nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			pod := samplePod()
			pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms = test.terms
			got, err := convert.Pod(pod)
			if err != nil || got.GetTargetNodeName() != test.want {
				t.Errorf("got %q, %v, want %q", got.GetTargetNodeName(), err, test.want)
			}
		})
	}
}

func TestTimesAreThoseOfTheProtocol(t *testing.T) {
	for _, test := range []struct {
		at   time.Time
		want int64
	}{
		{time.Unix(5, 0), 5},
		{time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC), 253_402_128_000},
		{time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC), -62_135_596_800},
	} {
		if got := convert.Timestamp(metav1.NewTime(test.at)); got.GetSeconds() != test.want || got.CheckValid() != nil {
			t.Errorf("%s: got %v, want %d", test.at, got, test.want)
		}
	}
	if convert.Timestamp(metav1.Time{}) != nil {
		t.Error("no time is none")
	}
}

func TestErrorsNameTheObjectAndTheField(t *testing.T) {
	pod := samplePod()
	pod.UID = ""
	if _, err := convert.Pod(pod); err == nil || err.Error() != `Pod "ns/p": metadata.uid: is missing` {
		t.Errorf("got %v", err)
	}
}

func TestTypedObjectsLeaveTheirManagedFields(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "x", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}
	daemonSet, err := convert.DaemonSet(&appsv1.DaemonSet{ObjectMeta: meta})
	if err != nil {
		t.Fatal(err)
	}
	revision, err := convert.ControllerRevision(&appsv1.ControllerRevision{
		ObjectMeta: meta, Data: runtime.RawExtension{Raw: []byte(`{"a":1.50}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range [][]byte{daemonSet.GetObject(), revision.GetObject()} {
		if !json.Valid(object) || strings.Contains(string(object), "managedFields") || meta.ManagedFields == nil {
			t.Errorf("got %s", object)
		}
	}
	if !strings.Contains(string(revision.GetObject()), "1.50") {
		t.Errorf("the data lost its bytes: %s", revision.GetObject())
	}
}

// What decides which pod a ReplicaSet deletes first is projected of pods that a ReplicaSet controls, and of orphans.
func TestWhichPodIsDeletedFirst(t *testing.T) {
	const object = `{"metadata":{"name":"p","uid":"u","annotations":{"controller.kubernetes.io/pod-deletion-cost":%q},"ownerReferences":[%s]},
		"spec":{"initContainers":[{"name":"sidecar","restartPolicy":"Always"},{"name":"init"},{"name":"odd","restartPolicy":"Never"}]},
		"status":{"containerStatuses":[{"name":"a","restartCount":3},{"name":"b","restartCount":7},{"name":"c","restartCount":-1}],
		"initContainerStatuses":[{"name":"init","restartCount":50},{"name":"odd","restartCount":60},{"name":"sidecar","restartCount":2}]}}`
	for owner, test := range map[string]struct {
		cost, want         string
		restarts, sidecars uint32
	}{
		"":           {"-5", "-5", 7, 2},
		"ReplicaSet": {"12345678901", "12345678901", 7, 2},
		"Other":      {"5", "", 0, 0},
		"DaemonSet":  {"5", "", 7, 0},
	} {
		owners := ""
		if owner != "" {
			owners = fmt.Sprintf(`{"kind":%q,"name":"o","uid":"o","controller":true}`, owner)
		}
		text := fmt.Appendf(nil, object, test.cost, owners)
		fromJSON, err := convert.PodJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		typed := new(corev1.Pod)
		if err := json.Unmarshal(text, typed); err != nil {
			t.Fatal(err)
		}
		slim, err := convert.SlimPod(typed)
		if err != nil {
			t.Fatal(err)
		}
		fromSlim, err := convert.Pod(slim.(*corev1.Pod))
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range []*nodewisev1.Pod{fromJSON, fromSlim} {
			if got.GetDeletionCost() != test.want || got.GetRestarts() != test.restarts || got.GetSidecarRestarts() != test.sidecars {
				t.Errorf("of a %s: got %v", owner, got)
			}
		}
	}
	long, err := convert.PodJSON(fmt.Appendf(nil, object, strings.Repeat("1", 65), ""))
	if err != nil || long.GetDeletionCost() != "" {
		t.Errorf("a cost that is not valid: got %v, %v", long, err)
	}
}
