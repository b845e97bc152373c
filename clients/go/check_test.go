package nodewise

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"nodewise.dev/clients/go/nodewisev1"
)

// removing is a plan that deletes the pod of this name and uid.
func removing(name, uid string) *nodewisev1.Plan {
	return planOf(nodewisev1.PhaseKind_PHASE_KIND_DELETES, &nodewisev1.Action{Kind: &nodewisev1.Action_DeletePod{
		DeletePod: &nodewisev1.DeletePod{
			Pod: &nodewisev1.ObjectReference{Name: name, Uid: uid}, NodeName: "n", UidPrecondition: true,
		},
	}})
}

// saying answers with these plans, one after the other.
func saying(plans ...*nodewisev1.Plan) *scripted {
	planner := &scripted{}
	planner.plan = func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) { return plans[len(planner.asked)-1], nil }
	return planner
}

// W15: what is wrong by an object as it is now may have been right when the snapshot was taken. The next plan tells.
func TestAPlanIsWrongByAnObjectOnlyTwice(t *testing.T) {
	nothing, err := noop(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		plans   []*nodewisev1.Plan
		refused bool
	}{
		"twice":                     {[]*nodewisev1.Plan{removing("orphan", "1"), removing("orphan", "1")}, true},
		"with another one between":  {[]*nodewisev1.Plan{removing("orphan", "1"), removing("other", "2"), removing("orphan", "1")}, true},
		"with a right plan between": {[]*nodewisev1.Plan{removing("orphan", "1"), nothing, removing("orphan", "1")}, false},
		"three others": {
			[]*nodewisev1.Plan{removing("orphan", "1"), removing("other", "2"), removing("third", "3")}, false,
		},
		"four others": {
			[]*nodewisev1.Plan{removing("orphan", "1"), removing("other", "2"), removing("third", "3"), removing("fourth", "4")}, true,
		},
		"four others, with a right plan between": {
			[]*nodewisev1.Plan{removing("orphan", "1"), removing("other", "2"), nothing, removing("third", "3"), removing("fourth", "4")}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, saying(test.plans...))
			r.apply("agent:1")
			for _, orphan := range [][2]string{{"orphan", "1"}, {"other", "2"}, {"third", "3"}, {"fourth", "4"}} {
				if err := r.feed(pods).Add(podOn(orphan[0], orphan[1], "n", "1", orphaned)); err != nil {
					t.Fatal(err)
				}
			}
			var last error
			for i, plan := range test.plans {
				last = r.Reconcile(t.Context(), key)
				if (last == nil) != (plan == nothing) || i < len(test.plans)-1 && errors.Is(last, ErrPlanRefused) {
					t.Errorf("plan %d: %v", i, last)
				}
			}
			told := 0
			for _, event := range r.cluster.events {
				if event.Reason == "PlanRefused" {
					told++
				}
			}
			if errors.Is(last, ErrPlanRefused) != test.refused || (told == 1) != test.refused || told > 1 {
				t.Errorf("%d events: %v", told, last)
			}
			if deletes := r.cluster.count("delete pods"); deletes != 0 {
				t.Errorf("%d deletes", deletes)
			}
		})
	}
}

// W15: a pod is created only on a node that the caches show. The node may have gone since the snapshot: the next plan tells.
func TestPodsAreCreatedOnNodesThatExist(t *testing.T) {
	for name, exists := range map[string]bool{"the node comes": true, "the node does not come": false} {
		t.Run(name, func(t *testing.T) {
			planner := saying(creating(podNamed("a")), creating(podNamed("a")))
			r := newRig(t, planner)
			planner.shows = nil
			r.apply("agent:1")
			if err := r.Reconcile(t.Context(), key); err == nil || errors.Is(err, ErrPlanRefused) || len(r.cluster.events) > 0 {
				t.Fatalf("%d events: %v", len(r.cluster.events), err)
			}
			if exists {
				r.addNodes(nodeOf(podNamed("a")))
			}
			err := r.Reconcile(t.Context(), key)
			if (err == nil) != exists || errors.Is(err, ErrPlanRefused) == exists || (len(r.cluster.pods()) == 1) != exists {
				t.Errorf("%d pods: %v", len(r.cluster.pods()), err)
			}
		})
	}
}

// W15: a plan creates at most as many pods as the burst that was asked for.
func TestAPlanCreatesNoMoreThanTheBurst(t *testing.T) {
	one := uint32(1)
	for _, test := range []struct {
		options *nodewisev1.PlanOptions
		pods    int
		refused string
	}{
		{&nodewisev1.PlanOptions{}, 250, ""},
		{&nodewisev1.PlanOptions{}, 251, "it creates 251 pods, and 250 are the most"},
		{&nodewisev1.PlanOptions{Burst: &one}, 1, ""},
		{&nodewisev1.PlanOptions{Burst: &one}, 2, "it creates 2 pods, and 1 is the most"},
	} {
		var pods []string
		for i := range test.pods {
			pods = append(pods, podNamed(strconv.Itoa(i)))
		}
		r := newRig(t, saying(creating(pods...)), WithPlanOptions(test.options))
		r.apply("agent:1")
		err := r.Reconcile(t.Context(), key)
		isRefused := errors.Is(err, ErrPlanRefused) && strings.HasSuffix(err.Error(), test.refused) && len(r.cluster.pods()) == 0
		if wants := test.refused != ""; isRefused != wants || (err == nil) == wants {
			t.Errorf("%d pods are there: %v", len(r.cluster.pods()), err)
		}
	}
}

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

