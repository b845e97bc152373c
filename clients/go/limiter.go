package nodewise

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// newLimiter makes the rate limiter of failed workloads. It is upstream's with another longest delay: each workload has an exponential
// back-off, and all together are retried 10 times a second, after a burst of 100.
func newLimiter(maxDelay time.Duration) workqueue.TypedRateLimiter[types.NamespacedName] {
	return workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](5*time.Millisecond, maxDelay),
		&sharedLimiter{tokens: rate.NewLimiter(10, 100), maxDelay: maxDelay},
	)
}

// sharedLimiter is a token bucket for all workloads. Unlike client-go's BucketRateLimiter it never reserves tokens further ahead than the
// longest delay: a workload that fails again and again must not make all others wait longer and longer.
type sharedLimiter struct {
	mu       sync.Mutex
	tokens   *rate.Limiter
	maxDelay time.Duration
}

// When implements [workqueue.TypedRateLimiter].
func (l *sharedLimiter) When(types.NamespacedName) time.Duration {
	// The lock spans both calls: a reservation can be cancelled only if no later one was made.
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
