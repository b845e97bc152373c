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

// lifetime is after which time expectations expire.
const lifetime = 5 * time.Minute

// Holdings are the states of all workloads.
type Holdings struct {
	held map[types.NamespacedName]*held
	// used are the names of pods that are gone. They are not part of held, because pods may go before the first plan.
	used map[types.NamespacedName]*usedNames
	rule DeletionRule
}

type held struct {
	uid          types.UID
	expectations expectations
	backoffs     []*nodewisev1.FailedPodBackoff
	collisions   []*nodewisev1.PodNameCollision
	slowStart    *nodewisev1.SlowStart
	blocked      blockedEvictions
}

// PodView is what the caches show of the pods of a workload. It finds expectations that are already met when they are set.
type PodView struct {
	// Exists reports whether the caches show a pod of this name that the workload controls.
	Exists func(podName string) bool
	// Deleting returns, by uid, whether a pod is being deleted. It has each pod that the workload controls, and each orphan of its namespace.
	Deleting func() map[string]bool
}

// NewHoldings makes Holdings without states.
func NewHoldings(rule DeletionRule) *Holdings {
	return &Holdings{held: map[types.NamespacedName]*held{}, used: map[types.NamespacedName]*usedNames{}, rule: rule}
}

// Get returns the state for the next snapshot of a workload. The state of another uid of the same name is dropped: a workload that was created
// again starts with an empty state.
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
			BlockedEvictions:  held.blocked.wire(),
		})
	}
	if used := h.usedOf(key, uid); used != nil {
		state.UsedPodNames = used.wire()
	}
	return state
}

// Replace replaces the state of a workload with the state of a plan. It is called before the plan's first write.
//
// Watches went on while the plan was requested. So expectations that were sent and are no longer held are removed, because they were met
// meanwhile, and new ones that the caches already show are removed, too. Used pod names and blocked evictions that were sent and that the plan
// leaves out are dropped; a plan adds none.
func (h *Holdings) Replace(
	key types.NamespacedName, uid types.UID, planned, sent *nodewisev1.ReconcileState, view PodView,
) {
	next, before := parse(planned.GetExpectations()), parse(sent.GetExpectations())
	present, blocked := parse(nil), blockedEvictions{}
	if held := h.held[key]; held != nil && held.uid == uid {
		present, blocked = held.expectations, held.blocked
	}
	blocked.drop(sent.GetBlockedEvictions(), planned.GetBlockedEvictions())
	next.settle(before, present)
	maps.DeleteFunc(next.named, func(pod, _ string) bool { return view.Exists(pod) })
	h.settleDeletes(next, before, view)
	h.held[key] = &held{
		uid:          uid,
		expectations: next,
		backoffs:     planned.GetFailedPodBackoffs(),
		collisions:   planned.GetPodNameCollisions(),
		slowStart:    planned.GetSlowStart(),
		blocked:      blocked,
	}
	if used := h.usedOf(key, uid); used != nil {
		used.drop(sent.GetUsedPodNames(), planned.GetUsedPodNames())
	}
}

// settleDeletes removes the new deletes that the caches already show. Deletes that were expected before are met by their own events.
func (h *Holdings) settleDeletes(next, sent expectations, view PodView) {
	var deleting map[string]bool
	maps.DeleteFunc(next.deletes, func(uid string, _ bool) bool {
		if sent.deletes[uid] {
			return false
		}
		if deleting == nil {
			deleting = view.Deleting()
		}
		isDeleting, exists := deleting[uid]
		// Upstream waits for an event even if the pod was being deleted before.
		return !exists || isDeleting && h.rule == ByUID
	})
}

// RestoreBackoffs restores the back-offs from before a plan, because the plan was aborted before it came to failed pods.
func (h *Holdings) RestoreBackoffs(key types.NamespacedName, uid types.UID, sent *nodewisev1.ReconcileState) {
	if held := h.of(key, uid); held != nil {
		held.backoffs = sent.GetFailedPodBackoffs()
	}
}

