package expect_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"nodewise.dev/clients/go/internal/expect"
	"nodewise.dev/clients/go/nodewisev1"
)

// before is the view of the pods before the plan.
var before = expect.PodView{
	Exists:   func(string) bool { return false },
	Deleting: func() map[string]bool { return map[string]bool{"u1": false, "u2": false, "u3": false} },
}

type create struct{ pod, node string }

func expecting(creates []create, deletes ...string) *nodewisev1.ReconcileState {
	expectations := &nodewisev1.Expectations{SetAt: &timestamppb.Timestamp{Seconds: 100}, DeleteUids: deletes}
	for _, create := range creates {
		expectations.Creates = append(expectations.Creates, &nodewisev1.ExpectedCreate{PodName: create.pod, NodeName: create.node})
	}
	return &nodewisev1.ReconcileState{Expectations: expectations}
}

func holding(rule expect.DeletionRule, planned *nodewisev1.ReconcileState) *expect.Holdings {
	holdings := expect.NewHoldings(rule)
	holdings.Replace(key, "d1", planned, nil, before)
	return holdings
}

func requireHeld(t *testing.T, holdings *expect.Holdings, want *nodewisev1.ReconcileState) {
	t.Helper()
	if diff := cmp.Diff(want, holdings.Get(key, "d1"), protocmp.Transform(), protocmp.IgnoreEmptyMessages()); diff != "" {
		t.Error(diff)
	}
}

// D-72: the state of a plan is held completely and sent again unchanged, including its time.
func TestHoldsWhatThePlanSays(t *testing.T) {
	planned := expecting([]create{{"a", "n1"}, {"", "n2"}, {"", "n2"}}, "u1")
	planned.FailedPodBackoffs = []*nodewisev1.FailedPodBackoff{{ObservedGeneration: 3, NodeName: "n9"}}
	planned.PodNameCollisions = []*nodewisev1.PodNameCollision{{NodeName: "n8", Count: 2}}
	planned.SlowStart = &nodewisev1.SlowStart{Size: 8}
	holdings := holding(expect.ByUID, planned)
	requireHeld(t, holdings, planned)
	if creates, deletes := holdings.Outstanding(key); creates != 3 || deletes != 1 {
		t.Errorf("%d creates and %d deletes are outstanding", creates, deletes)
	}
}

// W12: the state from plans can be dropped. What the executor knows by itself stays: used pod names, and writes that have not been observed.
func TestWhatPlansLeftIsDropped(t *testing.T) {
	now := time.Unix(1000, 0)
	expected := func(at *timestamppb.Timestamp) *nodewisev1.ReconcileState {
		state := expecting([]create{{"a", "n1"}}, "u1")
		state.Expectations.SetAt = at
		return state
	}
	for name, test := range map[string]struct {
		planned *nodewisev1.ReconcileState
		dropped bool
		left    *nodewisev1.ReconcileState
	}{
		"back-off":     {&nodewisev1.ReconcileState{FailedPodBackoffs: []*nodewisev1.FailedPodBackoff{{NodeName: "n9"}}}, true, nil},
		"collisions":   {&nodewisev1.ReconcileState{PodNameCollisions: []*nodewisev1.PodNameCollision{{NodeName: "n8", Count: 2}}}, true, nil},
		"a slow start": {&nodewisev1.ReconcileState{SlowStart: &nodewisev1.SlowStart{Size: 8}}, true, nil},
		"nothing":      {&nodewisev1.ReconcileState{}, false, nil},
		"expectations": {expected(timestamppb.New(now)), false, expected(timestamppb.New(now))},
		"expectations of the future": {
			expected(timestamppb.New(now.Add(time.Nanosecond))), true, expected(timestamppb.New(now)),
		},
		"expectations that a plan waits for": {
			expected(timestamppb.New(now.Add(-5 * time.Minute))), false, expected(timestamppb.New(now.Add(-5 * time.Minute))),
		},
		"expectations that are over": {expected(timestamppb.New(now.Add(-5*time.Minute - time.Nanosecond))), true, nil},
		"expectations of no moment":  {expected(&timestamppb.Timestamp{Nanos: -1}), true, expected(timestamppb.New(now))},
	} {
		t.Run(name, func(t *testing.T) {
			holdings := holding(expect.ByUID, test.planned)
			holdings.RetireName(key, "d1", "n1", "b")
			if holdings.DropPlanned(key, "d2", now) || holdings.DropPlanned(key, "d1", now) != test.dropped {
				t.Error("it is told otherwise")
			}
			if holdings.DropPlanned(key, "d1", now) {
				t.Error("it is dropped twice")
			}
			want := &nodewisev1.ReconcileState{
				Expectations: test.left.GetExpectations(), UsedPodNames: []*nodewisev1.UsedPodName{{NodeName: "n1", PodName: "b"}},
			}
			requireHeld(t, holdings, want)
		})
	}
}

