package expect_test

import (
	"strconv"
	"testing"
	"time"

	"nodewise.dev/clients/go/internal/expect"
	"nodewise.dev/clients/go/nodewisev1"
)

var second200 = time.Unix(200, 0)

// block records that the eviction of this pod was not allowed.
func block(holdings *expect.Holdings, uid string, retryAfter time.Duration, sent *nodewisev1.ReconcileState) {
	blocked := expect.Blocked{PodUID: uid, Message: "budget b", RetryAfter: retryAfter}
	holdings.Block(key, "d1", []expect.Blocked{blocked}, sent, second200)
}

func entriesOf(holdings *expect.Holdings) []*nodewisev1.BlockedEviction {
	return holdings.Get(key, "d1").GetBlockedEvictions()
}

// L-24: after Retry-After, with back-off.
func TestTheWaitForABudgetDoubles(t *testing.T) {
	holdings := holding(expect.ByUID, expecting(nil))
	for i, test := range []struct{ retryAfter, want time.Duration }{
		{0, 10 * time.Second},
		{5 * time.Second, 20 * time.Second},
		{90 * time.Second, 90 * time.Second},
		{0, 80 * time.Second},
		{0, 160 * time.Second},
		{0, 5 * time.Minute},
		{10 * time.Minute, 10 * time.Minute},
	} {
		block(holdings, "u1", test.retryAfter, nil)
		entry := entriesOf(holdings)[0]
		if entry.GetAttempts() != uint32(i+1) || !entry.GetRetryTime().AsTime().Equal(second200.Add(test.want)) || entry.GetMessage() != "budget b" {
			t.Errorf("attempt %d: held %v", i+1, entry)
		}
	}
}

// A blocked eviction is not expected. It is kept until a plan leaves it out, the pod is gone, or the service may have refused the state for it.
func TestBlockedEvictionsAreKept(t *testing.T) {
	start := func() *expect.Holdings {
		holdings := holding(expect.ByUID, expecting(nil, "u1", "u2"))
		holdings.Lower(key, "d1", []*nodewisev1.Outcome{{
			Result:  nodewisev1.Result_RESULT_BLOCKED,
			Subject: &nodewisev1.Outcome_DeletedPodUid{DeletedPodUid: "u1"},
		}})
		block(holdings, "u1", 0, nil)
		return holdings
	}
	requireEntries := func(holdings *expect.Holdings, want int, why string) {
		t.Helper()
		if got := entriesOf(holdings); len(got) != want {
			t.Errorf("%s: held %v", why, got)
		}
	}
	holdings := start()
	if _, deletes := holdings.Outstanding(key); deletes != 1 {
		t.Errorf("%d deletes are outstanding", deletes)
	}
	holdings.Settle(key, "d1", &nodewisev1.ReconcileState{})
	requireEntries(holdings, 1, "a report leaves it")
	sent := holdings.Get(key, "d1")
	holdings.Replace(key, "d1", sent, sent, before)
	requireEntries(holdings, 1, "a plan keeps it")
	block(holdings, "u3", 0, sent)
	forged := &nodewisev1.ReconcileState{BlockedEvictions: make([]*nodewisev1.BlockedEviction, 3)}
	holdings.Replace(key, "d1", forged, sent, before)
	requireEntries(holdings, 1, "a plan leaves it out, and adds none")
	block(holdings, "u1", 0, sent)
	if entry := entriesOf(holdings)[0]; entry.GetPodUid() != "u1" || entry.GetAttempts() != 2 {
		t.Errorf("an entry that was sent counts as before: held %v", entry)
	}
	holdings.ObserveDeletion(key, "p", "u1")
	requireEntries(holdings, 1, "the pod is gone")
	if !holdings.DropPlanned(key, "d1", second200) {
		t.Error("nothing was dropped")
	}
	requireEntries(holdings, 0, "it may be the cause of a refusal")
}

func TestTheNumberOfBlockedEvictionsIsLimited(t *testing.T) {
	holdings := holding(expect.ByUID, expecting(nil))
	for i := range 10_001 {
		block(holdings, strconv.Itoa(i), 0, nil)
	}
	if held := len(entriesOf(holdings)); held != 10_000 {
		t.Errorf("held %d", held)
	}
}

// An eviction is expected as a delete is.
func TestEvictionsAreExpected(t *testing.T) {
	planned := expecting(nil, "u1", "u9")
	expect.LeaveOutForeign(planned, []*nodewisev1.Action{{Kind: &nodewisev1.Action_EvictPod{
		EvictPod: &nodewisev1.EvictPod{Pod: &nodewisev1.ObjectReference{Uid: "u1"}},
	}}}, nil)
	if uids := planned.GetExpectations().GetDeleteUids(); len(uids) != 1 || uids[0] != "u1" {
		t.Errorf("expected are %v", uids)
	}
}
