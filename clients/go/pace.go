package nodewise

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	// soonest is when a workload without a token comes back at the earliest, whatever the service says.
	soonest = 100 * time.Millisecond
	// mostTokens is the most tokens that a workload has. A rollout over the largest cluster takes fewer in a row than it gets meanwhile.
	mostTokens = 100
)

// pace are the tokens of workloads. Each time that one comes back sooner than after [soonest] takes a token of it; a new one comes after as
// much time.
type pace struct {
	mu     sync.Mutex
	tokens map[types.NamespacedName]tokens
}

type tokens struct {
	left float64
	at   time.Time
}

// take takes a token of a workload, if there is one.
func (p *pace) take(key types.NamespacedName, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := float64(mostTokens)
	if before, isKnown := p.tokens[key]; isKnown {
		left = min(before.left+now.Sub(before.at).Seconds()/soonest.Seconds(), mostTokens)
	}
	isThere := left >= 1
	if isThere {
		left--
	}
	p.tokens[key] = tokens{left, now}
	return isThere
}

// forget is told that a workload is there no more.
func (p *pace) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.tokens, key)
}

// slow lets a workload without a token wait that is to come back at once, whether its reconcile failed or not.
func (r *Reconciler) slow(key types.NamespacedName, ended ending, err error) (ending, error) {
	after := &ended.after
	var failed *failure
	if errors.As(err, &failed) {
		after = &failed.after
	}
	if *after != nil && **after < soonest && !r.pace.take(key, r.waker.clock.Now()) {
		*after = new(soonest)
	}
	return ended, err
}

// unlessAtOnce is when to come back after a plan of which nothing is known, or that did nothing. "At once" goes on from what was done.
func unlessAtOnce(after *time.Duration) *time.Duration {
	if after == nil || *after == 0 {
		return nil
	}
	return after
}

// duration is nil where there is none, or a negative one.
func duration(wire *durationpb.Duration) *time.Duration {
	after := wire.AsDuration()
	if wire == nil || after < 0 {
		return nil
	}
	return &after
}