// Settle applies the state in the response to a report. Expectations that it does not have are removed, and none are added. Used pod names
// and blocked evictions stay.
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

// Lower removes the expectations of actions that certainly had no effect. A write without a response may have had one. A name for no node that the
// apiserver refused because another pod has it counts as used, so that the next plan gives another one.
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
			name, node := subject.CreatedPod.GetPodName(), subject.CreatedPod.GetNodeName()
			if name == "" {
				lower(held.expectations.unnamed, node, 1)
				break
			}
			delete(held.expectations.named, name)
			if node == "" && outcome.GetResult() == nodewisev1.Result_RESULT_NAME_TAKEN {
				h.RetireName(key, uid, node, name)
			}
		case *nodewisev1.Outcome_DeletedPodUid:
			delete(held.expectations.deletes, subject.DeletedPodUid)
		default:
		}
	}
}

// Block records evictions that a PodDisruptionBudget did not allow, each instead of an earlier one of the same pod. The argument sent is the state
// in the request for the plan that asked for them: it says how often they were not allowed before.
func (h *Holdings) Block(
	key types.NamespacedName, uid types.UID, blocked []Blocked, sent *nodewisev1.ReconcileState, now time.Time,
) {
	held := h.of(key, uid)
	if held == nil {
		return
	}
	for _, one := range blocked {
		held.blocked.record(one, sent.GetBlockedEvictions(), now)
	}
}

// isUndone reports whether an action was left out, skipped, not allowed by a budget, or refused by the apiserver.
func isUndone(outcome *nodewisev1.Outcome) bool {
	switch outcome.GetResult() {
	case nodewisev1.Result_RESULT_SKIPPED, nodewisev1.Result_RESULT_NAME_TAKEN, nodewisev1.Result_RESULT_BLOCKED:
		return true
	case nodewisev1.Result_RESULT_FAILED:
		return outcome.GetHttpStatus() >= http.StatusBadRequest && outcome.GetHttpStatus() < http.StatusInternalServerError
	default:
		return false
	}
}

// ObserveCreate is called when a watch has shown a new pod of the workload.
func (h *Holdings) ObserveCreate(key types.NamespacedName, podName, nodeName string) {
	if held := h.held[key]; held != nil {
		held.expectations.observeCreate(podName, nodeName)
	}
	if used := h.used[key]; used != nil && nodeName != "" {
		delete(used.byNode, nodeName)
	}
}

// ObserveDeletion is called when a watch has shown that a pod of the workload is gone or being deleted.
func (h *Holdings) ObserveDeletion(key types.NamespacedName, podName, podUID string) {
	if held := h.held[key]; held != nil {
		held.expectations.observeDeletion(podName, podUID, h.rule)
		delete(held.blocked, podUID)
	}
}

// DropPlanned drops the parts of a workload's state that only plans set, which are back-offs, collisions and the slow start, and the blocked
// evictions. It reports whether it changed
// anything. Used pod names and unexpired expectations stay, because the executor knows them by itself. If the time of the expectations is
// invalid or in the future, it becomes now.
func (h *Holdings) DropPlanned(key types.NamespacedName, uid types.UID, now time.Time) bool {
	held := h.of(key, uid)
	if held == nil {
		return false
	}
	dropped := len(held.backoffs) > 0 || len(held.collisions) > 0 || held.slowStart != nil || len(held.blocked) > 0
	// A budget that still protects a pod does so again.
	held.backoffs, held.collisions, held.slowStart, held.blocked = nil, nil, nil, blockedEvictions{}
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

// Forget drops the state of a workload.
func (h *Holdings) Forget(key types.NamespacedName) {
	delete(h.held, key)
	delete(h.used, key)
}

// Outstanding returns how many creates and deletes are expected for a workload.
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
