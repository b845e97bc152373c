package plancheck_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"nodewise.dev/clients/go/nodewisev1"
)

const policyVectors = "plan_checks_policies.json"

// Every executor refuses the same plans that heed RolloutPolicies, with the same messages.
func TestVectorsOfPolicies(t *testing.T) {
	for _, vector := range vectorsOf(t, policyVectors) {
		t.Run(vector.Name, func(t *testing.T) {
			leftOut, err := vector.check(t)
			// What is wrong with the spec is said by each language's own reader of JSON.
			const unread = " cannot be read: "
			if expected, _, isUnread := strings.Cut(vector.Refused, unread); isUnread {
				if err == nil || !strings.HasPrefix(err.Error(), expected+unread) {
					t.Errorf("got %v, want %s", err, vector.Refused)
				}
				return
			}
			compare(t, leftOut, err, vector.Refused, vector.LeftOut)
		})
	}
}

func policyVector(t *testing.T, name string) *vector {
	t.Helper()
	vectors := vectorsOf(t, policyVectors)
	i := slices.IndexFunc(vectors, func(vector vector) bool { return vector.Name == name })
	if i < 0 {
		t.Fatalf("there is no vector %q", name)
	}
	return &vectors[i]
}

// Such a plan is too long for a vector.
func TestAPlanAsksForALimitedNumberOfMeasurements(t *testing.T) {
	vector, plan := policyVector(t, "a measurement by Prometheus"), &nodewisev1.Plan{}
	if err := protojson.Unmarshal(vector.Plan, plan); err != nil {
		t.Fatal(err)
	}
	batch := plan.GetPhases()[0].GetBatches()[0]
	for range 100 {
		batch.Actions = append(batch.Actions, proto.CloneOf(batch.GetActions()[0]))
	}
	var err error
	if vector.Plan, err = protojson.Marshal(plan); err != nil {
		t.Fatal(err)
	}
	const expected = "it asks for 101 measurements, and 100 are the most"
	if _, err := vector.check(t); err == nil || !strings.HasSuffix(err.Error(), expected) {
		t.Errorf("got %v", err)
	}
}

// Policies are for DaemonSets.
func TestPlansForOtherKindsHaveNothingAboutPolicies(t *testing.T) {
	phasesOf := func(vector *vector) json.RawMessage {
		var plan struct {
			Phases json.RawMessage `json:"phases"`
		}
		if err := json.Unmarshal(vector.Plan, &plan); err != nil {
			t.Fatal(err)
		}
		return plan.Phases
	}
	seen := map[string]bool{}
	for _, first := range kindVectors(t) {
		if seen[first.Kind] {
			continue
		}
		seen[first.Kind] = true
		for expected, phases := range map[string]json.RawMessage{
			"(EvictPod): a plan for a " + first.Kind + " has no such action": phasesOf(policyVector(t, "an eviction of the workload's pod")),
			`it writes "rolloutpolicies" of nodewise.dev/v1alpha1`:           phasesOf(policyVector(t, "the status of a policy")),
			"(Measure): a plan for a " + first.Kind + " has no such action":  phasesOf(policyVector(t, "a measurement by Prometheus")),
			"a plan for a " + first.Kind + " has no phase ANALYSIS":          json.RawMessage(`[{"kind": "PHASE_KIND_ANALYSIS"}]`),
		} {
			var plan map[string]any
			if err := json.Unmarshal(first.Plan, &plan); err != nil {
				t.Fatal(err)
			}
			plan["verdict"], plan["phases"] = "VERDICT_APPLY", phases
			vector := first
			var err error
			if vector.Plan, err = json.Marshal(plan); err != nil {
				t.Fatal(err)
			}
			if _, err := vector.check(t); err == nil || !strings.Contains(err.Error(), expected) {
				t.Errorf("%s: got %v, want %s", first.Kind, err, expected)
			}
		}
	}
	if len(seen) != 2 {
		t.Errorf("the kinds are %v", seen)
	}
}
