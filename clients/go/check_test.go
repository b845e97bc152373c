package nodewise

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"google.golang.org/protobuf/proto"

	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/plancheck"
	"nodewise.dev/clients/go/internal/write"
	"nodewise.dev/clients/go/nodewisev1"
	"nodewise.dev/clients/go/served"
)

// removing is a plan that deletes the pod of this name and uid.
func removing(name, uid string) *nodewisev1.Plan {
	return planOf(nodewisev1.PhaseKind_PHASE_KIND_DELETES, &nodewisev1.Action{Kind: &nodewisev1.Action_DeletePod{
		DeletePod: &nodewisev1.DeletePod{
			Pod: &nodewisev1.ObjectReference{Name: name, Uid: uid}, NodeName: "n", UidPrecondition: true,
		},
	}})
}

// saying is a planner that answers with these plans, one after the other.
func saying(plans ...*nodewisev1.Plan) *scripted {
	planner := &scripted{}
	planner.plan = func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) { return plans[len(planner.asked)-1], nil }
	return planner
}

// W15: an action about an object that has changed since the snapshot is left out, and the rest of the plan is applied. No Event is emitted,
// and another plan follows at once. Any other wrong plan is refused the first time.
func TestWhatHasChangedSinceTheSnapshotIsLeftOut(t *testing.T) {
	for name, test := range map[string]struct {
		plan *nodewisev1.Plan
		// was is the state of the caches at the snapshot, and changes is what happens after it.
		was, changes func(r *rig) error
		// left is why the action is left out.
		left string
	}{
		"a pod": {
			removing("agent-a", "1"),
			func(r *rig) error { return r.feed(pods).Add(podOn("agent-a", "1", "n", "1")) },
			func(r *rig) error { return r.feed(pods).Update(podOn("agent-a", "1", "n", "2", orphaned)) },
			"pod agent-a has no controller, and the plan does not adopt it",
		},
		"a node": {
			creating(podNamed("a")),
			func(r *rig) error {
				showFor(r.controller, creating(podNamed("a")))
				return nil
			},
			func(r *rig) error {
				return r.feed(nodes).Delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeOf(podNamed("a")), ResourceVersion: "9"}})
			},
			fmt.Sprintf("node %q does not exist", nodeOf(podNamed("a"))),
		},
		"a revision": {
			creating(podNamed("a")),
			func(r *rig) error {
				showFor(r.controller, creating(podNamed("a")))
				return nil
			},
			func(r *rig) error {
				gone, err := served.Parse(currentRevision().JSON)
				if err != nil {
					return err
				}
				return r.feed(revisions).Delete(gone)
			},
			`it creates pods with the hash "h1", which no revision of the workload has`,
		},
	} {
		for when, hasChanged := range map[string]bool{"it has changed": true, "it was so": false} {
			t.Run(name+", "+when, func(t *testing.T) {
				planner := &scripted{}
				r := newRig(t, planner)
				planner.shows = nil
				event := &nodewisev1.Action{Id: 9, Kind: &nodewisev1.Action_EmitEvent{
					EmitEvent: &nodewisev1.EmitEvent{Type: "Normal", Reason: "Reason"},
				}}
				plan := proto.CloneOf(test.plan)
				plan.Phases[0].Batches[0].Actions = append(plan.Phases[0].Batches[0].Actions, event)
				planner.plan = func(*nodewisev1.PlanRequest) (*nodewisev1.Plan, error) {
					if hasChanged {
						return plan, test.changes(r)
					}
					return plan, nil
				}
				r.apply("agent:1")
				if err := test.was(r); err != nil {
					t.Fatal(err)
				}
				if !hasChanged {
					if err := test.changes(r); err != nil {
						t.Fatal(err)
					}
				}
				ended, err := r.reconcile(t.Context(), t.Context(), key)
				if writes := r.cluster.writes; len(writes) > 0 {
					t.Errorf("wrote %v", writes)
				}
				if creates, deletes := r.state.holdings.Outstanding(key); creates+deletes > 0 {
					t.Errorf("%d creates and %d deletes are expected", creates, deletes)
				}
				var told []string
				for _, event := range r.cluster.events {
					told = append(told, event.Reason)
				}
				if !hasChanged {
					if !errors.Is(err, ErrPlanRefused) || !strings.HasSuffix(err.Error(), test.left) || !slices.Equal(told, []string{"PlanRefused"}) {
						t.Errorf("told %v: %v", told, err)
					}
					return
				}
				if err != nil || !ended.isAtOnce() || !slices.Equal(told, []string{"Reason"}) {
					t.Errorf("told %v, comes back after %v: %v", told, ended.after, err)
				}
				if reported := planner.reports[0].GetOutcomes(); len(reported) > 0 {
					t.Errorf("reported %v", reported)
				}
			})
		}
	}
}

