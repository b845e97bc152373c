package apply_test

import (
	"slices"
	"strings"
	"testing"

	"nodewise.dev/clients/go/internal/apply"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
)

const (
	setsPath = "/apis/apps/v1/namespaces/ns/replicasets"
	webPath  = "/apis/apps/v1/namespaces/ns/deployments/web"
)

func resourceNamed(name string) *nodewisev1.GroupVersionResource {
	return &nodewisev1.GroupVersionResource{Group: "apps", Version: "v1", Resource: name}
}

func createSet(name string) *nodewisev1.Action {
	return &nodewisev1.Action{Kind: &nodewisev1.Action_CreateObject{CreateObject: &nodewisev1.CreateObject{
		Resource: resourceNamed("replicasets"), Name: name, Manifest: []byte(`{"metadata":{"name":"` + name + `"}}`),
	}}}
}

func patchSet(name string, changes ...func(*nodewisev1.PatchObject)) *nodewisev1.Action {
	patch := &nodewisev1.PatchObject{
		Resource: resourceNamed("replicasets"), Object: &nodewisev1.ObjectReference{Name: name, Uid: "u-" + name},
		PatchType: nodewisev1.PatchType_PATCH_TYPE_MERGE, Patch: []byte(`{"a":1}`),
	}
	for _, change := range changes {
		change(patch)
	}
	return &nodewisev1.Action{Kind: &nodewisev1.Action_PatchObject{PatchObject: patch}}
}

func claiming(claim nodewisev1.Claim) func(*nodewisev1.PatchObject) {
	return func(patch *nodewisev1.PatchObject) {
		patch.Claim, patch.PatchType = claim, nodewisev1.PatchType_PATCH_TYPE_STRATEGIC_MERGE
	}
}

// patchStatus patches the status of the Deployment, with the error of the plan in its message.
func patchStatus(pointer string) *nodewisev1.Action {
	return patchSet("web", func(patch *nodewisev1.PatchObject) {
		patch.Resource, patch.Subresource = resourceNamed("deployments"), "status"
		patch.Patch, patch.FailurePointer = []byte(`{"status":{"conditions":[{"message":"It failed: "}]}}`), pointer
	})
}

func deleteSet(name, version string) *nodewisev1.Action {
	return &nodewisev1.Action{Kind: &nodewisev1.Action_DeleteObject{DeleteObject: &nodewisev1.DeleteObject{
		Resource: resourceNamed("replicasets"), Object: &nodewisev1.ObjectReference{Name: name, Uid: "u-" + name}, ResourceVersion: version,
	}}}
}

func runFor(t *testing.T, kind *cluster.Kind, writer write.Writer, phases ...*nodewisev1.Phase) *apply.Applied {
	t.Helper()
	id := uint32(0)
	for _, phase := range phases {
		for _, batch := range phase.GetBatches() {
			for _, action := range batch.GetActions() {
				id++
				action.Id = id
			}
		}
	}
	plan := &nodewisev1.Plan{
		Workload: &nodewisev1.WorkloadReference{Kind: kind.Name, Namespace: "ns", Name: "web", Uid: "u-web"}, Phases: phases,
	}
	return apply.Apply(t.Context(), writer, plan, kind, []byte(`{}`), apply.Settings{Concurrency: 8})
}

// The caches must show all writes of objects before the next plan. The preconditions are sent.
func TestObjectsAreWritten(t *testing.T) {
	server, kube := start(t, map[string][]answer{
		"POST " + setsPath:              {ok("web-1", "5")},
		"PATCH " + setsPath + "/web-0":  {ok("web-0", "6")},
		"DELETE " + setsPath + "/web-9": {ok("web-9", "7")},
		"PATCH " + webPath + "/status":  {ok("web", "8")},
	})
	create := createSet("web-1")
	create.SuccessEvents = []*nodewisev1.EmitEvent{
		{Type: "Normal", Reason: "ScalingReplicaSet", Message: "up"}, {Type: "Normal", Reason: "Another", Message: "m"},
	}
	create.FailureEvent = &nodewisev1.EmitEvent{Type: "Warning", Reason: "Failed", Message: "m"}
	applied := runFor(t, cluster.Deployment, kube, phase(one(create), one(patchSet("web-0")), one(deleteSet("web-9", "4")), one(patchStatus(""))))
	if applied.Failed || applied.Aborted {
		t.Errorf("got %v", applied.FirstFailure)
	}
	var written []string
	for _, write := range applied.Writes {
		written = append(written, string(write.Resource)+" "+write.ResourceVersion)
	}
	if want := []string{"replicasets 5", "replicasets 6", "deployments 8"}; !slices.Equal(written, want) {
		t.Errorf("recorded %v", written)
	}
	body := server.body("DELETE " + setsPath + "/web-9")
	if !strings.Contains(body, `"uid":"u-web-9"`) || !strings.Contains(body, `"resourceVersion":"4"`) {
		t.Errorf("the delete has the preconditions %s", body)
	}
	if events := server.said(); !slices.Equal(events, []string{"Normal ScalingReplicaSet up", "Normal Another m"}) {
		t.Errorf("got %q", events)
	}
}

