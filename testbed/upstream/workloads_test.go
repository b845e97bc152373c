package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/controller/deployment/util"
	"k8s.io/utils/ptr"
)

// newReplicaSet returns a ReplicaSet with an apiserver's defaults.
func newReplicaSet(replicas int32, changes ...func(*apps.ReplicaSet)) *apps.ReplicaSet {
	rs := &apps.ReplicaSet{
		ObjectMeta: meta.ObjectMeta{Name: "web", Namespace: "default", UID: "rs", ResourceVersion: "5", Generation: 1},
		Spec: apps.ReplicaSetSpec{
			Replicas: ptr.To(replicas),
			Selector: &meta.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: webTemplate("web:1"),
		},
		Status: apps.ReplicaSetStatus{ObservedGeneration: 1, TerminatingReplicas: ptr.To[int32](0)},
	}
	for _, change := range changes {
		change(rs)
	}
	return rs
}

func webTemplate(image string) core.PodTemplateSpec {
	return core.PodTemplateSpec{
		ObjectMeta: meta.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec:       core.PodSpec{Containers: []core.Container{{Name: "web", Image: image}}},
	}
}

// webPod returns a ready pod of a ReplicaSet.
func webPod(name string, of *apps.ReplicaSet, changes ...func(*core.Pod)) *core.Pod {
	owned := func(pod *core.Pod) {
		pod.Labels = map[string]string{"app": "web"}
		pod.OwnerReferences = []meta.OwnerReference{*meta.NewControllerRef(of, apps.SchemeGroupVersion.WithKind("ReplicaSet"))}
	}
	return newPod(name, "a", append([]func(*core.Pod){owned}, changes...)...)
}

// newDeployment returns a Deployment with an apiserver's defaults.
func newDeployment(replicas int32, changes ...func(*apps.Deployment)) *apps.Deployment {
	d := &apps.Deployment{
		ObjectMeta: meta.ObjectMeta{Name: "web", Namespace: "default", UID: "d", ResourceVersion: "5", Generation: 1},
		Spec: apps.DeploymentSpec{
			Replicas: ptr.To(replicas),
			Selector: &meta.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
			Template: webTemplate("web:1"),
			Strategy: apps.DeploymentStrategy{
				Type: apps.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &apps.RollingUpdateDeployment{
					MaxUnavailable: ptr.To(intstr.FromString("25%")), MaxSurge: ptr.To(intstr.FromString("25%")),
				},
			},
			RevisionHistoryLimit:    ptr.To[int32](10),
			ProgressDeadlineSeconds: ptr.To[int32](600),
		},
	}
	for _, change := range changes {
		change(d)
	}
	return d
}

// setOf returns a ReplicaSet of the Deployment with available pods.
func setOf(name, image string, revision int, size, desired int32, changes ...func(*apps.ReplicaSet)) *apps.ReplicaSet {
	owned := func(rs *apps.ReplicaSet) {
		rs.Name, rs.UID = name, types.UID(name)
		rs.Spec.Template = webTemplate(image)
		rs.Labels = map[string]string{"app": "web"}
		rs.Annotations = map[string]string{
			util.RevisionAnnotation:        fmt.Sprint(revision),
			util.DesiredReplicasAnnotation: fmt.Sprint(desired),
			util.MaxReplicasAnnotation:     fmt.Sprint(desired + 2),
		}
		rs.CreationTimestamp = meta.NewTime(now.Add(time.Duration(revision-100) * time.Hour))
		rs.OwnerReferences = []meta.OwnerReference{*meta.NewControllerRef(newDeployment(0), apps.SchemeGroupVersion.WithKind("Deployment"))}
		rs.Status.Replicas, rs.Status.ReadyReplicas, rs.Status.AvailableReplicas = size, size, size
	}
	return newReplicaSet(size, append([]func(*apps.ReplicaSet){owned}, changes...)...)
}

func statusDetail(t testing.TB, call recordedCall) string {
	t.Helper()
	var object struct {
		Metadata struct{ Annotations map[string]string }
		Status   struct {
			apps.DaemonSetStatus
			Replicas   int                                     `json:"replicas"`
			Conditions []struct{ Type, Status, Reason string } `json:"conditions"`
		}
	}
	if err := json.Unmarshal([]byte(call.Body), &object); err != nil {
		t.Fatal(err)
	}
	s := object.Status
	line := fmt.Sprintf(" of %d:", s.ObservedGeneration)
	if strings.Contains(call.Body, "desiredNumberScheduled") {
		line += fmt.Sprintf(" desired %d current %d misscheduled %d ready %d updated %d", s.DesiredNumberScheduled,
			s.CurrentNumberScheduled, s.NumberMisscheduled, s.NumberReady, s.UpdatedNumberScheduled)
	} else {
		line += fmt.Sprintf(" %d pods", s.Replicas)
		for _, condition := range s.Conditions {
			line += fmt.Sprintf(", %s %s %s", condition.Type, condition.Status, condition.Reason)
		}
		if revision := object.Metadata.Annotations[util.RevisionAnnotation]; revision != "" {
			line += ", revision " + revision
		}
	}
	if s.CollisionCount != nil {
		line += fmt.Sprintf(" collisions %d", *s.CollisionCount)
	}
	return line
}

