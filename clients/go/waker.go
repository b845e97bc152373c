package nodewise

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// Queue is where workloads are put that are to be looked at. It must give out a key once at a time, and once however often it was
// added, as the work queues of client-go do. It may have a method AddFirst(key, delay) besides, for what is not to wait behind
// others once the delay is over, and when it is added otherwise until then.
type Queue interface {
	Add(key types.NamespacedName)
	AddAfter(key types.NamespacedName, delay time.Duration)
}

// firstQueue is a queue that has two classes.
type firstQueue interface {
	AddFirst(key types.NamespacedName, delay time.Duration)
}

// waker puts workloads into the queue, each at most once in a while: after each look at it a workload rests, so that a burst of
// events makes one call. The first event after a quiet time is heeded at once, and what was delayed on purpose comes when it
// is due.
//
// What is urgent stays so through work and rest, and until a look at it has come to something.
type waker struct {
	rest  time.Duration
	clock clock.PassiveClock

	mu sync.Mutex
	// queue is nil until there is one: what is woken before is put into it then.
	queue Queue
	early map[types.NamespacedName]bool
	// urgent are those whose next turn is not to wait behind others.
	urgent map[types.NamespacedName]bool
	// rests are when rests end. In work are those whose rest has not begun.
	rests  map[types.NamespacedName]time.Time
	inWork map[types.NamespacedName]*turn
	// causes are why those in the queue are there, and since when.
	causes map[types.NamespacedName]*causes
}

// turn is a look at a workload that is under way.
type turn struct {
	urgent bool
	// woken: there was reason to look at it again meanwhile.
	woken bool
}

func newWaker(rest time.Duration, clock clock.PassiveClock) *waker {
	return &waker{
		rest:   rest,
		clock:  clock,
		early:  map[types.NamespacedName]bool{},
		urgent: map[types.NamespacedName]bool{},
		rests:  map[types.NamespacedName]time.Time{},
		inWork: map[types.NamespacedName]*turn{},
		causes: map[types.NamespacedName]*causes{},
	}
}

// start wakes into this queue from now on.
func (w *waker) start(queue Queue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	for key := range w.early {
		w.add(key, 0)
	}
	clear(w.early)
}

func (w *waker) wake(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.look(key)
}

// wakeFirst wakes a workload that is not to wait behind others.
func (w *waker) wakeFirst(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.urgent[key] = true
	w.look(key)
}

// wakeAfter wakes a workload later. No rest counts then.
func (w *waker) wakeAfter(key types.NamespacedName, delay time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil {
		w.add(key, delay)
	}
}

func (w *waker) look(key types.NamespacedName) {
	if w.queue == nil {
		w.early[key] = true
		return
	}
	if turn := w.inWork[key]; turn != nil {
		turn.woken = true
		return
	}
	left := w.rests[key].Sub(w.clock.Now())
	if left <= 0 {
		delete(w.rests, key)
	}
	w.add(key, left)
}

func (w *waker) add(key types.NamespacedName, delay time.Duration) {
	w.causesOf(key).due(w.clock.Now(), max(delay, 0))
	queue, hasClasses := w.queue.(firstQueue)
	switch {
	case hasClasses && w.urgent[key]:
		queue.AddFirst(key, delay)
	case delay > 0:
		w.queue.AddAfter(key, delay)
	default:
		w.queue.Add(key)
	}
}

// begin notes that a workload is being looked at.
func (w *waker) begin(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inWork[key] = &turn{urgent: w.urgent[key]}
	delete(w.urgent, key)
	delete(w.rests, key)
}

// end notes that the look is over: the rest begins. If it has come to nothing and was urgent, so is the next.
func (w *waker) end(key types.NamespacedName, ending ending) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ended := w.inWork[key]
	delete(w.inWork, key)
	if ended.urgent && ending.nothing {
		w.urgent[key] = true
	}
	if w.rest > 0 && !ending.gone {
		w.rests[key] = w.clock.Now().Add(w.rest)
	}
	if ended.woken {
		w.look(key)
	}
}
