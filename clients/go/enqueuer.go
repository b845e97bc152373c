package nodewise

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// Queue is the work queue of a program. As the work queues of client-go do, it must keep a key only once however often the key was added,
// and must not give out a key that is being worked on.
//
// A Queue may also have the method AddFirst(key, delay). It adds a key that is taken before other keys once the delay is over, and also if
// the key is added in another way until then.
type Queue interface {
	Add(key types.NamespacedName)
	AddAfter(key types.NamespacedName, delay time.Duration)
}

// firstQueue is a queue that has two classes.
type firstQueue interface {
	AddFirst(key types.NamespacedName, delay time.Duration)
}

// enqueuer puts workloads into the queue. After each reconcile a workload has a cooldown, so that a burst of events leads to one reconcile.
// The first event after the cooldown enqueues the workload at once. Delays that were asked for, such as a back-off, ignore the cooldown.
//
// A workload that is urgent stays urgent during a reconcile and the cooldown, and until a reconcile of it succeeds.
type enqueuer struct {
	cooldown time.Duration
	clock    clock.PassiveClock

	mu sync.Mutex
	// queue is nil until [enqueuer.start].
	queue Queue
	// beforeStart are workloads that are put into the queue by [enqueuer.start].
	beforeStart map[types.NamespacedName]bool
	// urgent are workloads that are to be taken before others.
	urgent map[types.NamespacedName]bool
	// cooldowns are when cooldowns end.
	cooldowns map[types.NamespacedName]time.Time
	// inWork are the workloads that are being reconciled.
	inWork map[types.NamespacedName]*underWay
	// causes are why workloads are in the queue, and since when.
	causes map[types.NamespacedName]*causes
}

// underWay is a reconcile that is under way.
type underWay struct {
	urgent bool
	// enqueueAgain is true if the workload was enqueued meanwhile.
	enqueueAgain bool
}

func newEnqueuer(cooldown time.Duration, clock clock.PassiveClock) *enqueuer {
	return &enqueuer{
		cooldown:    cooldown,
		clock:       clock,
		beforeStart: map[types.NamespacedName]bool{},
		urgent:      map[types.NamespacedName]bool{},
		cooldowns:   map[types.NamespacedName]time.Time{},
		inWork:      map[types.NamespacedName]*underWay{},
		causes:      map[types.NamespacedName]*causes{},
	}
}

// start sets the queue.
func (e *enqueuer) start(queue Queue) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queue = queue
	for key := range e.beforeStart {
		e.add(key, 0)
	}
	clear(e.beforeStart)
}

func (e *enqueuer) enqueue(key types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.enqueueLocked(key)
}

// enqueueFirst enqueues a workload that is to be taken before others.
func (e *enqueuer) enqueueFirst(key types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.urgent[key] = true
	e.enqueueLocked(key)
}

// enqueueAfter enqueues a workload after a delay. The cooldown does not count.
func (e *enqueuer) enqueueAfter(key types.NamespacedName, delay time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.queue != nil {
		e.add(key, delay)
	}
}

func (e *enqueuer) enqueueLocked(key types.NamespacedName) {
	if e.queue == nil {
		e.beforeStart[key] = true
		return
	}
	if underWay := e.inWork[key]; underWay != nil {
		underWay.enqueueAgain = true
		return
	}
	left := e.cooldowns[key].Sub(e.clock.Now())
	if left <= 0 {
		delete(e.cooldowns, key)
	}
	e.add(key, left)
}

func (e *enqueuer) add(key types.NamespacedName, delay time.Duration) {
	e.causesOf(key).due(e.clock.Now(), max(delay, 0))
	queue, hasClasses := e.queue.(firstQueue)
	switch {
	case hasClasses && e.urgent[key]:
		queue.AddFirst(key, delay)
	case delay > 0:
		e.queue.AddAfter(key, delay)
	default:
		e.queue.Add(key)
	}
}

// begin records that a reconcile of a workload begins.
func (e *enqueuer) begin(key types.NamespacedName) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inWork[key] = &underWay{urgent: e.urgent[key]}
	delete(e.urgent, key)
	delete(e.cooldowns, key)
}

// end records that a reconcile has ended, and begins the cooldown. After an urgent reconcile that failed the workload is urgent again.
func (e *enqueuer) end(key types.NamespacedName, result result) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ended := e.inWork[key]
	delete(e.inWork, key)
	if ended.urgent && result.failed {
		e.urgent[key] = true
	}
	if e.cooldown > 0 && !result.gone {
		e.cooldowns[key] = e.clock.Now().Add(e.cooldown)
	}
	if ended.enqueueAgain {
		e.enqueueLocked(key)
	}
}