type workloadTest struct {
	name    string
	fixture fixture
	want    []string
}

func checkAll(t *testing.T, tests []workloadTest) {
	t.Helper()
	for _, test := range tests {
		t.Run(strings.ReplaceAll(test.name, " ", "_"), func(t *testing.T) {
			slices.Sort(test.want)
			if got := said(t, ask(t, test.fixture)); !slices.Equal(got, test.want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(test.want, "\n  "))
			}
		})
	}
}

// Upstream's behaviour in known scenarios, as the specification of ReplicaSets has them.
func TestReplicaSets(t *testing.T) {
	rs := newReplicaSet(2)
	status := func(counts ...int32) func(*apps.ReplicaSet) {
		return func(rs *apps.ReplicaSet) {
			rs.Status.Replicas, rs.Status.FullyLabeledReplicas = counts[0], counts[0]
			rs.Status.ReadyReplicas, rs.Status.AvailableReplicas = counts[1], counts[1]
		}
	}
	withFaults := func(faults ...fault) func(*spec) { return func(s *spec) { s.Faults = faults } }
	checkAll(t, []workloadTest{
		{
			"as many pods as wanted",
			fixture{rs: newReplicaSet(2, status(2, 2)), pods: []*core.Pod{webPod("p1", rs), webPod("p2", rs)}},
			nil,
		},
		{
			"one pod is missing",
			fixture{rs: rs, pods: []*core.Pod{webPod("p1", rs)}},
			[]string{"create-pod 1", "event SuccessfulCreate", "expects 1, 0", "update-status web of 1: 1 pods"},
		},
		{
			"slow start ends at a failure",
			fixture{rs: newReplicaSet(10), change: withFaults(fault{Op: "create-pod", Name: "3", Code: 403, Reason: "Forbidden"})},
			[]string{
				"create-pod 1", "create-pod 2", "create-pod 3 refused 403", "error", "rate limited", "event FailedCreate",
				"event SuccessfulCreate", "event SuccessfulCreate", "expects 2, 0",
				"update-status web of 1: 0 pods, ReplicaFailure True FailedCreate",
			},
		},
		{
			"a namespace that is terminating",
			fixture{rs: rs, change: withFaults(fault{
				Op: "create-pod", Code: 403, Reason: "Forbidden", Cause: string(core.NamespaceTerminatingCause),
			})},
			[]string{"create-pod 1 refused 403", "create-pod 2 refused 403", "expects 2, 0"},
		},
		{
			"the younger pod is deleted, and the status cannot be stored at first",
			fixture{
				rs: newReplicaSet(1),
				pods: []*core.Pod{webPod("p1", rs), webPod("p2", rs, func(pod *core.Pod) {
					pod.Status.Conditions[0].LastTransitionTime = meta.NewTime(now.Add(-time.Second))
				})},
				change: withFaults(fault{Op: "update-status", Code: 500, Reason: "InternalError", Times: 1}),
			},
			[]string{
				"delete-pod p2", "event SuccessfulDelete", "expects 0, 1", "update-status web of 1: 2 pods",
				"update-status web of 1: 2 pods refused 500",
			},
		},
		{
			"three orphans, and two are wanted",
			fixture{rs: rs, pods: []*core.Pod{webPod("p1", rs, orphaned), webPod("p2", rs, orphaned), webPod("p3", rs, orphaned)}},
			[]string{
				"adopt-pod p1", "adopt-pod p2", "adopt-pod p3", "delete-pod p1", "event SuccessfulDelete", "expects 0, 1",
				"update-status web of 1: 3 pods",
			},
		},
		{
			"an orphan, and a ReplicaSet that is being deleted according to the API only",
			fixture{rs: rs, pods: []*core.Pod{webPod("p1", rs, orphaned)}, change: func(s *spec) {
				s.Live.Subject = encoded(t, newReplicaSet(2, func(rs *apps.ReplicaSet) {
					rs.DeletionTimestamp = ptr.To(meta.NewTime(now))
				}))
			}},
			[]string{"error", "rate limited"},
		},
		{
			"pods that become available",
			fixture{
				rs: newReplicaSet(2, status(2, 2), func(rs *apps.ReplicaSet) { rs.Spec.MinReadySeconds = 61 }),
				pods: []*core.Pod{webPod("p1", rs), webPod("p2", rs, func(pod *core.Pod) {
					pod.Status.Conditions[0].LastTransitionTime = meta.NewTime(now.Add(-61 * time.Second))
				})},
			},
			// The times of objects have no fractions of a second.
			[]string{"again in 0.999999994s", "update-status web of 1: 2 pods"},
		},
		{
			"the caches lag behind the controller's own writes",
			fixture{rs: rs, change: func(s *spec) {
				s.OwnWrites = []ownWrite{{Resource: "pods", Written: "90", Observed: "80"}}
			}},
			[]string{"error", "rate limited"},
		},
		{
			"the caches have the controller's own writes",
			fixture{rs: newReplicaSet(0), change: func(s *spec) {
				s.OwnWrites = []ownWrite{{Resource: "replicasets", Written: "90", Observed: "100"}}
			}},
			nil,
		},
		{
			"a gate is off",
			fixture{rs: newReplicaSet(0), change: func(s *spec) {
				s.FeatureGatesOff = []string{"DeploymentReplicaSetTerminatingReplicas"}
			}},
			[]string{"update-status web of 1: 0 pods"},
		},
		{
			"expectations do not expire until after five minutes",
			fixture{rs: rs, change: func(s *spec) { s.Expectations = &expectationsSpec{Adds: 2, AgeSeconds: 300} }},
			[]string{"expects 2, 0"},
		},
		{
			"expectations expire after five minutes",
			fixture{rs: rs, change: func(s *spec) {
				s.Expectations = &expectationsSpec{Adds: 2, AgeSeconds: 301}
				s.Faults = []fault{{Op: "create-pod", Code: 500, Reason: "InternalError"}}
			}},
			[]string{
				"create-pod 1 refused 500", "error", "event FailedCreate", "rate limited",
				"update-status web of 1: 0 pods, ReplicaFailure True FailedCreate",
			},
		},
	})
}

