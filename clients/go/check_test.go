package nodewise

import (
	"strings"
	"testing"

	"nodewise.dev/clients/go/nodewisev1"
)

// Only the options may ask for deletes that take any pod of the name.
func TestDeletesByNameAlone(t *testing.T) {
	const withUID, strict = nodewisev1.Deviation_DEVIATION_DELETE_WITH_UID, nodewisev1.Profile_PROFILE_UPSTREAM_STRICT
	only := []nodewisev1.Deviation{withUID}
	for name, test := range map[string]struct {
		options *nodewisev1.PlanOptions
		refused bool
	}{
		"by default":             {&nodewisev1.PlanOptions{}, true},
		"strict, but for this":   {&nodewisev1.PlanOptions{Profile: strict, EnabledDeviations: only}, true},
		"as upstream":            {&nodewisev1.PlanOptions{Profile: strict}, false},
		"the deviation disabled": {&nodewisev1.PlanOptions{DisabledDeviations: only}, false},
	} {
		t.Run(name, func(t *testing.T) {
			planner := &scripted{plan: func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
				return planOf(nodewisev1.PhaseKind_PHASE_KIND_DELETES, &nodewisev1.Action{Kind: &nodewisev1.Action_DeletePod{
					DeletePod: &nodewisev1.DeletePod{Pod: &nodewisev1.ObjectReference{Name: "agent-a", Uid: "1"}, NodeName: "n"},
				}}), nil
			}}
			r := newRig(t, planner, WithPlanOptions(test.options))
			r.apply("agent:1")
			if err := r.feed(pods).Add(podOn("agent-a", "1", "n", "1")); err != nil {
				t.Fatal(err)
			}
			const want = "action 1 (DeletePod): it deletes agent-a without its uid as a precondition"
			err := r.Reconcile(t.Context(), key)
			if isRefused := err != nil && strings.HasSuffix(err.Error(), want); isRefused != test.refused {
				t.Errorf("got %v", err)
			}
			wantDeletes := 1
			if test.refused {
				wantDeletes = 0
			}
			if deletes := r.cluster.count("delete pods"); deletes != wantDeletes {
				t.Errorf("%d deletes", deletes)
			}
		})
	}
}
