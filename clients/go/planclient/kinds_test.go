package planclient

import (
	"errors"
	"strings"
	"testing"
	"time"

	"nodewise.dev/clients/go/nodewisev1"
)

// ofDeployment builds a request for a Deployment.
func ofDeployment(func(Digest) bool) (*nodewisev1.PlanRequest, error) {
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
