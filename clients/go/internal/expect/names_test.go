package expect_test

import (
	"slices"
	"strconv"
	"testing"

	"google.golang.org/protobuf/proto"

	"nodewise.dev/clients/go/internal/expect"
	"nodewise.dev/clients/go/nodewisev1"
)

// using is a state with used pod names, each on the node of the same name.
func using(names ...string) *nodewisev1.ReconcileState {
	state := &nodewisev1.ReconcileState{}
	for _, name := range names {
		state.UsedPodNames = append(state.UsedPodNames, &nodewisev1.UsedPodName{NodeName: "n-" + name, PodName: name})
	}
	return state
}

func retire(holdings *expect.Holdings, names ...string) {
	for _, name := range names {
		holdings.RetireName(key, "d1", "n-"+name, name)
	}
}

// Pods may go before the first plan. The rules of the set are in the vectors.
func TestNamesAreHeldBesideThePlan(t *testing.T) {
	holdings := expect.NewHoldings(expect.ByUID)
	retire(holdings, "a")
	requireHeld(t, holdings, using("a"))
	if creates, deletes := holdings.Outstanding(key); creates+deletes != 0 {
		t.Errorf("%d creates and %d deletes are outstanding", creates, deletes)
	}
	planned := expecting([]create{{"x", "n9"}})
	planned.UsedPodNames = using("a").UsedPodNames
	holdings.Replace(key, "d1", planned, using("a"), before)
	requireHeld(t, holdings, planned)
}

// The sent state does not change with later events.
func TestWhatWasSentStaysAsItWas(t *testing.T) {
	holdings := expect.NewHoldings(expect.ByUID)
	retire(holdings, "a")
	sent := holdings.Get(key, "d1")
	before := proto.CloneOf(sent)
	retire(holdings, "b")
	if !proto.Equal(sent, before) {
		t.Errorf("got %v, want %v", sent, before)
	}
}

// The names of pods that are for no node stay until a plan leaves them out: another pod does not say which of them it replaces.
func TestNamesWithoutANodeStayUntilAPlanDropsThem(t *testing.T) {
	holdings := expect.NewHoldings(expect.ByUID)
	for _, pod := range []string{"a", "b"} {
		holdings.RetireName(key, "d1", "", pod)
	}
	sent := holdings.Get(key, "d1")
	holdings.ObserveCreate(key, "c", "")
	requireHeld(t, holdings, sent)
	kept := &nodewisev1.ReconcileState{UsedPodNames: []*nodewisev1.UsedPodName{{PodName: "b"}}}
	holdings.Replace(key, "d1", kept, sent, expect.PodView{})
	requireHeld(t, holdings, kept)
}

// While the service refuses the requests for a workload no plan drops names. A tenant can still create and delete pods.
func TestNamesOfANodeAreLimited(t *testing.T) {
	holdings := expect.NewHoldings(expect.ByUID)
	for _, node := range []string{"", "n1"} {
		for i := range 50_001 {
			holdings.RetireName(key, "d1", node, strconv.Itoa(i))
		}
	}
	if got := len(holdings.Get(key, "d1").GetUsedPodNames()); got != 2*50_000 {
		t.Errorf("%d names are sent", got)
	}
}

// A workload that was created again has names of its own. Late events of its predecessor change nothing.
func TestNamesAreOfOneWorkload(t *testing.T) {
	forget := func(holdings *expect.Holdings) { holdings.Forget(key) }
	replace := func(holdings *expect.Holdings) { holdings.RetireName(key, "d2", "n-b", "b") }
	for _, test := range []struct {
		name    string
		happens []func(*expect.Holdings)
		want    []*nodewisev1.UsedPodName
	}{
		{"it is gone", []func(*expect.Holdings){forget}, nil},
		{"another uid", []func(*expect.Holdings){replace}, using("b").UsedPodNames},
		{"both", []func(*expect.Holdings){forget, replace}, using("b").UsedPodNames},
	} {
		t.Run(test.name, func(t *testing.T) {
			holdings := expect.NewHoldings(expect.ByUID)
			retire(holdings, "a")
			for _, happens := range test.happens {
				happens(holdings)
			}
			requireHeld(t, holdings, using())
			holdings.Replace(key, "d1", using(), using("a", "b"), before)
			got := holdings.Get(key, "d2").GetUsedPodNames()
			if !slices.EqualFunc(got, test.want, func(a, b *nodewisev1.UsedPodName) bool { return proto.Equal(a, b) }) {
				t.Errorf("of the other workload %v are used", got)
			}
		})
	}
}
