package planclient

import (
	"slices"
	"time"
)

// maxShares limits into how many parts the remaining time of a call is divided. So a replica that hangs takes up to a third of the call's
// time, and a large plan gets enough time however many replicas there are.
const maxShares = 3

// attempts plans the attempts of one call: which replica is asked next, for how long, and the pauses in between.
type attempts struct {
	config      *config
	minAttempts int
	deadline    time.Time
	made        int
	// tried are the replicas that were asked since the last pause.
	tried  []*replica
	pauses int
}

// attempt is one attempt of a call.
type attempt struct {
	replica *replica
	// spare is the replica that hedging may also ask; nil if there is none.
	spare *replica
	// until is the deadline of this attempt.
	until time.Time
}

func newAttempts(config *config, minAttempts int, deadline time.Time) *attempts {
	return &attempts{config: config, minAttempts: minAttempts, deadline: deadline}
}

func (a *attempts) limit(order []*replica) int {
	return max(a.minAttempts, len(order))
}

// next returns the next attempt; nil when there are no more. Every replica is asked once before any of them is asked again.
func (a *attempts) next(order []*replica) *attempt {
	left := a.limit(order) - a.made
	remaining := time.Until(a.deadline)
	if left <= 0 || remaining <= 0 || len(order) == 0 {
		return nil
	}
	untried := a.untried(order)
	if len(untried) == 0 {
		a.tried = nil
		untried = order
	}
	next := &attempt{replica: untried[0], until: time.Now().Add(remaining / time.Duration(min(left, maxShares)))}
	if index := slices.IndexFunc(untried[1:], (*replica).isEligible); index >= 0 {
		next.spare = untried[1+index]
	}
	a.made++
	a.tried = append(a.tried, next.replica)
	return next
}

// addHedge counts a spare replica that was asked in the last attempt.
func (a *attempts) addHedge(spare *replica) {
	a.made++
	a.tried = append(a.tried, spare)
}

// pause returns how long to wait before the next attempt, and false if there is no attempt or no time left. retryAfter is the delay that
// the last replica asked for; 0 for none.
func (a *attempts) pause(order []*replica, retryAfter time.Duration) (time.Duration, bool) {
	if len(a.untried(order)) > 0 {
		// Another replica may answer at once.
		return 0, true
	}
	pause := jitter(min(a.config.basePause<<min(a.pauses, 16), a.config.maxPause))
	a.pauses++
	if retryAfter > 0 {
		pause = min(retryAfter, a.config.maxPause)
	}
	return pause, a.made < a.limit(order) && time.Now().Add(pause).Before(a.deadline)
}

func (a *attempts) untried(order []*replica) []*replica {
	return slices.DeleteFunc(slices.Clone(order), func(replica *replica) bool { return slices.Contains(a.tried, replica) })
}
