package planclient

import (
	"slices"
	"time"
)

// shares is into how many parts what is left of a call's time is divided at most. One that hangs costs a third of it, and there
// is more than a moment for a large plan however many replicas there are.
const shares = 3

// tries are the attempts of one call: whose turn it is, its time among them, and the pauses in between.
type tries struct {
	config      *config
	minAttempts int
	deadline    time.Time
	made        int
	// tried are those who had their turn since the last pause.
	tried  []*replica
	pauses int
}

// turn is one attempt.
type turn struct {
	// replica is who is asked.
	replica *replica
	// spare is who else may be asked; nil for nobody.
	spare *replica
	// until is when to stop waiting for an answer.
	until time.Time
}

func newTries(config *config, minAttempts int, deadline time.Time) *tries {
	return &tries{config: config, minAttempts: minAttempts, deadline: deadline}
}

func (t *tries) most(order []*replica) int {
	return max(t.minAttempts, len(order))
}

// turn is the next attempt; nil when there are no more. Everybody is asked once, then each again.
func (t *tries) turn(order []*replica) *turn {
	left := t.most(order) - t.made
	remaining := time.Until(t.deadline)
	if left <= 0 || remaining <= 0 || len(order) == 0 {
		return nil
	}
	others := t.untried(order)
	if len(others) == 0 {
		t.tried = nil
		others = order
	}
	next := &turn{replica: others[0], until: time.Now().Add(remaining / time.Duration(min(left, shares)))}
	if place := slices.IndexFunc(others[1:], (*replica).isEligible); place >= 0 {
		next.spare = others[1+place]
	}
	t.made++
	t.tried = append(t.tried, next.replica)
	return next
}

// also notes that one more was asked besides.
func (t *tries) also(replica *replica) {
	t.made++
	t.tried = append(t.tried, replica)
}

// pause is how long to wait before the next attempt; false when there would be no time left for it. Asked is how long the last
// one that was asked wants to be left alone, if it said so.
func (t *tries) pause(order []*replica, asked time.Duration) (time.Duration, bool) {
	if len(t.untried(order)) > 0 {
		// Another replica may answer at once.
		return 0, true
	}
	pause := jitter(min(t.config.basePause<<min(t.pauses, 16), t.config.maxPause))
	t.pauses++
	if asked > 0 {
		pause = min(asked, t.config.maxPause)
	}
	return pause, t.made < t.most(order) && time.Now().Add(pause).Before(t.deadline)
}

func (t *tries) untried(order []*replica) []*replica {
	return slices.DeleteFunc(slices.Clone(order), func(replica *replica) bool { return slices.Contains(t.tried, replica) })
}
