package planclient

import (
	"errors"
	"strings"
	"testing"
	"time"

	"nodewise.dev/clients/go/internal/testkit"
	"nodewise.dev/clients/go/nodewisev1"
)

// ofDeployment builds a request for a Deployment.
func ofDeployment(Receiver) (*nodewisev1.PlanRequest, error) {
	return &nodewisev1.PlanRequest{Snapshot: &nodewisev1.Snapshot{
		Workload: &nodewisev1.Workload{Kind: &nodewisev1.Workload_Deployment{Deployment: &nodewisev1.Deployment{}}},
	}}, nil
}

// A replica whose version does not plan for the kind is not asked for a plan, and stays in use for other kinds. If no replica plans for the kind,
// the error says so at once.
func TestOnlyReplicasThatPlanForTheKindAreAsked(t *testing.T) {
	replicas := three(t)
	client := newClient(t, replicas, WithTimeout(10*time.Second))
	for _, replica := range replicas[:2] {
		replica.setKinds("DaemonSet")
	}
	replicas[2].setKinds("DaemonSet", "ReplicaSet", "Deployment")
	for range 3 {
		answer, err := client.Plan(t.Context(), "u1", ofDeployment)
		if err != nil || answer.Plan.GetPlanId() != replicas[2].address {
			t.Fatalf("got %v, %v", answer, err)
		}
	}
	if asked := replicas[2].askedForKinds(); asked != 1 {
		t.Errorf("the kinds were asked for %d times", asked)
	}
	old := newClient(t, replicas[:2], WithTimeout(10*time.Second))
	_, err := old.Plan(t.Context(), "u1", ofDeployment)
	var unsupported *UnsupportedKindError
	if !errors.As(err, &unsupported) || unsupported.Kind != "Deployment" ||
		!strings.Contains(err.Error(), "its version plans for DaemonSet, and not for Deployment; upgrade it") {
		t.Fatalf("got %v", err)
	}
	if asked := len(replicas[0].asked()) + len(replicas[1].asked()); asked != 0 {
		t.Errorf("old replicas were asked for %d plans", asked)
	}
	if _, err := ask(t, old, "a"); err != nil {
		t.Errorf("they plan for DaemonSets: %v", err)
	}
	if err := old.Health(); err != nil {
		t.Errorf("they are healthy: %v", err)
	}
}

// withPolicy builds a request for a DaemonSet that has a RolloutPolicy.
func withPolicy(Receiver) (*nodewisev1.PlanRequest, error) {
	return &nodewisev1.PlanRequest{Snapshot: &nodewisev1.Snapshot{Workload: &nodewisev1.Workload{Kind: &nodewisev1.Workload_DaemonSet{
		DaemonSet: &nodewisev1.DaemonSet{
			Object: []byte(`{"metadata":{"namespace":"ns","name":"agent"}}`),
			RolloutPolicies: []*nodewisev1.RolloutPolicy{
				{Object: []byte(`{"metadata":{"namespace":"ns","name":"p"}}`)},
			},
		},
	}}}}, nil
}

// requireTooOld checks that the client asks nobody for a plan of a workload that has a policy, and says why.
func requireTooOld(t *testing.T, client *Client, version string) {
	t.Helper()
	_, err := client.Plan(t.Context(), "u1", withPolicy)
	var unsupported *UnsupportedFeatureError
	if !errors.As(err, &unsupported) || unsupported.Feature != "RolloutPolicies" {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{
		"the planning service is too old: 127.0.0.1:", `: its version "` + version + `" does not know RolloutPolicies, and DaemonSet ns/agent has`,
		"has RolloutPolicy ns/p; upgrade it",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
}

// L-44: a replica that does not know policies would ignore them. So it is asked for no plan of a workload that has one, and stays in use for others.
func TestOnlyReplicasThatKnowPoliciesAreAskedAboutAWorkloadThatHasOne(t *testing.T) {
	replicas := three(t)
	client := newClient(t, replicas, WithTimeout(10*time.Second))
	for _, replica := range replicas[:2] {
		replica.setFeatures()
	}
	replicas[2].setFeatures("Another", "RolloutPolicies")
	for range 3 {
		answer, err := client.Plan(t.Context(), "u1", withPolicy)
		if err != nil || answer.Plan.GetPlanId() != replicas[2].address {
			t.Fatalf("got %v, %v", answer, err)
		}
	}
	if asked := replicas[2].askedForKinds(); asked != 1 {
		t.Errorf("it was asked %d times what it knows", asked)
	}
	old := newClient(t, replicas[:2], WithTimeout(10*time.Second))
	requireTooOld(t, old, "0.9.0")
	if asked := len(replicas[0].asked()) + len(replicas[1].asked()); asked != 0 {
		t.Errorf("old replicas were asked for %d plans", asked)
	}
	before := replicas[0].askedForKinds() + replicas[1].askedForKinds()
	if _, err := ask(t, old, "a"); err != nil {
		t.Errorf("they plan for workloads without a policy: %v", err)
	}
	if after := replicas[0].askedForKinds() + replicas[1].askedForKinds(); after != before {
		t.Error("a replica was asked what it knows for a workload without a policy")
	}
	if err := old.Health(); err != nil {
		t.Errorf("they are healthy: %v", err)
	}
	// An older version may also be replaced by a newer one without a failure that the client sees.
	replicas[0].setFeatures("RolloutPolicies")
	if answer, err := old.Plan(t.Context(), "u1", withPolicy); err != nil || answer.Plan.GetPlanId() != replicas[0].address {
		t.Errorf("got %v, %v", answer, err)
	}
}

// L-44: the service may be replaced by an older version while the executor runs. What the newer one has said does not count for the older one.
func TestAReplicaThatComesBackAsAnOlderVersionIsAskedAgainWhatItKnows(t *testing.T) {
	newer := startReplica(t, "127.0.0.1:0")
	newer.setFeatures("RolloutPolicies")
	client := newClient(t, []*fakeReplica{newer}, WithTimeout(10*time.Second))
	testkit.Eventually(t, "it serves", func() bool { return countReady(client) == 1 })
	if _, err := client.Plan(t.Context(), "u1", withPolicy); err != nil {
		t.Fatal(err)
	}
	newer.server.Stop()
	testkit.Eventually(t, "it is gone", func() bool { return countReady(client) == 0 })
	older := startReplica(t, newer.address)
	older.setFeatures()
	// It is also asked before a probe finds that it is back.
	testkit.Eventually(t, "it is back", func() bool {
		if answer, err := client.Plan(t.Context(), "u1", withPolicy); err == nil {
			t.Errorf("got the plan %v", answer)
		}
		return countReady(client) == 1
	})
	requireTooOld(t, client, "0.9.0")
	if asked := len(older.asked()); asked != 0 {
		t.Errorf("the older version was asked for %d plans", asked)
	}
}

// An answer that was on its way when the replica failed may be of the version before.
func TestAnOutdatedAnswerAboutCapabilitiesIsNotKept(t *testing.T) {
	one := &replica{}
	_, learn := one.capable()
	one.failed("no answer")
	learn(&capabilities{features: []string{"RolloutPolicies"}})
	if known, _ := one.capable(); known != nil {
		t.Errorf("kept %v", known)
	}
}
