package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

var now = time.Date(2026, time.January, 2, 3, 4, 5, 6, time.UTC)

// newDaemonSet returns a DaemonSet with an apiserver's defaults.
func newDaemonSet(changes ...func(*apps.DaemonSet)) *apps.DaemonSet {
	ds := &apps.DaemonSet{
		ObjectMeta: meta.ObjectMeta{Name: "logs", Namespace: "default", UID: "ds", ResourceVersion: "5", Generation: 1},
		Spec: apps.DaemonSetSpec{
			Selector: &meta.LabelSelector{MatchLabels: map[string]string{"app": "logs"}},
			Template: core.PodTemplateSpec{
				ObjectMeta: meta.ObjectMeta{Labels: map[string]string{"app": "logs"}},
				Spec:       core.PodSpec{Containers: []core.Container{{Name: "logs", Image: "logs:<1>"}}},
			},
			UpdateStrategy: apps.DaemonSetUpdateStrategy{
				Type: apps.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &apps.RollingUpdateDaemonSet{
					MaxUnavailable: ptr.To(intstr.FromInt32(1)),
					MaxSurge:       ptr.To(intstr.FromInt32(0)),
				},
			},
			RevisionHistoryLimit: ptr.To[int32](10),
		},
	}
	for _, change := range changes {
		change(ds)
	}
	return ds
}

func surging(ds *apps.DaemonSet) {
	ds.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(0))
	ds.Spec.UpdateStrategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(1))
}

func newNode(name string, taints ...core.Taint) *core.Node {
	return &core.Node{
		ObjectMeta: meta.ObjectMeta{Name: name, UID: types.UID(name), ResourceVersion: "7"},
		Spec:       core.NodeSpec{Taints: taints},
	}
}