// W15: the check also counts pods that the Reconciler created and that the caches do not show yet. It does not refuse a plan that ignores them.
func TestPodsThatAreCreatedAndNotSeenYetCount(t *testing.T) {
	plan := func(pods ...string) *nodewisev1.Plan {
		var actions []*nodewisev1.Action
		for _, pod := range pods {
			actions = append(actions, createPod(pod, ""))
		}
		plan := planOf(nodewisev1.PhaseKind_PHASE_KIND_CREATES, actions...)
		plan.Workload = &nodewisev1.WorkloadReference{Kind: "ReplicaSet", Namespace: web.Namespace, Name: web.Name, Uid: "uid-of-web"}
		plan.PodManifest = []byte(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"app": "web"}, "ownerReferences":
			[{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-of-web", "controller": true}]},
			"spec": {"containers": [{"name": "a", "image": "web:1"}]}}`)
		return plan
	}
	planner := saying(plan("web-bbbbb", "web-ccccc"), plan("web-ddddd", "web-fffff"), plan("web-ddddd", "web-fffff"))
	m := newManager(t, planner, WithKinds(ReplicaSets))
	m.put(cluster.ReplicaSets, workloadOf("ReplicaSet", web.Name, "web:1", 3))
	m.cluster.unseen = true
	for i, want := range []int{2, 3} {
		if err := m.Reconcile(t.Context(), web); err != nil {
			t.Fatal(err)
		}
		if created := m.cluster.count("create pods"); created != want {
			t.Fatalf("after plan %d there were %d creates, want %d", i+1, created, want)
		}
	}
	// All of them are gone again, as the watch shows.
	if err := m.feed(pods).Bookmark(m.cluster.next()); err != nil {
		t.Fatal(err)
	}
	m.cluster.objects = map[write.Key]map[string]any{}
	if err := m.Reconcile(t.Context(), web); err != nil || m.cluster.count("create pods") != 5 {
		t.Errorf("got %v, wrote %v", err, m.cluster.writes)
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

// Only by the options may a plan delete any pod of a name.
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

// W15: a plan cannot keep the executor writing longer than a right plan does.
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
			many(2_001, relabel), burst(5), "it adopts, releases, relabels, changes and deletes 2001 objects, and 2000 are the most",
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

// Messages of the service are on one line and shortened in errors and Events.
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

// Each object that the caches do not show is read. So a wrong service must not name as many as it likes.
func TestAPlanNamesOnlySoManyUnseenObjects(t *testing.T) {
	for _, count := range []int{plancheck.MaxUnseen, plancheck.MaxUnseen + 1} {
		var deletes []*nodewisev1.Action
		for i := range count {
			deletes = append(deletes, removing("unseen-"+strconv.Itoa(i), "u").GetPhases()[0].GetBatches()[0].GetActions()...)
		}
		r := newRig(t, saying(planOf(nodewisev1.PhaseKind_PHASE_KIND_DELETES, deletes...)))
		r.apply("agent:1")
		_, err := r.reconcile(t.Context(), t.Context(), key)
		isRefused := err != nil && strings.Contains(err.Error(), fmt.Sprintf("the plan names %d objects that the caches do not show", count))
		reads, tooMany := count, count > plancheck.MaxUnseen
		if tooMany {
			reads = 0
		}
		if isRefused != tooMany || r.cluster.reads != reads || tooMany && len(r.cluster.writes) > 0 {
			t.Errorf("%d objects: %d reads, wrote %v: %v", count, r.cluster.reads, r.cluster.writes, err)
		}
	}
}
