package nodewise

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

// ErrNotDrained says that workers did not finish in time after the stop and were cut off.
var ErrNotDrained = errors.New("reconciles were still under way and were cut off")

// Run watches, and works on what the watches bring, until the context is cancelled; then it hands out nothing that is not queued
// yet, lets the workers finish and returns nil. It is called once.
func (r *Reconciler) Run(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	queue := newWorkQueue(r.config.limiter)
	defer queue.ShutDown()
	r.owe = queue.lanes.owe
	// The watches go on while the workers finish, so that nobody who waits for a cache waits in vain.
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWatching()
	if err := r.Start(watching, queue); err != nil {
		return err
	}
	if err := r.WaitForSync(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	logger.Info("All caches are filled; starting to work", "workers", r.config.workers)
	working, cutOff := context.WithCancel(watching)
	defer cutOff()
	var workers sync.WaitGroup
	for range r.config.workers {
		workers.Go(func() { r.work(working, queue) })
	}
	<-ctx.Done()
	queue.ShutDown()
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

func (r *Reconciler) work(ctx context.Context, queue *workQueue) {
	for {
		key, ended := queue.Get()
		if ended {
			return
		}
		r.workOn(ctx, queue, key)
	}
}

// workOn looks at a workload (M-31). One that panics is not left out for ever: the program ends.
func (r *Reconciler) workOn(ctx context.Context, queue *workQueue, key types.NamespacedName) {
	defer queue.Done(key)
	if err := r.Reconcile(ctx, key); err != nil {
		r.owe(key)
		queue.AddRateLimited(key)
		klog.FromContext(ctx).Error(err, "Trying again", "retries", queue.NumRequeues(key))
		return
	}
	queue.Forget(key)
}
