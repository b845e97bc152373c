package nodewise

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// Queue is where workloads are put that are to be looked at. It must give out a key once at a time, and once however often it was
// added, as the work queues of client-go do. It may have a method AddFirst besides, for what is not to wait behind others.
type Queue interface {
	Add(key types.NamespacedName)
	AddAfter(key types.NamespacedName, delay time.Duration)
}

// firstQueue is a queue that has two classes.
type firstQueue interface {
	AddFirst(key types.NamespacedName)
}

// waker puts workloads into the queue, each at most once in a while: after each look at it a workload rests, so that a burst of
// events makes one call. The first event after a quiet time is heeded at once, and what was delayed on purpose comes when it
// is due.
type waker struct {
	rest  time.Duration
	clock clock.Clock

	mu sync.Mutex
	// queue is nil until there is one: what is woken before is put into it then.
	queue Queue
	early map[types.NamespacedName]bool
	// rests are when rests end. In work are those whose rest has not begun.
	rests map[types.NamespacedName]time.Time
	// inWork tells of workloads that are being looked at whether they were woken meanwhile.
	inWork map[types.NamespacedName]bool
}

func newWaker(rest time.Duration, clock clock.Clock) *waker {
	return &waker{
		rest:   rest,
		clock:  clock,
		early:  map[types.NamespacedName]bool{},
		rests:  map[types.NamespacedName]time.Time{},
		inWork: map[types.NamespacedName]bool{},
	}
}

// start wakes into this queue from now on.
func (w *waker) start(queue Queue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	for key := range w.early {
		queue.Add(key)
	}
	clear(w.early)
}

func (w *waker) wake(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(key, false)
}

// wakeFirst wakes a workload that is not to wait behind others.
func (w *waker) wakeFirst(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(key, true)
}

// wakeAfter wakes a workload later. No rest counts then.
func (w *waker) wakeAfter(key types.NamespacedName, delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil {
		w.queue.AddAfter(key, delay)
	}
}

func (w *waker) add(key types.NamespacedName, first bool) {
	if w.queue == nil {
		w.early[key] = true
		return
	}
	if _, working := w.inWork[key]; working {
		w.inWork[key] = true
		return
	}
	if left := w.rests[key].Sub(w.clock.Now()); left > 0 {
		w.queue.AddAfter(key, left)
		return
	}
	delete(w.rests, key)
	if queue, hasClasses := w.queue.(firstQueue); first && hasClasses {
		queue.AddFirst(key)
		return
	}
	w.queue.Add(key)
}

// begin notes that a workload is being looked at.
func (w *waker) begin(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inWork[key] = false
	delete(w.rests, key)
}

// end notes that the look is over: the rest begins, unless the workload is gone.
func (w *waker) end(key types.NamespacedName, gone bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	woken := w.inWork[key]
	delete(w.inWork, key)
	if w.rest > 0 && !gone {
		w.rests[key] = w.clock.Now().Add(w.rest)
	}
	if woken {
		w.add(key, false)
	}
}
