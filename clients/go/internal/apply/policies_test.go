package apply_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"nodewise.dev/clients/go/internal/apply"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
)

const evictionLine = "POST " + podPath + "/p/eviction"

func evict(name string) *nodewisev1.Action {
	return &nodewisev1.Action{Kind: &nodewisev1.Action_EvictPod{EvictPod: &nodewisev1.EvictPod{
		Pod: &nodewisev1.ObjectReference{Name: name, Uid: "u-" + name}, NodeName: "n1",
	}}}
}

// protected is the answer to an eviction that a budget does not allow.
func protected(seconds int32) answer {
	made := refusal(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
	status := made.body.(metav1.Status)
	status.Details.RetryAfterSeconds = seconds
	status.Details.Causes = []metav1.StatusCause{
		{Type: "DisruptionBudget", Message: "The disruption budget b needs 3 healthy pods and has 3 currently"},
	}
	made.body = status
	return made
}

func gone(uid string, isDeleting bool) answer {
	metadata := map[string]any{"namespace": "ns", "name": "p", "uid": uid}
	if isDeleting {
		metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	}
	return answer{200, map[string]any{"kind": "Pod", "apiVersion": "v1", "metadata": metadata}}
}

// L-24: evictions go through the Eviction API, with the uid of the pod. Of other refusals than that of a budget the same follows as of deletes.
func TestEvictions(t *testing.T) {
	success := answer{201, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Success"}}
	for _, test := range []struct {
		name    string
		answers map[string][]answer
		want    string
		events  []string
	}{
		{"it is evicted", map[string][]answer{evictionLine: {success}}, "SUCCEEDED", []string{"Normal SuccessfulDelete Evicted pod: p"}},
		{"a budget protects it", map[string][]answer{evictionLine: {protected(7)}}, "BLOCKED", nil},
		{"it is gone", map[string][]answer{evictionLine: {refusal(404, "NotFound", "gone")}}, "NOT_FOUND", nil},
		{"another one has its name", map[string][]answer{
			evictionLine: {refusal(409, "Conflict", "uid")}, "GET " + podPath + "/p": {gone("u-other", false)},
		}, "NOT_FOUND", nil},
		{"the answer was lost, and it is being deleted", map[string][]answer{
			evictionLine: {{}}, "GET " + podPath + "/p": {gone("u-p", true)},
		}, "SUCCEEDED", []string{"Normal SuccessfulDelete Evicted pod: p"}},
		{"it is refused", map[string][]answer{evictionLine: {refusal(403, "Forbidden", "not yours")}}, "FAILED",
			[]string{"Warning FailedDelete Error evicting: not yours"}},
		{"two budgets protect it", map[string][]answer{
			evictionLine: {refusal(500, "InternalError", "two budgets")}, "GET " + podPath + "/p": {gone("u-p", false)},
		}, "FAILED", []string{"Warning FailedDelete Error evicting: two budgets"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			server, kube := start(t, test.answers)
			applied := run(t, kube, phase(one(evict("p"))))
			if got := results(applied); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if applied.Failed != (test.want == "FAILED") || applied.Outcomes[0].GetDeletedPodUid() != "u-p" {
				t.Errorf("got %+v", applied)
			}
			var body struct {
				Kind, APIVersion string
				DeleteOptions    struct{ Preconditions struct{ UID string } }
			}
			if err := json.Unmarshal([]byte(server.body(evictionLine)), &body); err != nil {
				t.Fatal(err)
			}
			if body.Kind != "Eviction" || body.APIVersion != "policy/v1" || body.DeleteOptions.Preconditions.UID != "u-p" {
				t.Errorf("sent %s", server.body(evictionLine))
			}
			if events := server.said(); !slices.Equal(events, test.events) {
				t.Errorf("emitted %q, want %q", events, test.events)
			}
		})
	}
}

// A blocked eviction names the budget, and does not stop the batches after it.
func TestABlockedEvictionIsNoFailure(t *testing.T) {
	server, kube := start(t, map[string][]answer{
		evictionLine: {protected(7)}, "DELETE " + podPath + "/q": {gone("u-q", true)},
	})
	applied := run(t, kube, phase(one(evict("p")), one(remove("q"))))
	if got := results(applied); got != "BLOCKED SUCCEEDED" || applied.Failed {
		t.Errorf("got %s after %v", got, server.lines())
	}
	want := apply.Blocked{PodUID: "u-p", Blocked: write.Blocked{
		Message: "Cannot evict pod as it would violate the pod's disruption budget. " +
			"The disruption budget b needs 3 healthy pods and has 3 currently",
		RetryAfter: 7 * time.Second,
	}}
	if !slices.Equal(applied.Blocked, []apply.Blocked{want}) {
		t.Errorf("blocked %+v", applied.Blocked)
	}
	if outcome := applied.Outcomes[0]; outcome.GetHttpStatus() != 429 || outcome.GetMessage() != want.Message {
		t.Errorf("the outcome is %v", outcome)
	}
	if calls := server.lines(); len(calls) != 2 {
		t.Errorf("called %v", calls)
	}
}

// The status of a policy is patched once, and what the action says about it is emitted on the policy, too.
func TestStatusesOfPolicies(t *testing.T) {
	const path = "PATCH /apis/nodewise.dev/v1alpha1/namespaces/ns/rolloutpolicies/agents/status"
	for _, test := range []struct {
		answer answer
		want   string
		events int
	}{
		{ok("agents", "30"), "SUCCEEDED", 2},
		{refusal(409, "Conflict", "it has been modified"), "FAILED", 0},
	} {
		server, kube := start(t, map[string][]answer{path: {test.answer}})
		applied := run(t, kube, phase(one(&nodewisev1.Action{
			Kind: &nodewisev1.Action_PatchObject{PatchObject: &nodewisev1.PatchObject{
				Resource:    &nodewisev1.GroupVersionResource{Group: "nodewise.dev", Version: "v1alpha1", Resource: "rolloutpolicies"},
				Object:      &nodewisev1.ObjectReference{Name: "agents", Uid: "pol1"},
				Subresource: "status", PatchType: nodewisev1.PatchType_PATCH_TYPE_MERGE, Patch: []byte(`{"status":{}}`),
			}},
			SuccessEvents: []*nodewisev1.EmitEvent{{Type: "Normal", Reason: "StageBegun", Message: "canary"}},
		})))
		if got := results(applied); got != test.want || len(server.lines()) != 1 {
			t.Errorf("got %s after %v", got, server.lines())
		}
		if events := server.said(); len(events) != test.events || strings.Join(events, "") != strings.Repeat("Normal StageBegun canary", test.events) {
			t.Errorf("emitted %q", events)
		}
		if test.events > 0 && (applied.Writes[0].Resource != cluster.RolloutPolicies || applied.Writes[0].ResourceVersion != "30") {
			t.Errorf("recorded %v", applied.Writes)
		}
		if test.events == 0 && applied.Outcomes[0].GetHttpStatus() != 409 {
			t.Errorf("the outcome is %v", applied.Outcomes[0])
		}
	}
}

// A measurement is started and not waited for. An observer starts none.
func TestMeasurementsAreStarted(t *testing.T) {
	_, kube := start(t, nil)
	for writer, want := range map[write.Writer]int{kube: 1, write.NewObserver(kube): 0} {
		started := 0
		plan := &nodewisev1.Plan{Workload: workload, Phases: []*nodewisev1.Phase{phase(one(&nodewisev1.Action{
			Kind: &nodewisev1.Action_Measure{Measure: &nodewisev1.Measure{PolicyName: "agents"}},
		}))}}
		applied := apply.Apply(t.Context(), writer, plan, cluster.DaemonSet, []byte(object), apply.Settings{
			Measure: func(measure *nodewisev1.Measure) { started += len(measure.GetPolicyName()) / len("agents") },
		})
		if started != want || results(applied) != "SUCCEEDED" {
			t.Errorf("started %d, want %d: %s", started, want, results(applied))
		}
	}
}
