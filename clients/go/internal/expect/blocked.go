package expect

import (
	"maps"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	"k8s.io/apimachinery/pkg/util/sets"

	"nodewise.dev/clients/go/nodewisev1"
)

const (
	// firstWait is the wait after the first refusal of an eviction. It doubles with each further one, up to longestWait.
	firstWait, longestWait = 10 * time.Second, 5 * time.Minute
	// maxBlocked is how many entries of a workload are kept. Plans drop entries; while there are none, each plan may add a burst of them.
	maxBlocked = 10_000
)

// Blocked is an eviction that a PodDisruptionBudget did not allow.
type Blocked struct {
	PodUID string
	// Message is the apiserver's message.
	Message string
	// RetryAfter is when to ask again, as the apiserver says; 0 if it does not say.
	RetryAfter time.Duration
}

// blockedEvictions are the blocked evictions of one workload, by the uid of the pod. The outcomes of plans add them, and a plan only says which are
// not needed any more. So each is of a pod that the workload controlled when it was evicted, and a service cannot make others.
type blockedEvictions map[string]*nodewisev1.BlockedEviction

// record adds an eviction that was not allowed now. The argument sent are those in the request for the plan that asked for it: a plan may leave out
// the entry of a pod that it evicts again.
func (b blockedEvictions) record(blocked Blocked, sent []*nodewisev1.BlockedEviction, now time.Time) {
	before := b[blocked.PodUID].GetAttempts()
	if b[blocked.PodUID] == nil {
		for _, entry := range sent {
			if entry.GetPodUid() == blocked.PodUID {
				before = entry.GetAttempts()
			}
		}
	}
	if before == 0 && len(b) >= maxBlocked {
		return
	}
	b[blocked.PodUID] = &nodewisev1.BlockedEviction{
		PodUid:    blocked.PodUID,
		Message:   blocked.Message,
		RetryTime: timestamppb.New(now.Add(max(waitAfter(before), blocked.RetryAfter))),
		Attempts:  min(before, math.MaxUint32-1) + 1,
	}
}

// drop removes the entries that were sent with a request and that the plan does not keep. Entries that were added since stay.
func (b blockedEvictions) drop(sent, kept []*nodewisev1.BlockedEviction) {
	needed := sets.New[string]()
	for _, entry := range kept {
		needed.Insert(entry.GetPodUid())
	}
	for _, entry := range sent {
		if !needed.Has(entry.GetPodUid()) {
			delete(b, entry.GetPodUid())
		}
	}
}

// wire returns the entries ordered by uid.
func (b blockedEvictions) wire() []*nodewisev1.BlockedEviction {
	var wire []*nodewisev1.BlockedEviction
	for _, uid := range slices.Sorted(maps.Keys(b)) {
		wire = append(wire, b[uid])
	}
	return wire
}

// waitAfter is the wait after a refusal that follows this number of refusals.
func waitAfter(before uint32) time.Duration {
	wait := firstWait
	for range before {
		if wait *= 2; wait >= longestWait {
			return longestWait
		}
	}
	return wait
}
