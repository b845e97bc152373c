package nodewise_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"

	nodewise "nodewise.dev/clients/go"
	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/planclient"
)

// selecting are the ways to own only DaemonSets with our label.
func selecting() map[string]nodewise.Option {
	return map[string]nodewise.Option{
		"WithSelector": nodewise.WithSelector(labels.SelectorFromSet(labels.Set{"owner": "us"})),
		"WithPredicate": nodewise.WithPredicate(func(daemonSet *appsv1.DaemonSet) bool {
			return daemonSet.Labels["owner"] == "us" && daemonSet.Spec.Template.Spec.Containers[0].Image == "agent:1"
		}),
	}
}

func reconcile(t *testing.T, r *nodewise.Reconciler) {
	t.Helper()
	if err := r.Reconcile(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
}

// A DaemonSet that is not selected is ignored. It is taken over when it is selected, and its state is dropped when it is no longer selected.
func TestOnlyWhatIsSelectedIsOwned(t *testing.T) {
	for name, option := range selecting() {
		t.Run(name, func(t *testing.T) {
			cluster, planner := testkit.NewCluster(t), &service{}
			cluster.Put(t, "daemonsets", daemonSet(""))
			r, queue := started(t, cluster, planner, option)
			// A key in the queue does not make an unselected DaemonSet an owned one.
			reconcile(t, r)
			if len(planner.requests()) > 0 || len(cluster.Written()) > 0 {
				t.Fatalf("wrote %v after %d plans", cluster.Written(), len(planner.requests()))
			}
			queue.take(agent)
			cluster.Put(t, "daemonsets", daemonSet(ours))
			testkit.Eventually(t, "it is woken", func() bool { return queue.take(agent) })
			// What wakes it may also be the start, before the watch has shown the labels.
			testkit.Eventually(t, "it is planned", func() bool {
				reconcile(t, r)
				return len(cluster.Written()) > 0
			})
			if got := cluster.Written(); !slices.Equal(got, []string{"POST pods", "POST pods"}) {
				t.Fatalf("wrote %v", got)
			}
			// An expectation that is never met is kept, unless the DaemonSet is not selected in between.
			for _, labels := range []string{"", ours} {
				queue.take(agent)
				cluster.Put(t, "daemonsets", daemonSet(labels))
				// Until the watch has shown these labels, an earlier event may enqueue the DaemonSet, and it is planned as before.
				testkit.Eventually(t, "labels "+labels+" are heeded", func() bool {
					before := len(planner.requests())
					err := r.Reconcile(t.Context(), agent)
					return err == nil && (len(planner.requests()) > before) == (labels == ours)
				})
			}
			asked := planner.requests()
			if state := asked[len(asked)-1].GetSnapshot().GetState(); state.GetExpectations() != nil {
				t.Errorf("asked %d times, at last with %v", len(asked), state)
			}
		})
	}
}

// The selector is evaluated with the object of the request: if the label is removed while a plan is requested, nothing is written.
func TestALabelThatIsTakenAwayWhileItIsPlannedCounts(t *testing.T) {
	for name, option := range selecting() {
		for when, builtBefore := range map[string]bool{"before the request is built": false, "before the plan comes": true} {
			t.Run(name+" "+when, func(t *testing.T) {
				cluster := testkit.NewCluster(t)
				cluster.Put(t, "daemonsets", daemonSet(ours))
				isNone := planclient.Receiver{}
				planner := &service{plan: func(_ context.Context, build planclient.BuildRequest) (*planclient.Answer, error) {
					if builtBefore {
						if _, err := build(isNone); err != nil {
							return nil, err
						}
					}
					cluster.Put(t, "daemonsets", daemonSet(""))
					var request *nodewisev1.PlanRequest
					var err error
					testkit.Eventually(t, "nothing is built from it any more", func() bool {
						request, err = build(isNone)
						return request == nil && err != nil
					})
					if builtBefore {
						return &planclient.Answer{Plan: creatingTwo()}, nil
					}
					return nil, err
				}}
				r, _ := started(t, cluster, planner, option)
				reconcile(t, r)
				if got := cluster.Written(); len(got) > 0 {
					t.Errorf("wrote %v", got)
				}
			})
		}
	}
}

// A DaemonSet must be selected by all conditions. If a predicate cannot be evaluated, the DaemonSet is not owned.
func TestSelectionErrsOnTheSideOfLeavingAlone(t *testing.T) {
	cluster, planner := testkit.NewCluster(t), &service{}
	cluster.Put(t, "daemonsets", daemonSet(ours))
	r, _ := started(t, cluster, planner, selecting()["WithSelector"], nodewise.WithPredicate(func(*appsv1.DaemonSet) bool { return false }))
	reconcile(t, r)
	if len(planner.requests()) > 0 {
		t.Error("one of them was enough")
	}
	cluster = testkit.NewCluster(t)
	cluster.Put(t, "daemonsets", strings.Replace(daemonSet(ours), `"spec":{"sel`, `"spec":{"minReadySeconds":"many","sel`, 1))
	r, _ = started(t, cluster, planner, selecting()["WithPredicate"])
	if err := r.Reconcile(t.Context(), agent); err == nil || !strings.Contains(err.Error(), "reading the DaemonSet for the function of WithPredicate") {
		t.Errorf("got %v", err)
	}
}

func TestASelectionOfNothingIsRefused(t *testing.T) {
	for want, option := range map[string]nodewise.Option{
		"WithSelector was given nil": nodewise.WithSelector(nil), "WithPredicate was given nil": nodewise.WithPredicate(nil),
	} {
		if _, err := nodewise.New(testkit.NewCluster(t).Config(), &service{}, option); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v", err)
		}
	}
}