// A ReplicaSet that is too large for an owner reference is left out, unless it need not be adopted.
func TestTooLargeToAdopt(t *testing.T) {
	for claim, isLeftOut := range map[nodewisev1.Claim]bool{nodewisev1.Claim_CLAIM_ADOPT: true, nodewisev1.Claim_CLAIM_RELEASE: false} {
		server, kube := start(t, map[string][]answer{"PATCH " + setsPath + "/web-0": {refusal(413, "", "it is too large")}})
		applied := runFor(t, cluster.Deployment, kube, phase(one(patchSet("web-0", claiming(claim)))))
		if (len(applied.Sealed) == 1) != isLeftOut || applied.Failed == isLeftOut {
			t.Errorf("%s: got %+v", claim, applied)
		}
		if said := strings.Join(server.said(), "\n"); strings.Contains(said, "Warning ObjectTooLarge") != isLeftOut {
			t.Errorf("%s: said %q", claim, said)
		}
	}
}

// P-27, P-28: what the plan does after a create that finds its name taken, or its namespace terminating, is not done. These are no failures, unless
// the object of that name cannot be read.
func TestACreateThatMakesTheRestOfThePlanWrong(t *testing.T) {
	exists := refusal(409, "AlreadyExists", "it exists")
	for name, test := range map[string]struct {
		says  map[string][]answer
		want  nodewisev1.Result
		reads bool
	}{
		"taken": {map[string][]answer{
			"POST " + setsPath: {exists}, "GET " + setsPath + "/web-1": {ok("web-1", "3")},
		}, nodewisev1.Result_RESULT_NAME_TAKEN, true},
		"taken by what cannot be read": {map[string][]answer{"POST " + setsPath: {exists}}, nodewisev1.Result_RESULT_FAILED, false},
		"terminating": {map[string][]answer{
			"POST " + setsPath: {refusal(403, "Forbidden", "it ends", "NamespaceTerminating")},
		}, nodewisev1.Result_RESULT_NAMESPACE_TERMINATING, false},
	} {
		t.Run(name, func(t *testing.T) {
			server, kube := start(t, test.says)
			create := createSet("web-1")
			create.FailureEvent = &nodewisev1.EmitEvent{Type: "Warning", Reason: "Failed", Message: "m"}
			applied := runFor(t, cluster.Deployment, kube, phase(one(create)), phase(one(patchStatus(""))))
			if got := applied.Outcomes[0].GetResult(); got != test.want || applied.Failed != (got == nodewisev1.Result_RESULT_FAILED) {
				t.Errorf("got %s, failed: %t", got, applied.Failed)
			}
			if got := applied.Outcomes[1].GetResult(); got != nodewisev1.Result_RESULT_SKIPPED || !applied.Aborted {
				t.Errorf("then %s", got)
			}
			if (len(applied.Colliding) == 1 && applied.Colliding[0].Resource == cluster.ReplicaSets) != test.reads || len(applied.TakenNames) > 0 {
				t.Errorf("colliding: %v, taken names of pods: %v", applied.Colliding, applied.TakenNames)
			}
			if events := server.said(); len(events) > 0 {
				t.Errorf("got %q", events)
			}
		})
	}
}

// A phase that requires a failure is done only after one, and has the error of the first one. A failure that is ignored counts nowhere.
func TestPhasesThatFollowAFailure(t *testing.T) {
	conflict := refusal(409, "Conflict", "it has changed")
	for name, test := range map[string]struct {
		fails, ignores bool
		want           string
	}{
		"without a failure":      {false, false, "SUCCEEDED SKIPPED(ignored) SUCCEEDED"},
		"after a failure":        {true, false, "FAILED SUCCEEDED SKIPPED"},
		"after an ignored one":   {true, true, "FAILED(ignored) SKIPPED(ignored) SUCCEEDED"},
		"an ignored one, and no": {false, true, "SUCCEEDED SKIPPED(ignored) SUCCEEDED"},
	} {
		t.Run(name, func(t *testing.T) {
			patched := ok("web-0", "6")
			if test.fails {
				patched = conflict
			}
			server, kube := start(t, map[string][]answer{
				"PATCH " + setsPath + "/web-0": {patched},
				"PATCH " + webPath + "/status": {ok("web", "8")},
			})
			sizes, failure, status := phase(one(patchSet("web-0"))), phase(one(patchStatus("/status/conditions/0/message"))), phase(one(patchStatus("")))
			sizes.IgnoresFailure, failure.RequiresFailure, status.RequiresSuccess = test.ignores, true, true
			applied := runFor(t, cluster.Deployment, kube, sizes, failure, status)
			var got []string
			for _, outcome := range applied.Outcomes {
				text := strings.TrimPrefix(outcome.GetResult().String(), "RESULT_")
				if outcome.GetIgnored() {
					text += "(ignored)"
				}
				got = append(got, text)
			}
			if strings.Join(got, " ") != test.want || applied.Failed != (test.fails && !test.ignores) {
				t.Errorf("got %v", got)
			}
			if body := server.body("PATCH " + webPath + "/status"); applied.Failed != strings.Contains(body, "It failed: it has changed") {
				t.Errorf("the status is %s", body)
			}
		})
	}
}

