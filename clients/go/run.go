package nodewise

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// ErrNotDrained says that reconciles did not end within the drain timeout after the stop, and were cancelled.
var ErrNotDrained = errors.New("reconciles were still under way and were cut off")

// Run watches and reconciles until the context is cancelled. Then it begins no new reconciles and requests no more plans. It completes and
// reports the plans that are being applied, and returns nil. It waits up to 2 seconds for the response to a report. Run may be called once.
func (r *Reconciler) Run(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	queues := map[Kind]*workQueue{}
	shutDown := func() {
		for _, queue := range queues {
			queue.ShutDown()
		}
	}
	for i, owned := range r.Kinds() {
		name := r.config.name
		if i > 0 {
			name += "-" + strings.ToLower(string(owned))
		}
		queues[owned] = newWorkQueue(name, r.config.workers)
	}
	defer shutDown()
	// The watches go on while the workers finish.
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWatching()
	if err := r.StartKinds(watching, func(owned Kind) Queue { return queues[owned] }); err != nil {
		return err
	}
	if err := r.WaitForSync(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	logger.Info("All caches are filled; starting to work", "kinds", r.Kinds(), "workers", r.config.workers)
	writing, cutOff := context.WithCancel(watching)
	defer cutOff()
	var workers sync.WaitGroup
	for _, controller := range r.controllers {
		queue := queues[Kind(controller.kind.Name)]
		for range r.config.workers + 1 {
			workers.Go(func() { controller.work(writing, ctx, queue) })
		}
	}
	<-ctx.Done()
	shutDown()
	done := make(chan struct{})
	go func() {
		workers.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(r.config.drainTimeout):
		return fmt.Errorf("%w %s after the stop", ErrNotDrained, r.config.drainTimeout)
	}
}

func (r *controller) work(ctx, asking context.Context, queue *workQueue) {
	for {
		key, ended := queue.Get()
		if ended {
			return
		}
		r.workOn(ctx, asking, queue, key)
	}
}

// workOn reconciles a workload. A panic ends the program: otherwise the queue would never give out the workload again. A workload that the
// service refuses is never given up: the service may be mended.
func (r *controller) workOn(ctx, asking context.Context, queue *workQueue, key types.NamespacedName) {
	defer queue.Done(key)
	backoff := r.limiter
	logger, after, err := r.reconcileAndRequeue(ctx, asking, key)
	switch {
	case err == nil:
		backoff.Forget(key)
		r.failures.Forget(key)
	case errors.Is(err, ErrNotYet):
	case r.kind.maxRetries > 0 && !isRefusal(err) && r.failures.NumRequeues(key) >= r.kind.maxRetries:
		backoff.Forget(key)
		r.failures.Forget(key)
		logger.Error(err, "This was tried too often; waiting for the next event", "retries", r.kind.maxRetries)
	default:
		if !isRefusal(err) {
			r.failures.When(key)
		}
		delay := backoff.When(key)
		r.enqueuer.enqueueAfter(key, delay)
		if after != nil {
			delay = min(delay, *after)
		}
		logger.Error(err, "Trying again", "retries", backoff.NumRequeues(key), "after", delay)
	}
}
