package nodewise

import (
	"net/http"
	"slices"
	"time"

	"nodewise.dev/clients/go/analysis"
	"nodewise.dev/clients/go/internal/apply"
	"nodewise.dev/clients/go/internal/cluster"
	"nodewise.dev/clients/go/internal/expect"
	"nodewise.dev/clients/go/nodewisev1"
)

// blockedOf returns the evictions of a plan that a PodDisruptionBudget did not allow.
func blockedOf(applied *apply.Applied) []expect.Blocked {
	blocked := make([]expect.Blocked, 0, len(applied.Blocked))
	for _, one := range applied.Blocked {
		blocked = append(blocked, expect.Blocked{PodUID: one.PodUID, Message: one.Message, RetryAfter: one.RetryAfter})
	}
	return blocked
}

// untilNextEviction returns the time until the first of the plan's evictions may be asked for again that were not allowed; nil if there is none.
func (r *controller) untilNextEviction(workload *cluster.Workload, applied *apply.Applied) *time.Duration {
	if len(applied.Blocked) == 0 {
		return nil
	}
	r.state.mu.Lock()
	held := r.state.holdings.Get(workload.Key, workload.UID)
	r.state.mu.Unlock()
	var first *time.Duration
	for _, entry := range held.GetBlockedEvictions() {
		isNew := slices.ContainsFunc(applied.Blocked, func(blocked apply.Blocked) bool { return blocked.PodUID == entry.GetPodUid() })
		if isNew {
			wait := max(entry.GetRetryTime().AsTime().Sub(r.config.clock()), 0)
			first = sooner(first, &wait)
		}
	}
	return first
}

// sooner returns the shorter of two delays, each of which may be nil.
func sooner(a, b *time.Duration) *time.Duration {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

// isConflict reports whether the plan ended because a RolloutPolicy has changed since the snapshot.
func isConflict(plan *nodewisev1.Plan, applied *apply.Applied) bool {
	isFailure := func(outcome *nodewisev1.Outcome) bool {
		return apply.IsFailure(outcome.GetResult()) && !outcome.GetIgnored()
	}
	i := slices.IndexFunc(applied.Outcomes, isFailure)
	if i < 0 || applied.Outcomes[i].GetHttpStatus() != http.StatusConflict {
		return false
	}
	first := applied.Outcomes[i].GetActionId()
	return slices.ContainsFunc(policyWrites(plan), func(write *nodewisev1.Action) bool { return write.GetId() == first })
}

// measure starts a measurement of a plan.
func (r *controller) measure(planned *planned, measure *nodewisev1.Measure) {
	r.measurements.start(planned.workload, &analysis.Request{
		Measure: measure, Workload: planned.workload.Reference(), Status: statusFor(planned, measure), Interval: intervalFor(planned, measure),
	})
}