func TestDeployments(t *testing.T) {
	creates := []string{
		"create-replicaset web-@hash of 3", "event ScalingReplicaSet",
		"update-status web of 0: 0 pods, Progressing True NewReplicaSetCreated, revision 1",
		"update-status web of 1: 0 pods, Progressing True NewReplicaSetCreated, Available False MinimumReplicasUnavailable, revision 1",
	}
	recreate := func(d *apps.Deployment) {
		d.Spec.Strategy = apps.DeploymentStrategy{Type: apps.RecreateDeploymentStrategyType}
	}
	checkAll(t, []workloadTest{
		{"a new one", fixture{d: newDeployment(3)}, creates},
		{
			"a rolling update begins",
			fixture{d: newDeployment(4), sets: []*apps.ReplicaSet{setOf("web-old", "web:0", 1, 4, 4)}},
			[]string{
				"create-replicaset web-@hash of 1", "event ScalingReplicaSet", "event ScalingReplicaSet",
				"update-replicaset web-old of 3",
				"update-status web of 0: 0 pods, Progressing True NewReplicaSetCreated, revision 2",
				"update-status web of 1: 4 pods, Available True MinimumReplicasAvailable, Progressing True ReplicaSetUpdated, revision 2",
			},
		},
		{
			"Recreate waits for a pod",
			fixture{
				d: newDeployment(3, recreate), sets: []*apps.ReplicaSet{setOf("web-old", "web:0", 1, 0, 3)},
				pods: []*core.Pod{webPod("p1", setOf("web-old", "web:0", 1, 0, 3))},
			},
			[]string{"update-status web of 1: 0 pods, Available False MinimumReplicasUnavailable"},
		},
		{
			"proportional scaling",
			fixture{
				d:    newDeployment(20, func(d *apps.Deployment) { d.Spec.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(2)) }),
				sets: []*apps.ReplicaSet{setOf("web-old", "web:0", 1, 6, 10), setOf("web-new", "web:1", 2, 6, 10)},
			},
			[]string{
				"event ScalingReplicaSet", "event ScalingReplicaSet", "update-replicaset web-new of 11", "update-replicaset web-old of 11",
				"update-status web of 0: 0 pods, Progressing True FoundNewReplicaSet, revision 2",
				"update-status web of 1: 12 pods, Progressing True FoundNewReplicaSet, Available False MinimumReplicasUnavailable, revision 2",
			},
		},
		{
			"the name of the new set is taken",
			fixture{d: newDeployment(3), change: func(s *spec) {
				s.ReplicaSets = encodedAll(t, []*apps.ReplicaSet{setOf("web-"+hashMark, "web:0", 1, 0, 3)})
			}},
			[]string{"create-replicaset web-@hash of 3 refused 409", "error", "rate limited", "update-status web of 0: 0 pods collisions 1"},
		},
		{
			"the name of the new set is taken, and the cache does not know it",
			fixture{d: newDeployment(3), change: func(s *spec) {
				s.Live.ReplicaSets = encodedAll(t, []*apps.ReplicaSet{setOf("web-"+hashMark, "web:0", 1, 0, 3)})
			}},
			[]string{"create-replicaset web-@hash of 3 refused 409", "error", "rate limited"},
		},
		{
			"a rollback",
			fixture{
				d: newDeployment(3, func(d *apps.Deployment) {
					d.Annotations = map[string]string{apps.DeprecatedRollbackTo: "1", util.RevisionAnnotation: "2"}
					d.Status.Conditions = []apps.DeploymentCondition{{Type: apps.DeploymentProgressing, Status: "True", Reason: "ReplicaSetUpdated"}}
				}),
				sets: []*apps.ReplicaSet{setOf("web-old", "web:0", 1, 0, 3), setOf("web-new", "web:1", 2, 3, 3)},
			},
			[]string{"event DeploymentRollback", "update-deployment web"},
		},
		{
			"stuck until the deadline",
			fixture{
				d: newDeployment(3, func(d *apps.Deployment) {
					d.Annotations = map[string]string{util.RevisionAnnotation: "2"}
					d.Status = apps.DeploymentStatus{
						ObservedGeneration: 1, Replicas: 3, UpdatedReplicas: 3, UnavailableReplicas: 3, TerminatingReplicas: ptr.To[int32](0),
						Conditions: []apps.DeploymentCondition{
							{Type: apps.DeploymentAvailable, Status: "False", Reason: "MinimumReplicasUnavailable"},
							{
								Type: apps.DeploymentProgressing, Status: "True", Reason: "ReplicaSetUpdated",
								LastUpdateTime: meta.NewTime(now.Add(-time.Minute)),
							},
						},
					}
				}),
				sets: []*apps.ReplicaSet{setOf("web-new", "web:1", 2, 3, 3, func(rs *apps.ReplicaSet) {
					rs.Status.ReadyReplicas, rs.Status.AvailableReplicas = 0, 0
				})},
			},
			[]string{"again in 540.999999994s"},
		},
		{
			"a failing key is dropped in the end",
			fixture{d: newDeployment(3, func(d *apps.Deployment) { d.Spec.Strategy.Type = "Sideways" }), change: func(s *spec) {
				s.Retries = 15
			}},
			[]string{"error"},
		},
		{
			"an empty selector",
			fixture{d: newDeployment(3, func(d *apps.Deployment) { d.Spec.Selector = &meta.LabelSelector{} })},
			[]string{"event SelectingAll", "update-status web of 1: 0 pods"},
		},
	})
}

