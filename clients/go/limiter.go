package nodewise

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// newLimiter slows failed workloads down as upstream does, but for the longest delay: each has a back-off of its own, and all together are tried
// 10 times a second, after a burst of 100.
func newLimiter(maxDelay time.Duration) workqueue.TypedRateLimiter[types.NamespacedName] {
	return workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](5*time.Millisecond, maxDelay),
		&sharedLimiter{tokens: rate.NewLimiter(10, 100), maxDelay: maxDelay},
	)
}

// sharedLimiter gives all workloads tokens of one bucket. Unlike that of client-go it never gives out more in advance than the longest delay
// needs: who fails again and again must not make all others wait for ever longer.
type sharedLimiter struct {
	mu       sync.Mutex
	tokens   *rate.Limiter
	maxDelay time.Duration
}

// When implements [workqueue.TypedRateLimiter].
func (l *sharedLimiter) When(types.NamespacedName) time.Duration {
	// Nobody may take a token between the two calls: then none would be given back.
	l.mu.Lock()
	defer l.mu.Unlock()
	token := l.tokens.Reserve()
	delay := token.Delay()
	if delay <= l.maxDelay {
		return delay
	}
	token.Cancel()
	return l.maxDelay
}

// Forget implements [workqueue.TypedRateLimiter].
func (l *sharedLimiter) Forget(types.NamespacedName) {}

// NumRequeues implements [workqueue.TypedRateLimiter].
func (l *sharedLimiter) NumRequeues(types.NamespacedName) int { return 0 }