// W15: a plan keeps the executor writing no longer than right plans do.
func TestAPlanDoesNoMoreThanRightPlansDo(t *testing.T) {
	many := func(count int, action func(i int) *nodewisev1.Action) *nodewisev1.Plan {
		var actions []*nodewisev1.Action
		for i := range count {
			actions = append(actions, action(i))
		}
		return planOf(nodewisev1.PhaseKind_PHASE_KIND_EVENTS, actions...)
	}
	relabel := func(i int) *nodewisev1.Action {
		uid := strconv.Itoa(i)
		return &nodewisev1.Action{Kind: &nodewisev1.Action_RelabelPod{RelabelPod: &nodewisev1.RelabelPod{
			Pod: &nodewisev1.ObjectReference{Name: "p" + uid, Uid: uid}, Patch: fmt.Appendf(nil, `{"metadata":{"uid":%q}}`, uid),
		}}}
	}
	event := func(int) *nodewisev1.Action {
		return &nodewisev1.Action{Kind: &nodewisev1.Action_EmitEvent{EmitEvent: &nodewisev1.EmitEvent{Type: "Normal", Reason: "Reason"}}}
	}
	status := func(int) *nodewisev1.Action {
		return &nodewisev1.Action{Kind: &nodewisev1.Action_UpdateStatus{UpdateStatus: &nodewisev1.UpdateStatus{}}}
	}
	burst := func(burst uint32, disabled ...nodewisev1.Deviation) *nodewisev1.PlanOptions {
		return &nodewisev1.PlanOptions{Burst: &burst, DisabledDeviations: disabled}
	}
	for name, test := range map[string]struct {
		plan    *nodewisev1.Plan
		options *nodewisev1.PlanOptions
		refused string
	}{
		"a status":     {many(1, status), burst(1), ""},
		"two statuses": {many(2, status), burst(1), "it writes 2 statuses, and 1 is the most"},
		"Events":       {many(15, event), burst(5), ""},
		"an Event more": {
			many(16, event), burst(5), "it emits 16 Events, and 15 are the most",
		},
		"Events of all failed pods": {many(16, event), burst(5, nodewisev1.Deviation_DEVIATION_DECIDE_AFTER_CUT), ""},
		"relabels":                  {many(2_000, relabel), burst(5), ""},
		"a relabel more": {
			many(2_001, relabel), burst(5), "it adopts, releases, relabels, updates and deletes 2001 pods and revisions, and 2000 are the most",
		},
		"as many relabels, with a larger burst": {many(2_001, relabel), burst(1_001), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, saying(test.plan), WithPlanOptions(test.options))
			r.apply("agent:1")
			err := r.Reconcile(t.Context(), key)
			if errors.Is(err, ErrPlanRefused) != (test.refused != "") || test.refused != "" && !strings.HasSuffix(err.Error(), test.refused) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Whatever a service says in words goes into errors and Events on one line, and cut.
func TestWhatTheServiceSaysIsCut(t *testing.T) {
	long := "one\nlevel=ERROR two\x1b[2J" + strings.Repeat("x", 1<<20)
	const begin = `one\nlevel=ERROR two\u{1b}[2Jxxx`
	ofError, ofReport, ofViolation := planOf(nodewisev1.PhaseKind_PHASE_KIND_DELETES), creating(podNamed("a")), creating("agent-"+long)
	ofError.Error, ofReport.PlanId = long, long
	for name, plan := range map[string]*nodewisev1.Plan{"error": ofError, "report": ofReport, "violation": ofViolation} {
		t.Run(name, func(t *testing.T) {
			planner := saying(plan)
			planner.report = func(*nodewisev1.ReportRequest) (*nodewisev1.ReportResponse, error) {
				return &nodewisev1.ReportResponse{Requeue: nodewisev1.Requeue_REQUEUE_BACKOFF, Message: long}, nil
			}
			r := newRig(t, planner)
			r.apply("agent:1")
			err := r.Reconcile(t.Context(), key)
			if err == nil || len(err.Error()) > 1200 || name != "violation" && !strings.Contains(err.Error(), begin) {
				t.Errorf("got %.2000v", err)
			}
			for _, event := range r.cluster.events {
				if len(event.Message) > 1024 || strings.ContainsAny(event.Message, "\n\x1b") {
					t.Errorf("told %.2000s", event.Message)
				}
			}
			for _, report := range planner.reports {
				if !strings.HasPrefix(report.GetPlanId(), begin) || len(report.GetPlanId()) > 1010 {
					t.Errorf("reported %.2000s", report.GetPlanId())
				}
			}
		})
	}
}
