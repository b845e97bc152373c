package expect

import (
	"maps"
	"net/http"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"k8s.io/apimachinery/pkg/types"

	"nodewise.dev/clients/go/nodewisev1"
)

// lifetime is how long a plan waits for what is expected.
const lifetime = 5 * time.Minute

// Holdings are what is held for every workload.
type Holdings struct {
	held map[types.NamespacedName]*held
	// used are kept apart from what plans say: pods may go before the first plan.
	used map[types.NamespacedName]*usedNames
	rule DeletionRule
}

type held struct {
	uid          types.UID
	expectations expectations
	backoffs     []*nodewisev1.FailedPodBackoff
	collisions   []*nodewisev1.PodNameCollision
	slowStart    *nodewisev1.SlowStart
}

// Sighted is how the pods of a workload look now, for expectations that are met already when they are set.
type Sighted struct {
	// Exists tells whether the caches show a pod of this name that the workload controls.
	Exists func(podName string) bool
	// Deleting tells by uid whether a pod is being deleted, for each pod that the workload controls, and each orphan of its
	// namespace.
	Deleting func() map[string]bool
}

// NewHoldings holds nothing yet.
func NewHoldings(rule DeletionRule) *Holdings {
	return &Holdings{held: map[types.NamespacedName]*held{}, used: map[types.NamespacedName]*usedNames{}, rule: rule}
}

// Get is what to send with the next snapshot of a workload. What was held for another uid of its name is dropped: a re-created
// workload starts afresh.
func (h *Holdings) Get(key types.NamespacedName, uid types.UID) *nodewisev1.ReconcileState {
	state := &nodewisev1.ReconcileState{}
	if held := h.held[key]; held != nil && held.uid != uid {
		delete(h.held, key)
	} else if held != nil {
		state = proto.CloneOf(&nodewisev1.ReconcileState{
			Expectations:      held.expectations.wire(),
			FailedPodBackoffs: held.backoffs,
			PodNameCollisions: held.collisions,
			SlowStart:         held.slowStart,
		})
	}
	if used := h.usedOf(key, uid); used != nil {
		state.UsedPodNames = used.wire()
	}
	return state
}

// Replace holds what a plan says, from before its first write on.
//
// Watches went on while the plan was under way: what was sent and is not held any more was observed meanwhile, and what the
// caches show already has not to be waited for. Of the used names of pods the plan drops some and adds none: those that were sent
// and that it leaves out.
func (h *Holdings) Replace(
	key types.NamespacedName, uid types.UID, planned, sent *nodewisev1.ReconcileState, sighted Sighted,
) {
	next, before := parse(planned.GetExpectations()), parse(sent.GetExpectations())
	present := parse(nil)
	if held := h.held[key]; held != nil && held.uid == uid {
		present = held.expectations
	}
	next.settle(before, present)
	maps.DeleteFunc(next.named, func(pod, _ string) bool { return sighted.Exists(pod) })
	h.settleDeletes(next, before, sighted)
	h.held[key] = &held{
		uid:          uid,
		expectations: next,
		backoffs:     planned.GetFailedPodBackoffs(),
		collisions:   planned.GetPodNameCollisions(),
		slowStart:    planned.GetSlowStart(),
	}
	if used := h.usedOf(key, uid); used != nil {
		used.drop(sent.GetUsedPodNames(), planned.GetUsedPodNames())
	}
}

// settleDeletes takes out the new deletes that the caches show already. What was awaited before ends with its own event.
func (h *Holdings) settleDeletes(next, sent expectations, sighted Sighted) {
	var deleting map[string]bool
	maps.DeleteFunc(next.deletes, func(uid string, _ bool) bool {
		if sent.deletes[uid] {
			return false
		}
		if deleting == nil {
			deleting = sighted.Deleting()
		}
		isDeleting, exists := deleting[uid]
		// Upstream waits for an event even if the pod was being deleted before.
		return !exists || isDeleting && h.rule == ByUID
	})
}

// RestoreBackoffs takes back the back-off that a plan brought along, since the plan ended before it came to failed pods.
func (h *Holdings) RestoreBackoffs(key types.NamespacedName, uid types.UID, sent *nodewisev1.ReconcileState) {
	if held := h.of(key, uid); held != nil {
		held.backoffs = sent.GetFailedPodBackoffs()
	}
}