// The outcome has what changed of each workload that was written, whatever the number of writes.
func TestStored(t *testing.T) {
	outcome := ask(t, fixture{d: newDeployment(4), sets: []*apps.ReplicaSet{setOf("web-old", "web:0", 1, 4, 4)}})
	var got []string
	for _, stored := range outcome.Stored {
		var changes struct {
			Spec   struct{ Replicas *int }
			Status struct{ ObservedGeneration *int }
		}
		if err := json.Unmarshal(stored.Changes, &changes); err != nil {
			t.Fatal(err)
		}
		got = append(got, words(stored.Resource, stored.Name, ptr.Deref(changes.Spec.Replicas, -1), ptr.Deref(changes.Status.ObservedGeneration, -1)))
	}
	if want := []string{"deployments web -1 1", "replicasets web-@hash 1 -1", "replicasets web-old 3 -1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A write with another version than that of the start is a conflict.
func TestAChangedSetIsAConflict(t *testing.T) {
	old := setOf("web-old", "web:0", 1, 4, 4)
	outcome := ask(t, fixture{d: newDeployment(4), sets: []*apps.ReplicaSet{old}, change: func(s *spec) {
		changed := old.DeepCopy()
		changed.ResourceVersion = "6"
		s.Live.ReplicaSets = encodedAll(t, []*apps.ReplicaSet{changed})
	}})
	if !slices.Contains(said(t, outcome), "update-replicaset web-old of 3 refused 409") {
		t.Errorf("%q", said(t, outcome))
	}
}
