package expect_test

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"nodewise.dev/clients/go/internal/expect"
	"nodewise.dev/clients/go/nodewisev1"
)

func using(names ...expect.PodName) *nodewisev1.ReconcileState {
	state := &nodewisev1.ReconcileState{}
	for _, name := range names {
		state.UsedPodNames = append(state.UsedPodNames, &nodewisev1.UsedPodName{NodeName: name.NodeName, PodName: name.PodName})
	}
	return state
}

var a, b, c = expect.PodName{NodeName: "n1", PodName: "a"}, expect.PodName{NodeName: "n2", PodName: "b"},
	expect.PodName{NodeName: "n3", PodName: "c"}

// A first list comes before the first plan. The rules of the set are in the vectors.
func TestNamesAreUsedBeforeTheFirstPlan(t *testing.T) {
	holdings := expect.NewHoldings(expect.ByUID)
	holdings.ObservePod(key, "d1", a, false)
	requireHeld(t, holdings, using(a))
	if creates, deletes := holdings.Outstanding(key); creates+deletes != 0 {
		t.Errorf("%d creates and %d deletes are outstanding", creates, deletes)
	}
	planned := expecting([]create{{"x", "n9"}})
	planned.UsedPodNames = using(a).UsedPodNames
	holdings.Replace(key, "d1", planned, using(a), before)
	requireHeld(t, holdings, planned)
}

// Watches go on while a plan is made: what they add meanwhile stays, and what they end meanwhile does not come back.
func TestAPlanDropsOnlyNamesThatItWasSent(t *testing.T) {
	holdings := expect.NewHoldings(expect.ByUID)
	for _, pod := range []expect.PodName{a, b} {
		holdings.ObservePod(key, "d1", pod, false)
	}
	sent := holdings.Get(key, "d1")
	holdings.ObservePod(key, "d1", c, false)
	holdings.ObservePod(key, "d1", expect.PodName{NodeName: b.NodeName, PodName: "new"}, true)
	holdings.Replace(key, "d1", using(b), sent, before)
	requireHeld(t, holdings, using(c))
	holdings.Replace(key, "d1", using(), using(a, b, c), before)
	requireHeld(t, holdings, using())
}

// What was sent is not changed by what is seen afterwards.
func TestWhatWasSentStaysAsItWas(t *testing.T) {
	holdings := expect.NewHoldings(expect.ByUID)
	holdings.ObservePod(key, "d1", a, false)
	sent := holdings.Get(key, "d1")
	before := proto.CloneOf(sent)
	holdings.ObservePod(key, "d1", b, false)
	if !proto.Equal(sent, before) {
		t.Errorf("got %v, want %v", sent, before)
	}
}

// Another pod is looked for only where that matters: a name that is used stays so.
func TestAnActivePodIsLookedForOnlyIfNeedBe(t *testing.T) {
	holdings := expect.NewHoldings(expect.ByUID)
	holdings.ObservePod(key, "d1", a, false)
	holdings.ObserveVanished(key, "d1", a, func() bool {
		t.Error("it is looked for")
		return true
	})
	requireHeld(t, holdings, using(a))
}

// A workload that was re-created has names of its own, and those of its predecessor do not count. What still comes of a reconcile of
// the predecessor changes nothing.
func TestNamesAreOfOneWorkload(t *testing.T) {
	for name, forget := range map[string]func(*expect.Holdings){
		"it is gone":  func(holdings *expect.Holdings) { holdings.Forget(key) },
		"another uid": func(holdings *expect.Holdings) { holdings.ObservePod(key, "d2", b, false) },
		"both":        func(holdings *expect.Holdings) { holdings.Forget(key); holdings.ObservePod(key, "d2", b, false) },
	} {
		t.Run(name, func(t *testing.T) {
			holdings := expect.NewHoldings(expect.ByUID)
			holdings.ObservePod(key, "d1", a, false)
			forget(holdings)
			requireHeld(t, holdings, using())
			holdings.Replace(key, "d1", using(), using(a, b), before)
			want := 0
			if name != "it is gone" {
				want = 1
			}
			if got := holdings.Get(key, "d2").GetUsedPodNames(); len(got) != want {
				t.Errorf("of the other workload %v are used", got)
			}
		})
	}
}