// Settle takes over the answer to a report: expectations that are missing there are settled, none is added. Used names of pods stay
// as they are.
func (h *Holdings) Settle(key types.NamespacedName, uid types.UID, settled *nodewisev1.ReconcileState) {
	held := h.of(key, uid)
	if held == nil {
		return
	}
	held.expectations.retain(parse(settled.GetExpectations()))
	held.backoffs = settled.GetFailedPodBackoffs()
	held.collisions = settled.GetPodNameCollisions()
	held.slowStart = settled.GetSlowStart()
}

// Lower takes out what is expected of actions that were certainly not done. What the apiserver did not answer may be done all the same.
func (h *Holdings) Lower(key types.NamespacedName, uid types.UID, outcomes []*nodewisev1.Outcome) {
	held := h.of(key, uid)
	if held == nil {
		return
	}
	for _, outcome := range outcomes {
		if !isUndone(outcome) {
			continue
		}
		switch subject := outcome.GetSubject().(type) {
		case *nodewisev1.Outcome_CreatedPod:
			if name := subject.CreatedPod.GetPodName(); name != "" {
				delete(held.expectations.named, name)
			} else {
				lower(held.expectations.unnamed, subject.CreatedPod.GetNodeName(), 1)
			}
		case *nodewisev1.Outcome_DeletedPodUid:
			delete(held.expectations.deletes, subject.DeletedPodUid)
		default:
		}
	}
}

// isUndone tells whether an action was left out, not tried, or refused by the apiserver.
func isUndone(outcome *nodewisev1.Outcome) bool {
	switch outcome.GetResult() {
	case nodewisev1.Result_RESULT_SKIPPED, nodewisev1.Result_RESULT_NAME_TAKEN:
		return true
	case nodewisev1.Result_RESULT_FAILED:
		return outcome.GetHttpStatus() >= http.StatusBadRequest && outcome.GetHttpStatus() < http.StatusInternalServerError
	default:
		return false
	}
}

// ObserveCreate is told that a watch showed a new pod of the workload.
func (h *Holdings) ObserveCreate(key types.NamespacedName, podName, nodeName string) {
	if held := h.held[key]; held != nil {
		held.expectations.observeCreate(podName, nodeName)
	}
	if used := h.used[key]; used != nil {
		delete(used.byNode, nodeName)
	}
}

// ObserveDeletion is told that a watch showed that a pod of the workload is gone or being deleted.
func (h *Holdings) ObserveDeletion(key types.NamespacedName, podName, podUID string) {
	if held := h.held[key]; held != nil {
		held.expectations.observeDeletion(podName, podUID, h.rule)
	}
}

// DropPlanned drops what plans left to remember of a workload, and answers whether there was anything. Used names of pods stay, and what was
// written and is not seen yet, as of now if it says no moment before: that is the executor's own knowledge. What is older than any plan waits
// for is dropped, too.
func (h *Holdings) DropPlanned(key types.NamespacedName, uid types.UID, now time.Time) bool {
	held := h.of(key, uid)
	if held == nil {
		return false
	}
	dropped := len(held.backoffs) > 0 || len(held.collisions) > 0 || held.slowStart != nil
	held.backoffs, held.collisions, held.slowStart = nil, nil, nil
	if setAt := held.expectations.setAt; setAt != nil && (!setAt.IsValid() || setAt.AsTime().After(now)) {
		held.expectations.setAt = timestamppb.New(now)
		dropped = true
	}
	if setAt := held.expectations.setAt; setAt != nil && now.Sub(setAt.AsTime()) > lifetime {
		held.expectations = parse(nil)
		dropped = true
	}
	return dropped
}

// Forget drops what is held for a workload.
func (h *Holdings) Forget(key types.NamespacedName) {
	delete(h.held, key)
	delete(h.used, key)
}

// Outstanding are the creates and deletes that are outstanding for a workload.
func (h *Holdings) Outstanding(key types.NamespacedName) (creates, deletes int) {
	held := h.held[key]
	if held == nil {
		return 0, 0
	}
	return held.expectations.creates(), len(held.expectations.deletes)
}

func (h *Holdings) of(key types.NamespacedName, uid types.UID) *held {
	if held := h.held[key]; held != nil && held.uid == uid {
		return held
	}
	return nil
}