// D-23: an object that an adoption or a release does not find is no failure. After an adoption the rest of the plan is wrong.
func TestClaimsOfObjectsThatAreGone(t *testing.T) {
	for name, test := range map[string]struct {
		claim    nodewisev1.Claim
		answer   answer
		want     nodewisev1.Result
		vanished int
	}{
		"an adoption":          {nodewisev1.Claim_CLAIM_ADOPT, refusal(404, "NotFound", "gone"), nodewisev1.Result_RESULT_NOT_FOUND, 1},
		"an invalid adoption":  {nodewisev1.Claim_CLAIM_ADOPT, refusal(422, "Invalid", "another uid"), nodewisev1.Result_RESULT_FAILED, 0},
		"a release":            {nodewisev1.Claim_CLAIM_RELEASE, refusal(404, "NotFound", "gone"), nodewisev1.Result_RESULT_NOT_FOUND, 0},
		"a release of another": {nodewisev1.Claim_CLAIM_RELEASE, refusal(422, "Invalid", "another uid"), nodewisev1.Result_RESULT_NOT_FOUND, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, kube := start(t, map[string][]answer{"PATCH " + setsPath + "/web-0": {test.answer}})
			applied := runFor(t, cluster.Deployment, kube, phase(one(patchSet("web-0", claiming(test.claim)))))
			if got := applied.Outcomes[0].GetResult(); got != test.want || len(applied.Vanished) != test.vanished {
				t.Errorf("got %s, vanished: %v", got, applied.Vanished)
			}
		})
	}
	// D-27: a workload that is being deleted adopts nothing.
	deleted := answer{200, map[string]any{"kind": "Deployment", "metadata": map[string]any{
		"namespace": "ns", "name": "web", "uid": "u-web", "deletionTimestamp": "2026-01-01T00:00:00Z",
	}}}
	server, kube := start(t, map[string][]answer{"GET " + webPath: {deleted}})
	claims := phase(one(patchSet("web-0", claiming(nodewisev1.Claim_CLAIM_ADOPT))))
	claims.Batches[0].ConfirmWorkload = true
	applied := runFor(t, cluster.Deployment, kube, claims)
	if !applied.Failed || !slices.Equal(server.lines(), []string{"GET " + webPath}) {
		t.Errorf("got %v after %v", applied.Outcomes, server.lines())
	}
}

// A create of a workload that is gone or being deleted fails without a call, and ends the plan.
func TestCreatesConfirmTheWorkload(t *testing.T) {
	deleted := answer{200, map[string]any{"kind": "Deployment", "metadata": map[string]any{
		"namespace": "ns", "name": "web", "uid": "u-web", "deletionTimestamp": "2026-01-01T00:00:00Z",
	}}}
	for name, live := range map[string]answer{"being deleted": deleted, "gone": refusal(404, "NotFound", "gone")} {
		t.Run(name, func(t *testing.T) {
			server, kube := start(t, map[string][]answer{"GET " + webPath: {live}})
			creates := phase(one(createSet("web-1")))
			creates.Batches[0].ConfirmWorkload = true
			applied := runFor(t, cluster.Deployment, kube, creates, phase(one(patchSet("web-0"))))
			if got := results(applied); got != "FAILED SKIPPED" || !slices.Equal(server.lines(), []string{"GET " + webPath}) {
				t.Errorf("got %s after %v", got, server.lines())
			}
		})
	}
}

// What this executor does not know is not written.
func TestUnknownWritesOfObjects(t *testing.T) {
	other := func(change func(*nodewisev1.PatchObject)) *nodewisev1.Action { return patchSet("web-0", change) }
	for want, action := range map[string]*nodewisev1.Action{
		`resource "jobs" of apps/v1`: other(func(p *nodewisev1.PatchObject) { p.Resource = resourceNamed("jobs") }),
		`subresource "scale"`:        other(func(p *nodewisev1.PatchObject) { p.Subresource = "scale" }),
		`patch_type 0`:               other(func(p *nodewisev1.PatchObject) { p.PatchType = 0 }),
		`failure_pointer "/a"`:       other(func(p *nodewisev1.PatchObject) { p.FailurePointer = "/a" }),
		`names no object`:            other(func(p *nodewisev1.PatchObject) { p.Object = nil }),
	} {
		server, kube := start(t, nil)
		applied := runFor(t, cluster.Deployment, kube, phase(one(action)))
		if !applied.Failed || !strings.Contains(applied.FirstFailure.Error(), want) || len(server.lines()) > 0 {
			t.Errorf("%s: got %v after %v", want, applied.FirstFailure, server.lines())
		}
	}
	_, kube := start(t, nil)
	if applied := runFor(t, cluster.ReplicaSet, kube, phase(one(patchStatus("")))); !applied.Failed {
		t.Error("a plan for a ReplicaSet wrote the status of a Deployment")
	}
}