// newPod returns a ready pod of the current revision.
func newPod(name, node string, changes ...func(*core.Pod)) *core.Pod {
	pod := &core.Pod{
		ObjectMeta: meta.ObjectMeta{
			Name: name, Namespace: "default", UID: types.UID(name), ResourceVersion: "8",
			CreationTimestamp: meta.NewTime(now.Add(-time.Hour)),
			Labels:            map[string]string{"app": "logs", apps.ControllerRevisionHashLabelKey: hashMark},
			OwnerReferences:   []meta.OwnerReference{*meta.NewControllerRef(newDaemonSet(), apps.SchemeGroupVersion.WithKind("DaemonSet"))},
		},
		Spec: core.PodSpec{NodeName: node},
		Status: core.PodStatus{
			Phase: core.PodRunning,
			Conditions: []core.PodCondition{{
				Type: core.PodReady, Status: core.ConditionTrue, LastTransitionTime: meta.NewTime(now.Add(-time.Minute)),
			}},
		},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func orphaned(pod *core.Pod) { pod.OwnerReferences = nil }

func failed(pod *core.Pod) { pod.Status = core.PodStatus{Phase: core.PodFailed} }

func hashed(hash string) func(*core.Pod) {
	return func(pod *core.Pod) { pod.Labels[apps.ControllerRevisionHashLabelKey] = hash }
}

// newRevision returns a revision with the DaemonSet's present template.
func newRevision(t testing.TB, ds *apps.DaemonSet, name string, number int64) revisionSpec {
	t.Helper()
	object := &apps.ControllerRevision{
		ObjectMeta: meta.ObjectMeta{
			Name: name, Namespace: "default", UID: types.UID(name), ResourceVersion: "9",
			Labels:          map[string]string{"app": "logs", apps.ControllerRevisionHashLabelKey: strings.TrimPrefix(name, "logs-")},
			OwnerReferences: []meta.OwnerReference{*meta.NewControllerRef(ds, apps.SchemeGroupVersion.WithKind("DaemonSet"))},
		},
		Revision: number,
	}
	template, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&ds.Spec.Template)
	if err != nil {
		t.Fatal(err)
	}
	template["$patch"] = "replace"
	data := encoded(t, map[string]any{"spec": map[string]any{"template": template}})
	return revisionSpec{Object: encoded(t, object), Data: string(data)}
}

func encoded(t testing.TB, value any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func encodedAll[T any](t testing.TB, values []T) []json.RawMessage {
	t.Helper()
	texts := make([]json.RawMessage, len(values))
	for i, value := range values {
		texts[i] = encoded(t, value)
	}
	return texts
}

// fixture is a case with typed objects: of the ReplicaSet or the Deployment if there is one, else of the DaemonSet.
type fixture struct {
	ds    *apps.DaemonSet
	rs    *apps.ReplicaSet
	d     *apps.Deployment
	nodes []*core.Node
	pods  []*core.Pod
	// sets are the Deployment's, and further ReplicaSets beside the ReplicaSet.
	sets []*apps.ReplicaSet
	// change may modify the case further.
	change func(*spec)
}

func (f fixture) request(t testing.TB, runs int, order string) []byte {
	t.Helper()
	spec := spec{Seed: 7, Now: now, Burst: 250, Echo: true, Nodes: encodedAll(t, f.nodes), Pods: encodedAll(t, f.pods)}
	switch {
	case f.rs != nil:
		spec.Kind, spec.ReplicaSets = "replicaset", encodedAll(t, append([]*apps.ReplicaSet{f.rs}, f.sets...))
	case f.d != nil:
		spec.Kind, spec.ReplicaSets = "deployment", encodedAll(t, f.sets)
		spec.Deployments = encodedAll(t, []*apps.Deployment{f.d})
	default:
		spec.DaemonSets = encodedAll(t, []*apps.DaemonSet{cmp.Or(f.ds, newDaemonSet())})
	}
	if f.change != nil {
		f.change(&spec)
	}
	return encoded(t, request{Case: spec, Runs: runs, Order: order})
}

// ask returns the only outcome of a fixture.
func ask(t testing.TB, f fixture) *outcome {
	t.Helper()
	outcomes := askAll(t, f.request(t, 1, orderGiven))
	if len(outcomes) != 1 {
		t.Fatalf("%d outcomes of one run", len(outcomes))
	}
	return outcomes[0]
}

func askAll(t testing.TB, line []byte) []*outcome {
	t.Helper()
	texts, err := testDriver(t).outcomes(line)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := make([]*outcome, len(texts))
	for i, text := range texts {
		if err := json.Unmarshal(text, &outcomes[i]); err != nil {
			t.Fatal(err)
		}
	}
	return outcomes
}

func testDriver(t testing.TB) *driver {
	t.Helper()
	silence()
	driver, err := newDriver()
	if err != nil {
		t.Fatal(err)
	}
	return driver
}

// said describes an outcome in sentences.
func said(t testing.TB, o *outcome) []string {
	t.Helper()
	var lines []string
	for _, call := range o.Calls {
		line := call.Op + " " + call.Name + detail(t, call)
		if call.Code >= 400 {
			line += fmt.Sprintf(" refused %d", call.Code)
		}
		lines = append(lines, line)
	}
	for _, event := range o.Events {
		lines = append(lines, "event "+event.Reason)
	}
	for _, asked := range o.Queue {
		if asked != queueForget {
			lines = append(lines, asked)
		}
	}
	for _, seconds := range o.Requeue {
		lines = append(lines, fmt.Sprintf("again in %vs", seconds))
	}
	if o.Expectations != nil && *o.Expectations != (outstanding{}) {
		lines = append(lines, fmt.Sprintf("expects %d, %d", o.Expectations.Adds, o.Expectations.Dels))
	}
	for _, entry := range o.Backoff {
		lines = append(lines, fmt.Sprintf("backs off %s %ds since %s", entry.Node, entry.DelaySeconds, now.Sub(entry.Last)))
	}
	if o.Error != "" {
		lines = append(lines, "error")
	}
	if o.Panic != "" {
		lines = append(lines, "panic: "+o.Panic)
	}
	slices.Sort(lines)
	return lines
}

func detail(t testing.TB, call recordedCall) string {
	t.Helper()
	switch call.Op {
	case "update-status":
		return statusDetail(t, call)
	case "create-revision", "update-revision":
		revision, err := decode[apps.ControllerRevision]("the body", []byte(call.Body))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(" as %d", revision.Revision)
	case "create-replicaset", "update-replicaset":
		set, err := decode[apps.ReplicaSet]("the body", []byte(call.Body))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(" of %d", *set.Spec.Replicas)
	default:
		return ""
	}
}

func doesNotExist(key string) meta.LabelSelectorRequirement {
	return meta.LabelSelectorRequirement{Key: key, Operator: meta.LabelSelectorOpDoesNotExist}
}
