package nodewise

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	// minRequeueDelay is the shortest delay after which a workload without a token is reconciled again, whatever the service says.
	minRequeueDelay = 100 * time.Millisecond
	// maxTokens is the most tokens that a workload has. A rollout over the largest cluster takes fewer in a row than it gets meanwhile.
	maxTokens = 100
)

// requeueTokens limits how often workloads are reconciled again at once. Each workload has a token bucket. A requeue sooner than after
// [minRequeueDelay] takes a token, and a workload gets a new token every [minRequeueDelay].
type requeueTokens struct {
	mu     sync.Mutex
	tokens map[types.NamespacedName]tokens
}

type tokens struct {
	left float64
	at   time.Time
}

// take takes a token of a workload. It returns false if there is none.
func (t *requeueTokens) take(key types.NamespacedName, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := float64(maxTokens)
	if before, isKnown := t.tokens[key]; isKnown {
		left = min(before.left+now.Sub(before.at).Seconds()/minRequeueDelay.Seconds(), maxTokens)
	}
	isThere := left >= 1
	if isThere {
		left--
	}
	t.tokens[key] = tokens{left, now}
	return isThere
}

// forget drops the tokens of a workload that is gone.
func (t *requeueTokens) forget(key types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.tokens, key)
}

// throttle delays the requeue of a workload that has no token, whether its reconcile failed or not.
func (r *controller) throttle(key types.NamespacedName, ended result, err error) (result, error) {
	after := &ended.after
	var failed *failure
	if errors.As(err, &failed) {
		after = &failed.after
	}
	if *after != nil && **after < minRequeueDelay && !r.requeues.take(key, r.enqueuer.clock.Now()) {
		*after = new(minRequeueDelay)
	}
	return ended, err
}

// unlessAtOnce is the requeue delay of a plan that did nothing or whose report has no answer yet. A requeue at once follows only what was
// done, so it becomes nil.
func unlessAtOnce(after *time.Duration) *time.Duration {
	if after == nil || *after == 0 {
		return nil
	}
	return after
}

// duration is nil for no duration, and for a negative one.
func duration(wire *durationpb.Duration) *time.Duration {
	after := wire.AsDuration()
	if wire == nil || after < 0 {
		return nil
	}
	return &after
}