// A wrong service cannot add expectations: only those of the plan's actions, and earlier ones, are held.
func TestWhatThePlanDoesNotIsNotExpected(t *testing.T) {
	actions := []*nodewisev1.Action{
		{Kind: &nodewisev1.Action_CreatePod{CreatePod: &nodewisev1.CreatePod{PodName: "a", NodeName: "n1"}}},
		{Kind: &nodewisev1.Action_CreatePod{CreatePod: &nodewisev1.CreatePod{NodeName: "n2"}}},
		{Kind: &nodewisev1.Action_DeletePod{DeletePod: &nodewisev1.DeletePod{Pod: &nodewisev1.ObjectReference{Name: "p", Uid: "u1"}}}},
		{Kind: &nodewisev1.Action_DeletePod{DeletePod: &nodewisev1.DeletePod{}}},
	}
	sent := expecting([]create{{"b", "n3"}, {"", "n2"}}, "u2")
	planned := expecting(
		[]create{{"a", "n1"}, {"a", "n9"}, {"b", "n3"}, {"c", "n4"}, {"", "n2"}, {"", "n2"}, {"", "n2"}, {"", "n9"}}, "u1", "u2", "u9")
	expect.LeaveOutForeign(planned, actions, sent)
	want := expecting([]create{{"a", "n1"}, {"b", "n3"}, {"", "n2"}, {"", "n2"}}, "u1", "u2")
	if diff := cmp.Diff(want, planned, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	nothing := &nodewisev1.ReconcileState{}
	expect.LeaveOutForeign(nothing, actions, nil)
	if nothing.GetExpectations() != nil {
		t.Error("something is expected")
	}
}

// An action that certainly had no effect is not expected. One without a response, or with a server error, may have had an effect.
func TestWhatIsNotDoneIsNotExpected(t *testing.T) {
	createOf := func(name, node string) *nodewisev1.Outcome {
		return &nodewisev1.Outcome{Subject: &nodewisev1.Outcome_CreatedPod{
			CreatedPod: &nodewisev1.ExpectedCreate{PodName: name, NodeName: node},
		}}
	}
	for _, test := range []struct {
		result nodewisev1.Result
		status uint32
		isDone bool
	}{
		{nodewisev1.Result_RESULT_SKIPPED, 0, false},
		{nodewisev1.Result_RESULT_NAME_TAKEN, 409, false},
		{nodewisev1.Result_RESULT_FAILED, 403, false},
		{nodewisev1.Result_RESULT_FAILED, 0, true},
		{nodewisev1.Result_RESULT_FAILED, 504, true},
		{nodewisev1.Result_RESULT_SUCCEEDED, 0, true},
		{nodewisev1.Result_RESULT_ALREADY_EXISTS, 409, true},
	} {
		planned := expecting([]create{{"a", "n1"}, {"b", "n2"}, {"", "n3"}, {"", "n3"}}, "u1", "u2")
		holdings := holding(expect.ByUID, planned)
		outcomes := []*nodewisev1.Outcome{
			createOf("a", "n1"), createOf("", "n3"), {Subject: &nodewisev1.Outcome_DeletedPodUid{DeletedPodUid: "u1"}}, {},
		}
		for _, outcome := range outcomes {
			outcome.Result, outcome.HttpStatus = test.result, test.status
		}
		holdings.Lower(key, "d2", outcomes)
		requireHeld(t, holdings, planned)
		holdings.Lower(key, "d1", outcomes)
		if !test.isDone {
			planned = expecting([]create{{"b", "n2"}, {"", "n3"}}, "u2")
		}
		requireHeld(t, holdings, planned)
	}
}

// D-73: a create is met by its pod, and one without a name by a pod for its node. Other pods change nothing.
func TestCreatesAreObserved(t *testing.T) {
	holdings := holding(expect.ByUID, expecting([]create{{"a", "n1"}, {"b", "n2"}, {"", "n3"}, {"", "n3"}}))
	holdings.ObserveCreate(key, "a", "n1")
	holdings.ObserveCreate(key, "someone-elses", "n2")
	holdings.ObserveCreate(key, "generated", "n3")
	requireHeld(t, holdings, expecting([]create{{"b", "n2"}, {"", "n3"}}))
}

// D-73, Q-5: by uid, only a delete of the pod itself counts, and only once. As upstream, any counts.
func TestDeletionsAreObserved(t *testing.T) {
	for rule, left := range map[expect.DeletionRule][]string{expect.ByUID: {"u2"}, expect.Counted: nil} {
		holdings := holding(rule, expecting(nil, "u1", "u2"))
		for _, uid := range []string{"u9", "u1", "u1"} {
			holdings.ObserveDeletion(key, "p", uid)
		}
		requireHeld(t, holdings, expecting(nil, left...))
	}
}

// A pod that was created and deleted is no longer expected.
func TestADeletionSettlesThePodsOwnCreation(t *testing.T) {
	holdings := holding(expect.ByUID, expecting([]create{{"a", "n1"}}))
	holdings.ObserveDeletion(key, "a", "u1")
	requireHeld(t, holdings, expecting(nil))
}

// Expectations that were met while the plan was requested must not come back with the plan.
func TestObservationsDuringAPlanAreKept(t *testing.T) {
	holdings := holding(expect.ByUID, expecting([]create{{"a", "n1"}, {"b", "n2"}, {"", "n3"}}, "u1", "u2"))
	sent := holdings.Get(key, "d1")
	holdings.ObserveCreate(key, "a", "n1")
	holdings.ObserveCreate(key, "generated", "n3")
	holdings.ObserveDeletion(key, "x", "u1")
	holdings.Replace(key, "d1", sent, sent, before)
	requireHeld(t, holdings, expecting([]create{{"b", "n2"}}, "u2"))
}

// Expectations that the caches already show need no event, because there will be none. Q-6: upstream waits for an event of a pod that was
// already being deleted.
func TestWhatIsSeenAlreadyIsNotExpected(t *testing.T) {
	seen := expect.PodView{
		Exists:   func(name string) bool { return name == "a" },
		Deleting: func() map[string]bool { return map[string]bool{"u2": false, "u3": true} },
	}
	for rule, left := range map[expect.DeletionRule][]string{expect.ByUID: {"u2"}, expect.Counted: {"u2", "u3"}} {
		holdings := expect.NewHoldings(rule)
		holdings.Replace(key, "d1", expecting([]create{{"a", "n1"}, {"b", "n2"}}, "u1", "u2", "u3"), nil, seen)
		requireHeld(t, holdings, expecting([]create{{"b", "n2"}}, left...))
	}
}

// D-73: the response to the report settles failed and skipped calls, and never adds any.
func TestAReportSettlesAndNeverAdds(t *testing.T) {
	holdings := holding(expect.ByUID, expecting([]create{{"a", "n1"}, {"b", "n2"}, {"", "n3"}, {"", "n3"}}, "u1", "u2"))
	holdings.ObserveCreate(key, "a", "n1")
	settled := expecting([]create{{"a", "n1"}, {"", "n3"}, {"z", "n9"}}, "u2", "u9")
	settled.SlowStart = &nodewisev1.SlowStart{Size: 16}
	holdings.Settle(key, "d1", settled)
	want := expecting([]create{{"", "n3"}}, "u2")
	want.SlowStart = settled.SlowStart
	requireHeld(t, holdings, want)
	holdings.Settle(key, "d2", &nodewisev1.ReconcileState{})
	requireHeld(t, holdings, want)
}

// A workload that was created again under its name gets no state of its predecessor. D-71.2: nothing is kept of a workload that is gone.
func TestAnotherUIDStartsAfresh(t *testing.T) {
	holdings := holding(expect.ByUID, expecting([]create{{"a", "n1"}}))
	if got := holdings.Get(key, "d2"); got.GetExpectations() != nil {
		t.Errorf("got %v", got)
	}
	requireHeld(t, holdings, &nodewisev1.ReconcileState{})
	holdings = holding(expect.ByUID, expecting([]create{{"a", "n1"}}))
	holdings.Forget(key)
	requireHeld(t, holdings, &nodewisev1.ReconcileState{})
}

// After a plan that was aborted before it came to failed pods, their back-off is as before.
func TestBackoffsAreRestored(t *testing.T) {
	holdings := holding(expect.ByUID, &nodewisev1.ReconcileState{})
	sent := &nodewisev1.ReconcileState{FailedPodBackoffs: []*nodewisev1.FailedPodBackoff{{NodeName: "n1"}}}
	holdings.RestoreBackoffs(key, "d2", sent)
	requireHeld(t, holdings, &nodewisev1.ReconcileState{})
	holdings.RestoreBackoffs(key, "d1", sent)
	requireHeld(t, holdings, sent)
}
