package nodewise_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	nodewise "nodewise.dev/clients/go"
	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/planclient"
)

// Calls in the wrong order and nil arguments return an error that says what to do.
func TestMistakesAreSaidInFull(t *testing.T) {
	config, ctx := testkit.NewCluster(t).Config(), t.Context()
	var unchecked *planclient.Client
	made := func() *nodewise.Reconciler {
		r, err := nodewise.New(config, &service{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for want, err := range map[string]error{
		"call Start and then WaitForSync before Reconcile": made().Reconcile(ctx, agent),
		"give Start the one whose keys go to Reconcile":    made().Start(ctx, nil),
		"give a *rest.Config to nodewise.New":              second(nodewise.New(nil, &service{})),
		"give the client that planclient.New makes":        second(nodewise.New(config, nil)),
		"look at its error first":                          second(nodewise.New(config, unchecked)),
		"WithClock was given nil":                          second(nodewise.New(config, &service{}, nodewise.WithClock(nil))),
		"WithRateLimiter was given nil":                    second(nodewise.New(config, &service{}, nodewise.WithRateLimiter(nil))),
		"WithTracerProvider was given nil":                 second(nodewise.New(config, &service{}, nodewise.WithTracerProvider(nil))),
		"give a *rest.Config to nodewise.PlanOnce":         second(nodewise.PlanOnce(ctx, nil, &service{}, "ns", "agent")),
		"there is no Planner":                              second(nodewise.PlanOnce(ctx, config, nil, "ns", "agent")),
		"give a *rest.Config to nodewise.ExplainOnce":      second(nodewise.ExplainOnce(ctx, nil, unchecked, "ns", "agent", "")),
		"there is no Explainer":                            second(nodewise.ExplainOnce(ctx, config, unchecked, "ns", "agent", "")),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// Before its caches are filled a Reconciler returns an error that says what to wait for.
func TestNothingIsReconciledBeforeTheCachesAreFilled(t *testing.T) {
	cluster := testkit.NewCluster(t)
	cluster.Put(t, "daemonsets", daemonSet(""))
	cluster.Refuses = func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/pods") }
	planner := &service{}
	r, err := nodewise.New(cluster.Config(), planner)
	if err != nil {
		t.Fatal(err)
	}
	queue := &queue{added: map[types.NamespacedName]bool{}}
	if err := r.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "its DaemonSet is known", func() bool { return queue.take(agent) })
	err = r.Reconcile(t.Context(), agent)
	if err == nil || !strings.Contains(err.Error(), "pods") || !strings.Contains(err.Error(), "call WaitForSync before Reconcile") ||
		len(planner.requests()) > 0 {
		t.Errorf("got %v after %d plans", err, len(planner.requests()))
	}
}

// If the Planner is no HealthChecker, the last call decides whether the service can be reached.
func TestReadinessOfAPlannerWithoutHealth(t *testing.T) {
	cluster, planner := testkit.NewCluster(t), &service{}
	cluster.Put(t, "daemonsets", daemonSet(ours))
	r, queue := started(t, cluster, planner, selecting()["WithSelector"])
	if err := r.Ready(nil); err != nil {
		t.Fatalf("it was not asked yet: %v", err)
	}
	answers := func(err error) {
		t.Helper()
		planner.plan = func(context.Context, planclient.BuildRequest) (*planclient.Answer, error) { return nil, err }
		if err := r.Reconcile(t.Context(), agent); err == nil {
			t.Fatal("it was reconciled")
		}
	}
	for _, away := range []error{&planclient.UnreachableError{Reason: "the service is away"}, errors.New("the service is away")} {
		// A refusal is an answer.
		answers(&planclient.RefusedError{Reason: "it is wrong"})
		if err := r.Ready(nil); err != nil {
			t.Errorf("got %v after a refusal", err)
		}
		answers(away)
		if err := r.Ready(nil); err == nil || !strings.Contains(err.Error(), "the service is away") {
			t.Errorf("got %v after %v", err, away)
		}
	}
	// A DaemonSet that is not owned does not count.
	queue.take(agent)
	cluster.Put(t, "daemonsets", daemonSet(""))
	testkit.Eventually(t, "it is woken", func() bool { return queue.take(agent) })
	reconcile(t, r)
	if err := r.Ready(nil); err != nil {
		t.Error(err)
	}
}
